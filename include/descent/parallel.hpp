// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/policy.hpp>

namespace descent {

/// One rank: the default, which compiles to nothing.
struct single {
  using policy_kind = kind::parallel;
};

}  // namespace descent
