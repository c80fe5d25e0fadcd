// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// The README's program on the host: fits the line y = 3 x - 2 to 17 points.
#include <descent/descent.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace ds = descent;

int main() {
  std::vector<float> w(2), dw(2);  // your values and your gradients, in your memory

  ds::parameters<float> params;
  params.add("line", w.data(), dw.data(), w.size());

  ds::optimizer opt{params, ds::adamw{.weight_decay = 0.001},
                    ds::learning_rate(ds::warmup<ds::cosine>{.steps = 20, .then = {.peak = 0.05, .steps = 480}}),
                    ds::clip_norm{1.0}};

  for (int i = 0; i < 500; ++i) {
    opt.zero_grad();
    for (float x = -1; x <= 1; x += 0.125f) {  // your forward and backward: y = 3 x - 2
      float const error = w[0] * x + w[1] - (3 * x - 2);
      dw[0] += 2 * error * x / 17;
      dw[1] += 2 * error / 17;
    }
    opt.step();
  }

  std::printf("y = %.3f x %+.3f after %lld steps\n", w[0], w[1], static_cast<long long>(opt.report().step));
  std::puts(opt.explain().c_str());
  return std::fabs(w[0] - 3) < 1e-2 && std::fabs(w[1] + 2) < 1e-2 ? 0 : 1;
}
