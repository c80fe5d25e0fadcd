// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/optimizer.hpp>
#include <descent/policies/loss_at.hpp>
#include <descent/rules/momo.hpp>
#include <descent/rules/polyak.hpp>

#include <doctest/doctest.h>

#include "support/reference.hpp"

#include <vector>

/// What is specific to rules that read the loss; the tests of every rule also cover them.

using namespace test::reference;
namespace ds = descent;

namespace {

double loss(int t) { return ((t * 29) % 64) / 32.0 - 0.25; }

template <class Rule> void follow_losses(std::string const& name, int cases) {
  auto const about = [&](golden const& g) { return g.rule == name; };
  auto const follows = [](golden const& g) {
    double f = 0;
    auto const step = [&](tensors<double>& p, auto& opt, int t) {
      backward_of(g, p, t);
      f = follows_values(g) ? 0 : loss(t);
      for (std::size_t k = 0; k < p.value.size() && follows_values(g); ++k)
        for (double x : p.value[k]) f += (x - 2) * (x - 2) / double(1 << k);
      opt.step();
    };
    auto const rule = configured<Rule>(g);
    check({}, follow_by(step, g, rule, ds::loss_at{&f}));
  };
  each_case("values_loss.txt", cases, about, follows);
  each_case("values_follow.txt", 1, about, follows);
}

/// Minimises f(x, y) = x^2 + 4 y^2 + least, with the loss as a Loss; returns the final distance above the minimum.
template <class Loss = float, class Rule> double minimised(Rule const& rule, int steps, double least = 0) {
  std::vector<double> x{1, -0.5}, g(2);
  Loss f = 0;
  ds::parameters<double> list;
  list.add("x", x.data(), g.data(), 2);
  ds::optimizer opt{list, rule, ds::loss_at{&f}};
  for (int t = 0; t < steps; ++t) {
    f = Loss(x[0] * x[0] + 4 * x[1] * x[1] + least);
    g = {2 * x[0], 8 * x[1]};
    opt.step();
  }
  return x[0] * x[0] + 4 * x[1] * x[1];
}

}  // namespace

TEST_CASE("polyak follows optax for 100 steps") { follow_losses<ds::polyak>("polyak", 5); }
TEST_CASE("momo follows optax for 100 steps") { follow_losses<ds::momo>("momo", 3); }

TEST_CASE("polyak: the step ends where the tangent meets the smallest value") {
  std::vector<double> x{3}, g{2};
  float f = 8;
  ds::parameters<double> list;
  list.add("x", x.data(), g.data(), 1);
  ds::optimizer opt{list, ds::polyak{.max_lr = 100}, ds::loss_at{&f}};
  opt.step();
  CHECK(x[0] == 3 - 8. / 2);
}

TEST_CASE("polyak and momo: with a gradient of zero and a loss above the least no value moves") {
  // (f - f_min) / ||g||^2 is infinite here, and 0 / 0 if f is f_min.
  auto const stays = [](auto rule, double gradient, float loss) {
    CAPTURE(gradient);
    CAPTURE(loss);
    std::vector<double> x{1, -3}, g{gradient, -gradient};
    ds::parameters<double> list;
    list.add("x", x.data(), g.data(), 2);
    ds::optimizer opt{list, rule, ds::loss_at{&loss}};
    for (int t = 0; t < 3; ++t) opt.step();
    CHECK(opt.report().step == 3);
    CHECK(x == std::vector<double>{1, -3});
  };
  for (float loss : {8.f, 0.f})
    for (double gradient : {0.0, 1e-9}) {  // ||g||^2 is below 2^-52
      stays(ds::polyak{}, gradient, loss);
      stays(ds::polyak{.plus = true}, gradient, loss);
      stays(ds::momo{}, gradient, loss);
      stays(ds::momo{.adapt = true}, gradient, loss);
    }
}

TEST_CASE("polyak and momo find a minimum without a learning rate") {
  CHECK(minimised(ds::polyak{.max_lr = 10}, 100) < 1e-12);
  CHECK(minimised(ds::momo{.lr = 10}, 300) < 1e-9);
}

TEST_CASE("polyak: moves as long as f - f_min has digits, in double longer than in float") {
  ds::polyak const rule{.max_lr = 10, .f_min = 1000};
  CHECK(minimised<double>(rule, 200, 1000) < 1e-11);
  CHECK(minimised<float>(rule, 200, 1000) > 1e-6);
}

TEST_CASE("loss_at: a null pointer is refused") {
  std::vector<double> x{3}, g{2};
  ds::parameters<double> list;
  list.add("x", x.data(), g.data(), 1);
  CHECK_THROWS_WITH_AS(ds::optimizer(list, ds::polyak{}, ds::loss_at{}), "loss_at: the pointer must not be null",
                       std::invalid_argument);
}
