// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/cpu.hpp"
#include "../parts/network.hpp"
#include "../parts/timeline.hpp"
#include "experiment.hpp"

#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// Two ranks that are threads, with a slow wire and slow layers, and what they did when.
namespace example::learn {

// snippet: wire
/// Ranks that are threads, with a wire that takes 1 ms for a message and 50 ms for a megabyte.
struct slow_wire : ds::comm::threads::member {
  std::vector<work> done = {};
  std::string text = "all";
  explicit slow_wire(ds::comm::threads::member&& fast) : member(std::move(fast)) {}

  template <class T> void all_reduce(T* sum, std::int64_t n) {
    double const from = milliseconds_now();
    sleep_until(from + 1 + 50e-6 * double(n) * sizeof(T));
    member::all_reduce(sum, n);
    done.push_back(
        {"rank " + std::to_string(rank()) + ": wire", "all-reduce", n > 1000 ? text : "", from, milliseconds_now()});
  }
};
// end

struct result {
  std::vector<std::vector<work>> steps = {};
  int overlapped = 0;  // steps in which the last layer's exchange begins before the first layer's gradient is there
  std::vector<float> values = {};
};

template <class... Options> void train(ds::comm::threads& world, int rank, int steps, result& r, Options... options) {
  dataset const data = embedded_digits();
  auto const mine = rows_of(data.train).part({64 * rank, 64});
  cpu device;
  random_source initial{1};
  network<cpu, float> net{device, 64, parse_network("relu200,relu200,relu200,relu200"), 10, 64, initial};
  slow_wire comm{world.rank(rank)};
  ds::optimizer opt{net.parameters(), ds::adamw{}, ds::replicated{comm, options...}};
  for (int t = 0; t < steps; ++t) {
    std::byte nothing{};
    comm.broadcast(&nothing, 1, 0);  // the ranks begin together
    comm.done.clear();
    std::vector<work> done;
    double from = milliseconds_now();
    auto const add = [&](char const* kind, std::string const& text, std::size_t products) {
      sleep_until(from + 2e-6 * double(products));  // as on a device that makes 500,000 in a millisecond
      done.push_back({"rank " + std::to_string(rank) + ": compute", kind, text, from, milliseconds_now()});
      from = done.back().to;
    };
    net.forward(mine);
    add("forward", "1 to 5", 64 * net.values().size());
    // snippet: overlap
    std::atomic<std::size_t> incomplete{5};  // layers whose gradients are not there yet
    std::thread sender([&] {
      if constexpr (sizeof...(options) > 0)
        for (std::size_t k = 5; k-- > 0;) {
          for (auto n = incomplete.load(); n > k; n = incomplete.load()) incomplete.wait(n);
          comm.text = std::to_string(k + 1);
          opt.ready(2 * k + 1), opt.ready(2 * k);  // bias, weight
        }
    });
    net.backward(64, false, [&](std::size_t k) {
      add("backward", std::to_string(k + 1), 2 * 64 * net.layers()[k].weight.size());
      incomplete = k, incomplete.notify_one();
    });
    sender.join();
    opt.step();
    // end
    r.overlapped += comm.done.front().from < from;
    from = comm.done.back().to;
    add("update", "", 0);
    done.insert(done.end(), comm.done.begin(), comm.done.end());
    r.steps.push_back(done);
  }
  r.values = net.values();
}

/// Two ranks; adds the fastest of their steps to the timelines.
std::array<result, 2> run(std::string const& title, int steps, std::vector<timeline>& all, auto const&... options) {
  ds::comm::threads world{2};
  std::array<result, 2> r;
  std::thread other([&] { train(world, 1, steps, r[1], options...); });
  train(world, 0, steps, r[0], options...);
  other.join();
  for (std::size_t t = 0; t < r[0].steps.size(); ++t)
    r[0].steps[t].insert(r[0].steps[t].end(), r[1].steps[t].begin(), r[1].steps[t].end());
  all.push_back({title, std::ranges::min(r[0].steps, {}, length)});
  return r;
}

}  // namespace example::learn
