// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 25: a rate that nobody sets.
//
// Distance over gradients (DoG): the rate is the largest distance from the start so far, divided by the root of the sum
// of all squared gradients so far. Write the step of one number. r begins as r_eps, so that the first step is not 0.
//
//     r <- max(r, |p - p0|)     s <- s + g^2     p <- p - r / sqrt(s) g
//
// Hint: three lines, in this order (Ivgi, Hinder & Carmon 2023).
#pragma once

#include <algorithm>
#include <cmath>

struct dog_state { double p0, r, s = 0; };

inline void dog_step(double& p, double g, dog_state& state) {
  // your lines
}
