// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/core/range.hpp>
#include <descent/core/schedule.hpp>

#include <cstdint>

namespace descent {

/// One update for every n backward passes. Each backward pass adds to the gradients in memory and is followed by
/// step(weight). The n-th such call updates with
///
///     g = (sum over the n backward passes) / (sum of their weights)
///
/// The other calls only count, without a pass over memory. weight is 1 for losses that are means over equal
/// micro-batches, or the number of items (examples, tokens) that the loss was summed over: the result is then that of
/// the whole batch, however it is split. A micro-batch of weight 0 has no items, counts and adds nothing. If all
/// weights are 0, the update is skipped. flush() updates with the micro-batches so far, for example at the end of an
/// epoch, and does nothing if there are none. All ranks must call it, and if none has items they do nothing. The loss
/// scale does not change in between: a shared one waits for the update, and setting one throws std::logic_error.
/// Replays of a captured step() count with its weight. Set the gradients to zero after each update (zero_grad{} does it
/// in the same pass). After optimizer::zero_grad() the micro-batches so far still count, with weight 0.
struct accumulate {
  int n = 1;  ///< micro-batches per update, at least 1

  using policy_kind = kind::accumulation;
  static constexpr field_range<accumulate> ranges[] = {{&accumulate::n, from_1}};
};

/// The same, but a schedule of the updates so far gives n; it is rounded and kept in [1, 2^31). For a batch size that
/// grows during training (training/large_batch.hpp). Evaluated by the backend, so a captured step() follows it.
template <schedule Schedule> struct accumulate_by {
  /// Micro-batches per update, as a function of the updates so far.
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

/// n rounded, at least 1 and at most 2^31 - 1.
DESCENT_HD inline std::int64_t whole_micro_batches(double n) {
  constexpr std::int64_t most = 2147483647;
  return is_nan(n) || n <= 1 ? 1 : n < double(most) ? std::int64_t(n + 0.5) : most;
}
/// The number of micro-batches for the update that follows `step` updates.
DESCENT_HD inline std::int64_t micro_batches_at(accumulate const& policy, std::int64_t) { return policy.n; }
template <class Schedule>
DESCENT_HD std::int64_t micro_batches_at(accumulate_by<Schedule> const& policy, std::int64_t step) {
  return whole_micro_batches(policy.n(step));
}
}  // namespace detail

}  // namespace descent
