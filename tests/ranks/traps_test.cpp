// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/threads.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/plateau.hpp>

#include <doctest/doctest.h>
#include "support/ranks.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

/// Mistakes of other systems when several ranks train.

namespace ds = descent;
using fault = ds::comm::threads::fault;
using ranks::has, ranks::model, ranks::none, ranks::on_ranks, ranks::sizes;

namespace {

constexpr int team = 3;

/// A rule that inherits its fields.
struct derived : ds::sgd {};
/// A rule whose fields the library cannot read.
struct hidden : ds::sgd {
  double by = 1;
  auto at(std::int64_t t) const {
    auto k = ds::sgd::at(t);
    k.lr *= by;
    return k;
  }
};

/// Runs work(comm, policy) for replicated and sharded, each in its own world. Returns what was thrown.
template <class Work>
std::vector<std::vector<std::string>> on_each(Work const& work) {
  std::vector<std::vector<std::string>> all;
  auto const run = [&](auto const& policy) {
    ds::comm::threads world{team, std::chrono::seconds(60)};
    all.push_back(on_ranks(world, [&](auto& comm) { work(comm, policy(comm)); }));
  };
  run(ranks::replicated), run(ranks::sharded);
  return all;
}

/// Whether the functions of the calling rank throw.
thread_local bool throws = false;
struct own_rate {
  double operator()(std::int64_t) const { return throws ? throw std::runtime_error("no rate") : 0.5; }
};
struct own_clip {
  using policy_kind = ds::kind::clip;
  static constexpr ds::norm of = ds::norm::l2;
  static constexpr ds::scope over = ds::scope::model;
  double factor(double) const { return throws ? throw std::runtime_error("no factor") : 1; }
};

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

TEST_CASE("trap 35: sizes that are prime are divided, too, and the memory is") {
  for (std::size_t n : {20011u, 40009u, 99991u})
    for (int ranks : {1, 2, 3, 4, 7}) {
      std::vector<std::int64_t> held(std::size_t(ranks), 0), bytes(std::size_t(ranks), 0);
      ranks::with_ranks(ranks, [&](auto& comm) {
        std::vector<float> p(n), g(n, 1);
        ds::parameters<float> list;
        list.add("p", p.data(), g.data(), n);
        ds::optimizer opt{list, ds::adamw{}, ds::sharded{comm}};
        opt.step();
        auto const m = opt.state("p", 0);
        held[std::size_t(comm.rank())] = std::int64_t(m.size());
        for (float one : m) CHECK(one == doctest::Approx(0.1));
        for (auto const& b : opt.memory().buffers)
          if (b.name.starts_with("state")) bytes[std::size_t(comm.rank())] += b.bytes;
      });
      CHECK(std::accumulate(held.begin(), held.end(), std::int64_t{0}) == std::int64_t(n));
      for (std::size_t r = 0; r < held.size(); ++r) {
        CHECK(bytes[r] >= 8 * held[r]);
        CHECK(bytes[r] <= 8 * (std::int64_t(n) / ranks + 2 * 4096));
      }
    }
}

TEST_CASE("trap 38: two optimizers of one size, in another order on one rank: all report it, and no value changes") {
  for (auto const &thrown : on_each([](auto& comm, auto policy) {
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
    for (auto const& text : thrown) CHECK(has(text, "is in step(), but ranks differ: optimizer "));
}

TEST_CASE("a rank that differs in its call, t, loss scale, frozen groups or a rule's field is reported on every rank") {
  auto const check = [](auto const& says, auto const& odd) {
    for (auto const &thrown : on_each([&](auto& comm, auto policy) {
           std::vector<float> p(50, 1), g(50, 1);
           ds::parameters<float> list;
           list.add("p", p.data(), g.data(), 50);
           ds::optimizer opt{list, derived{}, ds::on_plateau{{.factor = 0.5, .patience = 0}},
                             ds::dynamic_loss_scale{.init = 8}, policy};
           try {
             if (comm.rank() == 2) odd(opt);
             opt.step();
           } catch (...) {
             CHECK(p == std::vector<float>(50, 1));
             throw;
           }
         }))
      for (auto const& text : thrown) {
        INFO(text);
        CHECK(has(text, std::string(", but ") + says));
      }
  };
  check("ranks differ: group 0 is not frozen (rank 0, 1); group 0 is frozen (rank 2)", [](auto& o) { o.freeze(0); });
  check("ranks differ: weight_decay of group 0 is 0 (rank 0, 1); weight_decay of group 0 is 0.1 (rank 2)",
        [](auto& opt) { opt.group(0).weight_decay = 0.1; });
  check("ranks differ: unscale() was not called (rank 0, 1); unscale() was called", [](auto& opt) { opt.unscale(); });
  check("ranks differ: loss scale is 8 (rank 0, 1); loss scale is 4", [](auto& o) { o.set_scale_state({4}); });
  check("ranks differ: t is 0 (rank 0, 1); t is 3 (rank 2)", [](auto& opt) { opt.set_step(3); });
  check("ranks differ: the factor of on_plateau is 1 (rank 0, 1); the factor of on_plateau is 0.5 (rank 2)",
        [](auto& opt) { opt.observe(1.0), opt.observe(2.0); });
  check("ranks differ: step() (rank 0, 1); gradient_norm() (rank 2)", [](auto& opt) { opt.gradient_norm(); });
}

TEST_CASE("a step() on one rank and a flush() on another is an error on every rank") {
  for (auto const &thrown : on_each([](auto& comm, auto policy) {
         std::vector<float> p(50, 1), g(50, 1);
         ds::parameters<float> list;
         list.add("p", p.data(), g.data(), 50);
         ds::optimizer opt{list, ds::sgd{}, ds::accumulate{2}, policy};
         try {
           opt.step();  // rank 1 has no second micro-batch
           comm.rank() == 1 ? opt.flush() : opt.step();
         } catch (...) {
           CHECK(p == std::vector<float>(50, 1));
           CHECK(opt.report().step == 0);
           throw;
         }
       }))
    for (std::size_t r = 0; r < team; ++r)
      CHECK(has(thrown[r], std::string("is in ") + (r == 1 ? "flush()" : "step()") +
                               ", but ranks differ: step() (rank 0, 2); flush() (rank 1)"));
}

TEST_CASE("a field that the library cannot read and one rank has changed is noticed by its terms") {
  for (auto const &thrown : on_each([](auto& comm, auto policy) {
         std::vector<float> p(50, 1), g(50, 1);
         ds::parameters<float> list;
         list.add("p", p.data(), g.data(), 50);
         ds::optimizer opt{list, hidden{}, policy};
         if (comm.rank() == 1) opt.group(0).by = 2;
         opt.step();
       }))
    for (auto const& text : thrown) CHECK(has(text, "but others are in another call or optimizer, or differ in t"));
}

TEST_CASE("a field that one rank has changed is reported on every rank, by name and with both values") {
  for (auto const &thrown : on_each([](auto& comm, auto policy) {
         std::vector<float> p(50, 1), g(50, 1);
         ds::parameters<float> list;
         list.add("p", p.data(), g.data(), 50);
         ds::optimizer opt{list, ds::adamw{}, policy};
         opt.step();
         auto const before = p;
         if (comm.rank() == 1) opt.group(0).beta2 = 0.95;
         try {
           opt.step();
         } catch (...) {
           CHECK(p == before);
           throw;
         }
       }))
    for (auto const& text : thrown)
      CHECK(has(text, "is in step(), but ranks differ: beta2 of group 0 is 0.999 (rank 0, 2); beta2 of group 0 is 0.95 "
                      "(rank 1)"));
}

TEST_CASE("a schedule that throws on one rank throws before a collective: the rank tries again, all are as before") {
  auto const check = [](auto rule) {
    CHECK(on_each([&](auto& comm, auto policy) {
            std::vector<float> p(100, 1), g(100, 1);
            ds::parameters<float> list;
            list.add("p", p.data(), g.data(), 100);
            ds::optimizer opt{list, rule, ds::learning_rate(own_rate{}), policy};
            opt.step();
            auto const before = p;
            if (comm.rank() == 1) {
              throws = true;
              CHECK_THROWS_WITH_AS(opt.step(), "no rate", std::runtime_error);
              throws = false;
              CHECK(opt.report().step == 1);
              CHECK(p == before);
            }
            opt.step();
            CHECK(opt.report().step == 2);
            CHECK(p != before);
          }) == std::vector(2, std::vector<std::string>(team)));
  };
  check(ds::sgd{});
  check(ds::lars{});
}

TEST_CASE("what one rank throws after a collective ends the others' calls: none continues without it") {
  for (auto const &thrown : on_each([](auto& comm, auto policy) {
         std::vector<float> p(100, 1), g(100, 1);
         ds::parameters<float> list;
         list.add("p", p.data(), g.data(), 100);
         ds::optimizer opt{list, ds::sgd{.lr = 0.5}, own_clip{}, policy};
         opt.step();
         throws = comm.rank() == 1;
         auto const before = p;
         if (throws) {
           CHECK_THROWS_WITH_AS(opt.step(), "no factor", std::runtime_error);
           throws = false;
           CHECK(p == before);
           CHECK(opt.report().step == 1);
         }
         opt.step(), opt.step();
       }))
    for (int r = 0; r < team; ++r)
      CHECK(has(thrown[std::size_t(r)],
                r == 1 ? "this optimizer lost its ranks in an earlier call" : "rank 1: no factor"));
}

TEST_CASE("trap 39: collectives read and write as many elements as they say, and no more") {
  ranks::with_ranks(team, [](auto& comm) {
    auto const each = [&]<class T>(T) {
      for (int n : {0, 1, 3, 17}) {  // exact allocations: a sanitizer detects accesses beyond them
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
  });
}

TEST_CASE("trap 42: one rank alone reads its part of the state without a hang; for the norm it meets a deadline") {
  auto const check = [](auto const& policy_of) {
    ds::comm::threads world{team, std::chrono::seconds(60)};
    std::atomic<bool> gave_up{false};
    auto const thrown = on_ranks(world, [&](auto& comm) {
      auto policy = policy_of(comm);
      std::vector<float> p(20000, 1), g(20000, 1);
      ds::parameters<float> list;
      list.add("p", p.data(), g.data(), p.size());
      ds::optimizer opt{list, ds::adamw{}, policy};
      opt.step();
      bool const shards = ds::detail::optimizer_traits<float, float, ds::adamw, decltype(policy)>::plan::shards;
      if (comm.rank() != 1) {
        world.comes_too_late(comm.rank());
        CHECK(test::comes_true([&] { return bool(gave_up); }));
        return;
      }
      auto const m = opt.state("p", 0);
      CHECK((m.size() < p.size()) == shards);
      for (float one : m) CHECK(one == doctest::Approx(0.1));
      CHECK(opt.report().step == 1);
      std::string const why = ranks::thrown<ds::comm_error>([&] { opt.gradient_norm(); });
      gave_up = true;
      CHECK(has(why, "rank 1 waited 60 s in collective "));
      CHECK(has(why, " for rank 0, 2"));
    });
    CHECK(none(thrown));
  };
  check(ranks::replicated), check(ranks::sharded);
}
