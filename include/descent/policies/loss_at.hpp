// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>

#include <stdexcept>
#include <type_traits>

namespace descent {

/// Pointer to the loss of the batch, in the backend's memory, for rules that use it: the loss as the loss function
/// returns it, without the loss scale. Each update reads it once, in the same stream; captured graphs read it at
/// replay. A step whose loss is not finite is skipped, because running means of the loss would stay non-finite. The
/// loss is a float or a double. A step size computed from f - f_min is only as exact as f: in float, the parameters
/// stop where f - f_min is about 2^-24 f.
template <class T = float> struct loss_at {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "loss_at: the loss must be a float or a double");
  /// Not null.
  T const* where = nullptr;

  using policy_kind = kind::loss;
  void check() const {
    if (!where) throw std::invalid_argument("loss_at: the pointer must not be null");
  }
};
template <class T> loss_at(T const*) -> loss_at<T>;

}  // namespace descent
