// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

struct best { double lr, factor; };

inline best rate_for(double smallest, double largest) {
  double const k = largest / smallest;
  return {2 / (smallest + largest), (k - 1) / (k + 1)};
}
