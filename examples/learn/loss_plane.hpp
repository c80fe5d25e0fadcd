// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/chart.hpp"
#include "../parts/text.hpp"
#include "../pictures/contour.hpp"
#include "loss_surface.hpp"

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace example::learn {

/// Contour lines of the loss in the plane of two random directions from w.
inline panel plane(std::string const& name, loss_surface& surface, weights const& w) {
  constexpr int cells = 20;
  auto const a = surface.direction(w, 1), b = surface.direction(w, 2);
  std::vector<double> table;
  for (int i = 0; i <= cells; ++i)
    for (int j = 0; j <= cells; ++j)
      table.push_back(surface.loss(moved(moved(w, 2. * i / cells - 1, a), 2. * j / cells - 1, b)));
  auto const index = [](double x) { return int(std::lround((x + 1) * cells / 2)); };
  auto const at = [&](point q) { return table[std::size_t(index(q.x) * (cells + 1) + index(q.y))]; };
  panel p{name, "steps of relative size in two directions", axis::linear, {}};
  for (double level : {0.1, 0.2, 0.5, 1., 2.}) {
    curve c{"loss " + short_number(level), {}};
    for (auto const& line : pictures::contour(at, {-1, -1}, {1, 1}, level, cells, cells)) {
      c.points.insert(c.points.end(), line.begin(), line.end());
      c.points.push_back({0, std::nan("")});  // lifts the pen
    }
    p.curves.push_back(c);
  }
  return p;
}

}  // namespace example::learn
