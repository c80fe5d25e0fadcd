// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/clip.hpp>
#include <descent/comm/threads.hpp>
#include <descent/loss_scale.hpp>
#include <descent/on_plateau.hpp>
#include <descent/optimizer.hpp>
#include <descent/parallel.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sgd.hpp>

#include <doctest/doctest.h>
#include "support/ranks.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

/// What goes wrong elsewhere when several ranks train.

namespace ds = descent;
using fault = ds::comm::threads::fault;
using ranks::has, ranks::model, ranks::none, ranks::on_ranks, ranks::sizes;

namespace {

constexpr int team = 3;

/// work(comm, policy) for replicated and sharded, each in a world of its own. What the ranks threw, by policy and rank.
template <class Work>
std::vector<std::vector<std::string>> on_each(std::chrono::nanoseconds deadline, Work const& work) {
  std::vector<std::vector<std::string>> all;
  auto const run = [&](auto const& policy) {
    ds::comm::threads world{team, deadline};
    all.push_back(on_ranks(world, [&](auto& comm) { work(comm, policy(comm)); }));
  };
  run(ranks::replicated), run(ranks::sharded);
  return all;
}

}  // namespace

TEST_CASE("trap 26: whether a step is skipped is decided behind the sum of all ranks, however late one comes") {
  for (unsigned late = 0; late < 8; ++late) {
    ds::comm::threads world{team, std::chrono::seconds(60)};
    world.before = [&](int r, std::int64_t number) {
      if (unsigned(number * 3 + r) % 8 == late) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return fault::none;
    };
    CHECK(none(on_ranks(world, [&](auto& comm) {
      std::vector<float> p(100, 1), g(100, 1);
      ds::parameters<float> list;
      list.add("p", p.data(), g.data(), 100);
      ds::optimizer opt{list, ds::sgd{}, ds::dynamic_loss_scale{.init = 8}, ds::sharded{comm}};
      if (comm.rank() == int(late % team)) g[99] = std::numeric_limits<float>::infinity();
      opt.step();
      CHECK_FALSE(opt.report().applied);
      CHECK(opt.loss_scale() == 4);
      CHECK(p == std::vector<float>(100, 1));
    })));
  }
}

TEST_CASE("trap 34: the first step moves every parameter on every rank") {
  for (auto const& thrown : on_each(std::chrono::seconds(60), [](auto& comm, auto policy) {
         std::vector<float> p(20000, 1), g(20000, float(comm.rank() + 1));
         ds::parameters<float> list;
         list.add("p", p.data(), g.data(), p.size());
         ds::optimizer opt{list, ds::sgd{.lr = 0.25}, policy};
         opt.step();
         CHECK(p == std::vector<float>(20000, 0.5f));
       }))
    CHECK(none(thrown));
}

TEST_CASE("trap 35: sizes that are prime are divided, too, and the memory is") {
  for (std::size_t n : {20011u, 40009u, 99991u}) {
    std::int64_t whole = 0, largest = 0, sum = 0;
    for (int ranks : {1, 3, 7}) {
      ds::comm::threads world{ranks, std::chrono::seconds(60)};
      std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks));
      CHECK(none(on_ranks(world, [&](auto& comm) {
        std::vector<float> p(n), g(n);
        ds::parameters<float> list;
        list.add("p", p.data(), g.data(), n);
        ds::optimizer opt{list, ds::adamw{}, ds::sharded{comm}};
        bytes[std::size_t(comm.rank())] = std::int64_t(opt.state("p", 0).size() * 4);
      })));
      if (ranks == 1) whole = bytes[0];
      largest = sum = 0;
      for (auto b : bytes) largest = std::max(largest, b), sum += b;
      CHECK(sum == whole);
      CHECK(whole == std::int64_t(n * 4));
      CHECK(largest <= whole / ranks + 2 * 4096 * 4);
    }
  }
}

TEST_CASE("trap 38: two optimizers of one size, in another order on one rank: all are told, and no value changes") {
  for (auto const& thrown : on_each(std::chrono::seconds(2), [](auto& comm, auto policy) {
         std::vector<float> p(50, 1), q(50, 2), g(50, 1);
         ds::parameters<float> first, second;
         first.add("p", p.data(), g.data(), 50), second.add("p", q.data(), g.data(), 50);
         ds::optimizer a{first, ds::sgd{}, policy}, b{second, ds::sgd{}, policy};
         try {
           comm.rank() == 1 ? b.step() : a.step();
         } catch (...) {
           CHECK(p == std::vector<float>(50, 1));
           CHECK(q == std::vector<float>(50, 2));
           throw;
         }
       }))
    for (auto const& text : thrown) CHECK(has(text, "is in step(), others in another call or optimizer"));
}

TEST_CASE("another call, t, rate or frozen group on one rank is told to all") {
  auto const check = [](auto const& odd) {
    for (auto const& thrown : on_each(std::chrono::seconds(2), [&](auto& comm, auto policy) {
           std::vector<float> p(50, 1), g(50, 1);
           ds::parameters<float> list;
           list.add("p", p.data(), g.data(), 50);
           ds::optimizer opt{list, ds::sgd{}, ds::on_plateau{{.factor = 0.5, .patience = 0}}, policy};
           try {
             if (comm.rank() == 2) odd(opt);
             opt.step();
           } catch (...) {
             CHECK(p == std::vector<float>(50, 1));
             throw;
           }
         }))
      for (auto const& text : thrown) CHECK(has(text, "others in another call or optimizer, or with another t"));
  };
  check([](auto& opt) { opt.freeze(0); });
  check([](auto& opt) { opt.group(0).lr = 7; });
  check([](auto& opt) { opt.set_step(3); });
  check([](auto& opt) { opt.observe(1.0), opt.observe(2.0); });
  check([](auto& opt) { opt.gradient_norm(); });
}

TEST_CASE("trap 39: collectives read and write as many elements as they say, and no more") {
  ds::comm::threads world{team, std::chrono::seconds(60)};
  CHECK(none(on_ranks(world, [](auto& comm) {
    auto const each = [&]<class T>(T) {
      for (int n : {0, 1, 3, 17}) {  // exact allocations: a sanitizer watches what lies behind
        auto const filled = [&](int count) {
          auto one = std::make_unique<T[]>(std::size_t(count));
          for (int i = 0; i < count; ++i) one[std::size_t(i)] = ds::narrow<T>(double(comm.rank() + i));
          return one;
        };
        auto const at = [](auto const& x, int i) { return ds::widen<double>(x[std::size_t(i)]); };
        auto sum = filled(n), part = filled(n), all = filled(team * n), to = filled(team * n), from = filled(n);
        comm.all_reduce(sum.get(), n);
        comm.reduce_scatter(all.get(), part.get(), n);
        for (int i = 0; i < n; ++i) {
          CHECK(at(sum, i) == 3 + 3 * i);
          CHECK(at(part, i) == 3 + 3 * (comm.rank() * n + i));
        }
        comm.all_gather(from.get(), to.get(), n);
        for (int i = 0; i < team * n; ++i) CHECK(at(to, i) == i / n + i % n);
        comm.all_to_all(all.get(), to.get(), n);
        for (int i = 0; i < team * n; ++i) CHECK(at(to, i) == i / n + comm.rank() * n + i % n);
        comm.broadcast(from.get(), n, 2);
        for (int i = 0; i < n; ++i) CHECK(at(from, i) == 2 + i);
      }
    };
    each(1.0), each(1.0f), each(ds::half{}), each(ds::bfloat16{});
  })));
}

TEST_CASE("trap 41: ordered sums have the same bits in 100 runs") {
  std::vector<std::string> seen;
  for (int run = 0; run < 100; ++run) {
    ds::comm::threads world{team, std::chrono::seconds(60)};
    std::vector<float> p(300), sum(300);
    CHECK(none(on_ranks(world, [&](auto& comm) {
      std::vector<float> mine(300), g(300);
      for (std::size_t i = 0; i < g.size(); ++i) g[i] = float(ranks::gradient_of(comm.rank(), 0, 0, i)) / 3;
      ds::parameters<float> list;
      list.add("p", mine.data(), g.data(), 300);
      ds::optimizer opt{list, ds::lamb{}, ds::clip_norm{1}, ds::replicated{comm, ds::ordered_sum{}}};
      opt.step(), opt.step();
      if (comm.rank() == run % team) p = mine;
    })));
    seen.push_back({reinterpret_cast<char const*>(p.data()), p.size() * sizeof(float)});
    CHECK((seen.back() == seen.front()));
  }
}

TEST_CASE("trap 42: what one rank alone reads neither hangs nor lies: its part of the state; a deadline for the norm") {
  auto const began = std::chrono::steady_clock::now();
  std::vector<std::vector<std::string>> const all =
      on_each(std::chrono::milliseconds(500), [](auto& comm, auto policy) {
        std::vector<float> p(20000, 1), g(20000, 1);
        ds::parameters<float> list;
        list.add("p", p.data(), g.data(), p.size());
        ds::optimizer opt{list, ds::adamw{}, policy};
        opt.step();
        bool const shards = ds::detail::chosen<float, float, ds::adamw, decltype(policy)>::plan::shards;
        if (comm.rank() == 1) {
          auto const m = opt.state("p", 0);
          CHECK((m.size() < p.size()) == shards);
          for (float one : m) CHECK(one == doctest::Approx(0.1));
          CHECK(opt.report().step == 1);
          opt.gradient_norm();
        } else {
          std::this_thread::sleep_for(std::chrono::seconds(1));
        }
      });
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(10));
  for (auto const& thrown : all) {
    CHECK(has(thrown[1], "rank 1 waited 0.5 s in collective "));
    CHECK(has(thrown[1], " for rank 0, 2"));
  }
}
