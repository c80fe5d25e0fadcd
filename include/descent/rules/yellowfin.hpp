// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

#include <cmath>

namespace descent {

/// YellowFin: momentum SGD that tunes one rate and momentum for the model (Zhang & Mitliagkas 2017, algorithms 1-4).
/// Details are those of the authors' code: the smallest curvature is averaged as a logarithm, the first step has rate
/// first_lr and no momentum, and the rate ramps up over 200 steps. lr multiplies the tuned rate (there lr_factor).
///
///     m     <- beta m + (1 - beta) g                      all means below also use beta; ^ is bias correction
///     h_min <- exp(mean^ of log(min of the last 20 ||g||^2 + eps))
///     h_max <- mean^ of max of the last 20 ||g||^2
///     C     <- max(mean^ of ||g||^2 - ||m^||^2, eps)
///     D     <- mean^ of (mean of ||g|| / (mean of ||g||^2 + eps))
///     x     <- argmin x^2 D^2 + (1 - x)^4 C / h_min^2      in [0, 1]; eps is added to D, h_min and C
///     y     <- max(x, (sqrt(h_max / h_min) - 1) / (sqrt(h_max / h_min) + 1))
///     b     <- y^2 b + g + wd p
///     p     <- p - lr (1 - y)^2 / (h_min + eps) min(t / 200, 1) b
///
/// That code averages h_max as a logarithm, too; here it is the paper's mean. It also clips gradients by h_max: add
/// clip_norm. In x it also adds eps to a negative divisor.
struct yellowfin {
  /// lr, the factor of the tuned rate, at least 0; decay rate beta of all averages, in [0, 1); first_lr and
  /// weight_decay (wd) at least 0; eps above 0.
  double lr = 1, beta = 0.999, first_lr = 1e-4, eps = 1e-6, weight_decay = 0;

  template <class Real> struct state { Real m, b; };
  template <class Real> struct terms { Real rate, mu, beta, rest, wd; };  // rest = 1 - beta
  template <class Real> struct sums { Real gg, mm; };                     // ||g||^2, and ||m||^2 after this step
  struct memory {
    double window[20] = {}, h_min = 0, h_max = 0, norm = 0, square = 0, distance = 0;  // the means
    std::int64_t steps = 0;
  };
  static constexpr char const* slots[] = {"m", "b"};
  static constexpr scope sums_over = scope::model;

  template <class Real> DESCENT_HD static sums<Real> sum(Real, Real g, state<Real> const& s, terms<Real> const& k) {
    Real const m = k.beta * s.m + k.rest * g;
    return {g * g, m * m};
  }

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr * first_lr, 0, beta, 1 - beta, weight_decay}; }

  DESCENT_HD terms<double> at(std::int64_t t, sums<double> const& total, memory& old) const {
    old.window[old.steps++ % 20] = total.gg;
    double least = total.gg, most = total.gg;
    for (int i = 0; i < 20 && i < old.steps; ++i) least = min(least, old.window[i]), most = max(most, old.window[i]);

    double const start = 1 - power(beta, old.steps);
    auto const mean = [&](double& all, double now) { return (all = beta * all + (1 - beta) * now) / start; };
    double const h_min = std::exp(mean(old.h_min, std::log(least + eps))) + eps;
    double const h_max = mean(old.h_max, most) + eps;
    double const C = max(mean(old.square, total.gg) - total.mm / (start * start), eps) + eps;
    mean(old.norm, sqrt(total.gg));
    double const D = mean(old.distance, old.norm / (old.square + eps)) + eps;

    // With z = x - 1 the derivative is z^3 + p z + p = 0, by Cardano.
    double const p = D * D * h_min * h_min / (2 * C), w = -cbrt((sqrt(p * p + 4 / 27. * p * p * p) + p) / 2);
    double const x = max(w - p / (3 * w) + 1, 0.0), ratio = sqrt(max(h_max / h_min, 1.0));
    double const y = min(max(x, (ratio - 1) / (ratio + 1)), 1.0);

    terms<double> k = at(t);
    if (old.steps > 1) k.rate = lr * (1 - y) * (1 - y) / h_min * min(double(old.steps) / 200, 1.0), k.mu = y * y;
    return k;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.beta * s.m + k.rest * g;
    s.b = k.mu * s.b + g + k.wd * p;
    return p - k.rate * s.b;
  }

  static constexpr field_range<yellowfin> ranges[] = {{&yellowfin::lr, at_least_0},
                                                      {&yellowfin::beta, below_1},
                                                      {&yellowfin::first_lr, at_least_0},
                                                      {&yellowfin::eps, above_0},
                                                      {&yellowfin::weight_decay, at_least_0}};
};
static_assert(update_rule<yellowfin> && has_sums<yellowfin> && has_memory<yellowfin>);

}  // namespace descent
