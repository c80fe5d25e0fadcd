// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>

namespace descent {

/// One rank. The default; it adds no code. ranks/parallel.hpp has the policies for several.
struct single { using policy_kind = kind::parallel; };

}  // namespace descent
