// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

namespace descent {

/// How the height of a cyclic schedule changes: not at all; halved in each cycle; multiplied by gamma^t.
enum class cycles { triangular, triangular2, exp_range };

namespace detail {

/// The height, in [0, 1], of a cycle of up + down steps at step t.
DESCENT_HD inline double cycle_height(std::int64_t t, std::int64_t up, std::int64_t down, cycles mode, double gamma) {
  if (down == 0) down = up;
  std::int64_t const cycle = t / (up + down), u = t % (up + down);
  double const height = u <= up ? double(u) / double(up) : double(up + down - u) / double(down);
  switch (mode) {
    case cycles::triangular2: return height * power(0.5, cycle);
    case cycles::exp_range: return height * precise_power(gamma, t);
    default: return height;
  }
}
inline void check_cyclic(char const* name, std::int64_t up, std::int64_t down, double gamma) {
  constexpr std::int64_t most = std::int64_t{1} << 61;
  require(up >= 1 && up <= most, name, "up", "in [1, 2^61]", up);
  require(down >= 0 && down <= most, name, "down", "in [0, 2^61], where 0 means as many as up", down);
  require(gamma > 0 && gamma <= 1, name, "gamma", "in (0, 1]", gamma);
}

}  // namespace detail

/// Cyclical learning rates (Smith 2017): from `base` to `peak` in `up` steps and back in `down` steps (0 means as
/// many), repeatedly. Only exp_range uses `gamma`.
///
///     s(t) = base + (peak - base) h f,  h the height in the triangle, f = 1, 1 / 2^cycle or gamma^t
struct cyclic {
  /// Finite values; up at least 1 and down at least 0 steps; gamma in (0, 1].
  double base = 0, peak = 0;
  std::int64_t up = 2000, down = 0;
  cycles mode = cycles::triangular;
  double gamma = 1;

  DESCENT_HD double operator()(std::int64_t t) const {
    return base + (peak - base) * detail::cycle_height(t, up, down, mode, gamma);
  }

  void check() const {
    detail::require_finite("cyclic", "base", base);
    detail::require_finite("cyclic", "peak", peak);
    detail::check_cyclic("cyclic", up, down, gamma);
  }
};
static_assert(schedule<cyclic>);

/// The momentum (or beta1) for a cyclic rate: `high` where the rate is lowest.
struct cyclic_momentum {
  /// Values in [0, 1); the others as in cyclic.
  double low = 0.8, high = 0.9;
  std::int64_t up = 2000, down = 0;
  cycles mode = cycles::triangular;
  double gamma = 1;

  DESCENT_HD double operator()(std::int64_t t) const {
    return high - (high - low) * detail::cycle_height(t, up, down, mode, gamma);
  }

  void check() const {
    detail::require_fraction("cyclic_momentum", "low", low);
    detail::require_fraction("cyclic_momentum", "high", high);
    detail::check_cyclic("cyclic_momentum", up, down, gamma);
  }
};
static_assert(schedule<cyclic_momentum>);

}  // namespace descent
