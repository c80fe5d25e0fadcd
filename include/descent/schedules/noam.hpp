// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

namespace descent {

/// The schedule of the transformer (Vaswani et al. 2017, eq. 3), which counts steps from 1: a linear rise over `warmup`
/// steps, then decay with the inverse square root. Its peak is scale / sqrt(d_model warmup), at step warmup - 1 here.
///
///     s(t) = scale d_model^(-1/2) min(n^(-1/2), n warmup^(-3/2)),  n = t + 1
struct noam {
  /// A finite scale; the model's width d_model above 0; warmup of at least 1 step.
  double scale = 1, d_model = 512;
  std::int64_t warmup = 4000;

  DESCENT_HD double operator()(std::int64_t t) const {
    double const n = double(t) + 1, W = double(warmup);
    return scale / sqrt(d_model) * (n < W ? n / (W * sqrt(W)) : 1 / sqrt(n));
  }

  void check() const {
    detail::require_finite("noam", "scale", scale);
    detail::require_positive("noam", "d_model", d_model);
    detail::require_steps("noam", "warmup", warmup, 1);
  }
};
static_assert(schedule<noam>);

}  // namespace descent
