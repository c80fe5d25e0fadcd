// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>

#include <nvtx3/nvtx3.hpp>

namespace descent {

/// Names the parts of a step on the timeline of Nsight Systems and other tools for NVTX: ranges of the calling thread,
/// in the domain "descent". On the host a range is the time that its part takes; on CUDA the time to enqueue it, and
/// Nsight Systems shows the kernels under the range in which they were enqueued. Replays of a captured step have none.
///
///     step                   a call of step() or flush()
///       reduce gradients     the sum over ranks
///       measure              a read-only pass: norms, finiteness, sums of the rule
///       update               the pass that changes values and state
///         matrices           the matrix rules
///       gather values        the new values of all ranks, with sharded{}
///
/// What a step does not do has no range. Other calls have the ranges of their parts without step: gradient_norm()
/// measures. Without a tool a range costs a test of a pointer. Give the policy to all ranks or to none. It needs the
/// headers of NVTX 3, which the CUDA Toolkit has, and with glibc before 2.34 -ldl.
///
/// A policy for another profiler is a struct like this one: begin() returns an object whose destructor ends the range.
struct nvtx_ranges {
  using policy_kind = kind::profiler;

  /// The domain of the ranges.
  struct domain { static constexpr char const* name = "descent"; };
  /// Begins a range. `name` is one of those above.
  static auto begin(char const* name) { return nvtx3::v1::scoped_range_in<domain>(name); }
};

}  // namespace descent
