// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/error.hpp>
#include <descent/policy.hpp>

#include <cstdint>

namespace descent {

/// One update for every n backward passes. Each backward adds to the gradients in memory, each is followed by
/// step(weight), and the n-th such call updates with
///
///     g = (sum over the n backward passes) / (sum of their weights)
///
/// the others only count: no pass over memory. weight is 1, for losses that are means over equal micro-batches, or what
/// the loss was summed over (examples, tokens): then the result is that of the whole batch, whatever its parts. flush()
/// updates with what there is, at the end of an epoch say; it does nothing when nothing is pending. The loss scale
/// stays the same in between. A captured step() keeps its weight: replays count with it. Set the gradients to zero
/// after each update (zero_grad{} does it in the same pass).
struct accumulate {
  int n = 1;

  using policy_kind = kind::accumulation;
  void check() const { detail::require(n >= 1, "accumulate", "n", "at least 1", n); }
};

}  // namespace descent
