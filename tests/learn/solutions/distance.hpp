// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>

struct dog_state { double p0, r, s = 0; };

inline void dog_step(double& p, double g, dog_state& state) {
  state.r = std::max(state.r, std::abs(p - state.p0));
  state.s += g * g;
  p -= state.r / std::sqrt(state.s) * g;
}
