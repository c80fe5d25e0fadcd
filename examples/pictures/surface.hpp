// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/polyline.hpp"

#include <cmath>
#include <string>
#include <vector>

namespace example::pictures {

/// A function of two variables whose minimum is 0, and the part of the plane that is drawn.
struct surface {
  std::string name;
  point low, high, start, minimum;
  int steps, mark;            // a dot every `mark` steps
  std::vector<double> levels;  // of the contour lines
  double (*value)(point);
  point (*gradient)(point);
  point (*curvature)(point);  // the diagonal of the Hessian

  bool shows(point p) const { return p.x >= low.x && p.x <= high.x && p.y >= low.y && p.y <= high.y; }
};

/// (u^2 + 25 v^2) / 2, with axes u and v turned by 30 degrees about the minimum.
struct tilted {
  static constexpr double c = 0.8660254037844386, s = 0.5, ratio = 25;
  static constexpr point minimum{1, 0.4};
  static point turned(point p) {
    double const x = p.x - minimum.x, y = p.y - minimum.y;
    return {c * x + s * y, c * y - s * x};
  }
  static double value(point p) {
    auto const [u, v] = turned(p);
    return (u * u + ratio * v * v) / 2;
  }
  static point gradient(point p) {
    auto const [u, v] = turned(p);
    return {c * u - s * ratio * v, s * u + c * ratio * v};
  }
  static point curvature(point) { return {c * c + s * s * ratio, s * s + c * c * ratio}; }
};

/// (1 - x)^2 + 100 (y - x^2)^2 (Rosenbrock 1960)
struct rosenbrock {
  static double value(point p) {
    double const a = 1 - p.x, b = p.y - p.x * p.x;
    return a * a + 100 * b * b;
  }
  static point gradient(point p) {
    double const b = p.y - p.x * p.x;
    return {-2 * (1 - p.x) - 400 * b * p.x, 200 * b};
  }
  static point curvature(point p) { return {2 - 400 * (p.y - 3 * p.x * p.x), 200}; }
};

inline std::vector<surface> surfaces() {
  return {{"Tilted valley", {-2.6, -1.9}, {2.4, 2.2}, {-1.9, 1.5}, tilted::minimum, 100, 10,
           {0.1, 0.5, 2, 8, 20, 40}, tilted::value, tilted::gradient, tilted::curvature},
          {"Rosenbrock", {-1.75, -0.9}, {1.65, 1.88}, {-1.2, 1}, {1, 1}, 500, 50,
           {0.3, 2, 8, 30, 100, 300, 800}, rosenbrock::value, rosenbrock::gradient, rosenbrock::curvature}};
}

}  // namespace example::pictures
