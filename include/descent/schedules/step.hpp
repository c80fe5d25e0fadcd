// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

namespace descent {

/// A staircase: multiplied by `factor` every `every` steps.
///
///     s(t) = initial factor^floor(t / every)
struct step {
  /// A finite initial value, which must be given; factor above 0; every at least 1.
  double initial = detail::not_given, factor = 0.1;
  std::int64_t every = 1;

  DESCENT_HD double operator()(std::int64_t t) const { return detail::decayed(initial, factor, t / every); }

  void check() const {
    detail::require_given("step", "initial", initial);
    detail::require_positive("step", "factor", factor);
    detail::require_steps("step", "every", every, 1);
  }
};
static_assert(schedule<step>);

}  // namespace descent
