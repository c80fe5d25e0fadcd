// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 23: a step of SAM.
//
// Sharpness-aware minimization looks for flat minima: it takes the gradient where the loss is worst nearby. gradient(p)
// returns the gradient at p. Go up from p by a step of length rho along the gradient, take the gradient there, and make
// a step of gradient descent with it from p.
//
//     p_ <- p + rho g(p) / |g(p)|     p <- p - lr g(p_)
//
// Hint: two gradients, one norm over all elements. If the first gradient is 0, p_ is p (Foret et al. 2021).
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

template <class Gradient> void sam_step(std::vector<double>& p, Gradient const& gradient, double lr, double rho) {
  // your lines
}
