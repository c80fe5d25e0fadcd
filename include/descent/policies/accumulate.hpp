// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/core/policy.hpp>
#include <descent/core/schedule.hpp>

#include <cstdint>

namespace descent {

/// One update for every n backward passes. Each backward adds to the gradients in memory, each is followed by
/// step(weight), and the n-th such call updates with
///
///     g = (sum over the n backward passes) / (sum of their weights)
///
/// the others only count: no pass over memory. weight is 1, for losses that are means over equal micro-batches, or what
/// the loss was summed over (examples, tokens): then the result is that of the whole batch, whatever its parts. flush()
/// updates with what there is, at the end of an epoch say; it does nothing when nothing is pending, on any rank where
/// there are several: all of them call it. The loss scale stays the same in between. A captured step() keeps its
/// weight: replays count with it. Set the gradients to zero after each update (zero_grad{} does it in the same pass).
struct accumulate {
  int n = 1;

  using policy_kind = kind::accumulation;
  void check() const { detail::require(n >= 1, "accumulate", "n", "at least 1", n); }
};

/// The same with n from a schedule of the updates so far, rounded, at least 1 and below 2^31: a batch that grows
/// while training (training/large_batch.hpp). Evaluated where the optimizer is, so a captured step() follows.
template <schedule Schedule> struct accumulate_by {
  Schedule n;

  using policy_kind = kind::accumulation;
  void check() const {
    if constexpr (requires { n.check(); }) n.check();
  }
};
template <class Schedule> accumulate_by(Schedule) -> accumulate_by<Schedule>;

namespace detail {
template <class P> inline constexpr bool grows_batch = false;
template <class S> inline constexpr bool grows_batch<accumulate_by<S>> = true;

/// Rounded, and at least 1 and at most 2^31 - 1.
DESCENT_HD inline std::int64_t whole_micro_batches(double n) {
  constexpr std::int64_t most = 2147483647;
  return is_nan(n) || n <= 1 ? 1 : n < double(most) ? std::int64_t(n + 0.5) : most;
}
/// Micro-batches of the update after `step` others.
DESCENT_HD inline std::int64_t micro_batches_at(accumulate const& policy, std::int64_t) { return policy.n; }
template <class Schedule>
DESCENT_HD std::int64_t micro_batches_at(accumulate_by<Schedule> const& policy, std::int64_t step) {
  return whole_micro_batches(policy.n(step));
}
}  // namespace detail

}  // namespace descent
