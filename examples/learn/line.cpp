// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Fits a line to 50 points by gradient descent, and prints every step: docs/learn/README.md.
// snippet: line
#include <descent/descent.hpp>

#include <cstdio>
#include <vector>

namespace ds = descent;

int main() {
  std::vector<float> p{0, 0}, g{0, 0};  // a and b of the line y = a x + b, and their gradients
  ds::parameters<float> params;
  params.add("line", p, g);
  ds::optimizer opt{params, ds::sgd{.lr = 0.5}};

  for (int step = 0; step < 20; ++step) {
    float loss = 0;
    opt.zero_grad();
    for (int i = 0; i < 50; ++i) {  // points near y = 3 x - 2
      float const x = float(i) / 25 - 1, y = 3 * x - 2 + float(i * 7 % 5 - 2) / 20;
      float const error = p[0] * x + p[1] - y;
      loss += error * error / 50;
      g[0] += 2 * error * x / 50, g[1] += 2 * error / 50;
    }
    std::printf("step %2d: loss %.6f, a = %.4f, b = %.4f\n", step, loss, p[0], p[1]);
    opt.step();  // p -= 0.5 g
  }
}
// end
