// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "verdict.hpp"

namespace learn {

/// Adam in double, with its settings, for paths of Adam and of what is taken for it.
struct moments {
  double lr = 0.1, beta1 = 0.75, beta2 = 0.9, eps = 0.25, wd = 0;
  double m = 0, v = 0;

  void average(double g) {
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
  }
  double m_hat(double t) const { return m / (1 - std::pow(beta1, t)); }
  double v_hat(double t) const { return v / (1 - std::pow(beta2, t)); }
  double direction(double t) const { return m_hat(t) / (std::sqrt(v_hat(t)) + eps); }

  /// The path of p if step(*this, p, g, t) changes p.
  path of(auto step, double start = 1) const {
    return walk(start, gradients,
                [&, one = *this](double& p, double g, std::int64_t t) mutable { step(one, p, g, t); });
  }
  /// The same if it only has to return what is subtracted from p, once g has entered both averages.
  path after(auto subtracted, double start = 1) const {
    return of(
        [&](moments& a, double& p, double g, std::int64_t t) {
          a.average(g);
          p -= subtracted(a, p, double(t));
        },
        start);
  }
  /// An average of the gradients: next(old, g).
  static path averages(auto next) {
    return walk(0, gradients, [&](double& x, double g, std::int64_t) { x = next(x, g); });
  }
};

}  // namespace learn
