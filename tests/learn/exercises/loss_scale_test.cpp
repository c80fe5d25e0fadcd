// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// Sixteen steps of two elements. In steps 3, 8 and 11 a gradient is not finite: the first one in steps 3 and 11, the
// second one in step 8. In step 11 it is NaN.
#include "../verdict.hpp"

#include <limits>

using learn::path;

namespace {

constexpr double lr = 0.125, infinity = std::numeric_limits<double>::infinity();
double const nan = std::numeric_limits<double>::quiet_NaN();

struct run { path p, scale; };

template <class Scaler> run of(Scaler scaler) {
  std::vector<double> p{1, 2};
  run r{{p[0] + p[1]}, {scaler.scale}};
  for (int t = 1; t <= 16; ++t) {
    double const first = t == 3 ? infinity : t == 11 ? nan : scaler.scale * t;
    scaler.step(p, {first, t == 8 ? infinity : scaler.scale}, lr);
    r.p.push_back(p[0] + p[1]);
    r.scale.push_back(scaler.scale);
  }
  return r;
}

/// A scaler with mistakes.
struct scaler {
  double scale = 65536;
  int interval = 3, good = 0;
  bool unscales = true, skips = true, sees_nan = true, sees_infinity = true, backs_off = true, grows = true;
  bool skip_resets = true, growth_resets = true, skips_all = true, first_only = false;

  void step(std::vector<double>& p, std::vector<double> const& g, double lr) {
    bool finite = true;
    for (double const x : g)
      if ((std::isnan(x) && sees_nan) || (std::isinf(x) && sees_infinity)) finite = false;
    if (first_only) finite = std::isfinite(g[0]);
    for (std::size_t i = 0; i < p.size(); ++i)
      if (finite || !skips || (!skips_all && std::isfinite(g[i]))) p[i] -= lr * g[i] / (unscales ? scale : 1);
    if (finite) {
      if (++good >= interval && grows) {
        scale *= 2;
        if (growth_resets) good = 0;
      }
    } else {
      if (backs_off) scale /= 2;
      if (skip_resets) good = 0;
    }
  }
};

}  // namespace

int main() {
  run const got = of(loss_scaler{}), want = of(scaler{});
  std::vector<std::pair<std::string, scaler>> const mistakes = {
      {"is the division by the scale missing?", {.unscales = false}},
      {"is the step taken although a gradient is not finite?", {.skips = false}},
      {"is NaN taken for a number? Test with std::isfinite.", {.sees_nan = false}},
      {"is infinity taken for a number? Test with std::isfinite.", {.sees_infinity = false}},
      {"is only the first gradient tested?", {.first_only = true}},
      {"are the elements before the overflow updated? Test all gradients first: a step is taken whole or not at all.",
       {.skips_all = false}},
      {"does the scale stay after an overflow? It must be halved.", {.backs_off = false}},
      {"does the scale never grow?", {.grows = false}},
      {"does the count continue after a skipped step? It must start again.", {.skip_resets = false}},
      {"does the count continue after the scale has grown? It must start again.", {.growth_resets = false}},
      {"does the scale grow after every clean step? It waits for `interval` of them.", {.interval = 1}},
  };
  std::vector<learn::mistake> of_p = {{"the lines are still to be written.", path(want.p.size(), 3)}}, of_scale;
  for (auto const& [question, one] : mistakes) {
    run const r = of(one);
    if (!learn::same(r.p, want.p)) of_p.push_back({question, r.p});
    if (!learn::same(r.scale, want.scale)) of_scale.push_back({question, r.scale});
  }
  std::string const before = "steps 3, 8 and 11 overflow: ";
  learn::require_path("p[0] + p[1]", got.p, want.p, of_p, before);
  learn::require_path("the scale", got.scale, want.scale, of_scale, before + "p is right, but ");
}
