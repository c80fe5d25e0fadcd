// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "run.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace example::learn {

using weights = std::vector<double>;

inline double norm(weights const& x) {
  double sum = 0;
  for (double v : x) sum += v * v;
  return std::sqrt(sum);
}

/// x + a d
inline weights moved(weights x, double a, weights const& d) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += a * d[i];
  return x;
}

/// The mean loss over all training images as a function of the parameters of a network.
class loss_surface {
 public:
  explicit loss_surface(std::string const& hidden)
      : net_{device_, data_.train.features, parse_network(hidden), data_.classes, data_.train.count(), random_} {}

  double loss(weights const& w) { return put(w), look_at(net_, data_.train, data_.train.count()).loss; }

  weights gradient(weights const& w) {
    put(w), net_.forward(rows_of(data_.train)), net_.backward();
    weights g;
    for (auto const& layer : net_.layers())
      for (auto const* part : {&layer.weight_gradient, &layer.bias_gradient})
        g.insert(g.end(), part->begin(), part->end());
    return g;
  }

  /// A random direction d. Each unit's inputs (a row of a layer's weights) have the norm of those of w; biases stay.
  weights direction(weights const& w, std::uint64_t seed) {
    weights d;
    for (auto const& layer : net_.layers()) {
      for (int unit = 0; unit < layer.outputs; ++unit) {
        // snippet: direction
        weights row, of_w;
        for (int i = 0; i < layer.inputs; ++i) {
          of_w.push_back(w[d.size() + std::size_t(i)]);
          row.push_back(ds::loss_weight(seed, 0, std::int64_t(d.size()) + i, 1) - 1);  // N(0, 1)
        }
        double const k = norm(of_w) / norm(row);
        for (double x : row) d.push_back(k * x);
        // end
      }
      d.insert(d.end(), std::size_t(layer.outputs), 0);
    }
    return d;
  }

  /// The largest eigenvalue of the Hessian H, and the direction of length 1 with this curvature.
  struct steepest { double curvature; weights direction; };
  /// By v <- H v / |H v|, where H v is a difference of two gradients, so far apart that the kink of one relu weighs
  /// little.
  steepest largest_curvature(weights const& w) {
    weights v = direction(w, 99);
    double size = norm(v);
    // snippet: curvature
    for (int k = 0; k < 80; ++k) {
      double const h = 1e-2 / size;
      weights const hv = moved(gradient(moved(w, h, v)), -1, gradient(moved(w, -h, v)));
      weights const zero(w.size());
      v = moved(zero, 1 / (2 * h * size), hv), size = norm(v);
    }
    // end
    return {size, moved(weights(w.size()), 1 / size, v)};
  }

 private:
  void put(weights const& w) {
    auto at = w.begin();
    for (auto& layer : net_.layers())
      for (auto* part : {&layer.weight, &layer.bias})
        for (double& x : *part) x = *at++;
  }

  dataset const& data_ = data();
  cpu device_;
  random_source random_{0};
  network<cpu, double> net_;
};

}  // namespace example::learn
