// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

inline std::vector<int> part_of(std::vector<int> const& order, std::size_t rank, std::size_t ranks) {
  std::size_t const each = (order.size() + ranks - 1) / ranks;
  std::vector<int> part;
  for (std::size_t i = 0; i < each; ++i) part.push_back(order[(rank + i * ranks) % order.size()]);
  return part;
}
