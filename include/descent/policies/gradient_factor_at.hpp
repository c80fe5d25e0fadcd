// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>

#include <stdexcept>
#include <type_traits>

namespace descent {

/// Pointer to a factor of the gradients that comes from outside, in the backend's memory: the true gradient is *where
/// times the gradient in memory, after the loss scale and the mean over micro-batches. For codebases that have their
/// own loss scale (1 / scale) or their own clip factor. Each update reads it once, in the same stream; captured graphs
/// read it at replay. A step whose factor is not finite or not above 0 is skipped, and report() says so. The factor is
/// a float or a double. unscale() and transform_gradients() do not apply it.
template <class T = float> struct gradient_factor_at {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "gradient_factor_at: the factor must be a float or a double");
  /// Not null.
  T const* where = nullptr;

  using policy_kind = kind::gradient_factor;
  void check() const {
    if (!where) throw std::invalid_argument("gradient_factor_at: the pointer must not be null");
  }
};
template <class T> gradient_factor_at(T const*) -> gradient_factor_at<T>;

}  // namespace descent
