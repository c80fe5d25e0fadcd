// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

namespace descent {

/// The version of the headers, as in meson.build.
inline constexpr char version[] = "0.1.0";

}  // namespace descent
