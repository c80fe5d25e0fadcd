// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/cuda.cuh>
#include <descent/data/device_loader.hpp>
#include <descent/data/sources.hpp>
#include <descent/io/async_save.hpp>
#include <descent/io/checkpoint.hpp>
#include <descent/io/collect.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>

#include "nccl/side.cuh"
#include "support/file_difference.hpp"
#include "support/message.hpp"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

/// Checkpoints of ranks that are processes with a device each: the file of one process on the host, in parts.

namespace ds = descent;
using ds::half;
using test::file_difference, test::joined, test::message;
using namespace side_by_side;

namespace {

/// A path that all ranks know.
std::string common(std::string const& name) { return std::getenv("DESCENT_TEST_FOLDER") + ("/" + name); }

template <bool Device> using model = side<half, float, Device>;
template <class Model, class... Ps> auto make(Model& m, Ps... policies) {
  return ds::optimizer{m.list(), ds::adamw{.lr = 0.01}, ds::master<float>{}, ds::ema{.decay = 0.5},
                       ds::dynamic_loss_scale{.init = 4, .interval = 2}, policies...};
}
template <class Opt, class Model> void train(Opt& opt, Model& m, int from, int to) {
  for (int t = from; t < to; ++t) m.set(t), opt.step(m.weight);
  m.look();
}

/// Calls f(name, make) for both ways to share the work; make(model) is an optimizer on this rank's device.
template <class F> void in_both_ways(joined& comm, test::stream const& s, F const& f) {
  f("replicated", [&](model<true>& m) { return make(m, ds::replicated{comm, ds::ordered_sum{}}, ds::cuda{s}); });
  f("sharded", [&](model<true>& m) { return make(m, ds::sharded{comm, ds::ordered_sum{}}, ds::cuda{s}); });
}

}  // namespace

TEST_CASE("ranks save what one process on the host saves, and resume bit for bit from each other's files") {
  joined comm;
  test::stream s;
  model<false> here(of_many_chunks, s, comm);
  auto alone = make(here, ds::accumulate{1});
  train(alone, here, 0, 3);
  std::string const of_host = common("host" + std::to_string(comm.rank()));
  ds::save_file(of_host, alone);
  train(alone, here, 3, 6);
  auto const name = [](char const* way) { return common(way); };

  in_both_ways(comm, s, [&](char const* way, auto const& make_on_device) {
    INFO(way, ", rank ", comm.rank(), " of ", comm.size(), " saves");
    model<true> m(of_many_chunks, s, comm);
    m.differ();
    auto opt = make_on_device(m);
    train(opt, m, 0, 3);
    ds::save_file(name(way), opt);
    CHECK(test::same_bits(m.values(), here.seen[0]));
    if (comm.rank() == 0) {
      ds::collect(name(way), common("whole"));
      CHECK(file_difference(of_host, common("whole")) == "");
    }
    {
      ds::async_save saver;  // overwrites it while training goes on
      saver.save(name(way), opt);
      train(opt, m, 3, 6);
    }
    CHECK(test::same_bits(m.values(), here.seen[1]));
  });
  in_both_ways(comm, s, [&](char const* way, auto const& make_on_device) {
    model<true> m(of_many_chunks, s, comm);
    m.differ();
    auto opt = make_on_device(m);
    for (std::string const& file : {name("replicated"), name("sharded"), of_host}) {
      INFO(way, ", rank ", comm.rank(), " of ", comm.size(), " loads ", file);
      CHECK(ds::load_file(file, opt).same_configuration);
      m.look();
      CHECK(test::same_bits(m.seen.back(), here.seen[0]));
      train(opt, m, 3, 6);
      CHECK(test::same_bits(m.seen.back(), here.seen[1]));
    }
  });
}

TEST_CASE("a rank that cannot write, or is capturing, fails the save of all, and nothing changes") {
  joined comm;
  test::stream s;
  in_both_ways(comm, s, [&](std::string const& way, auto const& make_on_device) {
    INFO(way, ", rank ", comm.rank());
    model<true> m(of_many_chunks, s, comm);
    auto opt = make_on_device(m);
    train(opt, m, 0, 1);
    std::string const path = common(way + "2");
    ds::save_file(path, opt);
    train(opt, m, 1, 2);
    int const failed = way == "sharded" ? comm.size() - 1 : 0;
    auto const refused = [&](auto const& f) {
      auto const why = message<std::exception>(f);
      INFO(why);
      CHECK(why.ends_with("cannot be written: its folder cannot be opened: No such file or directory"));
      std::string const who = comm.rank() == failed ? "" : "rank " + std::to_string(failed) + ": ";
      CHECK(why.starts_with(who + common("gone/" + way + "2")));
    };
    std::string const bad = comm.rank() == failed ? common("gone/" + way + "2") : path;
    refused([&] { ds::save_file(bad, opt); });
    ds::async_save saver;
    saver.save(bad, opt);
    refused([&] { saver.wait(); });

    auto const before = m.values();
    test::graph const nothing(s, [&] {
      auto const capturing = [](auto const& f) {
        CHECK(message(f) ==
              "save_file() or load_file() waits for the stream, which is capturing: call it after the graph has run");
      };
      capturing([&] { ds::save_file(path, opt); });
      capturing([&] { ds::load_file(path, opt); });
      capturing([&] { saver.save(path, opt); });
    });
    CHECK(nothing.nodes == 0);
    CHECK(test::same_bits(m.values(), before));
    ds::load_file(path, opt);
    CHECK(opt.report().step == 1);
    CHECK(test::same_bits(m.values(), m.seen[0]));
    train(opt, m, 1, 2);
    CHECK(test::same_bits(m.values(), m.seen[1]));
  });
}

TEST_CASE("loaders of ranks with a device each compare their data, and the positions that they load") {
  joined comm;
  test::stream s;
  std::vector<float> const numbers(40, 1.0f);
  bool const last = comm.rank() == comm.size() - 1;
  auto const made = [&](std::uint64_t seed) {
    return ds::loader{ds::in_memory{ds::column{ds::field<"x", float>{}, numbers}}, ds::batches{8},
                      ds::shuffled{.seed = seed}, ds::workers{.threads = 1}, comm, ds::cuda{s}};
  };
  auto const starts = [](std::string const& text, std::string const& with) { return text.starts_with(with); };
  if (comm.size() > 1)
    CHECK(starts(message([&] { made(last); }), "ranks disagree about the data: an order of seed 0 (rank 0"));
  auto data = made(1);
  auto const load = [&](std::int64_t batch) {
    data.load([&]<class T>(std::string const&, std::span<T const> now) {
      std::vector<T> piece(now.begin(), now.end());
      if constexpr (std::is_same_v<T, std::int64_t>) piece[1] = batch;
      return piece;
    });
  };
  if (comm.size() > 1)
    CHECK(starts(message([&] { load(last ? 3 : 2); }), "ranks disagree about the data: epoch 0, batch 2 (rank 0"));
  load(4);
  CHECK(data.next().global_size() == 8);
  CHECK(data.position() == ds::loader_position{1, 0});
}
