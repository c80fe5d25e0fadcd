// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/schedules/warmup.hpp>
#include <descent/training/loss_scaler.hpp>

#include <doctest/doctest.h>

#include "plain_step.hpp"
#include "support/own_policies.hpp"
#include "support/problem.hpp"
#include "support/ulp.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

/// Random recipes. A list has the types of a recipe: values, gradients, rule and policies. Everything that has a value
/// is drawn, as are sizes, groups, gradients and calls. The optimizer is compared with the plain step after every call.
///
/// What is compared, and how closely:
///  - what is discrete or computed only in double is equal (loss scale, counts, flags), or to 1e-12 where the order of
///    a sum or another formula in double is free (norms, factors, schedules: at most 10^4 terms, so n 2^-53);
///  - numbers that a step stores are compared after each step, from what was stored before it, so that errors do not
///    add up over steps: within twice the running error bound of the reference (the library may associate the same
///    operations otherwise), plus the rounding of the storage: half a unit in the last place, or one if it is
///    stochastic;
///  - a value is its master rounded, and whatever a call must not touch keeps its bits.
namespace recipes {

namespace ds = descent;
using ds::half, ds::bfloat16;
using test::same_bits;

class dice {
 public:
  explicit dice(std::uint64_t seed) : engine_(seed) {}
  int below(int n) { return int(engine_() % std::uint64_t(n)); }
  int between(int a, int b) { return a + below(b - a + 1); }
  bool chance(double p) { return uniform() < p; }
  double uniform() { return double(engine_() >> 11) * 0x1p-53; }
  double within(double a, double b) { return a + (b - a) * uniform(); }
  double log_within(double a, double b) { return a * std::pow(b / a, uniform()); }
  template <class T> T one_of(std::initializer_list<T> list) { return list.begin()[below(int(list.size()))]; }

 private:
  std::mt19937_64 engine_;
};

// ---- how the types of a recipe are drawn, for the reference and for the library -------------------------------------

/// A schedule whose kind is also drawn.
struct any_schedule {
  plain::schedule s;
  double operator()(std::int64_t t) const {
    switch (s.kind) {
      case plain::schedule::linear: return warm(ds::linear{.from = s.from, .to = s.to, .steps = s.steps}, t);
      case plain::schedule::cosine: return warm(ds::cosine{.peak = s.from, .floor = s.to, .steps = s.steps}, t);
      case plain::schedule::staircase: return warm(ds::step{.initial = s.from, .factor = s.to, .every = s.steps}, t);
      default: return warm(ds::constant{s.from}, t);
    }
  }
  template <class S> double warm(S const& then, std::int64_t t) const {
    return s.warm ? ds::warmup<S>{.steps = s.warm, .then = then}(t) : then(t);
  }
};
using lr_schedule = decltype(ds::learning_rate(any_schedule{}));
template <class Rule> using decay_schedule = decltype(ds::vary<&Rule::weight_decay>(any_schedule{}));

inline plain::schedule draw_schedule(dice& d, double low, double high) {
  plain::schedule s;
  s.kind = d.one_of(
      {plain::schedule::constant, plain::schedule::linear, plain::schedule::cosine, plain::schedule::staircase});
  s.from = d.log_within(low, high);
  s.to = s.kind == plain::schedule::staircase ? 0.5 : d.log_within(low, high) / 4;
  s.steps = d.between(1, 8);
  s.warm = d.chance(0.5) ? d.between(1, 5) : 0;
  return s;
}

struct drawing {
  dice& d;
  plain::settings& set;
  std::unique_ptr<ds::loss_scaler<>>& scaler;
};

inline ds::dynamic_loss_scale draw_dynamic(drawing& c) {
  plain::loss_scale s{.dynamic = true};
  s.scale = float(c.d.one_of({1.0, 8.0, 128.0, 1024.0, 65536.0, 1000.0}));
  s.growth = c.d.one_of({2.0, 2.0, 1.5, 4.0});
  s.backoff = c.d.one_of({0.5, 0.5, 0.25, 0.7});
  s.interval = c.d.between(1, 4);
  s.min = c.d.chance(0.5) ? 1.f : s.scale / 4;
  s.max = c.d.chance(0.5) ? 16777216.f : s.scale * 2;
  s.credit = s.hysteresis = c.d.between(1, 3);
  s.refill_by_growth = c.d.chance(0.5);
  c.set.scale = s;
  return {.init = s.scale,
          .growth = s.growth,
          .backoff = s.backoff,
          .interval = s.interval,
          .min = s.min,
          .max = s.max,
          .hysteresis = s.hysteresis,
          .refill = s.refill_by_growth ? ds::refill::growth : ds::refill::clean_step};
}

template <class P> struct draw;
template <> struct draw<ds::dynamic_loss_scale> {
  static auto from(drawing& c) { return draw_dynamic(c); }
};
template <> struct draw<ds::shared_loss_scale> {
  static auto from(drawing& c) {
    c.scaler = std::make_unique<ds::loss_scaler<>>(draw_dynamic(c));
    c.set.shared = true;
    return ds::shared_loss_scale{*c.scaler};
  }
};
template <> struct draw<ds::static_loss_scale> {
  static ds::static_loss_scale from(drawing& c) {
    c.set.scale = plain::loss_scale{.scale = float(c.d.one_of({1.0, 128.0, 1024.0, 100.0}))};
    return {.scale = c.set.scale->scale};
  }
};
template <ds::norm Norm, ds::scope Over> struct draw<ds::clip<Norm, Over>> {
  static ds::clip<Norm, Over> from(drawing& c) {
    bool const is_inf = Norm == ds::norm::inf;
    c.set.clipped = plain::clip{.of = Norm == ds::norm::l1 ? plain::norm::l1
                                      : is_inf             ? plain::norm::inf
                                                           : plain::norm::l2,
                                .what = Over == ds::scope::model   ? plain::over::model
                                        : Over == ds::scope::group ? plain::over::group
                                                                   : plain::over::tensor,
                                .max = c.d.log_within(1e-2, is_inf ? 1 : 100),
                                .eps = c.d.chance(0.5) ? 0 : ds::torch_eps};
    return {.max = c.set.clipped->max, .eps = c.set.clipped->eps};
  }
};
template <> struct draw<ds::clip_adaptive> {
  static ds::clip_adaptive from(drawing& c) {
    ds::clip_adaptive const a{.c = c.d.log_within(1e-3, 1), .eps = c.d.log_within(1e-3, 1)};
    c.set.clipped = plain::clip{.what = plain::over::tensor, .max = a.c, .eps = a.eps, .adaptive = true};
    return a;
  }
};
template <> struct draw<ds::clip_value> {
  static ds::clip_value from(drawing& c) { return {.c = *(c.set.clip_value = c.d.log_within(1e-3, 1))}; }
};
template <> struct draw<ds::accumulate> {
  static ds::accumulate from(drawing& c) { return {.n = *(c.set.accumulate = c.d.between(1, 4))}; }
};
template <> struct draw<ds::ema> {
  static ds::ema from(drawing& c) {
    ds::ema const e{.decay = c.d.within(0, 0.99), .start = c.d.between(0, 4), .bias_corrected = c.d.chance(0.5)};
    c.set.average = plain::average{.decay = e.decay, .corrected = e.bias_corrected, .start = e.start};
    return e;
  }
};
template <> struct draw<ds::swa> {
  static ds::swa from(drawing& c) {
    ds::swa const s{.start = c.d.between(1, 4), .every = c.d.between(1, 3)};
    c.set.average = plain::average{.equal = true, .start = s.start, .every = s.every};
    return s;
  }
};
template <> struct draw<ds::lookahead> {
  static ds::lookahead from(drawing& c) {
    ds::lookahead const l{.k = c.d.between(1, 3), .alpha = c.d.within(0.1, 1)};
    c.set.lookahead = plain::lookahead{l.k, l.alpha};
    return l;
  }
};
template <> struct draw<test::bounded_update> {
  static test::bounded_update from(drawing& c) { return {.most = *(c.set.bound = c.d.log_within(0.05, 2))}; }
};
template <> struct draw<ds::gradient_noise> {
  static ds::gradient_noise from(drawing& c) {
    ds::gradient_noise const n{.eta = c.d.log_within(1e-4, 0.3), .gamma = 0.55, .seed = std::uint64_t(c.d.below(100))};
    c.set.noise = plain::noise{n.eta, n.gamma, [seed = n.seed](std::int64_t t, std::size_t element) {
                                 float z[8];
                                 ds::detail::normals(z, seed, t, std::int64_t(element / 8));
                                 return double(z[element % 8]);
                               }};
    return n;
  }
};
template <> struct draw<ds::stochastic_rounding> {
  static ds::stochastic_rounding from(drawing& c) { return {.seed = std::uint64_t(c.d.below(100))}; }
};
template <> struct draw<ds::skip_nonfinite> {
  static ds::skip_nonfinite from(drawing& c) { return c.set.finiteness = true, ds::skip_nonfinite{}; }
};
template <> struct draw<ds::zero_grad> {
  static ds::zero_grad from(drawing& c) { return c.set.zero = true, ds::zero_grad{}; }
};
template <> struct draw<lr_schedule> {
  static lr_schedule from(drawing& c) { return {{{*(c.set.lr = draw_schedule(c.d, 1e-3, 0.1))}}}; }
};
template <auto Field> struct draw<ds::detail::varied<Field, any_schedule>> {
  static ds::detail::varied<Field, any_schedule> from(drawing& c) {
    return {{{*(c.set.decay = draw_schedule(c.d, 1e-3, 0.3))}}};
  }
};
template <class M> struct draw<ds::master<M>> {
  static ds::master<M> from(drawing&) { return {}; }
};
template <> struct draw<ds::master_remainder> {
  static ds::master_remainder from(drawing&) { return {}; }
};
template <class... Ts> struct draw<ds::states<Ts...>> {
  static ds::states<Ts...> from(drawing&) { return {}; }
};

template <class Rule>
plain::method const method_of = [] {
  if constexpr (std::is_same_v<Rule, ds::sgd>) return plain::method::sgd;
  else if constexpr (std::is_same_v<Rule, ds::adamw>) return plain::method::adamw;
  else if constexpr (std::is_same_v<Rule, ds::lion>) return plain::method::lion;
  else if constexpr (std::is_same_v<Rule, ds::lamb>) return plain::method::lamb;
  else return plain::method::lars;
}();
template <class Rule> Rule to_rule(plain::hyper const& h) {
  Rule r;
  r.lr = h.lr;
  r.weight_decay = h.decay;
  if constexpr (requires { r.momentum; }) r.momentum = h.momentum, r.nesterov = h.nesterov;
  if constexpr (requires { r.dampening; }) r.dampening = h.dampening;
  if constexpr (requires { r.beta1; }) r.beta1 = h.beta1, r.beta2 = h.beta2;
  if constexpr (requires { r.eps; }) r.eps = h.eps;
  if constexpr (requires { r.trust; }) r.trust = h.trust, r.joint_norm = h.joint;
  return r;
}
inline plain::hyper draw_hyper(dice& d, plain::method rule) {
  plain::hyper h;
  h.lr = d.log_within(1e-3, 0.1);
  h.beta1 = d.one_of({0.0, 0.5, 0.9});
  h.beta2 = d.one_of({0.5, 0.9, 0.99});
  h.eps = rule == plain::method::lars ? d.one_of({0.0, 1e-3}) : d.one_of({1e-8, 1e-6, 1e-3});
  h.decay = d.one_of({0.0, 0.01, 0.1});
  h.momentum = d.one_of({0.0, 0.5, 0.9});
  h.nesterov = h.momentum > 0 && d.chance(0.3);
  h.dampening = h.nesterov ? 0 : d.one_of({0.0, 0.3});
  h.trust = d.log_within(1e-3, 0.1);
  h.joint = d.chance(0.5);
  return h;
}

// ---- a type-erased optimizer ----------------------------------------------------------------------------------------

struct subject {
  test::format value_format, gradient_format, exact_format, slow_format, state_format, real_format;
  bool has_master = false, has_remainder = false, has_average = false, has_slow = false, rounds = false;

  virtual ~subject() = default;
  virtual void step(double weight) = 0;
  virtual void flush() = 0;
  virtual void update_scale() = 0;
  virtual ds::step_report report() const = 0;
  virtual ds::step_report last_report() const = 0;
  virtual double loss_scale() const = 0;
  virtual double gradient_norm() = 0;
  virtual void freeze(int group, bool frozen) = 0;
  virtual void set_group(int group, plain::hyper const& h) = 0;
  virtual void reload() = 0;
  virtual void swap_average() = 0;
  virtual bool unscale() = 0;  // false if it does not compile
  virtual double value(std::size_t t, std::size_t i) const = 0;
  virtual double gradient(std::size_t t, std::size_t i) const = 0;
  virtual void set_value(std::size_t t, std::size_t i, double x) = 0;
  virtual void set_gradient(std::size_t t, std::size_t i, double x) = 0;
  virtual std::vector<double> exact(std::size_t t) const = 0;
  virtual std::vector<double> slot(std::size_t t, std::size_t k) const = 0;  // empty if none is stored
  virtual std::vector<double> average(std::size_t t) const = 0;
  virtual std::vector<double> slow(std::size_t t) const = 0;

  std::vector<std::vector<double>> all_values() const {
    return all([this](std::size_t t, std::size_t i) { return value(t, i); });
  }
  std::vector<std::vector<double>> all_gradients() const {
    return all([this](std::size_t t, std::size_t i) { return gradient(t, i); });
  }
  std::vector<std::size_t> sizes;

 private:
  template <class F> std::vector<std::vector<double>> all(F const& f) const {
    std::vector<std::vector<double>> x(sizes.size());
    for (std::size_t t = 0; t < sizes.size(); ++t)
      for (std::size_t i = 0; i < sizes[t]; ++i) x[t].push_back(f(t, i));
    return x;
  }
};

inline std::string name(std::size_t t) { return "t" + std::to_string(t); }

template <class V, class G, class R, class... Ps> struct combo {
  using value = V;
  using gradient = G;
  using rule = R;
  using optimizer = ds::optimizer<V, G, R, Ps...>;

  template <class P> static constexpr bool has = (std::is_same_v<P, Ps> || ...);
  static constexpr bool remainder = has<ds::master_remainder>;
  static constexpr bool averages = has<ds::ema> || has<ds::swa>;
  static constexpr bool scales =
      has<ds::dynamic_loss_scale> || has<ds::static_loss_scale> || has<ds::shared_loss_scale>;
  static constexpr bool any_double =
      std::is_same_v<V, double> || std::is_same_v<G, double> || has<ds::master<double>> || has<ds::states<double>>;
  using real = std::conditional_t<any_double, double, float>;
  static constexpr bool master = has<ds::master<double>> || has<ds::master<float>> || has<ds::master<bfloat16>>;
  using exact = std::conditional_t<has<ds::master<double>>, double,
                                   std::conditional_t<has<ds::master<float>> || remainder, float,
                                                      std::conditional_t<has<ds::master<bfloat16>>, bfloat16, V>>>;
  using slow = std::conditional_t<remainder, real, exact>;
  using state = std::conditional_t<
      has<ds::states<float>>, float,
      std::conditional_t<has<ds::states<half>>, half, std::conditional_t<has<ds::states<bfloat16>>, bfloat16, real>>>;
  static constexpr std::size_t slots = std::is_same_v<R, ds::adamw> || std::is_same_v<R, ds::lamb> ? 2 : 1;

  static std::unique_ptr<optimizer> make(ds::parameters<V, G> const& p, R const& rule, drawing& c) {
    std::tuple<Ps...> const policies{draw<Ps>::from(c)...};  // braces: in order
    return std::apply([&](auto const&... one) { return std::make_unique<optimizer>(p, rule, one...); }, policies);
  }
  /// Calls f<P>() for every policy.
  template <class F> static void each_policy(F const& f) { (f.template operator()<Ps>(), ...); }
};

template <class Combo> class subject_of final : public subject {
  using V = typename Combo::value;
  using G = typename Combo::gradient;

 public:
  subject_of(std::vector<std::size_t> const& counts, std::vector<int> const& groups, plain::hyper const& first, dice& d,
             plain::settings& set) {
    sizes = counts;
    for (std::size_t t = 0; t < counts.size(); ++t) {
      value_.emplace_back(counts[t]);
      gradient_.emplace_back(counts[t], ds::narrow<G>(0.f));
      for (V& x : value_[t]) x = ds::narrow<V>(float(d.chance(0.5) ? 1 : -1) * float(d.log_within(0.01, 2)));
    }
    ds::parameters<V, G> p;
    for (std::size_t t = 0; t < counts.size(); ++t)
      p.add(name(t), value_[t].data(), gradient_[t].data(), counts[t], ds::group{groups[t]});
    drawing c{d, set, scaler_};
    opt_ = Combo::make(p, to_rule<typename Combo::rule>(first), c);
    value_format = test::format_of<V>;
    gradient_format = test::format_of<G>;
    real_format = test::format_of<typename Combo::real>;
    exact_format = test::format_of<typename Combo::exact>;
    slow_format = test::format_of<typename Combo::slow>;
    state_format = test::format_of<typename Combo::state>;
    has_master = Combo::master;
    has_remainder = Combo::remainder;
    has_average = Combo::averages;
    has_slow = Combo::template has<ds::lookahead>;
    rounds = Combo::template has<ds::stochastic_rounding>;
  }

  void step(double weight) override { opt_->step(weight); }
  void flush() override {
    if constexpr (Combo::template has<ds::accumulate>) opt_->flush();
  }
  void update_scale() override { scaler_->update(); }
  ds::step_report report() const override { return opt_->report(); }
  ds::step_report last_report() const override { return opt_->last_report(); }
  double loss_scale() const override { return opt_->loss_scale(); }
  double gradient_norm() override { return opt_->gradient_norm(); }
  void freeze(int group, bool frozen) override { opt_->freeze(group, frozen); }
  void set_group(int group, plain::hyper const& h) override { opt_->group(group) = to_rule<typename Combo::rule>(h); }
  void reload() override { opt_->reload_values(); }
  void swap_average() override {
    if constexpr (Combo::averages) opt_->swap_average();
  }
  bool unscale() override {
    constexpr bool may = Combo::scales && !std::is_same_v<G, half> && !Combo::template has<ds::accumulate>;
    if constexpr (may) return opt_->unscale(), true;
    else return false;
  }
  double value(std::size_t t, std::size_t i) const override { return ds::widen<double>(value_[t][i]); }
  double gradient(std::size_t t, std::size_t i) const override { return ds::widen<double>(gradient_[t][i]); }
  void set_value(std::size_t t, std::size_t i, double x) override { value_[t][i] = ds::narrow<V>(x); }
  void set_gradient(std::size_t t, std::size_t i, double x) override { gradient_[t][i] = ds::narrow<G>(x); }

  std::vector<double> exact(std::size_t t) const override {
    if constexpr (Combo::master) return widened(opt_->master(name(t)));
    else if constexpr (Combo::remainder) {
      auto const low = opt_->remainder(name(t));
      std::vector<double> x;
      for (std::size_t i = 0; i < sizes[t]; ++i) {
        auto const bits = std::int32_t(std::uint32_t(std::bit_cast<std::uint16_t>(value_[t][i])) << 16);
        x.push_back(std::bit_cast<float>(bits + std::int16_t(low[i])));
      }
      return x;
    } else {
      return widened(std::span<V const>(value_[t]));
    }
  }
  std::vector<double> slot(std::size_t t, std::size_t k) const override {
    if (k == 0) return widened(opt_->template state<0>(name(t)));
    if constexpr (Combo::slots > 1) return widened(opt_->template state<1>(name(t)));
    else return {};
  }
  std::vector<double> average(std::size_t t) const override {
    if constexpr (Combo::averages) return widened(opt_->average(name(t)));
    else return {};
  }
  std::vector<double> slow(std::size_t t) const override {
    if constexpr (Combo::template has<ds::lookahead>) return widened(opt_->slow(name(t)));
    else return {};
  }

 private:
  template <class T> static std::vector<double> widened(std::span<T const> in) {
    std::vector<double> x;
    for (T one : in) x.push_back(ds::widen<double>(one));
    return x;
  }

  std::vector<std::vector<V>> value_;
  std::vector<std::vector<G>> gradient_;
  std::unique_ptr<ds::loss_scaler<>> scaler_;  // outlives the optimizer
  std::unique_ptr<typename Combo::optimizer> opt_;
};

// ---- a run ----------------------------------------------------------------------------------------------------------

/// What happened in all runs, so that a test can check that it tested something.
struct tally {
  int recipes = 0, applied = 0, skipped = 0, waited = 0, flushed = 0, clipped = 0, swapped = 0, unscaled = 0,
      reloaded = 0, frozen = 0, bad_values = 0;
  double worst = 0;  // distance from the reference relative to the allowed one, where storage rounds nothing
};

inline bool near(double a, double b, double relative = 1e-12) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= relative * std::abs(b);
}

class run {
 public:
  run(std::unique_ptr<subject> s, plain::machine& ref, dice& d, tally& sum)
      : s_(std::move(s)), ref_(ref), d_(d), sum_(sum) {}

  /// False at the first difference, which `what` describes.
  bool go(std::string& what) {
    num_is(s_->real_format);
    take();
    bool first = true;  // micro-batch of an update
    int const calls = d_.between(6, 14);
    for (int c = 0; c < calls && fault_.empty(); ++c) {
      between_steps();
      new_gradients(first);
      bool const flush = ref_.set.accumulate && d_.chance(0.15);
      double const weight = ref_.set.accumulate ? d_.one_of({1.0, 1.0, 3.0, 0.5}) : 1;
      look(flush, weight);
      first = call(weight, flush);
      if (!fault_.empty()) fault_ = "call " + std::to_string(c + 1) + ": " + fault_;
    }
    if (s_->has_average && fault_.empty()) check_swap();
    what = fault_;
    return fault_.empty();
  }

 private:
  static void num_is(test::format const& real) {
    plain::num::unit = std::ldexp(1, -real.digits);
    plain::num::tiny = test::ulp(real, 0);
  }
  void expect(bool holds, std::string const& what) {
    if (!holds && fault_.empty()) fault_ = what;
  }
  void expect_near(double got, double wanted, std::string const& what) {
    expect(near(got, wanted), what + " is " + text(got) + ", not " + text(wanted));
  }
  static std::string text(double x) {
    char t[40];
    std::snprintf(t, sizeof t, "%.17g", x);
    return t;
  }

  /// The reference continues from what is stored.
  void take() {
    auto const as_nums = [](std::vector<double> const& x, std::size_t n) {
      std::vector<plain::num> r(n);
      for (std::size_t i = 0; i < x.size(); ++i) r[i].x = x[i];
      return r;
    };
    for (std::size_t t = 0; t < s_->sizes.size(); ++t) {
      plain::tensor& x = ref_.tensors[t];
      x.p = as_nums(s_->exact(t), s_->sizes[t]);
      x.m = as_nums(s_->slot(t, 0), s_->sizes[t]);
      x.v = as_nums(s_->slot(t, 1), s_->sizes[t]);
      x.average = as_nums(s_->average(t), s_->sizes[t]);
      x.slow = as_nums(s_->slow(t), s_->sizes[t]);
    }
  }

  /// Gradients of a backward pass on the loss times its scale, added to those of earlier micro-batches.
  void new_gradients(bool first) {
    double const scale = s_->loss_scale();
    for (std::size_t t = 0; t < s_->sizes.size(); ++t)
      for (std::size_t i = 0; i < s_->sizes[t]; ++i) {
        double g = d_.chance(0.02) ? 0 : (d_.chance(0.5) ? scale : -scale) * d_.log_within(1e-3, 0.5);
        s_->set_gradient(t, i, first ? g : g + s_->gradient(t, i));
      }
    if (!d_.chance(0.15)) return;
    std::size_t const t = std::size_t(d_.below(int(s_->sizes.size())));
    if (s_->sizes[t] == 0) return;
    constexpr double inf = std::numeric_limits<double>::infinity();
    s_->set_gradient(t, std::size_t(d_.below(int(s_->sizes[t]))),
                     d_.one_of({inf, -inf, std::numeric_limits<double>::quiet_NaN()}));
  }

  /// Changes groups and overwrites values.
  void between_steps() {
    int const g = d_.below(int(ref_.set.groups.size()));
    if (d_.chance(0.1)) {
      ref_.set.frozen[std::size_t(g)] ^= 1;
      s_->freeze(g, ref_.set.frozen[std::size_t(g)] != 0);
    }
    if (d_.chance(0.1)) {
      plain::hyper& h = ref_.set.groups[std::size_t(g)];
      h.lr *= 0.5;
      h.decay = 0.05;
      s_->set_group(g, h);
    }
    if (d_.chance(0.03)) {
      std::size_t const t = std::size_t(d_.below(int(s_->sizes.size())));
      for (std::size_t i = 0; i < s_->sizes[t]; ++i) s_->set_value(t, i, d_.within(-1, 1));
      auto const written = s_->all_values();
      s_->reload();
      ++sum_.reloaded;
      expect(same_bits(s_->all_values(), written), "reload_values() changed values");
      for (std::size_t k = 0; k < s_->sizes.size(); ++k) {
        auto master = written[k];
        for (double& x : master) x = test::rounded(s_->exact_format, x);
        expect(same_bits(s_->exact(k), master), "a master is not the value that was reloaded");
      }
      take();
    }
  }

  /// unscale() and gradient_norm() before the step.
  void look(bool flush, double weight) {
    if (ref_.set.scale && ref_.completes(flush) && d_.chance(0.15)) {
      auto const before = s_->all_gradients();
      if (s_->unscale()) {
        ++sum_.unscaled;
        ref_.unscaled = true;
        double const scale = ref_.set.scale->scale;
        for (std::size_t t = 0; t < before.size(); ++t)
          for (std::size_t i = 0; i < before[t].size(); ++i) {
            double const got = s_->gradient(t, i), wanted = before[t][i] / scale;
            expect(std::isfinite(wanted) ? test::ulps(s_->gradient_format, got, wanted) <= 2
                                         : std::isnan(got) == std::isnan(wanted) && !std::isfinite(got),
                   "unscale() made " + text(got) + " of " + text(before[t][i]));
          }
      }
    }
    if (!d_.chance(0.15)) return;
    auto const memory = s_->all_gradients();
    // It sees the micro-batches so far, whose weights are known after their calls.
    double const divisor = ref_.divide_by(ref_.batches > 0 ? 0 : 1, false);
    double const wanted = ref_.norm_of(memory, divisor, [](plain::tensor const&) { return true; });
    double const got = s_->gradient_norm();
    expect(std::isfinite(wanted) ? near(got, wanted) : !std::isfinite(got),
           "gradient_norm() is " + text(got) + ", not " + text(wanted));
    expect(same_bits(s_->all_gradients(), memory), "gradient_norm() changed gradients");
    static_cast<void>(weight);
  }

  struct snapshot {
    std::vector<std::vector<double>> all;
    explicit snapshot(subject const& s) : all(s.all_values()) {
      for (std::size_t t = 0; t < s.sizes.size(); ++t)
        for (auto const& x : {s.exact(t), s.slot(t, 0), s.slot(t, 1), s.average(t), s.slow(t)}) all.push_back(x);
    }
  };

  /// One call of step() or flush(). Returns whether the next micro-batch is the first of its update.
  bool call(double weight, bool flush) {
    auto const memory = s_->all_gradients();
    snapshot const before(*s_);
    take();
    auto const earlier = ref_.tensors;
    plain::outcome const done = ref_.call(memory, weight, flush);
    flush ? s_->flush() : s_->step(weight);
    bool const applied = done == plain::outcome::applied, waiting = done == plain::outcome::waiting;
    sum_.applied += applied, sum_.waited += waiting, sum_.skipped += done == plain::outcome::skipped;
    sum_.flushed += flush && applied;

    if (ref_.set.shared) {
      expect(s_->report().loss_scale == double(ref_.set.scale->scale), "the shared scale moved before update()");
      if (!waiting) ref_.set.scale->judge(applied);
      s_->update_scale();
    }
    check_report(done);
    check_gradients(memory, waiting);
    if (applied) check_numbers(earlier, before);
    else expect(same_bits(snapshot(*s_).all, before.all), "a call that updates nothing changed something");
    return ref_.batches == 0;
  }

  void check_report(plain::outcome done) {
    auto const r = s_->report(), late = s_->last_report();
    expect(r.applied == (done == plain::outcome::applied), "applied");
    expect(r.why.empty() == r.applied, "why: " + r.why);
    expect(r.step == ref_.step && r.skipped == ref_.skipped, "step or skipped");
    double const scale = ref_.set.scale ? double(ref_.set.scale->scale) : 1;
    expect(r.loss_scale == scale && s_->loss_scale() == scale,
           "loss scale " + text(r.loss_scale) + ", not " + text(scale));
    expect_near(r.learning_rate, ref_.learning_rate, "learning rate");
    if (!ref_.measures()) expect(std::isnan(r.grad_norm), "a norm that nobody measured");
    else if (std::isfinite(ref_.grad_norm)) expect_near(r.grad_norm, ref_.grad_norm, "gradient norm");
    else expect(!std::isfinite(r.grad_norm), "gradient norm is finite");
    expect_near(r.clip_factor, ref_.clip_factor, "clip factor");
    sum_.clipped += r.applied && r.clip_factor < 1;
    expect(late.step == r.step && late.skipped == r.skipped && late.applied == r.applied && late.why == r.why &&
               near(late.grad_norm, r.grad_norm, 0) && late.clip_factor == r.clip_factor &&
               late.learning_rate == r.learning_rate && (ref_.set.shared || late.loss_scale == r.loss_scale),
           "last_report() is not report()");
  }

  void check_gradients(std::vector<std::vector<double>> memory, bool waiting) {
    if (ref_.set.zero && !waiting)
      for (std::size_t t = 0; t < memory.size(); ++t)
        if (!ref_.set.frozen[ref_.tensors[t].group]) memory[t].assign(memory[t].size(), 0.0);
    expect(same_bits(s_->all_gradients(), memory), "gradients are not zero or as they were");
  }

  void check_numbers(std::vector<plain::tensor> const& earlier, snapshot const& before) {
    for (std::size_t t = 0; t < s_->sizes.size() && fault_.empty(); ++t) {
      plain::tensor const &now = ref_.tensors[t], &old = earlier[t];
      bool const frozen = ref_.set.frozen[now.group];
      sum_.frozen += frozen;
      std::size_t const n = s_->sizes[t];
      auto const exact = s_->exact(t), slow = s_->slow(t), average = s_->average(t);
      auto const compare = [&](std::vector<double> const& got, std::vector<plain::num> const& wanted,
                               test::format const& f, bool random, char const* what) {
        for (std::size_t i = 0; i < got.size(); ++i) expect_stored(got[i], wanted[i], f, frozen, random, what, t, i);
      };
      compare(exact, now.p, s_->exact_format, s_->rounds && !s_->has_remainder, "value or master");
      compare(s_->slot(t, 0), now.m, s_->state_format, s_->rounds, "first state");
      compare(s_->slot(t, 1), now.v, s_->state_format, s_->rounds, "second state");
      bool const pulled = ref_.set.lookahead && ref_.step % ref_.set.lookahead->k == 0 && !frozen;
      if (s_->has_slow && pulled)
        expect(s_->slow_format == s_->exact_format ? same_bits(slow, exact) : true, "slow and fast weights differ");
      if (s_->has_slow && !pulled) compare(slow, old.slow, s_->slow_format, false, "slow weight that waits");
      if (s_->has_slow)
        compare(slow, pulled ? now.slow : old.slow, s_->slow_format, s_->rounds && pulled, "slow weight");
      for (std::size_t i = 0; i < n && s_->has_average; ++i) {
        plain::num e = old.average[i];
        bool const moved = !frozen && ref_.average_of(e, exact[i], ref_.step);
        expect_stored(average[i], moved ? e : plain::num{old.average[i].x, 0}, s_->real_format, !moved, false,
                      "average", t, i);
      }
      for (std::size_t i = 0; i < n; ++i) {
        if (frozen) expect(near(s_->value(t, i), before.all[t][i], 0), "a frozen value moved");
        else if (s_->has_master)
          expect(near(s_->value(t, i), test::rounded(s_->value_format, exact[i]), 0), "a value is not its master");
        sum_.bad_values += !std::isfinite(exact[i]);
      }
    }
  }

  void expect_stored(double got, plain::num wanted, test::format const& f, bool exactly, bool random, char const* what,
                     std::size_t t, std::size_t i) {
    double distance;  // relative to the allowed distance
    if (std::isnan(got) || std::isnan(wanted.x) || std::isinf(got) || std::isinf(wanted.x)) {
      distance = near(got, wanted.x, 0) ? 0 : 2;
    } else if (exactly) {
      distance = got == wanted.x ? 0 : 2;
    } else {
      bool const narrow = f.digits < s_->real_format.digits;
      double const ulp = test::ulp(f, std::max(std::abs(got), std::abs(wanted.x)));
      double const allowed = 2 * wanted.e + (narrow ? (random && f.digits < 24 ? 1 : 0.5) * ulp : 0);
      distance = got == wanted.x ? 0 : std::abs(got - wanted.x) / allowed;
      if (!narrow) sum_.worst = std::max(sum_.worst, distance);
    }
    if (distance > 1 && fault_.empty())
      fault_ = std::string(what) + " " + std::to_string(i) + " of " + name(t) + " (" + std::to_string(s_->sizes[t]) +
               "): " + text(got) + ", not " + text(wanted.x) + ", which may err by " + text(wanted.e);
  }

  void check_swap() {
    ++sum_.swapped;
    snapshot const before(*s_);
    auto const values = s_->all_values();
    s_->swap_average();
    for (std::size_t t = 0; t < s_->sizes.size(); ++t) {
      auto const average = s_->average(t);
      for (std::size_t i = 0; i < average.size(); ++i)
        expect(near(s_->value(t, i), test::rounded(s_->value_format, average[i]), 0), "a value is not its average");
    }
    s_->swap_average();
    expect(same_bits(snapshot(*s_).all, before.all), "two swaps changed something");
  }

  std::unique_ptr<subject> s_;
  plain::machine& ref_;
  dice& d_;
  tally& sum_;
  std::string fault_;
};

using make_subject = std::unique_ptr<subject> (*)(std::vector<std::size_t> const&, std::vector<int> const&,
                                                  plain::hyper const&, dice&, plain::settings&);
template <class Combo>
std::unique_ptr<subject> make(std::vector<std::size_t> const& sizes, std::vector<int> const& groups,
                              plain::hyper const& first, dice& d, plain::settings& set) {
  return std::make_unique<subject_of<Combo>>(sizes, groups, first, d, set);
}

/// One random recipe of these types.
inline std::string try_recipe(plain::method method, make_subject make, std::uint64_t seed, tally& sum) {
  dice d(seed);
  ++sum.recipes;
  plain::machine ref;
  ref.set.rule = method;
  int const groups = d.between(1, 3);
  for (int g = 0; g < groups; ++g) ref.set.groups.push_back(draw_hyper(d, method));
  for (auto& h : ref.set.groups)
    if (ref.set.groups[0].momentum == 0) h.momentum = 0, h.nesterov = false;  // no memory is reserved for it
  ref.set.frozen.assign(std::size_t(groups), 0);
  std::vector<std::size_t> sizes;
  std::vector<int> group_of;
  int const tensors = d.between(1, 5);
  std::size_t first = 0;
  for (int t = 0; t < tensors; ++t) {
    bool const large = d.chance(0.05);
    sizes.push_back(large ? d.one_of<std::size_t>({4095, 4096, 4097, 8200})
                          : d.one_of<std::size_t>({0, 1, 2, 7, 8, 9, 15, 64, 65, 100}));
    group_of.push_back(t == 0 ? groups - 1 : d.below(groups));  // so that every group exists
    plain::tensor x;
    x.group = std::size_t(group_of.back());
    x.first = first;
    first += (sizes.back() + 63) / 64 * 64;  // each tensor's elements are numbered from a multiple of 64
    ref.tensors.push_back(x);
  }
  auto s = make(sizes, group_of, ref.set.groups[0], d, ref.set);
  for (int g = 1; g < groups; ++g) s->set_group(g, ref.set.groups[std::size_t(g)]);
  std::string what;
  run(std::move(s), ref, d, sum).go(what);
  return what;
}

/// Tries `recipes_each` random recipes of each row of a list.
template <class... Combos> tally try_all(std::tuple<Combos...> const&, int recipes_each, std::uint64_t first_row) {
  tally sum;
  int faults = 0;
  std::uint64_t row = first_row;
  auto const one_row = [&](plain::method method, make_subject make) {
    for (int r = 0; r < recipes_each; ++r) {
      std::uint64_t const seed = row * 1000 + std::uint64_t(r);
      std::string const what = try_recipe(method, make, seed, sum);
      if (what.empty()) continue;
      if (++faults <= 10) {
        INFO("row ", row, ", seed ", seed);
        CHECK(what == "");
      }
    }
    ++row;
  };
  (one_row(method_of<typename Combos::rule>, make<Combos>), ...);
  CHECK(faults == 0);
  return sum;
}

}  // namespace recipes
