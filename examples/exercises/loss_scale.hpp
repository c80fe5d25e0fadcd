// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 10: a dynamic loss scale.
//
// In half, small gradients become 0, so the loss is multiplied by a scale. If the scale is too large, gradients
// overflow to infinity or NaN. Write step(), which gets scaled gradients:
//
//     all of them finite    p <- p - lr g / scale;  after `interval` such steps in a row, scale <- 2 scale
//     any of them not       p stays as it is, all of it;  scale <- scale / 2;  the count begins again
//
// Hint: look at all gradients before you change the first element. std::isfinite is false for infinity and for NaN.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

struct loss_scaler {
  double scale = 65536;
  int interval = 3;
  int good = 0;  // clean steps in a row since the scale last grew

  void step(std::vector<double>& p, std::vector<double> const& g, double lr) {
    // your lines
  }
};
