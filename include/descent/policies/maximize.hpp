// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>

namespace descent {

/// Ascends: the rule sees -g. Decay still draws to zero, as in PyTorch.
struct maximize {
  using policy_kind = kind::maximize;
};

}  // namespace descent
