// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// For which rates and momenta the heavy ball converges, and along which path: docs/learn/condition.md.
#include "experiment.hpp"
#include "heavy_ball.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

using namespace example;
using learn::pair;

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::options const options{argc, argv, {.what = "Shows which rates and momenta converge, and how fast."}};
    panel plane{"momentum β and lr λ with a rate of at most r", "lr λ", axis::linear, {}}, paths = plane;
    for (double r : {1.0, 0.9, 0.7}) {  // the edge of the pairs whose rate is at most r
      point const left{1 - r, 0}, top_left{(1 - r) * (1 - r), r * r};
      point const right{1 + r, 0}, top_right{(1 + r) * (1 + r), r * r};
      for (auto const [s, beta] : {left, top_left, top_right, right})
        claim(close(pair{s, beta}.rate(), r, 1e-6), "the corners of a trapezoid have its rate");
      plane.curves.push_back(
          {"r = " + short_number(r), {right, top_right, {0, std::nan("")}, left, top_left, top_right}});
    }
    paths.title = "distance from the minimum", paths.x_label = "step", paths.scale = axis::logarithmic;

    std::puts("lr λ   beta  roots               rate   x_50 predicted, measured");
    for (auto const p : {pair{1.9, 0}, {2.05, 0}, {2.05, 0.9}, {3.7, 0.9}, {3.9, 0.9}, {0.1, 0.9}, {0.001, 0.9}}) {
      auto const [z1, z2] = p.roots();
      bool const real = z1.imag() == 0;
      std::printf("%-6g %-4g %6.3f %s %6.3f%s  %.3f %14.4g %10.4g\n", p.s, p.beta, z1.real(), real ? "and" : "+-",
                  real ? z2.real() : z1.imag(), real ? " " : "i", p.rate(), p.predicted(50), learn::walked(p, 50)[50]);
    }
    int stable = 0, other = 0;
    for (double beta = 0; beta < 0.99; beta += 0.05)
      for (double s = 0.03; s < 4.5; s += 0.1) {
        auto const x = learn::walked({s, beta}, 200);
        for (int t = 0; t <= 200; ++t)
          claim(close(x[std::size_t(t)], pair{s, beta}.predicted(t), 1e-9, 1e-9), "each step is as predicted");
        bool const inside = s < 2 * (1 + beta);
        claim((pair{s, beta}.rate() < 1) == inside, "the rate is below 1 where lr λ < 2 (1 + beta)");
        auto const [low, high] = std::minmax_element(x.begin() + 150, x.end());
        claim((std::max(-*low, *high) < 0.5) == inside, "and only there does the distance fall");
        ++(inside ? stable : other);
      }
    std::printf("%d pairs converge, %d diverge, each of 200 steps as predicted\n", stable, other);

    for (double k : {10., 100., 1000.}) {  // curvatures from 1 to k: one pair for both ends
      pair best{};
      double least = 1;
      for (double beta = 0; beta < 1; beta += 1e-3)
        for (double s = 1; s < 4; s += 2e-3)  // lr k
          if (double const r = std::max(pair{s / k, beta}.rate(), pair{s, beta}.rate()); r < least)
            least = r, best = {s / k, beta};
      double const q = std::sqrt(k), r = (q - 1) / (q + 1);
      std::printf("k = %4.0f: best of a search lr %.4f, beta %.3f, rate %.3f; Polyak's %.4f, %.3f, %.3f\n", k, best.s,
                  best.beta, least, std::pow(2 / (q + 1), 2), r * r, r);
      claim(close(least, r, 0.01) && least >= r - 1e-12, "no pair is better than Polyak's");
    }
    for (auto const p : {pair{0.05, 0.3}, {0.05, 0.6}, {0.05, 0.95}, {2.7, 0.3}}) {
      paths.curves.push_back({"lr λ " + short_number(p.s) + ", β " + short_number(p.beta), {}});
      plane.curves.push_back({paths.curves.back().name, {}, {{p.s, p.beta}}});
      auto const x = learn::walked(p, 100);
      for (std::size_t t = 0; t <= 100; ++t) paths.curves.back().points.push_back({double(t), std::fabs(x[t])});
    }
    options.write("The heavy ball on a quadratic", {plane, paths});
  });
}
