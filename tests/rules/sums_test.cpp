// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Rules with sums over a tensor or over the model, in double, against a plain loop.
#include <descent/optimizer.hpp>
#include <descent/policies/clip.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/acprop.hpp>
#include <descent/rules/lars.hpp>

#include "support/oracle.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace test;
namespace ds = descent;

namespace {

std::vector<std::size_t> const sizes = {5, 4097, 1, 0, 8, 9000};

/// Multiplies gradients by 1 / norm if their norm is above 1: the norm of all that are not frozen, or of each tensor.
template <class Rule> void clip(oracle<Rule>& x, bool alone) {
  double all = 0;
  for (auto& one : x.tensors) {
    double squares = 0;
    for (double g : one.g) squares += g * g;
    if (!x.frozen[one.group]) all += squares;
    if (alone)
      for (double& g : one.g) g /= std::fmax(1, std::sqrt(squares));
  }
  if (alone) return;
  for (auto& one : x.tensors)
    for (double& g : one.g) g /= std::fmax(1, std::sqrt(all));
}

/// One tensor has its own group with another rule, which is frozen in update 3; update 4 is skipped at first.
template <class Rule, class... Ps> void follows(Rule const& rule, Rule const& other, Ps... policies) {
  problem<double> p(sizes);
  p.group = {0, 1, 0, 0, 0, 0};
  oracle truth(rule, p, 2);
  ds::optimizer opt{p.parameters(), rule, policies...};
  opt.group(1) = truth.rules[1] = other;
  for (int t = 1; t <= 5; ++t) {
    opt.freeze(1, t == 3);
    truth.frozen[1] = t == 3;
    auto const sleeping = p.value[1];
    if (t == 4) {  // nothing in the rule's memory may change
      p.grad[4][7] = std::numeric_limits<double>::quiet_NaN();
      opt.step();
      CHECK(opt.report().skipped == 1);
    }
    p.set_gradients(t);
    truth.take_gradients(p);
    if constexpr (sizeof...(Ps) > 0) clip(truth, (false || ... || (Ps::over == ds::scope::tensor)));
    opt.step(), truth.step();
    CHECK(opt.report().step == t);
    CHECK(truth.away_from(p) <= 1e-12);
    CHECK((p.value[1] == sleeping) == (t == 3));
  }
}

}  // namespace

TEST_CASE("LARS: a ratio for each tensor, from the clipped gradients, with its own group's numbers") {
  ds::lars const rule{.lr = 2, .weight_decay = 0.1, .trust = 0.5}, other{.lr = 3, .momentum = 0.5, .trust = 0.25};
  follows(rule, other);
  follows(rule, other, ds::clip_norm{1});
}

TEST_CASE("LAMB: a ratio for each tensor, from states as they are before the update") {
  ds::lamb const rule{.lr = 0.1, .weight_decay = 0.1}, other{.lr = 0.2, .beta1 = 0.5};
  follows(rule, other);
  follows(rule, other, ds::clip_norm{1});
  follows(rule, other, ds::clip<ds::norm::l2, ds::scope::tensor>{1});
}

TEST_CASE("DoG: one radius for the whole model, and a start that the update leaves alone") {
  ds::dog const rule{.reps = 1e-2}, other{.lr = 0.5, .reps = 1e-2, .weight_decay = 0.125};
  follows(rule, other);
  problem<double> p(sizes);
  ds::optimizer opt{p.parameters(), rule};
  for (int t = 1; t <= 3; ++t) p.set_gradients(t), opt.step();
  for (std::size_t k = 0; k < sizes.size(); ++k)
    CHECK(std::ranges::equal(opt.state(p.name(k), "p0"), problem<double>(sizes).value[k]));
}

TEST_CASE("rules with sums square in the type of the arithmetic, and add in double") {
  auto const moved = []<class T>(T g) {
    T w = 1;
    ds::parameters<T> params;
    params.add("w", &w, &g, 1);
    ds::optimizer opt{params, ds::lars{.lr = 1, .momentum = 0, .trust = 0.5}};
    opt.step();
    return 1 - w;
  };
  CHECK((moved(1e-19f) == 0.5f && moved(1e-24f) == 0 && moved(1e19f) == 0.5f && moved(1e20f) == 0));
  CHECK((std::abs(moved(1e-24) - 0.5) < 1e-9 && std::abs(moved(1e20) - 0.5) < 1e-9));
}

TEST_CASE("acprop divides by what earlier gradients have left, which may be almost 0") {
  auto const finite_after = [](float second) {
    float w = 1, g = 0;
    ds::parameters<float> params;
    params.add("w", &w, &g, 1);
    ds::optimizer opt{params, ds::acprop{}};
    opt.step();
    g = second;
    opt.step();
    return ds::is_finite(w);
  };
  CHECK(finite_after(1e31f));
  CHECK(!finite_after(1e33f));
}
