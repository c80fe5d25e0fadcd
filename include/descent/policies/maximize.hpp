// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>

#include <cstdint>

namespace descent {

/// Maximizes the loss: g <- -g. Weight decay still pulls towards zero, as in PyTorch. In a chain it is a transform and
/// turns the sign at its place.
struct maximize {
  using policy_kind = kind::maximize;
  template <class Real> struct terms {};
  DESCENT_HD terms<double> at(std::int64_t) const { return {}; }
  template <class Real> DESCENT_HD static Real apply(Real, Real g, terms<Real> const&) { return -g; }
};

}  // namespace descent
