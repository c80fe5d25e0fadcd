// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

namespace example {

/// Of ds::amp. O0 is float alone; `none` is not given, and the storage type decides.
enum class opt_level { none, O0, O1, O2, O3 };

constexpr bool is_half(opt_level l) { return l == opt_level::O2 || l == opt_level::O3; }
constexpr bool scales_loss(opt_level l) { return l == opt_level::O1 || l == opt_level::O2; }

}  // namespace example
