// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

inline void momentum_step(double& p, double& v, double g, double lr, double mu) {
  v = mu * v + g;
  p = p - lr * v;
}

inline void nesterov_step(double& p, double& v, double g, double lr, double mu) {
  v = mu * v + g;
  p = p - lr * (g + mu * v);
}
