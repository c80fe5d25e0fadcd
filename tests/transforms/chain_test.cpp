// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Chains: equal to the bit to equivalent rules and policies, and how they handle the parts' fields.
#include <descent/core/transform.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_at.hpp>
#include <descent/policies/noise.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/momo.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/signsgd.hpp>
#include <descent/rules/signum.hpp>
#include <descent/rules/yogi.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/transforms/chain.hpp>
#include <descent/transforms/parts.hpp>

#include <doctest/doctest.h>

#include "support/problem.hpp"
#include "support/trial.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

using namespace test;
namespace ds = descent;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Values of two tensors, one of them in group 1, after some steps; change(opt, t) is called before step t.
template <class Rule, class Change, class... Ps>
std::vector<float> after_changes(int steps, Rule const& rule, Change const& change, Ps... policies) {
  std::vector<float> p(4096 + 1003), g(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = float(int(i * 7 % 23) - 11) / 8;
  ds::parameters<float> list;
  list.add("a", p.data(), g.data(), 4096 + 500);
  list.add("b", p.data() + 4096 + 500, g.data() + 4096 + 500, 503, ds::group{1});
  ds::optimizer opt{list, rule, policies...};
  for (int t = 1; t <= steps; ++t) {
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = float(int((i * 37 + std::size_t(t) * 101) % 257) - 128) / 64;
    change(opt, t);
    opt.step();
  }
  return p;
}
template <class Rule, class... Ps> std::vector<float> after(int steps, Rule const& rule, Ps... policies) {
  return after_changes(steps, rule, [](auto&, int) {}, policies...);
}

/// A user's transform with a state: the gradient minus the one before.
struct difference {
  template <class Real> struct state { Real before; };
  template <class Real> struct terms {};
  DESCENT_HD terms<double> at(std::int64_t) const { return {}; }
  template <class Real> DESCENT_HD static Real apply(Real, Real g, state<Real>& s, terms<Real> const&) {
    Real const before = s.before;
    s.before = g;
    return g - before;
  }
};
static_assert(ds::gradient_transform<difference>);

}  // namespace

// ---- equal to the bit ----------------------------------------------------------------------------------------------

TEST_CASE("chain: l2 in front of a rule is its own decay") {
  CHECK(same_bits(after(5, ds::chain{ds::l2{0.1}, ds::adam{}}), after(5, ds::adam{.weight_decay = 0.1})));
  CHECK(same_bits(after(5, ds::chain{ds::l2{0.1}, ds::sgd{.momentum = 0.9}}),
                  after(5, ds::sgd{.momentum = 0.9, .weight_decay = 0.1})));
  CHECK_FALSE(same_bits(after(5, ds::chain{ds::l2{0.1}, ds::adam{}}), after(5, ds::adam{})));
}

TEST_CASE("chain: clip_value and gradient_noise are what the policies are") {
  ds::clip_value const clip{0.5};
  CHECK(same_bits(after(5, ds::chain{clip, ds::adamw{}}), after(5, ds::adamw{}, clip)));
  CHECK(same_bits(after(5, ds::chain{clip, ds::lamb{}}), after(5, ds::lamb{}, clip)));
  ds::gradient_noise const noise{.eta = 0.3, .seed = 7};
  CHECK(same_bits(after(5, ds::chain{noise, ds::adamw{}}), after(5, ds::adamw{}, noise)));
  CHECK(same_bits(after(5, ds::chain{clip, noise, ds::sgd{}}), after(5, ds::sgd{}, noise, clip)));
  CHECK_FALSE(same_bits(after(5, ds::chain{noise, clip, ds::sgd{}}), after(5, ds::sgd{}, noise, clip)));
}

TEST_CASE("chain: the sign in front of sgd is signsgd") {
  CHECK(same_bits(after(5, ds::chain{ds::gradient_sign{}, ds::sgd{.lr = 0.01}}), after(5, ds::signsgd{.lr = 0.01})));
}

TEST_CASE("chain: a trace in front of sgd is its momentum") {
  CHECK(same_bits(after(5, ds::chain{ds::gradient_trace{0.9}, ds::sgd{}}), after(5, ds::sgd{.momentum = 0.9})));
  CHECK(same_bits(after(5, ds::chain{ds::gradient_trace{0.9, true}, ds::sgd{}}),
                  after(5, ds::sgd{.momentum = 0.9, .nesterov = true})));
}

TEST_CASE("chain: a mean in front of signsgd is signum") {
  CHECK(
      same_bits(after(5, ds::chain{ds::gradient_ema{0.75, false}, ds::signsgd{}}), after(5, ds::signum{.beta = 0.75})));
}

TEST_CASE("chain: a rule by itself, a chain in a chain, and parts that do nothing change no bit") {
  auto const plain = after(5, ds::adam{});
  CHECK(same_bits(after(5, ds::chain<ds::adam>{ds::adam{}}), plain));
  CHECK(same_bits(after(5, ds::chain{ds::gradient_scale{}, ds::zero_nonfinite{}, ds::adam{}}), plain));
  CHECK(same_bits(after(5, ds::chain{ds::l2{0.1}, ds::chain{ds::clip_value{0.5}, ds::adam{}}}),
                  after(5, ds::chain{ds::l2{0.1}, ds::clip_value{0.5}, ds::adam{}})));
}

TEST_CASE("chain: rules keep their sums, memory, start and loss") {
  ds::gradient_scale const one{};
  CHECK(same_bits(after(5, ds::chain{one, ds::lamb{}}), after(5, ds::lamb{})));
  CHECK(same_bits(after(5, ds::chain{one, ds::novograd{}}), after(5, ds::novograd{})));
  CHECK(same_bits(after(5, ds::chain{one, ds::nadam{}}), after(5, ds::nadam{})));
  CHECK(same_bits(after(5, ds::chain{one, ds::yogi{}}), after(5, ds::yogi{})));
  CHECK(same_bits(after(5, ds::chain{one, ds::dog{.reps = 0.1}}), after(5, ds::dog{.reps = 0.1})));
  CHECK(same_bits(after(5, ds::chain{one, ds::prodigy{.d0 = 0.01}}), after(5, ds::prodigy{.d0 = 0.01})));
  float loss = 3;
  CHECK(same_bits(after(5, ds::chain{one, ds::momo{}}, ds::loss_at{&loss}), after(5, ds::momo{}, ds::loss_at{&loss})));
}

// ---- the parts' fields ---------------------------------------------------------------------------------------------

TEST_CASE("chain: groups and schedules reach each part's fields") {
  ds::chain const rule{ds::clip_value{0.5}, ds::l2{0.1}, ds::adam{.lr = 0.25}};
  CHECK(rule.lr == 0.25);
  CHECK(rule.c == 0.5);
  CHECK(rule.l2::weight_decay == 0.1);
  CHECK(rule.get<1>().weight_decay == 0.1);
  CHECK(rule.get<2>().weight_decay == 0);

  auto const changed = after_changes(4, rule, [](auto& opt, int t) {
    if (t == 3) opt.group(1).lr = 0.125, opt.group(1).template get<0>().c = 0.25, opt.group(1).l2::weight_decay = 0;
  });
  auto const twin = after_changes(4, ds::adam{.lr = 0.25, .weight_decay = 0.1}, [](auto& opt, int t) {
    if (t == 3) opt.group(1).lr = 0.125, opt.group(1).weight_decay = 0;
  }, ds::clip_value{0.5});
  CHECK(std::vector(changed.begin(), changed.begin() + 4596) == std::vector(twin.begin(), twin.begin() + 4596));
  CHECK_FALSE(same_bits(changed, twin));  // group 1 has another limit
  CHECK_FALSE(same_bits(changed, after(4, rule)));

  auto const falling = ds::linear{.from = 0.2, .to = 0, .steps = 8};
  CHECK(same_bits(after(5, rule, ds::learning_rate(falling), ds::vary<&ds::l2::weight_decay>(falling)),
                  after(5, ds::adam{}, ds::clip_value{0.5}, ds::learning_rate(falling),
                        ds::vary<&ds::adam::weight_decay>(falling))));
}

TEST_CASE("chain: two parts of one type") {
  ds::chain const rule{ds::gradient_scale{4}, ds::clip_value{1}, ds::gradient_scale{0.5}, ds::sgd{.lr = 1}};
  CHECK(rule.get<0>().factor == 4);
  CHECK(rule.get<2>().factor == 0.5);
  trial t(rule, {0, 0, 0});
  CHECK(t.step({0.125, 1, -9}) == std::vector{-0.25, -0.5, 0.5});
}

TEST_CASE("chain: the state is the rule's, then that of the transforms, by name and number") {
  float p[2] = {1, 1}, g[2] = {2, -4};
  ds::parameters<float> list;
  list.add("p", p, g, 2);
  ds::optimizer opt{list, ds::chain{ds::gradient_trace{0.5}, ds::gradient_ema{0.75}, ds::adam{}}};
  opt.step();
  opt.step();
  CHECK(opt.state("p", "trace")[1] == -6);
  CHECK(opt.state("p", 2)[1] == -6);
  CHECK(opt.state("p", "ema")[0] == 0.75f * 0.5f + 0.25f * 3);
  CHECK(opt.state("p", "m")[0] != 0);
  CHECK(opt.memory().bytes_per_parameter() >= 16);
  // Without momentum, sgd's buffer is not stored, also in a chain.
  ds::optimizer plain{list, ds::chain{ds::gradient_trace{0.5}, ds::sgd{}}};
  CHECK(plain.state("p", "b").empty());
  CHECK(plain.state("p", "trace").size() == 2);
}

TEST_CASE("chain: a transform of a user") {
  trial t(ds::chain{difference{}, ds::sgd{.lr = 0.5}}, {1});
  CHECK(t.step({2}) == std::vector{0.0});
  CHECK(t.step({2}) == std::vector{0.0});
  CHECK(t.step({-2}) == std::vector{2.0});
}

// ---- the transforms ------------------------------------------------------------------------------------------------

TEST_CASE("l1 adds the sign of the parameter") {
  trial t(ds::chain{ds::l1{0.25}, ds::sgd{.lr = 1}}, {2, -2, 0});
  CHECK(t.step({1, 1, 1}) == std::vector{0.75, -2.75, -1.0});
}

TEST_CASE("zero_nonfinite: such elements have no gradient, the others keep theirs") {
  float p[4] = {1, 1, 1, 1}, g[4] = {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 0.5f};
  ds::parameters<float> list;
  list.add("p", p, g, 4);
  ds::optimizer opt{list, ds::chain{ds::zero_nonfinite{}, ds::sgd{.lr = 1}}};
  opt.step();
  CHECK(std::vector(p, p + 4) == std::vector{1.f, 1.f, 1.f, 0.5f});
}

TEST_CASE("gradient_ema corrects its start unless told not to") {
  trial corrected(ds::chain{ds::gradient_ema{.decay = 0.75}, ds::sgd{.lr = 1}}, {0});
  CHECK(corrected.step({4}) == std::vector{-4.0});
  CHECK(corrected.step({0})[0] == doctest::Approx(-4 - 0.75 / 0.4375).epsilon(1e-14));
  trial plain(ds::chain{ds::gradient_ema{.decay = 0.75, .debias = false}, ds::sgd{.lr = 1}}, {0});
  CHECK(plain.step({4}) == std::vector{-1.0});
}

TEST_CASE("centralize: the mean of each tensor's gradient is taken out, also of what is clipped before") {
  trial t(ds::chain{ds::centralize{}, ds::sgd{.lr = 1}}, {0, 0, 0, 0});
  CHECK(t.step({1, 2, 3, 6}) == std::vector{2.0, 1.0, 0.0, -3.0});
  trial clipped(ds::chain{ds::clip_value{4}, ds::centralize{}, ds::sgd{.lr = 1}}, {0, 0});
  CHECK(clipped.step({0, 99}) == std::vector{2.0, -2.0});
  trial off(ds::chain{ds::centralize{.on = 0}, ds::sgd{.lr = 1}}, {0, 0});
  CHECK(off.step({1, 2}) == std::vector{-1.0, -2.0});
}

TEST_CASE("centralize: each row is one where rows are parameters") {
  double p[6] = {}, g[6] = {1, 2, 3, 10, 20, 60};
  ds::parameters<double> rows;
  rows.add("row 0", p, g, 3);
  rows.add("row 1", p + 3, g + 3, 3);
  ds::optimizer opt{rows, ds::chain{ds::centralize{}, ds::sgd{.lr = 1}}};
  opt.step();
  CHECK(std::vector(p, p + 6) == std::vector{1.0, 0.0, -1.0, 20.0, 10.0, -30.0});
}

TEST_CASE("clip_rms: only tensors whose root mean square is above max") {
  trial t(ds::chain{ds::clip_rms{2}, ds::sgd{.lr = 1}}, {0, 0, 0, 0});
  CHECK(t.step({4, 4, -4, 4}) == std::vector{-2.0, -2.0, 2.0, -2.0});
  trial below(ds::chain{ds::clip_rms{2}, ds::sgd{.lr = 1}}, {0, 0});
  CHECK(below.step({1, -2}) == std::vector{-1.0, 2.0});
}

TEST_CASE("normalize: over a tensor, and over the model") {
  double p[2] = {}, g[2] = {3, -4};
  ds::parameters<double> list;
  list.add("a", p, g, 1);
  list.add("b", p + 1, g + 1, 1);
  ds::optimizer{list, ds::chain{ds::normalize<ds::scope::model>{.scale = 10, .eps = 1e-12}, ds::sgd{.lr = 1}}}.step();
  CHECK(p[0] == doctest::Approx(-6).epsilon(1e-11));
  CHECK(p[1] == doctest::Approx(8).epsilon(1e-11));
  p[0] = p[1] = 0;
  ds::optimizer{list, ds::chain{ds::normalize<>{.eps = 1}, ds::sgd{.lr = 1}}}.step();
  CHECK(p[0] == doctest::Approx(-0.75).epsilon(1e-14));
  CHECK(p[1] == doctest::Approx(0.8).epsilon(1e-14));
}

// ---- noise ---------------------------------------------------------------------------------------------------------

TEST_CASE("Langevin dynamics: p <- p - lr g + N(0, 2 lr T), another number for each element, step and seed") {
  double const lr = 0.0625, temperature = 0.5;
  std::vector<float> p(40000), g(p.size(), 1);
  ds::parameters<float> list;
  list.add("p", p.data(), g.data(), p.size());
  ds::chain const rule{ds::gradient_noise{.eta = 2 * temperature / lr, .gamma = 0, .seed = 5}, ds::sgd{.lr = lr}};
  ds::optimizer opt{list, rule};
  opt.step();
  double mean = 0, square = 0;
  for (float const x : p) mean += x, square += x * x;
  mean /= double(p.size());
  double const variance = square / double(p.size()) - mean * mean;
  CHECK(mean == doctest::Approx(-lr).epsilon(0.1));  // 0.25 / sqrt(40000) = 0.00125
  CHECK(variance == doctest::Approx(2 * lr * temperature).epsilon(0.04));
  auto const first = p;
  opt.step();
  double covariance = 0;
  for (std::size_t i = 0; i < p.size(); ++i) covariance += (first[i] + lr) * (p[i] - first[i] + lr);
  CHECK(std::abs(covariance / double(p.size())) < 5 * variance / 200);
}

TEST_CASE("noise in a chain: the seed of group 0 is that of all, eta is each group's own") {
  ds::chain const rule{ds::gradient_noise{.eta = 1, .seed = 3}, ds::sgd{}};
  auto const plain = after(3, rule);
  CHECK(same_bits(after_changes(3, rule, [](auto& opt, int) { opt.group(1).seed = 4; }), plain));
  CHECK_FALSE(same_bits(after_changes(3, rule, [](auto& opt, int) { opt.group(0).seed = 4; }), plain));
  auto const quiet = after_changes(3, rule, [](auto& opt, int) { opt.group(1).eta = 0; });
  auto const silent = after(3, ds::sgd{});
  CHECK(std::vector(quiet.begin(), quiet.begin() + 4596) == std::vector(plain.begin(), plain.begin() + 4596));
  CHECK(std::vector(quiet.begin() + 4596, quiet.end()) == std::vector(silent.begin() + 4596, silent.end()));
}

// ---- bad input -----------------------------------------------------------------------------------------------------

TEST_CASE("chain: each part's values are checked") {
  auto const checked = [](auto const& part) { ds::check_rule<double>(part); };
  CHECK_THROWS_WITH((checked(ds::chain{ds::l2{-1}, ds::adam{}})),
                    "l2: weight_decay must be finite and at least 0, is -1");
  CHECK_THROWS_WITH((checked(ds::chain{ds::l2{}, ds::adam{.beta1 = 1}})), "adam: beta1 must be in [0, 1), is 1");
  CHECK_THROWS_WITH(checked(ds::l1{-1}), "l1: weight_decay must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(checked(ds::gradient_scale{infinity}), "gradient_scale: factor must be finite, is inf");
  CHECK_THROWS_WITH(checked(ds::gradient_trace{1}), "gradient_trace: decay must be in [0, 1), is 1");
  CHECK_THROWS_WITH(checked(ds::gradient_ema{1}), "gradient_ema: decay must be in [0, 1), is 1");
  CHECK_THROWS_WITH(checked(ds::clip_rms{0}), "clip_rms: max must be above 0, is 0");
  CHECK_THROWS_WITH(checked(ds::normalize<>{.eps = 0}), "normalize: eps must be above 0, is 0");
  CHECK_THROWS_WITH(checked(ds::normalize<>{.scale = infinity}), "normalize: scale must be finite, is inf");
  CHECK_THROWS_WITH(checked(ds::centralize{infinity}), "centralize: on must be finite, is inf");
  float p = 1, g = 1;
  ds::parameters<float> list;
  list.add("p", &p, &g, 1);
  CHECK_THROWS(ds::optimizer{list, ds::chain{ds::clip_value{-1}, ds::adam{}}});
  ds::optimizer opt{list, ds::chain{ds::clip_value{}, ds::adam{}}};
  opt.group(0).c = 0;
  CHECK_THROWS(opt.step());
  CHECK(p == 1);
}
