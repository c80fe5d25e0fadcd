// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/policies/noise.hpp>

#include <cmath>
#include <cstdint>

/// Losses of two parameters, with their gradients. Only + - * / and sqrt, so that the bits are the same everywhere.
namespace lab {

enum surface_kind { quadratic, rosenbrock, beale, saddle, valleys, digits_surface };

struct shape {
  int kind;
  double condition;  ///< of the quadratic: its curvatures are 1 and 1 / condition
  double angle;      ///< by which the quadratic is turned, in degrees
  double size;       ///< the factor of the loss

  double at(double x, double y, double (&gradient)[2]) const {
    double const loss = plain(x, y, gradient);
    for (double& one : gradient) one *= size;
    return loss * size;
  }

 private:
  double plain(double x, double y, double (&g)[2]) const {
    switch (kind) {
      case rosenbrock: {
        double const a = 1 - x, b = y - x * x;
        g[0] = -2 * a - 400 * x * b, g[1] = 200 * b;
        return a * a + 100 * b * b;
      }
      case beale: {
        double const a = 1.5 - x + x * y, b = 2.25 - x + x * y * y, c = 2.625 - x + x * y * y * y;
        g[0] = 2 * (a * (y - 1) + b * (y * y - 1) + c * (y * y * y - 1));
        g[1] = 2 * x * (a + 2 * b * y + 3 * c * y * y);
        return a * a + b * b + c * c;
      }
      case saddle: {  // minima at (0, 1) and (0, -1)
        g[0] = x, g[1] = y * y * y - y;
        return 0.5 * x * x + 0.25 * (y * y - 1) * (y * y - 1);
      }
      case valleys: {
        wave const a(x), b(y);
        g[0] = 0.2 * x + tau * 0.2 * a.sin, g[1] = 0.2 * y + tau * 0.2 * b.sin;
        return 0.1 * (x * x + y * y) + 0.2 * (2 - a.cos - b.cos);
      }
      default: {
        auto const turn = std::uint32_t(std::int64_t(angle / 360 * 4294967296.0));
        auto const direction = descent::detail::sincos_of_turn(turn);
        double const c = direction.cos, s = direction.sin, u = c * x + s * y, v = c * y - s * x;
        double const flat = u / condition;
        g[0] = c * flat - s * v, g[1] = s * flat + c * v;
        return 0.5 * (u * flat + v * v);
      }
    }
  }

  static constexpr double tau = 6.283185307179586;
  /// Sine and cosine of tau x, by Taylor's series about the nearest half turn.
  struct wave {
    double sin, cos;
    explicit wave(double x) {
      double const halves = std::floor(2 * x + 0.5), r = tau * (x - halves / 2), z = r * r;
      sin = 0, cos = 0;
      for (int n = 17; n > 0; n -= 2) sin = 1 - sin * (z / ((n + 1) * (n + 2)));
      for (int n = 16; n > 0; n -= 2) cos = 1 - cos * (z / (n * (n - 1)));
      bool const odd = halves - 2 * std::floor(halves / 2) == 1;
      sin = odd ? -sin * r : sin * r, cos = odd ? -cos : cos;
    }
  };
};

}  // namespace lab
