// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>

namespace descent {

/// Sets the gradients to zero in the last pass that reads them, even if the step is skipped. Leaves the gradients of
/// frozen groups alone.
struct zero_grad { using policy_kind = kind::zero_grad; };

}  // namespace descent
