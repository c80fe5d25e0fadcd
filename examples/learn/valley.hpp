// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/chart.hpp"

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

/// The part of the plane that is drawn.
constexpr point box_low{-2, -1}, box_high{5, 3.5};

/// Lifts the pen outside of the box.
inline std::vector<point> inside(std::vector<point> line) {
  for (auto& p : line)
    if (p.x < box_low.x || p.x > box_high.x || p.y < box_low.y || p.y > box_high.y) p = {0, std::nan("")};
  return line;
}

/// An empty panel of the box with the ellipses of some losses.
inline panel map_of(valley const& f, std::string const& title) {
  curve lines{"losses 0.2, 2, 10, 33", {box_low, {0, std::nan("")}, box_high, {0, std::nan("")}}};
  lines.with = pen{6, 2};  // black, dotted
  for (double loss : {0.2, 2., 10., 33.}) {
    std::vector<point> ellipse;
    for (int k = 0; k <= 180; ++k) {
      double const angle = k * std::acos(-1) / 90;
      ellipse.push_back(f.at(std::sqrt(2 * loss) * std::cos(angle), std::sqrt(2 * loss / 50) * std::sin(angle)));
    }
    for (auto const& part : {inside(ellipse), {{0, std::nan("")}}})
      lines.points.insert(lines.points.end(), part.begin(), part.end());
  }
  return {title, "x, the first 60 steps", axis::linear, {lines}, x_axis::from_data};
}

}  // namespace example::learn
