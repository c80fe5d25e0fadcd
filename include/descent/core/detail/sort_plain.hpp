// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cstdlib>
#include <type_traits>
#include <vector>

namespace descent::detail {

/// Sorts numbers, pointers or plain structs by std::qsort: std::sort is expensive to compile, and every unit that
/// includes an optimizer would pay for it. `before` captures nothing.
template <class T, class Before> void sort_plain(std::vector<T>& all, Before) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (all.size() < 2) return;
  std::qsort(all.data(), all.size(), sizeof(T), [](void const* a, void const* b) {
    auto const &x = *static_cast<T const*>(a), &y = *static_cast<T const*>(b);
    return int(Before{}(y, x)) - int(Before{}(x, y));
  });
}

}  // namespace descent::detail
