// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Random calls on two to five ranks. The same calls are made four times: by replicas; by one rank with the sum of their
// gradients; by ranks that share the state, some of which are saved and restored and given calls that are refused and
// functions that throw; and by ranks one of which is lost at a random place. All have the same bits after every call.
// In the last case, all other ranks name the lost rank and have the last complete call.
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/schedules/vary.hpp>

#include <doctest/doctest.h>
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"
#include "support/twin.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace ds = descent;
using namespace test;
using fault = ds::comm::threads::fault;

namespace {

constexpr int full = 3;  // micro-batches of an update

/// A call made by all ranks.
struct call {
  enum kind { update, zero_grad, rate, freeze, norm, average, observe, agree, kinds } what;
  int group, phase;
  double number;
  std::vector<int> batches, weights;  // of each rank in an update; weight 0 is for no examples
  int spoiled;  // the rank whose gradients are not finite, or -1
  bool halved;  // by transform_gradients()
};

/// The number of ranks, their tensors and their calls.
struct script {
  int ranks;
  std::optional<sizes_and_places> where;
  std::vector<call> calls;

  script(std::uint64_t seed, int abilities) {
    random_numbers random(seed);
    ranks = 2 + random.below(4);
    where.emplace(random);
    for (int i = 0; i < 25; ++i) {
      int const what = random.below(2 * call::kinds);
      call one{what < call::kinds ? call::kind(what) : call::update, random.below(2), random.below(1000),
               random.between(0.5, 1), {}, {}, random.one_in(6) ? random.below(ranks) : -1, random.one_in(4)};
      if ((abilities & overlaps) != 0 && one.what == call::norm) one.what = call::zero_grad;  // the norm needs marks
      bool const early = random.one_in(3);
      for (int r = 0; r < ranks; ++r) {
        one.batches.push_back((abilities & accumulates) == 0 ? 1 : early ? random.below(full) : full);
        one.weights.push_back(random.one_in(6) ? 0 : 1 + r);
      }
      calls.push_back(one);
    }
  }
};

/// In float the order of a sum is visible; in 16 bits the sum of a few numbers is exact.
template <class Value> float gradient_of(int rank, int phase, std::size_t tensor, std::size_t i) {
  float const x = float(std::cos(phase + 5.0 * double(tensor) + double(i) + 1.7 * rank));
  return sizeof(Value) < sizeof(float) ? std::round(64 * x) / 64 : x;
}

/// The state of a rank after a call.
struct moment {
  std::int64_t collectives;
  bytes values;
  double norm;
  bool applied;
  std::int64_t step;

  std::string differs_in(moment const& other) const {
    if (step != other.step) return "step";
    if (applied != other.applied) return "applied";
    if (std::memcmp(&norm, &other.norm, sizeof norm) != 0) return "norm";
    return values == other.values ? "" : "value";
  }
};

template <class Side> bytes values_of(Side const& s) {
  bytes all;
  for (auto const& v : s.values) {
    bytes const one = bytes_of(v);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

/// One rank, which makes the calls of a script with the gradients of ranks [first, last).
template <int Abilities, class Side> class actor {
 public:
  actor(Side& side, int first, int last, std::int64_t const& begun, std::uint64_t seed)
      : side_(side), first_(first), last_(last), begun_(begun), random_(seed) {}

  void make(call const& c) {
    auto& opt = *side_.opt;
    switch (c.what) {
      case call::zero_grad: return opt.zero_grad();
      case call::rate: opt.group(c.group).lr = 0.05 * c.number; return;
      case call::freeze: return opt.freeze(c.group, side_.frozen[c.group] = !side_.frozen[c.group]);
      case call::norm: last_norm_ = opt.gradient_norm(); return;
      case call::agree: return opt.agree();
      case call::average:
        if constexpr (has(averages)) {
          opt.swap_average();
          averaged.push_back({begun_, values_of(side_), 0, false, 0});
          if (!refused<std::logic_error>([&] { opt.step(); }))
            throw std::runtime_error("step() on averages was not refused");
          opt.swap_average();
        }
        return;
      case call::observe:
        if constexpr (has(plateau)) opt.observe(c.number);
        return;
      default: return update(c);
    }
  }

  /// A call that leaves no trace and that no other rank notices.
  void disturb() {
    auto& opt = *side_.opt;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    bool good = true;
    switch (random_.below(6)) {
      case 0: good = refused<std::invalid_argument>([&] { opt.step(random_.one_in(2) ? nan : -1); }); break;
      case 1: good = refused<std::invalid_argument>([&] { opt.group(2); }); break;
      case 2: good = refused<std::invalid_argument>([&] { opt.set_step(-1); }); break;
      case 3: {
        double const before = opt.group(0).lr;
        opt.group(0).lr = -1;
        good = refused<std::invalid_argument>([&] { opt.step(); });
        opt.group(0).lr = before;
        break;
      }
      case 4:
        if constexpr (has(scheduled) && !has(accumulates)) {
          side_.throws = true;
          good = refused<refusal>([&] { opt.step(); });
          side_.throws = false;
        }
        break;
      default: opt.explain(), opt.memory(), opt.diagnose(), opt.last_report();
    }
    if (!good) throw std::runtime_error("a call was not refused");
  }

  /// A new optimizer that continues a run has no report of the last step.
  moment now(call const& after) const {
    auto const report = side_.opt->report();
    bool const updated = after.what == call::update && report.applied;
    double const norm = updated ? report.grad_norm : after.what == call::norm ? last_norm_ : 0;
    return {begun_, values_of(side_), norm, updated, report.step};
  }

  std::vector<moment> averaged;  // while the values are the averages

 private:
  static constexpr bool has(int ability) { return (Abilities & ability) != 0; }

  /// Sets the sum of these ranks' gradients, added in order. Those of a rank without examples are anything.
  void backward(call const& c) {
    double const scale = has(scales) ? side_.opt->loss_scale() : 1;
    using value = typename decltype(side_.gradients)::value_type::value_type;
    for (std::size_t k = 0; k < side_.gradients.size(); ++k)
      for (std::size_t i = 0; i < side_.gradients[k].size(); ++i) {
        float sum = 0;
        for (int r = first_; r < last_; ++r)
          if (last_ - first_ == 1 && c.weights[std::size_t(r)] == 0) sum = std::numeric_limits<float>::infinity();
          else if (c.batches[std::size_t(r)] > 0 && c.weights[std::size_t(r)] > 0) {
            bool const bad = r == c.spoiled && i + 1 == side_.gradients[k].size();
            sum += bad ? std::numeric_limits<float>::infinity() : gradient_of<value>(r, c.phase, k, i);
          }
        side_.gradients[k][i] = ds::narrow<value>(scale * double(sum));
      }
  }

  void update(call const& c) {
    auto& opt = *side_.opt;
    backward(c);
    if (c.halved) opt.transform_gradients([](auto g) { return g * 0.5f; });
    bool const alone = last_ - first_ > 1;
    int weight = 0, batches = 0;
    for (int r = first_; r < last_; ++r)
      batches += c.batches[std::size_t(r)], weight += c.batches[std::size_t(r)] * c.weights[std::size_t(r)];
    if constexpr (has(accumulates)) {
      bool const whole = *std::min_element(c.batches.begin(), c.batches.end()) == full;
      if (alone) {
        if (batches > 0) opt.step(weight);
        opt.flush();
        return;
      }
      int const own = c.weights[std::size_t(first_)];
      for (int b = 1; b < batches; ++b) opt.step(own);
      if (whole) mark(c);
      if (batches > 0) opt.step(own);
      if (!whole) opt.flush();
    } else {
      mark(c);
      opt.step(weight);
    }
  }

  /// Marks each gradient as complete, in an order of this rank's own. Without examples, none.
  void mark(call const& c) {
    if constexpr (has(overlaps)) {
      if (c.weights[std::size_t(first_)] == 0) return;
      std::size_t const tensors = side_.values.size(), from = std::size_t(random_.below(int(tensors)));
      for (std::size_t t = 0; t < tensors; ++t) side_.opt->ready((from + t) % tensors);
      if (!refused<std::logic_error>([&] { side_.opt->zero_grad(); }))
        throw std::runtime_error("zero_grad() after ready() was not refused");
      if (*std::min_element(c.weights.begin(), c.weights.end()) > 0) side_.opt->gradient_norm();
    }
  }

  Side& side_;
  int first_, last_;
  std::int64_t const& begun_;  // collectives
  random_numbers random_;
  double last_norm_ = 0;
};

/// What each rank had after each call, and what ended it.
struct outcome {
  std::vector<std::vector<moment>> log, averaged;
  std::vector<bytes> last;  // values in the end
  std::vector<std::string> thrown;
};

struct circumstances {
  bool summed = false;  // one rank has the sum of all gradients
  bool disturbed = false;
  int lost = -1;  // a rank, before a collective
  std::int64_t at = 0;
  bool quietly = false;
};

template <int Abilities, class Value, class Make>
outcome perform(script const& s, std::uint64_t seed, Make const& make, circumstances const& how) {
  int const ranks = how.summed ? 1 : s.ranks;
  auto const n = std::size_t(ranks);
  outcome all{std::vector<std::vector<moment>>(n), std::vector<std::vector<moment>>(n), std::vector<bytes>(n), {}};
  std::vector<std::int64_t> begun(n);
  temporary_folder const folder;
  ds::comm::threads world{ranks, std::chrono::seconds(60)};
  world.before = [&](int r, std::int64_t number) {
    begun[std::size_t(r)] = number;
    if (r != how.lost || number != how.at) return fault::none;
    if (!how.quietly) return fault::killed;
    world.comes_too_late(r);
    return fault::vanished;
  };
  all.thrown = ranks::on_ranks(world, [&](auto& comm) {
    auto const r = std::size_t(comm.rank());
    auto const on_comm = [&](auto const& list, bool const* throws) { return make(list, throws, comm); };
    using side = twin<Value, decltype(on_comm)>;
    std::optional<side> mine;
    try {
      mine.emplace(*s.where, on_comm);
      random_numbers together(seed), apart(seed * 31 + r);  // the same on all ranks, and different on each
      actor<Abilities, side> self(*mine, int(r), how.summed ? s.ranks : int(r) + 1, begun[r], seed * 17 + r);
      for (call const& c : s.calls) {
        if (how.disturbed && together.one_in(5)) together.one_in(2) ? mine->resume() : mine->resume(folder / "run");
        if (how.disturbed && apart.one_in(2)) self.disturb();
        self.make(c);
        all.log[r].push_back(self.now(c));
        all.averaged[r] = self.averaged;
      }
    } catch (...) {
      if (mine) all.last[r] = values_of(*mine);
      throw;
    }
    all.last[r] = values_of(*mine);
  });
  return all;
}

/// Empty, or a description of the difference.
std::string difference(std::string const& who, outcome const& a, outcome const& b, script const& s, bool norms = true) {
  for (auto const& thrown : b.thrown)
    if (!thrown.empty()) return who + " throws '" + thrown + "'";
  for (std::size_t r = 0; r < b.log.size(); ++r)
    for (std::size_t i = 0; i < s.calls.size(); ++i) {
      if (!norms && s.calls[i].what == call::norm) continue;  // it is of the gradients in memory
      if (std::string const what = a.log[0][i].differs_in(b.log[r][i]); !what.empty())
        return who + ": rank " + std::to_string(r) + " has another " + what + " after call " + std::to_string(i) +
               " of kind " + std::to_string(s.calls[i].what);
    }
  return {};
}

template <int Abilities, class Value, class Make>
void lose_one(script const& s, std::uint64_t seed, Make const& make, outcome const& clean) {
  random_numbers random(seed * 101);
  circumstances how;
  how.lost = random.below(s.ranks);
  how.at = 1 + random.below(int(clean.log[0].back().collectives));
  how.quietly = random.one_in(2);
  outcome const got = perform<Abilities, Value>(s, seed, make, how);
  std::string const name = "rank " + std::to_string(how.lost);
  INFO(name, " of ", s.ranks, " is lost in front of collective ", how.at);
  moment const* last = nullptr;
  for (auto const* moments : {&clean.log[0], &clean.averaged[0]})
    for (moment const& one : *moments)
      if (one.collectives < how.at && (!last || one.collectives > last->collectives)) last = &one;
  for (std::size_t r = 0; r < got.thrown.size(); ++r) {
    if (int(r) == how.lost) continue;
    INFO("rank ", r, ": ", got.thrown[r]);
    CHECK((ranks::has(got.thrown[r], name + " ") || got.thrown[r].ends_with(" for " + name)));
    if (last) CHECK(got.last[r] == last->values);
  }
}

/// make(list, throws, policy): an optimizer with this parallel policy.
template <int Abilities, class Value, class Make> void try_seeds(Make const& make) {
  auto const replicas = [&](auto const& list, bool const* throws, auto& comm) {
    return make(list, throws, ds::replicated{comm, ds::ordered_sum{}});
  };
  auto const sharers = [&](auto const& list, bool const* throws, auto& comm) {
    if constexpr ((Abilities & overlaps) != 0)
      return make(list, throws, ds::sharded{comm, ds::ordered_sum{}, ds::overlap{.bucket_bytes = 256}});
    else return make(list, throws, ds::sharded{comm, ds::ordered_sum{}});
  };
  constexpr int without = Abilities & ~overlaps;
  for_seeds(12, [&](std::uint64_t seed) {
    script const s(seed, Abilities);
    CAPTURE(s.ranks);
    outcome const want = perform<without, Value>(s, seed, replicas, {});
    REQUIRE(difference("replicated", want, want, s) == "");
    CHECK(difference("the sum", want, perform<without, Value>(s, seed, replicas, {.summed = true}), s, false) == "");
    CHECK(difference("sharded", want, perform<Abilities, Value>(s, seed, sharers, {.disturbed = true}), s) == "");
    if (seed % 2) return lose_one<without, Value>(s, seed, replicas, want);
    outcome const shared = perform<Abilities, Value>(s, seed, sharers, {});
    CHECK(difference("sharded, undisturbed", want, shared, s) == "");
    lose_one<Abilities, Value>(s, seed, sharers, shared);
  });
}

}  // namespace

TEST_CASE("ranks, their sum and parts of the state have the same bits: sgd, scheduled, averaged, in buckets") {
  try_seeds<scheduled | averages | overlaps, float>([](auto const& list, bool const* throws, auto policy) {
    return ds::optimizer{list, ds::sgd{.momentum = 0.9, .weight_decay = 0.01},
                         ds::scale_learning_rate(fragile_rate{throws}), ds::skip_nonfinite{}, ds::ema{.decay = 0.9},
                         policy};
  });
}

TEST_CASE("ranks, their sum and parts of the state have the same bits: lamb, accumulated, clipped, to zero") {
  try_seeds<accumulates, float>([](auto const& list, bool const*, auto policy) {
    return ds::optimizer{list, ds::lamb{}, ds::accumulate{full}, ds::clip_norm{1.0}, ds::zero_grad{}, policy};
  });
}

TEST_CASE("ranks, their sum and parts of the state have the same bits: adamw in half with a loss scale and a master") {
  try_seeds<scales | plateau, ds::half>([](auto const& list, bool const*, auto policy) {
    return ds::optimizer{list, ds::adamw{}, ds::master<float>{}, ds::on_plateau{{.patience = 2}},
                         ds::dynamic_loss_scale{.init = 256, .interval = 4, .max = 1024}, policy};
  });
}
