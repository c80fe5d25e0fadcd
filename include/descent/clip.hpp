// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/error.hpp>
#include <descent/math.hpp>
#include <descent/policy.hpp>

/// Policies that look at all gradients before any parameter is touched, in one read-only pass.
namespace descent {

/// Skips the step, with values, masters, states and the step count untouched, when any gradient is not finite. Also
/// measures the gradient norm for report(). Every policy and rule that needs the read-only pass implies this one.
struct skip_nonfinite {
  using policy_kind = kind::finiteness;
};

/// Clips the global L2 norm of the gradients (Pascanu et al. 2013, algorithm 1), over all groups that are not frozen.
///
///     g <- g max / ||g||   where ||g|| > max
///
/// Exact, without the 1e-6 that PyTorch adds to the norm. A norm of double gradients beyond 1e154 counts as not finite.
struct clip_norm {
  double max = 1;

  using policy_kind = kind::clip;
  DESCENT_HD double factor(double norm) const { return norm > max ? max / norm : 1; }
  void check() const { detail::require(max > 0, "clip_norm", "max", "above 0", max); }
};

}  // namespace descent
