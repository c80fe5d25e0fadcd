// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Gradient descent by hand and by optimizer, and what the learning rate does: docs/learn/descent.md.
#include "experiment.hpp"
#include "map.hpp"

#include <descent/descent.hpp>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace ds = descent;

/// Fits y = w x + b to nine points of y = 3 x - 2; the loss is the mean squared error.
struct line_fit {
  std::vector<float> p{0, 0}, g{0, 0};  // w and b, and the gradient

  float backward() {
    float loss = 0;
    for (float x = -1; x <= 1; x += 0.25f) {
      float const error = p[0] * x + p[1] - (3 * x - 2);
      loss += error * error / 9;
      g[0] += 2 * error * x / 9;
      g[1] += 2 * error / 9;
    }
    return loss;
  }
};

/// The losses before each step, and w and b.
struct walk { std::vector<example::point> losses, path; };

walk walked(double lr, int steps) {
  line_fit f;
  ds::parameters<float> params;
  params.add("line", f.p, f.g);
  ds::optimizer opt{params, ds::sgd{.lr = lr}};
  walk all;
  for (int t = 0; t <= steps; ++t) {
    opt.zero_grad();
    all.path.push_back({f.p[0], f.p[1]});
    all.losses.push_back({double(t), f.backward()});
    opt.step();
  }
  return all;
}

constexpr example::learn::box shown{{-0.4, -4.4}, {5.6, 0.4}};

/// The loss is 5/12 (w - 3)^2 + (b + 2)^2.
example::panel map_of(std::string const& title) {
  auto p = example::learn::map_of(shown, title, {0.1, 0.5, 1.5, 3, 5}, [](double loss, double angle) {
    return example::point{3 + std::sqrt(2.4 * loss) * std::cos(angle), -2 + std::sqrt(loss) * std::sin(angle)};
  });
  p.x_label = "w", p.y_label = "b";
  return p;
}

int main(int argc, char** argv) {
  return example::exit_code([&] {
    example::learn::options const options{argc, argv, {.what = "Fits a line by gradient descent, with five rates."}};
    // snippet: by_hand
    line_fit f;
    for (int t = 1; t <= 3; ++t) {
      f.g = {0, 0};
      f.backward();
      for (int i : {0, 1}) f.p[i] -= 0.5f * f.g[i];
      std::printf("step %d by hand: w = %.6f, b = %.6f\n", t, f.p[0], f.p[1]);
    }
    // end
    std::vector<example::panel> panels{{"loss at each step", "step", example::axis::logarithmic, {}}};
    for (double lr : {0.01, 0.1, 0.5, 0.99, 1.01}) {
      auto const all = walked(lr, 40);
      std::printf("lr %.2f: loss %9.2e after 10 steps, %9.2e after 40\n", lr, all.losses[10].y, all.losses[40].y);
      std::string const name = "lr " + std::to_string(lr).substr(0, 4);
      panels[0].curves.push_back({name, all.losses});
      panels.push_back(map_of("path of w and b, " + name));
      auto const path = example::learn::inside(shown, all.path);
      panels.back().curves.push_back({name, path, path});
    }
    options.write("Five learning rates", panels, 2);
  });
}
