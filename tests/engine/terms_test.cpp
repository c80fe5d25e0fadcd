// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// What a rule, a schedule or a weight gives for an update must be finite in the type of the arithmetic; otherwise the
// update is skipped like one with a bad gradient, with its reason. What is known before is refused.
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rows.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adafactor.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/training/loss_scaler.hpp>
#include <descent/transforms/chain.hpp>
#include <descent/transforms/parts.hpp>

#include <doctest/doctest.h>

#include "support/own_policies.hpp"
#include "support/message.hpp"
#include "support/problem.hpp"
#include "support/sizes.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

using namespace test;
namespace ds = descent;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN(), too_large = 1e39;
std::vector<std::size_t> const sizes{3, 0, chunk + 9, 21};

/// `usual` except at one step.
struct broken_at {
  std::int64_t step;
  double bad, usual = 0.25;
  double operator()(std::int64_t t) const { return t == step ? bad : usual; }
};

/// A rule whose terms are non-finite from update `from` on.
struct overflowing {
  double lr = 0.25, from = 3;
  template <class Real> struct state {};
  template <class Real> struct terms { Real lr, none; };
  terms<double> at(std::int64_t t) const { return {lr, double(t) < from ? 1.0 : infinity}; }
  template <class Real> static Real update(Real p, Real g, state<Real>&, terms<Real> const& k) {
    return p - k.lr * g / k.none;
  }
};

template <class T> std::vector<T> copy(std::span<T const> x) { return {x.begin(), x.end()}; }
template <class T> bool all_zero(std::vector<std::vector<T>> const& x) {
  for (auto const& one : x)
    for (T const& e : one)
      if (ds::widen<float>(e) != 0) return false;
  return true;
}

/// Two updates, then two calls that are skipped for this reason and change nothing, including what look(optimizer)
/// returns.
template <class T, class Look, class Rule, class... Ps>
void stops(std::string const& why, Look const& look, Rule rule, Ps... policies) {
  problem<T> p(sizes);
  p.group = {0, 0, 1, 1};
  ds::optimizer opt{p.parameters(), rule, policies...};
  for (int t = 1; t <= 2; ++t) {
    p.set_gradients(t);
    opt.step();
    CHECK(opt.report().applied);
  }
  auto const before = p.value;
  auto const report = opt.report();
  auto const remembered = look(opt);
  for (int n = 1; n <= 2; ++n) {
    for (auto& g : p.grad) g.assign(g.size(), T(0.f));  // 0 times infinity is NaN, too
    opt.step();
    auto const r = opt.report();
    CHECK(same_bits(p.value, before));
    CHECK(!r.applied);
    CHECK(r.step == 2);
    CHECK(r.skipped == n);
    CHECK(r.why == why);
    CHECK(r.learning_rate == report.learning_rate);
    CHECK(r.clip_factor == report.clip_factor);
    CHECK(r.loss_scale == report.loss_scale);
    CHECK(same_bits(look(opt), remembered));
  }
}
/// The reason for a learning rate of update 3 that is out of its range.
std::string stray(char const* allowed, double lr, int group = 0) {
  return "lr of group " + std::to_string(group) + " must be " + allowed + ", is " + ds::detail::number(lr) +
         " by its schedule at update 3; skipped updates do not advance schedules, so the next one is skipped, too";
}
auto const nothing_else = [](auto const&) { return std::vector<float>{}; };

/// Multiplies the update.
struct scaled_update {
  double factor = 1;

  using policy_kind = ds::kind::around<scaled_update>;
  template <class Real> struct terms { Real factor; };
  DESCENT_HD terms<double> at(std::int64_t, double) const { return {factor}; }
  template <class Real> DESCENT_HD static Real around(Real p, Real, Real next, terms<Real> const& k) {
    return p + k.factor * (next - p);
  }
};

}  // namespace

TEST_CASE("a schedule that gives no number or an infinity, in float 1e39, too, skips the update and says so") {
  for (double bad : {not_a_number, infinity, -infinity, too_large}) {
    auto const lr = ds::learning_rate(broken_at{2, bad});
    std::string const why = stray(bad == too_large ? "finite in float" : "finite and at least 0", bad);
    stops<float>(why, nothing_else, ds::sgd{}, lr);
    stops<float>("the terms of group 0 are not finite in float at update 3: lr is " + ds::detail::number(bad),
                 nothing_else, overflowing{.from = 9}, lr);  // lists no ranges
    auto const state = [](auto const& opt) { return copy(opt.template state<0>("tensor2")); };
    stops<float>(why, state, ds::adamw{}, lr, ds::skip_nonfinite{});
  }
  auto const lr = ds::learning_rate(broken_at{2, not_a_number});
  auto const averages = [](auto const& opt) { return copy(opt.average("tensor2")); };
  stops<ds::half>(stray("finite and at least 0", not_a_number), averages, ds::sgd{}, lr,
                  ds::dynamic_loss_scale{.init = 4}, ds::ema{.decay = 0.5}, ds::zero_grad{});
  auto const memory = [](auto const& opt) { return copy(opt.rule_memory()); };
  stops<float>(stray("finite and at least 0", not_a_number), memory, ds::heavy_ball{.correction = true}, lr);
  stops<float>(stray("finite and at least 0", not_a_number), nothing_else, ds::lamb{}, lr);
  stops<float>(stray("finite and at least 0", not_a_number), nothing_else, ds::sgd{}, lr,
               ds::clip<ds::norm::l2, ds::scope::tensor>{.max = 0.5});
  stops<float>(stray("finite and at least 0", not_a_number, 1), nothing_else, ds::sgd{}, lr.only(ds::group{1}));
}

TEST_CASE("a schedule that leaves the range of its field skips the update and names the field, until it is back") {
  auto const skips = []<class Rule>(std::string const& why, Rule rule, auto schedule, auto... policies) {
    stops<float>(
        why + " by its schedule at update 3; skipped updates do not advance schedules, so the next one is skipped, too",
        nothing_else, rule, schedule, policies...);
  };
  skips("lr of group 0 must be finite and at least 0, is -0.1", ds::sgd{}, ds::learning_rate(broken_at{2, -0.1}));
  skips("lr of group 1 must be finite and at least 0, is -0.1", ds::sgd{.lr = 0.2},
        ds::scale_learning_rate(broken_at{2, -0.5}).only(ds::group{1}));
  skips("beta1 of group 0 must be in [0, 1), is 1", ds::adamw{}, ds::vary<&ds::adamw::beta1>(broken_at{2, 1}));
  skips("beta1 of group 0 must be in [0, 1), is 1.1", ds::adamw{}, ds::vary<&ds::adamw::beta1>(broken_at{2, 1.1}),
        ds::skip_nonfinite{});
  skips("weight_decay of group 0 must be finite and at least 0, is -10", ds::lamb{},
        ds::vary<&ds::lamb::weight_decay>(broken_at{2, -10}));
  skips("eps of group 0 must be above 0 in float, at least 1.17549e-38, is 1e-60", ds::adamw{},
        ds::vary<&ds::adamw::eps>(broken_at{2, 1e-60}));
  using decayed = ds::chain<ds::l2, ds::adamw>;
  skips("weight_decay of group 0 must be finite and at least 0, is -1", decayed{},
        ds::vary<&ds::l2::weight_decay>(broken_at{2, -1}), ds::clip<ds::norm::l2, ds::scope::tensor>{});

  problem<float> p(sizes);
  ds::optimizer opt{p.parameters(), ds::adamw{}, ds::vary<&ds::adamw::beta1>(broken_at{1, 1})};
  CHECK(opt.explain().find("\nbeta1 follows a schedule and must be in [0, 1), or the update is skipped\n") !=
        std::string::npos);
  opt.step(), opt.step();
  CHECK(!opt.report().applied);
  CHECK(message([&] { opt.set_step(1); }) == "schedules at update 2, group 0: adamw: beta1 must be in [0, 1), is 1");
  opt.set_step(2);
  opt.step();
  CHECK(opt.report().applied);

  problem<double> in_double(sizes);
  ds::optimizer precise{in_double.parameters(), ds::adamw{.eps = 1e-60}};
  precise.step();
  CHECK(precise.report().applied);
}

TEST_CASE("what a rule or a policy computes is checked, too, and what is finite in double stays in double") {
  stops<float>("the terms of group 0 are not finite in float at update 3: number 1 is inf", nothing_else,
               overflowing{});
  problem<double> p(sizes);
  p.set_gradients(1);
  ds::optimizer opt{p.parameters(), ds::sgd{}, ds::learning_rate(broken_at{1, too_large}), ds::clip_norm{}};
  opt.step(), opt.step();
  CHECK(opt.report().step == 2);
}

TEST_CASE("a bad term zeroes gradients where zero_grad{} asks, and is over when the group is frozen") {
  problem<float> p(sizes);
  p.group = {0, 0, 1, 1};
  ds::optimizer opt{p.parameters(), ds::sgd{}, ds::learning_rate(broken_at{0, 1, 0.5}), ds::zero_grad{},
                    ds::vary<&ds::sgd::weight_decay>(broken_at{1, infinity, 0}).only(ds::group{1})};
  p.set_gradients(1);
  opt.step();
  CHECK(opt.report().applied);
  p.set_gradients(2);
  opt.step();
  CHECK(opt.report().why ==
        "weight_decay of group 1 must be finite and at least 0, is inf by its schedule at update 2; skipped updates do "
        "not advance schedules, so the next one is skipped, too");
  CHECK(all_zero(p.grad));
  opt.freeze(1);
  p.set_gradients(2);
  auto const before = p.value;
  opt.step();
  CHECK(opt.report().step == 2);
  CHECK(!same_bits(p.value[0], before[0]));
  CHECK(same_bits(p.value[2], before[2]));
}

TEST_CASE("the loss scale is of the gradients: a bad term counts as a clean step for it") {
  problem<float> p(sizes);
  ds::optimizer opt{p.parameters(), ds::sgd{}, ds::learning_rate(broken_at{1, not_a_number}),
                    ds::dynamic_loss_scale{.init = 4, .interval = 3}};
  for (int n = 0; n < 3; ++n) {
    p.set_gradients(n, opt.loss_scale());
    opt.step();
  }
  CHECK(opt.report().step == 1);
  CHECK(opt.report().skipped == 2);
  CHECK(opt.loss_scale() == 8);
}

TEST_CASE("terms of the next update that are not finite are refused where a rule is given, with nothing changed") {
  problem<float> p(sizes);
  p.group = {0, 0, 1, 1};
  p.set_gradients(1);
  auto const values = p.value;
  CHECK(message([&] { ds::optimizer opt{p.parameters(), ds::sgd{.lr = too_large}}; }) ==
        "sgd: lr must be finite in float, is 1e+39");
  CHECK(message([&] { ds::optimizer opt{p.parameters(), ds::adamw{.eps = too_large}}; }) ==
        "adamw: eps must be finite in float, is 1e+39");
  CHECK(message([&] { ds::optimizer opt{p.parameters(), ds::adamw{.eps = 0}}; }) ==
        "adamw: eps must be finite and above 0, is 0");
  CHECK(message([&] {
          ds::optimizer opt{p.parameters(), ds::sgd{.lr = 1e30, .weight_decay = 1e30, .decoupled = true}};
        }) == "the terms of group 0 are not finite in float at update 1: number 4 is inf, because lr is 1e+30");
  CHECK(message([&] { ds::optimizer opt{p.parameters(), ds::adamw{}, test::unchanged{}, scaled_update{too_large}}; }) ==
        "the terms of group 0 are not finite in float at update 1: number 0 of scaled_update is inf");
  CHECK(message([&] { ds::optimizer opt{p.parameters(), overflowing{.from = 1}}; }) ==
        "the terms of group 0 are not finite in float at update 1: number 1 is inf");
  CHECK(message([&] { ds::optimizer opt{p.parameters(), ds::lamb{.lr = too_large}}; }) ==
        "lamb: lr must be finite in float, is 1e+39");
  CHECK(message([&] { ds::optimizer opt{p.parameters(), ds::sgd{}, ds::learning_rate(broken_at{0, too_large})}; }) ==
        "schedules at update 1, group 0: sgd: lr must be finite in float, is 1e+39");
  ds::optimizer opt{p.parameters(), ds::sgd{}};
  opt.group(1).lr = too_large;
  CHECK(message([&] { opt.step(); }) == "group 1: sgd: lr must be finite in float, is 1e+39");
  CHECK(same_bits(p.value, values));
  opt.group(1).lr = 0.5;
  opt.step();
  CHECK(opt.report().applied);
}

TEST_CASE("a limit that is none may be infinite, as a policy and in a chain") {
  problem<float> a(sizes), b(sizes), c(sizes);
  for (auto* p : {&a, &b, &c}) p->set_gradients(1);
  ds::optimizer plain{a.parameters(), ds::sgd{}};
  ds::optimizer policy{b.parameters(), ds::sgd{}, ds::clip_value{.c = infinity}};
  ds::optimizer chained{c.parameters(), ds::chain{ds::clip_value{.c = infinity}, ds::sgd{}}};
  plain.step(), policy.step(), chained.step();
  CHECK(chained.report().applied);
  CHECK(same_bits(a.value, b.value));
  CHECK(same_bits(a.value, c.value));
}

TEST_CASE("weights and loss scales have an inverse in the type of the arithmetic") {
  problem<float> p(sizes);
  p.set_gradients(1);
  auto const values = p.value;
  ds::optimizer opt{p.parameters(), ds::sgd{}, ds::accumulate{2}};
  CHECK(message([&] { opt.step(1e-42); }) == "step: weight must have an inverse in float, is 1e-42");
  CHECK(message([&] { opt.step(1e46); }) == "step: weight must have an inverse in float, is 1e+46");
  CHECK(opt.report().why == "no step was taken yet");
  std::string const scale = " must be above 0 and, like its inverse, finite in float, is 1e-41";
  CHECK(message([&] { ds::optimizer o{p.parameters(), ds::sgd{}, ds::static_loss_scale{1e-41}}; }) ==
        "static_loss_scale: scale" + scale);
  CHECK(message([&] { ds::optimizer o{p.parameters(), ds::sgd{}, ds::dynamic_loss_scale{.init = 1, .min = 1e-41}}; }) ==
        "dynamic_loss_scale: min" + scale);
  ds::optimizer scaled{p.parameters(), ds::sgd{}, ds::static_loss_scale{1}};
  CHECK(message([&] { scaled.set_scale_state({.scale = 1e-41f}); }).starts_with("loss scale: the scale must be"));
  ds::loss_scaler<> scaler;
  CHECK(message([&] { scaler.update(1e-41); }) == "loss scale: the scale" + scale);
  CHECK(same_bits(p.value, values));

  problem<double> d(sizes);
  d.set_gradients(1);
  auto const before = d.value;
  ds::optimizer sums{d.parameters(), ds::sgd{}, ds::accumulate{2}, ds::zero_grad{}, ds::dynamic_loss_scale{.init = 4}};
  sums.step(1.7e308), sums.step(1.7e308);
  CHECK(sums.report().why == "the divisor of the gradients, inf, has no inverse in double");
  CHECK(sums.report().skipped == 1);
  CHECK(sums.loss_scale() == 4);
  CHECK(same_bits(d.value, before));
  CHECK(all_zero(d.grad));
  d.set_gradients(1);
  sums.step(2), sums.step(2);  // the earlier micro-batches do not count
  CHECK(sums.report().step == 1);
}

TEST_CASE("sums over nothing may be 0 / 0: a tensor without elements or selected rows does not change") {
  problem<float> p(sizes);  // the second one is empty
  p.set_gradients(1);
  ds::optimizer opt{p.parameters(), ds::adafactor{}, ds::masked_rows{}};
  std::vector<std::uint8_t> const none(sizes[3]);
  opt.select_rows("tensor3", none.data());
  auto const before = p.value;
  opt.step();
  CHECK(opt.report().applied);
  CHECK(!same_bits(p.value[2], before[2]));
  CHECK(same_bits(p.value[3], before[3]));
}
