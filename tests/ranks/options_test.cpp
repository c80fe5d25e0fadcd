// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/threads.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/maximize.hpp>
#include <descent/policies/noise.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/schedules/warmup.hpp>

#include <doctest/doctest.h>
#include "support/ranks.hpp"

#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

/// Every pair of options under ranks: each has its effect when combined with the other, and together they have the
/// effect that they have in one process. compile_fail/ tests what cannot be combined.

namespace ds = descent;
using ds::half, ds::bfloat16;

namespace {

constexpr int team = 3, calls = 6;

/// Options that may be on or off in one program; off means a value that does nothing.
enum option { clip, clip_value, scale, batches, average, slow, noise, seed, weights, frozen, rate, decay, options };
std::string const names[] = {"clip",  "clip_value", "loss scale", "accumulate", "average",       "lookahead",
                             "noise", "seed",       "weights",    "frozen",     "learning rate", "weight decay"};
struct settings {
  bool on[options] = {};
  double pick(option o, double yes, double no) const { return on[o] ? yes : no; }
};

// ---- programs ------------------------------------------------------------------------------------------------------

ds::warmup<ds::constant> rate_of(settings const& s, double lr) { return {s.on[rate] ? 3 : 0, {lr}}; }

/// Values without a master and with stochastic rounding; 16-bit gradients.
struct rounded {
  using value = bfloat16;
  using gradient = bfloat16;
  static constexpr bool zeroes = true;
  static bool has(option) { return true; }
  static auto make(auto const& list, settings const& s, auto... more) {
    return ds::optimizer{list,
                         ds::sgd{.momentum = 0.5, .weight_decay = s.pick(decay, 0.5, 0)},
                         ds::learning_rate(rate_of(s, 0.25)),
                         ds::clip_norm{s.pick(clip, 2, 1e30)},
                         ds::clip_value{s.pick(clip_value, 0.25, 1e30)},
                         ds::dynamic_loss_scale{.init = float(s.pick(scale, 4, 1))},
                         ds::accumulate{s.on[batches] ? 2 : 1},
                         ds::ema{.decay = s.pick(average, 0.5, 0.75)},
                         ds::lookahead{.k = s.on[slow] ? 2 : 1000},
                         ds::gradient_noise{.eta = s.pick(noise, 0.1, 0)},
                         ds::stochastic_rounding{std::uint64_t(s.pick(seed, 7, 8))},
                         ds::zero_grad{},
                         ds::host<ds::cpp>{},
                         more...};
  }
};
/// A master, 16-bit states, norms of tensors; float gradients.
struct mastered {
  using value = bfloat16;
  using gradient = float;
  static constexpr bool zeroes = false;
  static bool has(option o) { return o != seed; }
  static auto make(auto const& list, settings const& s, auto... more) {
    return ds::optimizer{list,
                         ds::sgd{.momentum = 0.5, .weight_decay = s.pick(decay, 0.5, 0)},
                         ds::learning_rate(rate_of(s, 0.25)),
                         ds::clip<ds::norm::l2, ds::scope::tensor>{s.pick(clip, 1, 1e30)},
                         ds::clip_value{s.pick(clip_value, 0.25, 1e30)},
                         ds::static_loss_scale{float(s.pick(scale, 4, 1))},
                         ds::accumulate{s.on[batches] ? 2 : 1},
                         ds::swa{.start = s.on[average] ? 1 : 2},
                         ds::lookahead{.k = s.on[slow] ? 2 : 1000},
                         ds::gradient_noise{.eta = s.pick(noise, 0.1, 0)},
                         ds::master<float>{},
                         ds::states<bfloat16>{},
                         ds::maximize{},
                         ds::host<ds::cpp>{},
                         more...};
  }
};
/// A master in two parts, a rule with sums, adaptive clipping; half gradients. The rule does not depend on the
/// gradients' scale, which is the only effect of these weights.
struct adaptive {
  using value = bfloat16;
  using gradient = half;
  static constexpr bool zeroes = false;
  static bool has(option o) { return o != seed && o != scale && o != weights; }
  static auto make(auto const& list, settings const& s, auto... more) {
    return ds::optimizer{list,
                         ds::lamb{.weight_decay = s.pick(decay, 0.5, 0)},
                         ds::learning_rate(rate_of(s, 0.1)),
                         ds::clip_adaptive{s.pick(clip, 0.5, 1e30)},
                         ds::clip_value{s.pick(clip_value, 0.25, 1e30)},
                         ds::accumulate{s.on[batches] ? 2 : 1},
                         ds::ema{.decay = s.pick(average, 0.5, 0.75)},
                         ds::lookahead{.k = s.on[slow] ? 2 : 1000},
                         ds::gradient_noise{.eta = s.pick(noise, 0.1, 0)},
                         ds::skip_nonfinite{},
                         ds::master_remainder{},
                         ds::host<ds::cpp>{},
                         more...};
  }
};

// ---- a training ----------------------------------------------------------------------------------------------------

template <class Value, class Gradient> struct model : ranks::model<Value, Gradient> {
  model() : ranks::model<Value, Gradient>(0, {33, 0, 70, 5}) {}
  /// One backward pass of one rank, with large gradients in some calls and small ones in others.
  void backward(int rank, int call) {
    each([&](Gradient& g, std::size_t t, std::size_t i) {
      double const size[] = {1, 8, 2, 4};
      g = ds::narrow<Gradient>(ds::widen<double>(g) + size[call % 4] * ranks::gradient_of(rank, call, t, i));
    });
  }
  void zero() {
    each([](Gradient& g, std::size_t, std::size_t) { g = ds::narrow<Gradient>(0.0); });
  }
  template <class F> void each(F const& f) {
    for (std::size_t t = 0; t < this->gradient.size(); ++t)
      for (std::size_t i = 0; i < this->gradient[t].size(); ++i) f(this->gradient[t][i], t, i);
  }
  void write(std::string& log) const {
    for (auto const& one : this->value)
      log.append(reinterpret_cast<char const*>(one.data()), one.size() * sizeof(Value));
  }
};

/// A few steps: backward(call) sets the gradients, done() follows each update. Returns a hash of the values after each
/// call and of the averages.
template <class Opt, class Model, class Backward, class Done>
std::string train(Opt& opt, Model& m, settings const& s, double weight, Backward const& backward, Done const& done) {
  std::string log;
  opt.freeze(1, s.on[frozen]);
  for (int call = 0; call < calls; ++call) {
    backward(call);
    opt.step(weight);
    if (opt.report().applied) done();
    m.write(log);
    opt.swap_average();
    m.write(log);
    opt.swap_average();
  }
  return std::to_string(ds::detail::hash_of(log));
}

double weight_of(settings const& s, int rank) { return s.on[weights] ? rank + 1 : 1; }

/// One process with the sum of what the ranks would send as Wire, rounded to Sum.
template <class Program, class Wire, class Sum> std::string alone(settings const& s) {
  using value = typename Program::value;
  model<value, float> m;
  std::vector<model<value, typename Program::gradient>> each(team);
  auto opt = Program::make(m.list(), s);
  double const wire_divisor = std::is_same_v<Wire, half> ? 2 : 1;
  double weight = 0;
  for (int r = 0; r < team; ++r) weight += weight_of(s, r);
  auto const backward = [&](int call) {
    for (int r = 0; r < team; ++r) each[std::size_t(r)].backward(r, call);
    m.each([&](float& g, std::size_t t, std::size_t i) {
      float sum = 0;
      for (auto const& one : each)
        sum += ds::widen<float>(ds::narrow<Wire>(ds::widen<float>(one.gradient[t][i]) / float(wire_divisor)));
      g = ds::widen<float>(ds::narrow<Sum>(sum)) * float(wire_divisor);
    });
  };
  auto const done = [&] {
    for (auto& one : each) one.zero();
  };
  return train(opt, m, s, weight, backward, done);
}

/// The same on ranks; empty if they differ from each other.
template <class Program, class Policy> std::string together(settings const& s, Policy const& policy) {
  ds::comm::threads world{team, std::chrono::seconds(60)};
  std::vector<std::string> logs(team);
  bool const fine = ranks::none(ranks::on_ranks(world, [&](auto& comm) {
    model<typename Program::value, typename Program::gradient> m;
    auto opt = Program::make(m.list(), s, policy(comm));
    int const r = comm.rank();
    auto const done = [&] {
      if (!Program::zeroes) m.zero();
      m.each([&](auto g, std::size_t t, std::size_t) {
        if (!(t % 2 && s.on[frozen]) && ds::widen<float>(g) != 0) throw std::runtime_error("zero_grad does nothing");
      });
    };
    auto const backward = [&](int call) {
      m.backward(r, call);
      if constexpr (decltype(policy(comm))::overlaps)
        for (std::size_t t = m.value.size(); t-- > 0;) opt.ready(t);
    };
    logs[std::size_t(r)] = train(opt, m, s, weight_of(s, r), backward, done);
  }));
  for (auto const& one : logs)
    if (!fine || one != logs[0]) return "";
  return logs[0];
}

template <class Program, class Wire, class Sum, class... Policies> void every_pair(Policies const&... policies) {
  std::vector<std::string> one;
  std::vector<option> here;
  for (int o = 0; o < options; ++o) {
    settings s;
    s.on[o] = true;
    one.push_back(alone<Program, Wire, Sum>(s));
    if (Program::has(option(o))) here.push_back(option(o));
  }
  for (option a : here)
    for (option b : here) {
      if (a > b) continue;
      settings s;
      s.on[a] = s.on[b] = true;
      INFO(names[a], " and ", names[b]);
      auto const want = alone<Program, Wire, Sum>(s);
      if (a == b) {
        CHECK(want != alone<Program, Wire, Sum>({}));
      } else {
        CHECK(want != one[a]);
        CHECK(want != one[b]);
      }
      int way = 0;
      auto const same = [&](auto const& policy) {
        ++way;
        INFO("way ", way);
        CHECK(together<Program>(s, policy) == want);
      };
      (same(policies), ...);
    }
}

constexpr ds::overlap buckets{.bucket_bytes = 50};
template <class... Options> auto replicated(Options... o) {
  return [=](auto& comm) { return ds::replicated{comm, o...}; };
}
template <class... Options> auto sharded(Options... o) {
  return [=](auto& comm) { return ds::sharded{comm, o...}; };
}

}  // namespace

TEST_CASE("trap 33: every pair of options: gradients as they are, rounding at random") {
  every_pair<rounded, bfloat16, bfloat16>(replicated(), sharded(), replicated(ds::native_sum{}, buckets));
}
TEST_CASE("trap 33: every pair of options: sums in float, rounding at random") {
  every_pair<rounded, bfloat16, float>(replicated(ds::ordered_sum{}), sharded(ds::ordered_sum{}),
                                       replicated(ds::float_sum{}), sharded(ds::float_sum{}, buckets));
}
TEST_CASE("trap 33: every pair of options: half on the wire, a master") {
  every_pair<mastered, half, half>(replicated(ds::wire<half>{}), sharded(ds::wire<half>{}));
}
TEST_CASE("trap 33: every pair of options: bfloat16 on the wire and sums in order, a master") {
  every_pair<mastered, bfloat16, float>(replicated(ds::wire<bfloat16>{}, ds::ordered_sum{}),
                                        sharded(ds::ordered_sum{}, buckets, ds::wire<bfloat16>{}));
}
TEST_CASE("trap 33: every pair of options: a rule with sums, a remainder") {
  every_pair<adaptive, half, half>(replicated(), sharded());
}
TEST_CASE("trap 33: every pair of options: a rule with sums, a remainder, float on the wire") {
  every_pair<adaptive, float, float>(replicated(ds::wire<float>{}),
                                     sharded(ds::wire<float>{}, ds::native_sum{}, buckets));
}

TEST_CASE("sums that are exact: averages, masters and rounding at random have the same bits for any number of ranks") {
  int const examples = 12;
  auto const bytes = [](auto view) {
    return std::string(reinterpret_cast<char const*>(view.data()), view.size_bytes());
  };
  auto const check = [&]<class Program>(Program, auto const& policy, bool parts) {
    settings s;
    for (bool& one : s.on) one = true;
    s.on[weights] = false;
    std::string want;
    std::vector<std::string> wanted;
    for (int n : {1, 2, 3, 4, 6, 12}) {
      INFO("ranks ", n);
      std::vector<std::string> logs(std::size_t(n), "");
      std::vector<std::vector<std::string>> owned(static_cast<std::size_t>(n));
      ranks::with_ranks(n, [&](auto& comm) {
        model<typename Program::value, typename Program::gradient> m;
        auto opt = Program::make(m.list(), s, policy(comm));
        int const each = examples / n;
        auto const backward = [&](int call) {  // multiples of 1/8 below 12: 16 bits suffice for any sum
          m.each([&](auto& g, std::size_t t, std::size_t i) {
            double sum = 0;
            for (int e = comm.rank() * each; e < (comm.rank() + 1) * each; ++e)
              sum += std::floor(8 * ranks::gradient_of(e, call, t, i)) / 8;
            g = ds::narrow<typename Program::gradient>(sum);
          });
        };
        logs[std::size_t(comm.rank())] = train(opt, m, s, each, backward, [] {});
        auto& mine = owned[std::size_t(comm.rank())];
        for (std::size_t t = 0; t < m.value.size(); ++t) {
          std::string const name = "w" + std::to_string(t);
          mine.push_back(bytes(opt.average(name)));
          if constexpr (std::is_same_v<Program, mastered>) mine.push_back(bytes(opt.master(name)));
        }
      });
      for (std::size_t r = 1; r < owned.size(); ++r)
        for (std::size_t i = 0; i < owned[r].size(); ++i) {
          if (parts) owned[0][i] += owned[r][i];
          else CHECK((owned[r][i] == owned[0][i]));
        }
      if (n == 1) want = logs[0], wanted = owned[0];
      for (auto const& one : logs) CHECK(one == want);
      CHECK((owned[0] == wanted));
      CHECK(wanted[0].size() == 33 * sizeof(float));
    }
  };
  check(rounded{}, replicated(ds::ordered_sum{}), false);
  check(rounded{}, sharded(ds::ordered_sum{}), true);
  check(mastered{}, replicated(ds::ordered_sum{}), false);
  check(mastered{}, sharded(ds::ordered_sum{}), true);
  check(adaptive{}, replicated(ds::ordered_sum{}), false);
  check(adaptive{}, sharded(ds::ordered_sum{}), true);
}

TEST_CASE("trap 33: each way to sum has its effect: they round differently") {
  settings const s;
  auto const native = alone<rounded, bfloat16, bfloat16>(s), ordered = alone<rounded, bfloat16, float>(s);
  CHECK(native != ordered);
  auto const whole = alone<mastered, float, float>(s), in_half = alone<mastered, half, half>(s),
             in_order = alone<mastered, bfloat16, float>(s);
  CHECK(whole != in_half);
  CHECK(whole != in_order);
  CHECK(in_half != in_order);
}
