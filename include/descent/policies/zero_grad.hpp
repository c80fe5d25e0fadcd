// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>

namespace descent {

/// Sets the gradients to zero in the pass that reads them last, also when the step is skipped. Those of frozen groups
/// are left alone.
struct zero_grad {
  using policy_kind = kind::zero_grad;
};

}  // namespace descent
