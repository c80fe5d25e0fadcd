// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "network.hpp"
#include "surfaces.hpp"

#include <descent/core/precision.hpp>
#include <descent/core/rule.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/warmup.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>

/// A run of one rule on a surface of two parameters, or on the network of network.hpp. It repeats what update_packet in
/// engine/step/packet.hpp and the controller do for one tensor of two elements or for the four of the network, with
/// storage types that are chosen at run time. All arithmetic is that of the library; only sums are added element by
/// element. tests/learn/lab_native.cpp compares it with ds::optimizer.
namespace lab {

namespace ds = descent;

// What the caller sets: numbers, so that they can be passed in one array.
#define LAB_SETTINGS(setting)                                                                                         \
  setting(surface) setting(condition) setting(angle) setting(noise) setting(seed) setting(size) setting(x) setting(y) \
      setting(steps) setting(schedule) setting(schedule_steps) setting(schedule_factor) setting(clip) setting(values) \
          setting(gradients) setting(states) setting(master) setting(random) setting(scale) setting(scale_init)       \
              setting(scale_interval) setting(batch)
struct settings {
#define LAB_MEMBER(name) double name;
  LAB_SETTINGS(LAB_MEMBER)
#undef LAB_MEMBER
};
// enumerations in settings
enum format { in_float, in_half, in_bfloat16 };
enum schedule { constant, warmup, cosine, warmup_cosine, stairs };
enum scaling { no_scale, dynamic_scale, static_scale };
enum skipped { applied, bad_gradient, bad_terms };

// What the caller gets for each call of step(); the first record is the start. 0: x, 1: y, or two of the network's
// weights. `loss` is that of the surface or of the network's test images, `batch_loss` that of the mini-batch.
#define LAB_RECORD(entry)                                                                                              \
  entry(value0) entry(value1) entry(loss) entry(gradient0) entry(gradient1) entry(stored0) entry(stored1) entry(lr)    \
      entry(norm) entry(clip) entry(scale) entry(skipped) entry(updates) entry(master0) entry(master1) entry(average0) \
          entry(average1) entry(asked0) entry(asked1) entry(batch_loss) entry(accuracy)
struct record {
#define LAB_MEMBER(name) double name;
  LAB_RECORD(LAB_MEMBER)
#undef LAB_MEMBER
  double state[5][2];
};

inline constexpr std::size_t most_steps = 2000;
inline settings now;
inline record records[most_steps + 1];
/// Means of absolute values over each tensor of the network: weights, gradients, stored steps, members of the state.
inline double layers[most_steps + 1][8][network::tensors];
inline unsigned used_slots;  // of the last run: bit j is set if member j of the state is stored

inline float rounded(int format, float x) {
  if (format == in_half) return ds::widen<float>(ds::narrow<ds::half>(x));
  if (format == in_bfloat16) return ds::widen<float>(ds::narrow<ds::bfloat16>(x));
  return x;
}
inline double scheduled(double lr, std::int64_t step) {
  auto const steps = std::int64_t(now.schedule_steps);
  auto const all = std::int64_t(now.steps), rest = all > steps ? all - steps : 1;
  switch (int(now.schedule)) {
    case warmup: return ds::warmup<ds::constant>{.steps = steps, .then = ds::constant{lr}}(step);
    case cosine: return ds::cosine{.peak = lr, .floor = lr * now.schedule_factor, .steps = steps}(step);
    case warmup_cosine:
      return ds::warmup<ds::cosine>{
          .steps = steps, .then = ds::cosine{.peak = lr, .floor = lr * now.schedule_factor, .steps = rest}}(step);
    case stairs: return ds::step{.initial = lr, .factor = now.schedule_factor, .every = steps}(step);
    default: return lr;
  }
}

/// What does not depend on the rule. It is not a template, because the page should be small.
class bench {
 public:
  explicit bench(double lr, std::size_t slots) : lr_(lr), slots_(slots) {
    if (int(now.scale) == dynamic_scale) scale_ = scaler().start();
    if (int(now.scale) == static_scale) scale_.scale = float(now.scale_init);
    for (int i = 0; i < n_; ++i) {
      float const first = reads_digits() ? network::initial(i, std::uint64_t(now.seed)) : float(i ? now.y : now.x);
      value_[i] = master_[i] = rounded(int(now.values), first);
    }
  }
  virtual ~bench() = default;

  record look() const {
    record r{};
    int const a = watched(0), b = watched(1);
    r.value0 = value_[a], r.value1 = value_[b];
    if (reads_digits()) {
      r.loss = now.size * network::test(value_, r.accuracy);
    } else {
      double gradient[2];
      r.loss = surface(gradient);
    }
    r.scale = scale_.scale, r.clip = 1, r.updates = double(t_), r.lr = scheduled(lr_, t_);
    r.master0 = master_[a], r.master1 = master_[b];
    r.average0 = average(a), r.average1 = average(b);
    for (std::size_t j = 0; j < slots_; ++j)
      for (int i = 0; i < 2; ++i) r.state[j][i] = slot_[j][watched(i)];
    return r;
  }

  /// The backward pass and the step.
  record step() {
    double exact[most] = {}, loss, norm_sum = 0;
    if (reads_digits()) {
      int const batch = int(now.batch) > 0 ? int(now.batch) : 1;
      loss = now.size * network::batch(value_, std::uint64_t(now.seed), calls_, batch, exact);
      for (double& one : exact) one *= now.size;
    } else {
      double gradient[2];
      loss = surface(gradient);
      exact[0] = gradient[0], exact[1] = gradient[1];
      if (now.noise > 0) {
        float z[8];
        ds::detail::normals(z, std::uint64_t(now.seed), calls_, 0);
        for (int i = 0; i < 2; ++i) {
          exact[i] += now.size * now.noise * double(z[i]);
          loss += now.size * now.noise * double(z[i]) * double(value_[i]);
        }
      }
    }
    ++calls_;
    for (int i = 0; i < n_; ++i) {
      gradient_[i] = rounded(int(now.gradients), float(double(scale_.scale) * exact[i]));
      norm_sum += double(gradient_[i]) * double(gradient_[i]);
      before_[i] = value_[i], asked_[i] = 0;
    }
    double const scale = scale_.scale, stored[2] = {gradient_[watched(0)], gradient_[watched(1)]}, inverse = 1 / scale;
    double const norm = std::sqrt(norm_sum) * inverse;
    bool const measures = now.clip > 0 || int(now.scale) != no_scale || has_sums();
    bool const finite = ds::is_finite(norm) && (!has_loss() || ds::is_finite(loss));
    double const clip = now.clip > 0 && finite ? ds::clip_norm{now.clip}.factor(norm) : 1;
    double const lr = scheduled(lr_, t_);
    auto why = measures && !finite ? bad_gradient : applied;
    for (int i = 0; i < n_; ++i) gradient_[i] = gradient_[i] * float(inverse * clip);
    if (why == applied) {
      if (update(loss, lr)) ++t_;
      else why = bad_terms;
    }
    if (int(now.scale) == dynamic_scale) scaler().next(scale_, ds::is_finite(norm));

    record r = look();
    r.gradient0 = gradient_[watched(0)], r.gradient1 = gradient_[watched(1)];
    r.stored0 = stored[0], r.stored1 = stored[1];
    r.lr = lr, r.norm = norm, r.clip = clip, r.scale = scale, r.skipped = why;
    r.asked0 = asked_[watched(0)], r.asked1 = asked_[watched(1)];
    if (reads_digits()) r.batch_loss = loss;
    return r;
  }

  void measure(double (&out)[8][network::tensors]) const {
    for (int k = 0; k < network::tensors; ++k) {
      double sums[8] = {};
      int const first = network::begin[k], last = network::begin[k + 1];
      for (int i = first; i < last; ++i) {
        sums[0] += std::fabs(double(value_[i]));
        sums[1] += std::fabs(double(gradient_[i]));
        sums[2] += std::fabs(double(value_[i]) - double(before_[i]));
        for (std::size_t j = 0; j < slots_; ++j) sums[3 + j] += std::fabs(double(slot_[j][i]));
      }
      for (int j = 0; j < 8; ++j) out[j][k] = sums[j] / (last - first);
    }
  }

  static bool reads_digits() { return int(now.surface) == digits_surface; }
  static ds::dynamic_loss_scale scaler() { return {.init = now.scale_init, .interval = int(now.scale_interval)}; }

 protected:
  virtual bool update(double loss, double lr) = 0;
  virtual float average(int i) const = 0;
  virtual bool has_sums() const = 0;
  virtual bool has_loss() const = 0;

  /// What the rule updates.
  float parameter(int i) const { return now.master != 0 ? master_[i] : value_[i]; }

  /// Stores the result of update t. The streams of random numbers are those of engine/step/packet_random.hpp.
  void store_value(float after, int i, std::int64_t t) {
    bool const random = now.random != 0, beside = now.master != 0;
    asked_[i] = double(after) - double(parameter(i));
    int const stream = beside ? 2 + int(slots_) : 0;
    value_[i] = random ? at_random(int(now.values), after, t, i, stream) : rounded(int(now.values), after);
    master_[i] = beside ? after : value_[i];
  }
  void store_state(float after, std::size_t slot, int i, std::int64_t t) {
    bool const random = now.random != 0;
    int const states = int(now.states), stream = 2 + int(slot);
    slot_[slot][i] = random && t > 0 ? at_random(states, after, t, i, stream) : rounded(states, after);
  }

  static constexpr int most = network::weights;
  int const n_ = reads_digits() ? most : 2;
  float value_[most] = {}, master_[most] = {}, slot_[5][most] = {}, gradient_[most] = {};
  std::int64_t t_ = 0;

 private:
  double surface(double (&gradient)[2]) const {
    shape const s{int(now.surface), now.condition, now.angle, now.size};
    return s.at(double(value_[0]), double(value_[1]), gradient);
  }
  static float at_random(int format, float x, std::int64_t t, int element, int stream) {
    int const place = reads_digits() ? network::arena(element) : element;
    auto const random = ds::detail::random_bits(std::uint64_t(now.seed), t, place / 8, stream).bits[place % 8];
    if (format == in_half) return ds::widen<float>(ds::detail::narrow_stochastic<ds::half>(x, random));
    if (format == in_bfloat16) return ds::widen<float>(ds::detail::narrow_stochastic<ds::bfloat16>(x, random));
    return x;
  }

  static int watched(int i) { return reads_digits() ? network::watched[i] : i; }

  double lr_;
  std::size_t slots_;
  float before_[most] = {};   // values before the step
  double asked_[most] = {};  // the step before it is rounded
  ds::loss_scale_state scale_{};
  std::int64_t calls_ = 1;
};

/// Converts terms to float. False if one is not finite and may not be infinite.
template <class Rule> bool narrow(typename Rule::template terms<float>& k, typename Rule::template terms<double> x) {
  bool sound = true;
  for (std::size_t i = 0; i < ds::detail::members<Rule::template terms>; ++i) {
    float const one = float(ds::detail::real_at<double>(x, i));
    sound = sound && (ds::detail::may_be_infinite<Rule>(i) ? !ds::is_nan(one) : ds::is_finite(one));
    ds::detail::real_at<float>(k, i) = one;
  }
  return sound;
}

struct nothing {};
template <class Rule> struct memory_type { using type = nothing; };
template <ds::has_memory Rule> struct memory_type<Rule> { using type = typename Rule::memory; };

template <class Rule> class bench_of final : public bench {
 public:
  explicit bench_of(Rule const& rule) : bench(rule.lr, slots), rule_(rule) {
    used_slots = 0;
    for (std::size_t j = 0; j < slots; ++j) used_slots |= unsigned(used(j)) << j;
    for (int i = 0; i < n_; ++i) {
      state s{};
      if constexpr (ds::has_start<Rule>) s = rule_.start(value_[i]);
      for (std::size_t j = 0; j < slots; ++j)
        if (used(j)) store_state(ds::detail::real_at<float>(s, j), j, i, 0);
    }
  }

 private:
  using state = typename Rule::template state<float>;
  static constexpr std::size_t slots = ds::detail::members<Rule::template state>;
  static_assert(slots <= 5);

  bool has_sums() const override { return ds::has_sums<Rule>; }
  bool has_loss() const override { return ds::has_loss<Rule>; }
  float average(int i) const override {
    if constexpr (ds::has_averaged<Rule>) return rule_.averaged(parameter(i), whole(i));
    else return value_[i];
  }
  bool used([[maybe_unused]] std::size_t slot) const {
    if constexpr (ds::has_optional_state<Rule>) return rule_.uses(slot);
    else return true;
  }
  static bool updated([[maybe_unused]] std::size_t slot) {
    if constexpr (ds::has_state_for_sums<Rule>) return !Rule::for_sums_only(slot);
    else return true;
  }
  state whole(int i, bool for_sums = true) const {
    state s{};
    for (std::size_t j = 0; j < slots; ++j)
      if (for_sums || updated(j)) ds::detail::real_at<float>(s, j) = slot_[j][i];
    return s;
  }

  /// Sums are over each tensor or over all.
  static constexpr bool by_tensor = [] {
    if constexpr (ds::has_sums<Rule>) return Rule::sums_over == ds::scope::tensor;
    else return false;
  }();
  using terms = typename Rule::template terms<float>;
  using memory = typename memory_type<Rule>::type;

  bool update([[maybe_unused]] double loss, double lr) override {
    Rule r = rule_;
    r.lr = lr;
    std::int64_t const t = t_ + 1;
    bool const many = by_tensor && reads_digits();
    int const parts = many ? network::tensors : 1;
    auto const end_of = [&](int part) { return many ? network::begin[part + 1] : n_; };
    terms k[network::tensors]{};
    memory after[network::tensors];
    for (int part = 0, first = 0; part < parts; first = end_of(part++)) {
      after[part] = memory_[part];
      if (!terms_of(r, t, first, end_of(part), loss, k[part], after[part])) return false;
    }
    for (int part = 0, i = 0; part < parts; ++part) {
      memory_[part] = after[part];
      for (; i < end_of(part); ++i) {
        state s = whole(i, false);
        store_value(Rule::update(parameter(i), gradient_[i], s, k[part]), i, t);
        for (std::size_t j = 0; j < slots; ++j)
          if (used(j) && updated(j)) store_state(ds::detail::real_at<float>(s, j), j, i, t);
      }
    }
    return true;
  }

  /// The terms of update t for the elements from first to last. False if one is not finite.
  bool terms_of(Rule const& r, std::int64_t t, [[maybe_unused]] int first, [[maybe_unused]] int last,
                [[maybe_unused]] double loss, terms& k, [[maybe_unused]] memory& m) const {
    if constexpr (ds::has_sums<Rule>) {
      bool sound;
      if constexpr (ds::has_sums_of_memory<Rule>) sound = narrow<Rule>(k, r.at(t, m));
      else sound = narrow<Rule>(k, r.at(t));
      if (!sound) return false;
      typename Rule::template sums<double> totals{};
      for (int i = first; i < last; ++i) {
        typename Rule::template sums<float> part;
        if constexpr (ds::has_sums_of_state<Rule>) part = Rule::sum(parameter(i), gradient_[i], whole(i), k);
        else part = Rule::sum(parameter(i), gradient_[i], k);
        for (std::size_t c = 0; c < ds::detail::members<Rule::template sums>; ++c)
          ds::detail::real_at<double>(totals, c) += double(ds::detail::real_at<float>(part, c));
      }
      if constexpr (ds::has_loss<Rule> && ds::has_memory<Rule>) return narrow<Rule>(k, r.at(t, totals, m, loss));
      else if constexpr (ds::has_loss<Rule>) return narrow<Rule>(k, r.at(t, totals, loss));
      else if constexpr (ds::has_memory<Rule>) return narrow<Rule>(k, r.at(t, totals, m));
      else return narrow<Rule>(k, r.at(t, totals));
    } else if constexpr (ds::has_memory<Rule>) {
      return narrow<Rule>(k, r.at(t, m));
    } else {
      return narrow<Rule>(k, r.at(t));
    }
  }

  Rule rule_;
  memory memory_[network::tensors]{};
};

inline void run(bench& bench) {
  auto const steps = std::size_t(now.steps) < most_steps ? std::size_t(now.steps) : most_steps;
  for (std::size_t i = 0; i <= steps; ++i) {
    records[i] = i ? bench.step() : bench.look();
    if (bench.reads_digits()) bench.measure(layers[i]);
  }
}

}  // namespace lab
