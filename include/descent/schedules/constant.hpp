// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

namespace descent {

/// The same value at every step.
struct constant {
  /// Finite.
  double value = 0;

  DESCENT_HD double operator()(std::int64_t) const { return value; }

  void check() const { detail::require_finite("constant", "value", value); }
};
static_assert(schedule<constant>);

}  // namespace descent
