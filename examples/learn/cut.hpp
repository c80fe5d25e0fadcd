// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/chart.hpp"
#include "loss_surface.hpp"

#include <string>

namespace example::learn {

/// The loss on a line through w, up to 1.5 away.
inline curve cut(std::string const& name, loss_surface& surface, weights const& w, weights const& direction) {
  curve c{name, {}};
  double const length = norm(direction);
  for (double x = -1.5; x <= 1.5; x += 0.05) c.points.push_back({x, surface.loss(moved(w, x / length, direction))});
  return c;
}

}  // namespace example::learn
