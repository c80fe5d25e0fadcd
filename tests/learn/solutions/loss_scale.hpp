// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

struct loss_scaler {
  double scale = 65536;
  int interval = 3;
  int good = 0;  // clean steps in a row since the scale last grew

  void step(std::vector<double>& p, std::vector<double> const& g, double lr) {
    bool finite = true;
    for (double const x : g) finite = finite && std::isfinite(x);
    if (!finite) {
      scale /= 2;
      good = 0;
      return;
    }
    for (std::size_t i = 0; i < p.size(); ++i) p[i] -= lr * g[i] / scale;
    if (++good == interval) {
      scale *= 2;
      good = 0;
    }
  }
};
