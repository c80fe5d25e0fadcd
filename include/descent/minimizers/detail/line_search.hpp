// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>

#include <cmath>
#include <utility>

/// Searches along a line for a length t with a loss f(t) that is low enough. evaluate(t) returns the point there and
/// leaves its gradient in place; keep() saves that gradient, because it belongs to the best point so far.
namespace descent::detail {

struct line_point {
  double t, f, slope;  // slope = f'(t)
};

struct line_rules {
  double decrease, curvature;  // c1, c2
  double least_width;          // smallest width of a bracket
  int evaluations;
};

/// The minimum in [low, high] of the cubic through two points with their slopes (Nocedal & Wright 2006, eq. 3.59).
inline double cubic_minimum(line_point const& a, line_point const& b, double low, double high) {
  double const d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t);
  double const square = d1 * d1 - a.slope * b.slope;
  if (!is_finite(square) || square < 0) return (low + high) / 2;
  double const d2 = sqrt(square);
  double const t = a.t <= b.t ? b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
                              : a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2));
  return is_nan(t) ? low : min(max(t, low), high);
}

/// Replaces a loss that is NaN by infinity, so that comparisons find it too high.
inline line_point comparable(line_point x) {
  if (is_nan(x.f)) x.f = __builtin_inf();
  return x;
}

/// A point with f(t) <= f(0) + c1 t f'(0) and |f'(t)| <= -c2 f'(0) (strong Wolfe conditions; Nocedal & Wright 2006,
/// algorithms 3.5 and 3.6), or else the lowest point found. t is the first length that is tried.
template <class Evaluate, class Keep>
line_point search_strong_wolfe(line_rules const& rules, line_point const& start, double t, Evaluate const& evaluate,
                               Keep const& keep) {
  auto const too_high = [&](line_point const& x) { return x.f > start.f + rules.decrease * x.t * start.slope; };
  auto const flat = [&](line_point const& x) { return std::abs(x.slope) <= -rules.curvature * start.slope; };

  line_point low = start, now = comparable(evaluate(t));
  int n = 0;
  for (; n < rules.evaluations; ++n) {
    if (too_high(now) || (n > 1 && now.f >= low.f)) break;
    if (flat(now)) return keep(), now;
    if (now.slope >= 0) break;
    double const next = cubic_minimum(low, now, now.t + 0.01 * (now.t - low.t), 10 * now.t);
    low = now;
    keep();
    now = comparable(evaluate(next));
  }
  line_point high = now;
  if (high.f < low.f) {
    std::swap(low, high);
    keep();
  }

  bool stalls = false;  // the last point was near an end of the bracket
  for (; n < rules.evaluations && std::abs(high.t - low.t) >= rules.least_width; ++n) {
    double const left = min(low.t, high.t), right = max(low.t, high.t), margin = 0.1 * (right - left);
    double next = cubic_minimum(low, high, left, right);
    bool const at_end = min(right - next, next - left) < margin;
    if (at_end && (stalls || next >= right || next <= left)) {
      next = std::abs(next - right) < std::abs(next - left) ? right - margin : left + margin;
      stalls = false;
    } else {
      stalls = at_end;
    }
    now = comparable(evaluate(next));
    if (too_high(now) || now.f >= low.f) {
      high = now;
      if (high.f < low.f) {
        std::swap(low, high);
        keep();
      }
    } else {
      if (now.slope * (high.t - low.t) >= 0) high = low;
      low = now;
      keep();
      if (flat(now)) break;
    }
  }
  return low;
}

/// The first of t, t/2, t/4, ... with f(t) <= f(0) + c1 t f'(0) (Armijo), or else the start.
template <class Evaluate, class Keep>
line_point search_backtracking(line_rules const& rules, line_point const& start, double t, Evaluate const& evaluate,
                               Keep const& keep) {
  for (int n = 0; n < rules.evaluations; ++n, t /= 2) {
    line_point const now = comparable(evaluate(t));
    if (now.f <= start.f + rules.decrease * t * start.slope) return keep(), now;
  }
  return start;
}

}  // namespace descent::detail
