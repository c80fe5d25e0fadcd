// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 3: momentum.
//
// Write two steps of one element. v is the velocity; it starts at 0 and lives as long as p.
//
//     momentum     v <- mu v + g     p <- p - lr v
//     Nesterov     v <- mu v + g     p <- p - lr (g + mu v)
//
// Hint: both update v first. Nesterov's step then looks one step ahead along the new v.
#pragma once

inline void momentum_step(double& p, double& v, double g, double lr, double mu) {
  // your two lines
}

inline void nesterov_step(double& p, double& v, double g, double lr, double mu) {
  // your two lines
}
