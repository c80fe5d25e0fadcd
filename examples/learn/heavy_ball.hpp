// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/descent.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>
#include <vector>

/// The heavy ball in a direction with curvature lambda: x_{t+1} = (1 + beta - s) x_t - beta x_{t-1}, s = lr lambda.
namespace example::learn {

namespace ds = descent;

/// A rate times the curvature, and a momentum.
struct pair {
  double s, beta;

  // snippet: roots
  /// Of z^2 - (1 + beta - s) z + beta = 0.
  std::pair<std::complex<double>, std::complex<double>> roots() const {
    double const b = 1 + beta - s;
    auto const d = std::sqrt(std::complex<double>{b * b - 4 * beta});
    return {(b + d) / 2., (b - d) / 2.};
  }
  /// The factor by which the distance shrinks in each step, in the long run.
  double rate() const { return std::max(std::abs(roots().first), std::abs(roots().second)); }

  /// x_t of the path that begins with 1 and 1 - s.
  double predicted(int t) const {
    auto const [z1, z2] = roots();
    auto const a = (1 - s - z2) / (z1 - z2);
    return (a * std::pow(z1, t) + (1. - a) * std::pow(z2, t)).real();
  }
  // end
};

/// The path of ds::sgd from 1, with curvature 1.
inline std::vector<double> walked(pair of, int steps) {
  std::vector<double> p{1}, g(1), x;
  ds::parameters<double> params;
  params.add("p", p, g);
  ds::optimizer opt{params, ds::sgd{.lr = of.s, .momentum = of.beta}};
  for (int t = 0; t <= steps; ++t) {
    x.push_back(p[0]);
    g[0] = p[0];
    opt.step();
  }
  return x;
}

}  // namespace example::learn
