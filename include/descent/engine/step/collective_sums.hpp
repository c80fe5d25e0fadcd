// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>

#include <cstdint>

namespace descent::detail {

/// What the ranks add up in each step, in the backend's memory: four sums over the ranks in one collective.
struct collective_sums {
  double weights = 1, losses = 0;  // losses: weight times the loss that rules use
  double present = 1;              // ranks whose gradients are in the sum
  double calls = 0;                // of `call`

  double call = 0;                 // identifies the call that this rank is in
  std::uint64_t groups = 0;        // the part of `call` that stands for the groups
  double ranks = 1, wire_divisor = 1;    // wire_divisor: the divisor of gradients on the wire

  /// Sets this rank's contribution.
  DESCENT_HD void enter(double weight, double loss, double what) {
    weights = weight, losses = weight > 0 ? weight * loss : 0, present = 1;
    calls = call = what;
  }
  /// The divisor of the sum of the gradients, and the mean loss.
  DESCENT_HD double weight() const { return weights / wire_divisor; }
  DESCENT_HD double loss() const { return losses / weights; }
  /// Whether all ranks are in the sums, in the same call. An aborted collective leaves arbitrary values on a device.
  DESCENT_HD bool complete() const { return same(present, ranks) && same(calls, call * ranks); }
  DESCENT_HD bool differ() const { return same(present, ranks) && !same(calls, call * ranks); }

 private:
  /// Compares bits, because an aborted collective may leave NaN.
  DESCENT_HD static bool same(double const& a, double const& b) {
    return __builtin_bit_cast(std::uint64_t, a) == __builtin_bit_cast(std::uint64_t, b);
  }
};
inline constexpr int collective_sum_count = 4;

}  // namespace descent::detail
