// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// The loss surface around three minima, of a small batch, a large one and SAM: docs/learn/minima.md.
#include "cut.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace ds = descent;
using namespace example;

// snippet: sam
/// The gradient at the point uphill.
struct uphill {
  void operator()(auto& net, auto& opt, image_rows const& batch, int) const {
    net.forward(batch), net.backward();
    auto const here = net.totals();
    opt.ascend();
    net.forward(batch), net.backward();
    net.set_totals(here);
  }
};
// end

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{
        argc, argv, {.what = "Shows the loss surface around the minima of a small batch, a large batch and SAM."}};
    learn::loss_surface surface{"relu50"};
    panel steep{
        "loss along the steepest direction", "distance from the minimum", axis::logarithmic, {}, x_axis::from_data};
    panel random{
        "loss along a random direction", "distance from the minimum", axis::logarithmic, {}, x_axis::from_data};
    struct minimum { double accuracy, curvature, around; };
    std::puts("                          updates   loss    test   curvature   loss around");
    auto const row = [&](char const* name, bool drawn, learn::settings s, auto const& gradient, double lr,
                         auto const&... sam) {
      s.steps = 20000, s.network = "relu50", s.seed = e.seed, s.loss_goal = 0.05;
      auto const r = learn::train_with<double>(s, gradient, ds::sgd{.lr = lr}, sam...);
      auto const [curvature, direction] = surface.largest_curvature(r.values);
      minimum m{r.accuracy, curvature, 0};
      for (std::uint64_t k = 0; k < 20; ++k)
        m.around += surface.loss(learn::moved(r.values, 0.5, surface.direction(r.values, 10 + k))) / 20;
      std::printf("%-26s  %5d  %.3f  %5.1f %%  %8.2f  %10.3f\n", name, r.steps, surface.loss(r.values), m.accuracy,
                  m.curvature, m.around);
      if (drawn && !(e.picture + e.csv).empty()) {
        steep.curves.push_back(learn::cut(name, surface, r.values, direction));
        random.curves.push_back(learn::cut(name, surface, r.values, surface.direction(r.values, 1)));
      }
      return m;
    };
    auto const small = row("batch 8, lr 0.1", true, {.batch = 8}, learn::whole_batch{}, 0.1);
    auto const fast = row("batch 8, lr 0.4", false, {.batch = 8}, learn::whole_batch{}, 0.4);
    auto const large = row("batch 1438, lr 0.1", true, {.batch = 1438}, learn::whole_batch{}, 0.1);
    auto const large_fast = row("batch 1438, lr 0.4", false, {.batch = 1438}, learn::whole_batch{}, 0.4);
    auto const sam = row("SAM 0.5, batch 8, lr 0.1", true, {.batch = 8}, uphill{}, 0.1, ds::sam{.rho = 0.5});
    e.claim(large.curvature > small.curvature && large_fast.curvature > fast.curvature, "small batches end flatter");
    e.claim(sam.curvature < small.curvature && sam.around < small.around, "and so does SAM");
    e.claim(small.around < large.around && fast.around < large_fast.around, "in random directions as well");
    e.claim(std::fabs(small.accuracy - large.accuracy) < 2.5, "the accuracy hardly differs");
    range losses;
    for (auto const& c : steep.curves)
      for (auto const& p : c.points) losses.include(p.y);
    random.curves.push_back({"", {{0, losses.low}, {0, std::nan("")}, {0, losses.high}}});  // the same vertical axis
    e.write("The loss around three minima, handwritten digits", {steep, random});
  });
}
