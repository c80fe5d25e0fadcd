// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <array>
#include <cstddef>

namespace descent::detail {

/// How many of the first `end` are true: std::count without <algorithm>, which is expensive to include.
template <std::size_t N> constexpr std::size_t count_true(std::array<bool, N> const& all, std::size_t end = N) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < end; ++i) n += all[i];
  return n;
}

}  // namespace descent::detail
