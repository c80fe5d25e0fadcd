// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Mistakes and surprises of other systems' update rules. Each is a test that those systems would fail; the name says
// which. docs/design/traps.md lists all of them. Others are in optimizer/, policies/ and ranks/.
#include <descent/optimizer.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_at.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/acprop.hpp>
#include <descent/rules/adabound.hpp>
#include <descent/rules/adafactor.hpp>
#include <descent/rules/adagrad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamax.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/adan.hpp>
#include <descent/rules/ademamix.hpp>
#include <descent/rules/adopt.hpp>
#include <descent/rules/amsgrad.hpp>
#include <descent/rules/asgd.hpp>
#include <descent/rules/cocob.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/fromage.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/larc.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/layerwise.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/momo.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/optimistic_adam.hpp>
#include <descent/rules/padam.hpp>
#include <descent/rules/polyak.hpp>
#include <descent/rules/qhadam.hpp>
#include <descent/rules/radam.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/rprop.hpp>
#include <descent/rules/schedule_free_adamw.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/signsgd.hpp>
#include <descent/rules/signum.hpp>
#include <descent/rules/sophia.hpp>
#include <descent/rules/yogi.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>

#include <doctest/doctest.h>

#include "support/trial.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using test::trial;
namespace ds = descent;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// The value of a parameter after these gradients.
template <class Rule> double walk(Rule const& rule, double start, std::vector<double> const& gradients) {
  trial<Rule> t(rule, {start});
  double p = start;
  for (double g : gradients) p = t.step({g})[0];
  return p;
}

/// Two parameters in two groups.
template <class Value> struct pair_of_groups {
  Value p[2]{Value(1), Value(1)}, g[2]{};
  ds::parameters<Value> list() {
    ds::parameters<Value> all;
    all.add("first", p, g, 1, ds::group{0});
    all.add("second", p + 1, g + 1, 1, ds::group{1});
    return all;
  }
};

}  // namespace

TEST_CASE("trap of DeepSpeed's Lion: where the sign is of zero, nothing moves, whatever the rule of signs") {
  // csrc/lion and ops/lion: c > 0 ? -lr : lr, so rows without a gradient climb.
  std::vector<double> const zeros(5, 0.0);
  CHECK(walk(ds::lion{.lr = 0.5}, 3, zeros) == 3);
  CHECK(walk(ds::signsgd{.lr = 0.5}, 3, zeros) == 3);
  CHECK(walk(ds::signum{.lr = 0.5}, 3, zeros) == 3);
  CHECK(walk(ds::rprop{.lr = 0.5}, 3, zeros) == 3);
  // An exact cancellation: b1 m + (1 - b1) g = 0.5 * 0.5 - 0.5 * 0.5.
  ds::lion const lion{.lr = 0.5, .beta1 = 0.5, .beta2 = 0.5};
  CHECK(walk(lion, 3, {1, -0.5}) == walk(lion, 3, {1}));
}

TEST_CASE("trap of optax's rprop: the first update moves by the first gradient, and each by its own") {
  // optax emits the step of the previous call: 0 at the first.
  ds::rprop const rule{.lr = 0.25};
  CHECK(walk(rule, 1, {2}) == 0.75);
  CHECK(walk(rule, 1, {2, 2}) == 0.75 - 0.25 * 1.2);
  CHECK(walk(rule, 1, {2, -2}) == 0.75);  // the sign changed: no step back, and none in the old direction
}

TEST_CASE("trap of torch.optim.ASGD: a new lr holds in the step that it is set for, not in the next") {
  // asgd.py computes eta for the next step at the end of the current step.
  double p[1] = {1}, g[1] = {1};
  ds::parameters<double> list;
  list.add("p", p, g, 1);
  ds::optimizer opt{list, ds::asgd{.lr = 0.5, .lambd = 0}};
  opt.step();
  CHECK(p[0] == 0.5);
  opt.group(0).lr = 0.125;
  opt.step();
  CHECK(p[0] == 0.375);
}

TEST_CASE("trap of apex's LARC: a tensor whose norm is 0 keeps its decay, and lr itself, also above 1") {
  // LARC.py omits the decay with its whole branch.
  CHECK(walk(ds::larc<ds::sgd>{.lr = 0.5, .weight_decay = 0.25}, 2, {0}) == 2 - 0.5 * 0.25 * 2);
  CHECK(walk(ds::larc<ds::sgd>{.lr = 4}, 0, {1}) == -4);
  CHECK(walk(ds::larc<ds::sgd>{.lr = 4, .weight_decay = 0.125, .clip = false}, 2, {0}) == 2 - 4 * 0.125 * 2);
}

TEST_CASE("trap of bitsandbytes' LARS and LAMB: small updates become longer, too, not only large ones shorter") {
  // max_unorm only caps.
  CHECK(walk(ds::lars{.lr = 1, .momentum = 0, .trust = 0.5}, 2, {1e-6}) == doctest::Approx(1));
  CHECK(walk(ds::layerwise<ds::sgd>{.lr = 0.5}, 2, {1e-6}) == doctest::Approx(1));
  CHECK(walk(ds::lamb{.lr = 0.5, .eps = 1}, 2, {1e-6}) == doctest::Approx(1));
}

TEST_CASE("trap of LAMB, LARS and NovoGrad: tensors, gradients and steps of zero divide nothing by zero") {
  for (double p : {0.0, 2.0})
    for (double g : {0.0, 1.0}) {
      CAPTURE(p);
      CAPTURE(g);
      std::vector<double> const gs{g, 0, g};
      CHECK(std::isfinite(walk(ds::lamb{.weight_decay = 0.1}, p, gs)));
      CHECK(std::isfinite(walk(ds::lars{.weight_decay = 0.1}, p, gs)));
      CHECK(std::isfinite(walk(ds::lars{.weight_decay = 0.1, .joint_norm = true}, p, gs)));
      CHECK(std::isfinite(walk(ds::larc<ds::adam>{.eps = 0}, p, gs)));
      CHECK(std::isfinite(walk(ds::layerwise<ds::adam>{}, p, gs)));
      CHECK(std::isfinite(walk(ds::novograd{}, p, gs)));
      CHECK(std::isfinite(walk(ds::fromage{.min_norm = 0}, p, gs)));
    }
  CHECK(walk(ds::lamb{.lr = 0.5, .beta1 = 0, .eps = 0x1p-126}, 0, {4}) == -0.5);  // ratio 1
  CHECK(walk(ds::lars{.lr = 0.5, .momentum = 0}, 0, {4}) == -2);
}

TEST_CASE("trap of apex's and flashlight's NovoGrad: the first steps are as long as the later ones") {
  // apex starts v at the first norm and still corrects it for bias; flashlight starts it at 0 and does not correct it.
  trial t(ds::novograd{.lr = 0.125, .beta1 = 0, .beta2 = 0.999, .eps = 1e-12}, {0, 0});
  for (int n = 1; n <= 20; ++n) {
    CAPTURE(n);
    auto const& p = t.step({3, 4});
    CHECK(p[0] == doctest::Approx(-0.125 * 0.6 * n));
    CHECK(p[1] == doctest::Approx(-0.125 * 0.8 * n));
  }
}

TEST_CASE("trap of tiny-cuda-nn and flashlight: decoupled decay is lr wd p at the first step as at the thousandth") {
  // tiny-cuda-nn multiplies it by the bias correction (0.32 at t = 1), flashlight not even by lr.
  auto const decays = [](auto rule) {
    rule.lr = 0.25;
    rule.weight_decay = 0.125;
    trial<decltype(rule)> t(rule, {1});
    double want = 1;
    for (int n = 1; n <= 40; ++n) {
      want -= 0.25 * 0.125 * want;
      CHECK(t.step({0})[0] == doctest::Approx(want).epsilon(1e-13));
    }
  };
  decays(ds::adamw{});
  decays(ds::nadam{.decoupled = true});
  decays(ds::radam{.decoupled = true});
  decays(ds::amsgrad{.decoupled = true});
  decays(ds::adabound{.decoupled = true});
  decays(ds::qhadam{.decoupled = true});
  decays(ds::ademamix{});
  decays(ds::adan{});
  decays(ds::lion{});
  decays(ds::signsgd{});
  decays(ds::signum{});
  decays(ds::sophia{});
}

TEST_CASE("trap of optax's Adafactor: decay is times lr, without it only where decay_by_lr is off") {
  // With zero gradients, only decay moves the value.
  auto const after = [](double lr, bool by_lr) {
    return walk(ds::adafactor{.lr = lr, .weight_decay = 0.125, .decay_by_lr = by_lr}, 1, {0, 0});
  };
  CHECK(after(0, true) == 1);
  CHECK(after(0.25, true) == doctest::Approx((1 - 0.25 * 0.125) * (1 - 0.25 * 0.125)).epsilon(1e-15));
  CHECK(after(0, false) == doctest::Approx(0.875 * 0.875).epsilon(1e-15));
  CHECK(after(0.25, false) == after(0, false));
}

TEST_CASE("trap of bitsandbytes' AdamW: decay is of the parameter before the step, not after it") {
  // There, p <- (p - lr u)(1 - lr wd): another lr^2 wd u.
  ds::adamw const rule{.lr = 0.5, .beta1 = 0, .beta2 = 0, .eps = 0x1p-126, .weight_decay = 0.5};
  CHECK(walk(rule, 3, {2}) == 3 - 0.5 * (1 + 0.5 * 3));
}

TEST_CASE("trap of ensmallen's DemonSGD: a momentum that decays shrinks the momentum, not the parameter") {
  double p[1] = {1}, g[1] = {0};
  ds::parameters<double> list;
  list.add("p", p, g, 1);
  ds::optimizer opt{list, ds::sgd{.lr = 0.5, .momentum = 0.9},
                    ds::vary<&ds::sgd::momentum>(ds::linear{.from = 0.9, .to = 0, .steps = 4})};
  for (int t = 0; t < 8; ++t) opt.step();
  CHECK(p[0] == 1);
}

TEST_CASE("trap of bitsandbytes and apex: no setting is taken and then ignored") {
  // Ignored there: dampening, nesterov, momentum of RMSprop, amsgrad.
  std::vector<double> const gs{1, -2, 0, 0.5};
  auto const differ = [&](auto const& a, auto const& b) { CHECK(walk(a, 1, gs) != walk(b, 1, gs)); };
  ds::sgd const sgd{.lr = 0.1, .momentum = 0.5};
  differ(sgd, ds::sgd{.lr = 0.1, .momentum = 0.5, .dampening = 0.5});
  differ(sgd, ds::sgd{.lr = 0.1, .momentum = 0.5, .nesterov = true});
  differ(sgd, ds::sgd{.lr = 0.1, .momentum = 0.5, .weight_decay = 0.5});
  CHECK_THROWS((ds::sgd{.momentum = 0, .nesterov = true}.check()));
  CHECK_THROWS((ds::sgd{.momentum = 0.5, .dampening = 0.5, .nesterov = true}.check()));
  differ(ds::rmsprop{}, ds::rmsprop{.momentum = 0.5});
  differ(ds::rmsprop{}, ds::rmsprop{.centered = true});
  differ(ds::rmsprop{.eps = 0.1}, ds::rmsprop{.eps = 0.1, .eps_inside = true});
  differ(ds::adam{}, ds::amsgrad{});
  differ(ds::amsgrad{.weight_decay = 0.5}, ds::amsgrad{.weight_decay = 0.5, .decoupled = true});
  differ(ds::padam{}, ds::padam{.amsgrad = false});
  differ(ds::adabound{}, ds::adabound{.amsbound = true});
  differ(ds::adam{.eps = 0.1}, ds::adam{.eps = 0.1, .eps_hat = true});
  differ(ds::lars{}, ds::lars{.nesterov = true});
  differ(ds::lars{.weight_decay = 0.5}, ds::lars{.weight_decay = 0.5, .joint_norm = true});
  differ(ds::lamb{.weight_decay = 0.5}, ds::lamb{.weight_decay = 0.5, .averaging = false});
  differ(ds::lamb{}, ds::lamb{.always = false});
  differ(ds::adagrad{}, ds::adagrad{.lr_decay = 0.5});
  differ(ds::adagrad{}, ds::adagrad{.initial = 0.5});
  differ(ds::adan{}, ds::adan{.paper_weight = true});
  differ(ds::adopt{}, ds::adopt{.clip = false});
  differ(ds::optimistic_adam{}, ds::optimistic_adam{.nesterov = false});
  differ(ds::heavy_ball{}, ds::heavy_ball{.nesterov = true});
  differ(ds::sophia{}, ds::sophia{.eps = 10});
}

TEST_CASE("trap of MLX's Adam: the bias of the moments is corrected by default, in every rule that has some") {
  // Without the correction the first step is 3.16 lr, or 0.1 lr.
  auto const moves_by_lr = [](auto rule) {
    rule.lr = 0.5;
    CHECK(walk(rule, 0, {7}) == doctest::Approx(-0.5).epsilon(1e-6));
  };
  moves_by_lr(ds::adam{});
  moves_by_lr(ds::adamw{});
  moves_by_lr(ds::amsgrad{});
  moves_by_lr(ds::adamax{});
  moves_by_lr(ds::padam{.partial = 0.5});
  moves_by_lr(ds::qhadam{});
  moves_by_lr(ds::adan{});
  moves_by_lr(ds::optimistic_adam{.nesterov = false});
  moves_by_lr(ds::schedule_free_adamw{});
}

TEST_CASE("trap of optax's ACProp: where nothing was believed yet, the step is by the gradient, not by 1 / eps") {
  // v underflows in half, eps_root = 1e-16 with it.
  ds::half p[1] = {ds::half(1.f)}, g[1] = {ds::half(1e-3f)};
  ds::parameters<ds::half> list;
  list.add("p", p, g, 1);
  ds::optimizer half{list, ds::acprop{.lr = 1e-3}, ds::states<ds::half>{}};
  for (int t = 0; t < 5; ++t) half.step();
  CHECK(std::abs(ds::widen<double>(p[0]) - 1) < 1e-4);
  // A group that is frozen in the first steps.
  pair_of_groups<float> x;
  ds::optimizer opt{x.list(), ds::acprop{.lr = 0.5}};
  opt.freeze(1);
  x.g[0] = x.g[1] = 0.25f;
  for (int t = 0; t < 10; ++t) opt.step();
  opt.freeze(1, false);
  opt.step();
  CHECK(x.p[1] == 1 - 0.5f * 0.25f);
}

TEST_CASE("trap of clip as min(max(x, low), high): what is not a number is not clipped into a step") {
  // torch.clamp and jnp.clip keep NaN; a bound in its place would keep moving. bitsandbytes skips such elements.
  auto const bad = [](double p) { return std::isnan(p); };
  CHECK(bad(walk(ds::sophia{}, 1, {not_a_number})));
  CHECK(bad(walk(ds::sophia{}, 1, {1, not_a_number, 1})));
  CHECK(bad(walk(ds::adopt{}, 1, {1, not_a_number})));
  CHECK(bad(walk(ds::adabound{}, 1, {not_a_number})));
  CHECK(bad(walk(ds::adabound{.amsbound = true}, 1, {1, not_a_number, 1})));
  CHECK(bad(walk(ds::amsgrad{}, 1, {1, not_a_number, 1})));
  CHECK(bad(walk(ds::adamax{}, 1, {1, not_a_number, 1})));
  CHECK(bad(walk(ds::rmsprop{.centered = true}, 1, {1, not_a_number})));
  CHECK(bad(walk(ds::adagrad{}, 1, {1, not_a_number, 1})));
  CHECK(bad(walk(ds::yogi{}, 1, {1, not_a_number})));
  CHECK(bad(walk(ds::cocob{}, 1, {1, not_a_number})));
  // Sign rules do not move.
  CHECK(walk(ds::lion{}, 1, {not_a_number}) == 1);
  CHECK(walk(ds::signum{}, 1, {not_a_number}) == 1);
  CHECK(walk(ds::signsgd{}, 1, {not_a_number}) == 1);
  CHECK(walk(ds::rprop{}, 1, {not_a_number}) == 1);
  // The same for a curvature that is NaN.
  double p[1] = {1}, g[1] = {1}, h[1] = {not_a_number};
  ds::parameters<double> list;
  list.add("p", p, g, 1);
  ds::optimizer opt{list, ds::sophia{}};
  opt.set_state<1>("p", std::span<double const>(h));
  opt.step();
  CHECK(bad(p[0]));
}

TEST_CASE(
    "trap of llm.c's outlier detector: a loss that is not a number is skipped and forgotten, not kept in a mean") {
  for (float bad : {float(not_a_number), HUGE_VALF, -HUGE_VALF}) {
    CAPTURE(bad);
    auto const check = [&](auto const& rule) {
      float f = 2, sound = 2;
      double p[2] = {1, 2}, g[2] = {0.5, -0.25}, q[2] = {1, 2};
      ds::parameters<double> one, other;
      one.add("p", p, g, 2);
      other.add("p", q, g, 2);
      ds::optimizer a{one, rule, ds::loss_at{&f}}, b{other, rule, ds::loss_at{&sound}};
      for (int t = 1; t <= 4; ++t) {
        f = bad;
        a.step();
        CHECK_FALSE(a.report().applied);
        CHECK(a.report().why == "the loss is not finite");
        CHECK(a.report().step == t - 1);
        CHECK(a.diagnose().empty());
        f = 2;
        a.step(), b.step();
        CHECK(a.report().applied);
        CHECK(p[0] == q[0]);
        CHECK(p[1] == q[1]);
      }
      CHECK(p[0] != 1);
    };
    check(ds::momo{.lr = 0.1});
    check(ds::momo{.lr = 0.1, .adapt = true});
    check(ds::polyak{.max_lr = 0.1});
    check(ds::polyak{.max_lr = 0.1, .plus = true});
  }
}

TEST_CASE("trap of squares beyond float: clipping the norm first keeps one large gradient out of the moments") {
  // Without it, the square of 1e20 is infinite in every system's float moments, and its parameter never moves again.
  auto const goes_on = [](auto const& rule) {
    float p[2] = {1, 1}, g[2] = {1e20f, 1};
    ds::parameters<float> list;
    list.add("p", p, g, 2);
    ds::optimizer opt{list, rule, ds::clip_norm{1}};
    opt.step();
    CHECK(opt.report().applied);
    CHECK(opt.report().grad_norm == doctest::Approx(1e20));
    g[0] = g[1] = 0.5f;
    float const before[2] = {p[0], p[1]};
    for (int t = 0; t < 30; ++t) opt.step();
    for (int i : {0, 1}) {
      CHECK(std::isfinite(p[i]));
      CHECK(p[i] < before[i]);
    }
  };
  goes_on(ds::adamw{.lr = 0.1});
  goes_on(ds::novograd{.lr = 0.1});
  goes_on(ds::dog{.reps = 0.1});
  goes_on(ds::lamb{.lr = 0.1});
}

TEST_CASE("trap of apex's step count for each group: t advances while a group is frozen, here too, as freeze() says") {
  // torch counts for each parameter, so Adam's first step after any freeze is lr there, and up to 3.16 lr here.
  pair_of_groups<double> x;
  ds::optimizer opt{x.list(), ds::adam{.lr = 0.5, .eps = 0x1p-126}};
  opt.freeze(1);
  x.g[0] = x.g[1] = 1;
  for (int t = 0; t < 20000; ++t) opt.step();
  CHECK(x.p[1] == 1);
  opt.freeze(1, false);
  opt.step();
  CHECK(x.p[1] == doctest::Approx(1 - 0.5 * 0.1 / std::sqrt(0.001)));
}

TEST_CASE("trap of 1.f - 0.999f: one minus a beta is found in double and rounded once") {
  // In float it is 0.00099998713. v after one gradient of 1 is that number.
  float p[1] = {1}, g[1] = {1};
  ds::parameters<float> list;
  list.add("p", p, g, 1);
  ds::optimizer opt{list, ds::adam{}};
  opt.step();
  CHECK(opt.state("p", "v")[0] == float(1 - 0.999));
  CHECK(opt.state("p", "v")[0] != 1 - 0.999f);
}
