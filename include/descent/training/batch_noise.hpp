// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/core/math.hpp>

#include <cstdint>
#include <limits>
#include <string>

namespace descent {

/// What a gradient noise scale says about a batch (McCandlish et al. 2018, section 2.3 and eq. 2.11).
struct batch_advice {
  double batch;          ///< the noise scale: the batch up to which more data still pays in fewer steps
  double step_gain;      ///< progress of an update with the batch in use, relative to one with the whole gradient
  double more_steps;     ///< steps that this batch needs, relative to the fewest possible
  double more_examples;  ///< examples that it needs, relative to the fewest possible
  std::string text;      ///< the same for the user
};

/// Estimates the gradient noise scale (McCandlish et al. 2018, appendix A.1) from the gradient norms over a small and a
/// large batch, such as one micro-batch (or rank) and all of them: optimizer::gradient_norm() after the first
/// micro-batch and report().grad_norm after step(). The latter is NaN unless a policy measures gradients: clip_norm,
/// skip_nonfinite or a loss scale.
///
///     |G|^2 = (B |g_B|^2 - b |g_b|^2) / (B - b)      the true gradient
///     S     = (|g_b|^2 - |g_B|^2) / (1 / b - 1 / B)    the trace of the covariance of one example
///     noise scale = S / |G|^2                             B_simple, eq. 2.9
///
/// Each estimate is noisy and their ratio is biased, so both are averaged over updates before they are divided.
struct batch_noise {
  double small, large;  ///< b and B in examples
  double decay = 0.99;  ///< of both averages, which are bias-corrected

  /// Takes both norms of one update. If one is not finite, as after a skipped update, the call does nothing.
  void update(double small_norm, double large_norm) {
    check();
    if (!is_finite(small_norm) || !is_finite(large_norm)) return;
    detail::require_nonnegative("batch_noise", "the norm of the small batch", small_norm);
    detail::require_nonnegative("batch_noise", "the norm of the large batch", large_norm);
    double const gb = small_norm * small_norm, gB = large_norm * large_norm;
    squared_ = decay * squared_ + (1 - decay) * (large * gB - small * gb) / (large - small);
    trace_ = decay * trace_ + (1 - decay) * (gb - gB) / (1 / small - 1 / large);
    ++updates_;
  }

  std::int64_t updates() const { return updates_; }  ///< updates taken so far
  double squared_gradient() const { return squared_ / (1 - power(decay, updates_)); }  ///< |G|^2
  double trace() const { return trace_ / (1 - power(decay, updates_)); }               ///< S

  /// The noise scale in examples. NaN if an estimate is not above 0, which means too few updates for this much noise.
  double scale() const {
    bool const known = updates_ > 0 && squared_ > 0 && trace_ > 0;
    return known ? trace_ / squared_ : std::numeric_limits<double>::quiet_NaN();
  }

  /// Advice for the large batch, the one in use.
  batch_advice advice() const {
    double const b = scale(), need = b / large;
    if (is_nan(b)) return {b, b, b, b, "too few updates: the estimate of the gradient is not above its noise"};
    std::string const sizes = detail::number(large) + " examples, noise scale " + detail::number(b) + ": ";
    return {b, 1 / (1 + need), 1 + need, 1 + 1 / need,
            sizes + (need > 2     ? "a larger batch would need fewer steps"
                     : need < 0.5 ? "a smaller batch would need less data"
                                  : "steps and data are balanced")};
  }

  void check() const {
    detail::require(small > 0, "batch_noise", "small", "above 0", small);
    detail::require(large > small && is_finite(large), "batch_noise", "large", "above small and finite", large);
    detail::require_fraction("batch_noise", "decay", decay);
  }

  double squared_ = 0, trace_ = 0;  ///< averages before bias correction; save them with updates_
  std::int64_t updates_ = 0;  ///< updates taken so far
};

}  // namespace descent
