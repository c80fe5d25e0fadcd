// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>

namespace descent {

/// Maximizes the loss: the rule sees -g. Weight decay still pulls towards zero, as in PyTorch.
struct maximize { using policy_kind = kind::maximize; };

}  // namespace descent
