// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

/// Compares gradients with central differences of loss(), which reads x, with an error of order step^2. Checks every
/// element of short vectors and a hundred elements of long ones.
template <class Loss>
void check_gradient(std::vector<double>& x, std::vector<double> const& gradient, Loss loss) {
  constexpr double step = 1e-5;
  std::size_t const stride = std::max<std::size_t>(1, x.size() / 100);
  for (std::size_t i = 0; i < x.size(); i += stride) {
    double const here = x[i];
    x[i] = here + step;
    double const above = loss();
    x[i] = here - step;
    double const below = loss();
    x[i] = here;
    INFO("element ", i);
    CHECK(gradient[i] == doctest::Approx((above - below) / (2 * step)).epsilon(1e-6).scale(1e-2));
  }
}
