// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/descent.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

/// A quadratic in 40 dimensions, and gradient descent on it with Nesterov's potential.
namespace example::learn {

namespace ds = descent;
using std::sqrt;

/// f = sum h_i p_i^2 / 2 in 40 dimensions, h from 1 to k. Starts at p_i = 1.
struct bowl {
  double k;
  std::vector<double> p = std::vector<double>(40, 1), g = p;

  double h(std::size_t i) const { return std::pow(k, double(i) / 39); }
  double loss(std::vector<double> const& x) const {
    double f = 0;
    for (std::size_t i = 0; i < 40; ++i) f += h(i) * x[i] * x[i] / 2;
    return f;
  }
  double backward() {
    for (std::size_t i = 0; i < 40; ++i) g[i] = h(i) * p[i];
    return loss(p);
  }
};

struct path {
  std::vector<double> loss{};
  double worst = 0;  // the largest V_{t+1} / V_t
};

/// Trains until the loss is 1e-12 of the first. V is Nesterov's: f(x) + |z|^2 / 2, where x is the point before the look
/// ahead, and z = p + sqrt(k) (p - x).
inline path train(double k, ds::sgd const& rule) {
  bowl f{k};
  ds::parameters<double> params;
  params.add("p", f.p, f.g);
  ds::optimizer opt{params, rule};
  path all;
  std::vector<double> x = f.p;
  for (double V = 0; all.loss.empty() || all.loss.back() > 1e-12 * all.loss[0];) {
    double now = f.loss(x);
    for (std::size_t i = 0; i < 40; ++i) now += std::pow(f.p[i] + sqrt(k) * (f.p[i] - x[i]), 2) / 2;
    if (V > 0) all.worst = std::max(all.worst, now / V);
    V = now;
    all.loss.push_back(f.backward());
    for (std::size_t i = 0; i < 40; ++i) x[i] = f.p[i] - rule.lr * f.g[i];
    opt.step();
  }
  return all;
}

}  // namespace example::learn
