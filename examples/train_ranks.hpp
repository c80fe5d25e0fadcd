// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "parts/arguments.hpp"
#include "parts/hash.hpp"
#include "parts/output.hpp"
#include "train.hpp"

#include <descent/ranks/parallel.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace example {

/// The options of the command line besides those of train.
struct rank_options {
  std::string policy = "replicated", sum = "ordered";
  int micro_batches = 1, bucket_bytes = 0;
  std::vector<std::string> others;
};

inline constexpr char const* rank_help = R"(usage: mpirun -np N train_ranks [options]

Trains one network on N ranks, each with its part of every batch. Rank 0 prints and writes.

ranks
  --policy NAME      replicated: the whole step on every rank (default)
                     sharded: each rank its part of the step
                     single: one process, to compare with
  --sum NAME         of the gradients: ordered, in the order of the ranks (default), or native
  --buckets BYTES    send gradients in buckets of so many bytes during the backward pass (default: 0,
                     send all of them after it); with ordered sums
  --micro-batches N  backward passes of each rank for its part of a batch (default: 1)

The optimizer is adamw, in float. All other options are those of train, without --save, --every,
--resume, --level and --compare:

)";

inline rank_options parse_rank_options(std::vector<std::string> const& arguments) {
  rank_options o;
  auto names = option_names();
  names.insert(names.end(), {"--policy", "--sum", "--buckets", "--micro-batches"});
  each_option(arguments, names, [&](std::string const& name, std::string const& value) {
    if (name == "--policy") o.policy = one_of(name, value, {"replicated", "sharded", "single"});
    else if (name == "--sum") o.sum = one_of(name, value, {"ordered", "native"});
    else if (name == "--buckets") o.bucket_bytes = integer(name, value, 0, 1 << 30);
    else if (name == "--micro-batches") o.micro_batches = integer(name, value, 1, 65536);
    else o.others.push_back(name + "=" + value);
  });
  return o;
}

/// Sums a number over all ranks.
template <class Device, class Comm> double sum_over_ranks(Device& device, Comm& comm, double x) {
  typename Device::template array<double> sum(std::vector<double>{x});
  if constexpr (Comm::on_device) comm.all_reduce(sum.data(), 1, device.backend().stream);
  else comm.all_reduce(sum.data(), 1);
  return device.to_host(sum)[0];
}

/// The training loop of train.hpp with one more policy.
// snippet: ranks
template <class Device, class Comm>
history train_on_ranks(Device& device, Comm& comm, network<Device, float>& net, rank_options const& r, options const& o,
                       ds::adamw const& rule, dataset const& data, console& out) {
  auto const sum = [&](double x) { return sum_over_ranks(device, comm, x); };
  share const mine{comm.rank(), comm.size(), r.micro_batches, sum};

  auto const with = [&](auto policy) {
    return train(device, net, o, "adamw", rule, data, out, mine, ds::accumulate{r.micro_batches}, policy);
  };
  bool const ordered = r.sum == "ordered", shards = r.policy == "sharded";
  if (r.policy == "single") return with(ds::single{});
  if (r.bucket_bytes > 0) {
    if (!ordered) fail("--buckets needs --sum ordered");
    ds::overlap const buckets{r.bucket_bytes};
    return shards ? with(ds::sharded{comm, ds::ordered_sum{}, buckets})
                  : with(ds::replicated{comm, ds::ordered_sum{}, buckets});
  }
  if (shards) return ordered ? with(ds::sharded{comm, ds::ordered_sum{}}) : with(ds::sharded{comm});
  return ordered ? with(ds::replicated{comm, ds::ordered_sum{}}) : with(ds::replicated{comm});
}
// end

/// Prints the hash of the parameters, which must be the same on every rank, and writes them to a file as they are in
/// memory.
template <class Device, class Comm>
void keep_parameters(Device& device, Comm& comm, std::vector<float> const& values, std::string const& folder,
                     console& out) {
  std::string const bytes(reinterpret_cast<char const*>(values.data()), values.size() * sizeof(float));
  std::uint64_t const hash = hash_of(bytes);
  for (double const half : {double(hash >> 32), double(hash & 0xffffffff)})
    if (sum_over_ranks(device, comm, half) != comm.size() * half)
      throw std::runtime_error("ranks end with different parameters");
  out.say("\nparameters " + hex(hash) + " on " + std::to_string(comm.size()) + (comm.size() == 1 ? " rank" : " ranks"));
  if (comm.rank() != 0) return;
  write_file(std::filesystem::path{folder} / "parameters.bin", bytes);
}

/// The program on one rank. Only the communicator and the device differ between CPUs and GPUs.
template <class Device, class Comm> void run_rank(Comm& comm, std::vector<std::string> const& arguments) {
  bool const first = comm.rank() == 0;
  if (asks_for_help(arguments)) {
    if (first) std::fputs((rank_help + help_text()).c_str(), stdout);
    return;
  }
  auto const r = parse_rank_options(arguments);
  auto const o = parse_options(r.others);
  if (!o.save.empty() || !o.resume.empty()) fail("--save, --every and --resume are options of train only");
  if (o.level != opt_level::none) fail("--level is an option of train only");
  if (o.storage != precision::float_) fail("--precision must be float on several ranks, is " + to_string(o.storage));
  if (r.policy == "single" && comm.size() > 1)
    fail("--policy single is for one rank, there are " + std::to_string(comm.size()));
  if (!o.values.empty() || o.optimizers.size() > 1) fail("--compare is an option of train only");
  if (!std::holds_alternative<ds::adamw>(o.optimizers[0].rule))
    fail("the optimizer must be adamw on several ranks, is " + example::quoted(o.optimizers[0].label));

  if (first) require_writable(std::filesystem::path{o.out} / "parameters.bin");
  Device device;
  auto const train_one = [&](options const&, optimizer_choice const& choice, dataset const& data, console& out) {
    auto net = initial_network<float>(device, o, data);
    auto run = train_on_ranks(device, comm, net, r, o, std::get<ds::adamw>(choice.rule), data, out);
    keep_parameters(device, comm, net.values(), o.out, out);
    return run;
  };
  train_and_draw(o, train_one, first);
}

}  // namespace example
