// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

inline std::string schedule(int stage, int stages, int micro_batches) {
  std::string order;
  int const ahead = stages - stage;
  for (int f = 0, b = 0; b < micro_batches;) {
    bool const forward = f < micro_batches && f <= b + ahead;
    order += (order.empty() ? "" : " ") + (forward ? "F" + std::to_string(++f) : "B" + std::to_string(++b));
  }
  return order;
}
