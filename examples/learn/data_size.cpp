// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Test error against the number of training images and the width of the network, and how long to train:
// docs/learn/data_size.md.
#include "experiment.hpp"
#include "seeds.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace ds = descent;
using namespace example;

// snippet: fit
/// y = c x^-k through points, by least squares of log y over log x.
struct power_law { double c, k; };
power_law fitted(std::vector<point> const& all) {
  double x = 0, y = 0, xx = 0, xy = 0, n = double(all.size());
  for (auto const& p : all) {
    double const u = std::log(p.x), v = std::log(p.y);
    x += u / n, y += v / n, xx += u * u / n, xy += u * v / n;
  }
  double const k = -(xy - x * y) / (xx - x * x);
  return {std::exp(y + k * x), k};
}
// end

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{
        argc,
        argv,
        {.what = "Shows the test error by number of training images and width, and how long to train.", .seeds = "3"}};
    auto const error = [&](int images, int width) {
      return learn::spread_of(learn::with_seeds(e, [&](std::uint64_t seed) {
        return 100 - learn::train({.steps = 1500, .network = "relu" + std::to_string(width), .seed = seed,
                                   .images = images}, ds::sgd{.lr = 0.2}).accuracy;
      }));
    };
    std::vector<panel> panels{
        {"test error in %, 50 units; range of the seeds", "training images", axis::logarithmic, {}, x_axis::doubling},
        {"test error in %, all images; range of the seeds", "hidden units", axis::logarithmic, {}, x_axis::doubling}};
    auto const curve_of = [&](panel& p, char const* what, std::vector<int> const& sizes, auto const& run) {
      std::vector<point> all;
      curve c{what, {}, {}};
      for (int n : sizes) {
        auto const of = run(n);
        all.push_back({double(n), of.mean});
        learn::add(c, n, of);
        c.marks.push_back(c.points.back());
        std::printf("%5d %-8s %5.1f %%\n", n, what, all.back().y);
      }
      p.curves.push_back(c);
      return all;
    };
    auto const by_images =
        curve_of(panels[0], "images", {45, 90, 180, 360, 719, 1438}, [&](int n) { return error(n, 50); });
    auto const by_width =
        curve_of(panels[1], "units", {2, 4, 8, 16, 32, 64, 128}, [&](int n) { return error(1438, n); });
    power_law const law = fitted(by_images);
    std::printf("error = %.0f %% * images^-%.2f\n", law.c, law.k);
    curve line{"power law", {}};
    for (auto const& p : by_images) line.points.push_back({p.x, law.c * std::pow(p.x, -law.k)});
    panels[0].curves.push_back(line);
    e.claim(law.k > 0.4 && law.k < 0.8, "four times the images halve the error, about");
    e.claim(by_images[0].y > 2 * by_images[2].y && by_images[2].y > 1.5 * by_images[4].y,
            "the error falls with the images");
    e.claim(by_width[0].y > 3 * by_width[2].y, "and with the width");
    e.claim(by_width[6].y > by_width[4].y - 1.5, "until the images limit it");
    e.write("More data, a wider network", panels);
  });
}
