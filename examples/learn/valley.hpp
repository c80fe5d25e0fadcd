// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "map.hpp"

#include <descent/descent.hpp>

#include <cmath>
#include <string>
#include <vector>

/// A valley of two weights, and the paths of rules in it.
namespace example::learn {

namespace ds = descent;

/// f = (u^2 + 50 v^2) / 2, whose axes u and v are turned by an angle against x and y.
struct valley {
  double c, s;

  explicit valley(double degrees)
      : c{std::cos(degrees * std::acos(-1) / 180)}, s{std::sin(degrees * std::acos(-1) / 180)} {}

  point at(double u, double v) const { return {c * u - s * v, s * u + c * v}; }
  double u(point p) const { return c * p.x + s * p.y; }
  double v(point p) const { return c * p.y - s * p.x; }
};

/// The losses before each step, and where they are.
struct walk { std::vector<point> losses, path; };

/// From u = 4, v = 1.
inline walk walked(valley const& f, auto const& rule, int steps) {
  auto const start = f.at(4, 1);
  std::vector<double> p{start.x, start.y}, g(2);
  ds::parameters<double> params;
  params.add("p", p, g);
  ds::optimizer opt{params, rule};
  walk all;
  for (int t = 0; t <= steps; ++t) {
    all.path.push_back({p[0], p[1]});
    double const u = f.u(all.path.back()), v = f.v(all.path.back());
    all.losses.push_back({double(t), (u * u + 50 * v * v) / 2});
    auto const [gx, gy] = f.at(u, 50 * v);
    g[0] = gx, g[1] = gy;
    opt.step();
  }
  return all;
}

constexpr box shown{{-1.5, -2}, {5, 3.5}};

/// An empty panel with the ellipses of some losses.
inline panel map_of(valley const& f, std::string const& title) {
  return map_of(shown, title, {0.2, 2, 10, 33}, [&](double loss, double angle) {
    return f.at(std::sqrt(2 * loss) * std::cos(angle), std::sqrt(2 * loss / 50) * std::sin(angle));
  });
}

}  // namespace example::learn
