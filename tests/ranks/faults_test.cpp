// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/threads.hpp>
#include <descent/matrices/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/muon.hpp>

#include <doctest/doctest.h>
#include "support/ranks.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

/// Random faults and random delays: what the others have when a rank is lost, and that the order in which ranks arrive
/// does not change a bit.

namespace ds = descent;
using fault = ds::comm::threads::fault;
using ranks::has;

namespace {

#if defined(DESCENT_THREAD_SANITIZER)
constexpr int most_fault_trials = 48, delay_trials = 100, at_once = 2;
#else
constexpr int most_fault_trials = 2000, delay_trials = 300, at_once = 8;
#endif

/// A few tensors, one of them empty and one a matrix, with gradients of many digits: the order of a sum is visible.
struct small_model : ranks::model<float> {
  small_model() : model(0, {5, 0, 70, 12, 33}) {}
  void add_gradients(int rank, int batch) {
    for (std::size_t t = 0; t < value.size(); ++t)
      for (std::size_t i = 0; i < value[t].size(); ++i)
        gradient[t][i] += float(std::sin(1.7 * double(i) + double(t) + 0.3 * batch + 5.1 * rank));
  }
};

/// The state of a rank after one of its calls.
struct moment {
  std::int64_t collectives;  // the number it has begun
  std::vector<std::vector<float>> value;
  double norm;
};

/// Two updates of two micro-batches each, with calls of gradient_norm() and swap_average() in between. Calls
/// between(call) before each call.
template <class Policy, class... More>
void train(ds::comm::threads::member& comm, Policy const& policy, small_model& m, std::int64_t const& begun,
           std::vector<moment>& log, std::function<void(int)> const& between, More const&... more) {
  int calls = 0;
  auto const call = [&](auto const& f) {
    between(calls++);
    double const norm = f();
    log.push_back({begun, m.value, norm});
  };
  std::optional<decltype(ds::optimizer{m.list(), ds::lamb{}, ds::clip_norm{0.5}, ds::accumulate{2}, ds::zero_grad{},
                                       ds::ema{.decay = 0.5}, policy(comm), more...})> opt;
  try {
    call([&] {
      opt.emplace(m.list(), ds::lamb{.lr = 0.1}, ds::clip_norm{0.5}, ds::accumulate{2}, ds::zero_grad{},
                  ds::ema{.decay = 0.5}, policy(comm), more...);
      return 0.0;
    });
    auto const mark = [&](std::size_t first) {  // each rank starts with another tensor
      if constexpr (decltype(policy(comm))::overlaps)
        for (std::size_t t = 0; t < m.value.size(); ++t) opt->ready((first + t) % m.value.size());
    };
    for (int t = 0; t < 2; ++t) {
      for (int batch = 0; batch < 2; ++batch) {
        m.add_gradients(comm.rank(), 2 * t + batch);
        if (batch == 1) call([&] { return mark(std::size_t(comm.rank() + t)), opt->gradient_norm(); });
        else mark(0);
        call([&] { return opt->step(1 + comm.rank()), opt->report().grad_norm; });
      }
      for (int there_and_back = 0; there_and_back < 2; ++there_and_back) call([&] { return opt->swap_average(), 0.0; });
    }
  } catch (ds::comm_error const&) {
    if (opt) CHECK_THROWS_AS(opt->gradient_norm(), std::logic_error);  // at once: it does not wait again
    throw;
  }
}

char const* const ways[] = {"replicated", "sharded", "replicated, ordered", "sharded, ordered, with matrices",
                            "replicated, in buckets", "sharded, ordered, in buckets, with matrices"};
constexpr int way_count = 6;
auto const replicated_buckets = [](auto& comm) {
  return ds::replicated{comm, ds::overlap{.bucket_bytes = 70 * sizeof(float)}};
};
auto const sharded_buckets = [](auto& comm) {
  return ds::sharded{comm, ds::ordered_sum{}, ds::overlap{.bucket_bytes = 70 * sizeof(float)}};
};
void train_in_way(int way, ds::comm::threads::member& comm, small_model& m, std::int64_t const& begun,
                  std::vector<moment>& log, std::function<void(int)> const& between) {
  if (way == 0) train(comm, ranks::replicated, m, begun, log, between);
  if (way == 1) train(comm, ranks::sharded, m, begun, log, between);
  if (way == 2) train(comm, ranks::replicated_ordered, m, begun, log, between);
  if (way == 3) train(comm, ranks::sharded_ordered, m, begun, log, between, ds::matrices{ds::muon{}});
  if (way == 4) train(comm, replicated_buckets, m, begun, log, between);
  if (way == 5) train(comm, sharded_buckets, m, begun, log, between, ds::matrices{ds::muon{}});
}

/// Thrown by a rank that ends its work as if nothing had happened.
struct leaves {};

/// One training run of several ranks: each rank's state after each call and at the end, and what it threw.
struct outcome {
  std::vector<std::vector<moment>> log;
  std::vector<small_model> models;
  std::vector<std::string> thrown;
};
outcome run(int way, int ranks, std::function<fault(int, std::int64_t)> const& before,
            std::function<void(int, int)> const& between) {
  auto const n = std::size_t(ranks);
  outcome all{std::vector<std::vector<moment>>(n), std::vector<small_model>(n), {}};
  std::vector<std::int64_t> begun(n);
  ds::comm::threads world{ranks, std::chrono::seconds(60)};
  world.before = [&](int r, std::int64_t number) {
    begun[std::size_t(r)] = number;
    fault const what = before(r, number);
    if (what == fault::vanished) world.comes_too_late(r);
    return what;
  };
  all.thrown = ranks::on_ranks(world, [&](auto& comm) {
    auto const r = std::size_t(comm.rank());
    try {
      train_in_way(way, comm, all.models[r], begun[r], all.log[r], [&](int call) { between(int(r), call); });
    } catch (leaves) {}
  });
  return all;
}
outcome undisturbed(int way, int ranks) {
  auto const nothing = [](int, std::int64_t) { return fault::none; };
  auto const all = run(way, ranks, nothing, [](int, int) {});
  CHECK(ranks::none(all.thrown));
  return all;
}

/// The same for each way and for two to five ranks.
std::vector<std::vector<outcome>> undisturbed() {
  std::vector<std::vector<outcome>> all(way_count);
  for (int way = 0; way < way_count; ++way)
    for (int ranks = 2; ranks <= 5; ++ranks) all[std::size_t(way)].push_back(undisturbed(way, ranks));
  return all;
}

/// Runs trial(seed) for the seeds 0, 1, ..., several at a time. A trial returns what is wrong.
template <class Trial> void many(int trials, Trial const& trial) {
  std::vector<std::string> wrong(static_cast<std::size_t>(trials));
  std::atomic<int> next{0};
  std::vector<std::thread> team;
  for (int i = 0; i < at_once; ++i)
    team.emplace_back([&] {
      for (int seed; (seed = next++) < trials;) wrong[std::size_t(seed)] = trial(unsigned(seed));
    });
  for (auto& one : team) one.join();
  for (int seed = 0; seed < trials; ++seed) {
    INFO("seed ", seed, ": ", wrong[std::size_t(seed)]);
    CHECK(wrong[std::size_t(seed)].empty());
  }
}

}  // namespace

TEST_CASE("a rank that is lost at any place is named by all others, who have the last complete step") {
  auto const clean = undisturbed();
  std::int64_t places = 0;  // in each way, each kind is tried at each collective, or at one of every few
  for (auto const& way : clean)
    for (auto const& one : way) places = std::max(places, one.log[0].back().collectives);
  std::atomic<int> lost{0};
  std::vector<std::atomic<int>> kinds(4);
  int const all_trials = way_count * 4 * int(places), fault_trials = std::min(most_fault_trials, all_trials);
  many(fault_trials, [&](unsigned seed) -> std::string {
    std::mt19937 random(seed);
    auto const below = [&](std::int64_t n) { return int(random() % unsigned(n)); };
    int const way = int(seed) % way_count, kind = int(seed) / way_count % 4, few = all_trials / fault_trials;
    int const place = int(seed) / way_count / 4 * few + below(few);
    int const ranks = 2 + below(4), victim = below(ranks);
    auto const& log = clean[std::size_t(way)][std::size_t(ranks - 2)].log[0];

    // The victim does not begin this collective; if it ends by itself, it ends at this call.
    std::int64_t number = 1 + place % log.back().collectives;
    int call = 0;
    if (kind >= 2) {
      auto const waits = [&](moment const& one) { return one.collectives < log.back().collectives; };
      call = place % (1 + int(std::count_if(log.begin(), log.end(), waits)));
      number = call ? log[std::size_t(call - 1)].collectives + 1 : 1;
    }
    char const* const names[] = {"killed", "vanished", "throws", "leaves"};
    auto const got = run(
        way, ranks,
        [&](int r, std::int64_t at) {
          return kind > 1 || r != victim || at != number ? fault::none : kind == 0 ? fault::killed : fault::vanished;
        },
        [&](int r, int at) {
          if (kind < 2 || r != victim || at != call) return;
          if (kind == 2) throw std::runtime_error("no more data");
          throw leaves{};
        });
    ++lost, ++kinds[std::size_t(kind)];

    std::string const name = "rank " + std::to_string(victim);
    std::string const who = std::string(ways[way]) + ", " + name + " of " + std::to_string(ranks) + " " + names[kind] +
                            " at collective " + std::to_string(number) + ": ";
    moment const* last = nullptr;
    for (auto const& one : log)
      if (one.collectives < number) last = &one;
    for (int r = 0; r < ranks; ++r) {
      auto const& text = got.thrown[std::size_t(r)];
      if (r == victim) continue;
      std::string const said = who + "rank " + std::to_string(r) + " says '" + text + "'";
      if (!has(text, name + " ") && !text.ends_with(" for " + name)) return said + " without the lost rank";
      if (!has(text, "rank " + std::to_string(r) + " in collective " + std::to_string(number) + ", "))
        return said + " without the collective";
      char const* const why[] = {" was killed before ", " waited 60 s in ", " ended with an exception",
                                 " has left before "};
      if (!has(text, why[kind])) return said + " without the reason";
      if (last && got.models[std::size_t(r)].value != last->value) return said + " and has other values";
      if (!last && got.models[std::size_t(r)].value != small_model{}.value) return said + " and has other first values";
    }
    return "";
  });
  CHECK(lost >= fault_trials);
  for (auto const& one : kinds) CHECK(one > fault_trials / 8);
}

TEST_CASE("random delays of every rank change no bit of values, averages and norms") {
  auto const clean = undisturbed();
  many(delay_trials, [&](unsigned seed) -> std::string {
    std::mt19937 random(seed);
    int const way = int(random() % 4), ranks = 2 + int(random() % 4);
    std::vector<std::mt19937> each;
    for (int r = 0; r < ranks; ++r) each.emplace_back(seed * 31 + unsigned(r));
    auto const wait = [&](int r) {
      auto& mine = each[std::size_t(r)];
      if (mine() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(1u << mine() % 12));
    };
    auto const got =
        run(way, ranks, [&](int r, std::int64_t) { return wait(r), fault::none; }, [&](int r, int) { wait(r); });
    auto const& want = clean[std::size_t(way)][std::size_t(ranks - 2)];
    for (std::size_t r = 0; r < got.log.size(); ++r) {
      if (!got.thrown[r].empty()) return "rank " + std::to_string(r) + ": " + got.thrown[r];
      for (std::size_t call = 0; call < want.log[0].size(); ++call)
        if (got.log[r][call].value != want.log[0][call].value || got.log[r][call].norm != want.log[0][call].norm)
          return std::string(ways[way]) + ", rank " + std::to_string(r) + ": other bits after call " +
                 std::to_string(call);
    }
    return "";
  });
}

TEST_CASE("the order of the sum shows in these gradients, so a sum in another order would") {
  auto const sum = [](std::vector<int> const& order) {
    std::vector<float> all;
    for (std::size_t i = 0; i < 70; ++i) {
      float one = 0;
      for (int r : order) {
        small_model m;
        m.add_gradients(r, 0);
        one += m.gradient[2][i];
      }
      all.push_back(one);
    }
    return all;
  };
  CHECK(sum({0, 1, 2}) != sum({2, 1, 0}));
}
