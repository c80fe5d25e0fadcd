// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

inline std::vector<std::size_t> buckets(std::vector<long> const& bytes, long limit) {
  std::vector<std::size_t> first;
  long size = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    bool const joins = !first.empty() && size + bytes[i] <= limit;
    size = joins ? size + bytes[i] : bytes[i];
    if (joins) first.back() = i;
    else first.push_back(i);
  }
  return first;
}
