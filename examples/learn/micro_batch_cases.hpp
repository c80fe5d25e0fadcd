// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/chart.hpp"

#include <descent/descent.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

/// What accumulation of micro-batches does, in numbers that one can follow.
namespace example::learn {

namespace ds = descent;

/// Parameters that begin at 0, and their gradients.
template <class T> struct model {
  std::vector<T> w, g;
  ds::parameters<T> params;
  explicit model(std::size_t n) : w(n, T(0)), g(n, T(0)) { params.add("w", w, g); }
};

/// One step of gradient descent with rate 1 from w = 0. The loss of an example is (w - y)^2 / 2: the step ends at the
/// mean of the batch if the gradient is that of the mean loss.
inline float one_step(std::vector<std::vector<float>> const& parts, bool weighted) {
  model<float> m{1};
  ds::optimizer opt{m.params, ds::sgd{.lr = 1}, ds::accumulate{int(parts.size())}};
  // snippet: parts
  for (auto const& part : parts) {
    auto const n = float(part.size());
    for (float y : part) m.g[0] += (m.w[0] - y) / (weighted ? 1 : n);  // of the sum of the losses, or of their mean
    opt.step(weighted ? n : 1);
  }
  // end
  return m.w[0];
}

/// Four parts in half, whose scaled gradients may be too large.
inline void overflow() {
  model<ds::half> m{1};
  ds::optimizer opt{m.params, ds::sgd{.lr = 0.1}, ds::accumulate{4}, ds::zero_grad{},
                    ds::dynamic_loss_scale{.init = 8192, .interval = 2}};
  for (float large : {1.f, 9.f, 9.f, 1.f, 1.f}) {
    std::printf("   gradients 1 %g 1 1, loss scale", double(large));
    for (float gradient : {1.f, large, 1.f, 1.f}) {
      double const scale = opt.report().loss_scale;
      std::printf(" %g", scale);
      m.g[0] = ds::half(float(m.g[0]) + float(scale) * gradient);
      opt.step();
    }
    std::printf(": %s, w = %.3f\n", opt.report().applied ? "applied" : "skipped", double(float(m.w[0])));
  }
}

/// The step of gradient descent with rate 1 for two parts, of which the first is an outlier.
inline std::vector<float> clipped(bool each) {
  model<float> m{2};
  ds::optimizer opt{m.params, ds::sgd{.lr = 1}, ds::clip_norm{each ? 1e9 : 1}, ds::accumulate{2}};
  for (auto const& [u, v] : {std::pair{30.f, 40.f}, {0.f, 1.f}}) {
    float const factor = each ? 1 / std::fmax(1.f, std::hypot(u, v)) : 1;
    m.g[0] += factor * u, m.g[1] += factor * v;
    opt.step();
  }
  return {-m.w[0], -m.w[1]};
}

/// Ten parts with gradients 1, 2, ..., 10 and updates of four.
inline void last_parts() {
  model<float> m{1};
  ds::optimizer opt{m.params, ds::sgd{.lr = 1}, ds::accumulate{4}, ds::zero_grad{}};
  for (float gradient = 1; gradient <= 10; ++gradient) m.g[0] += gradient, opt.step();
  std::printf("4. Ten parts: %d updates and w = %g", int(opt.report().step), double(m.w[0]));
  opt.flush();
  std::printf(", after flush() %d and w = %g\n", int(opt.report().step), double(m.w[0]));
}

/// What a network of 784-1024-1024-10 holds for a batch of 512 rows in n parts: activations and their gradients of one
/// part; weights, gradients, and what the optimizer owns. Prints them and adds the bytes to the curves, in MB.
inline void memory(int n, panel& drawn) {
  constexpr std::int64_t widths[] = {784, 1024, 1024, 10};
  std::int64_t const rows = 512 / n;
  std::int64_t activations = 2 * rows * widths[0], weights = 0, products = 0;
  for (int k = 0; k < 3; ++k) {
    activations += 2 * rows * widths[k + 1];
    weights += (widths[k] + 1) * widths[k + 1];
    products += 3 * n * rows * widths[k] * widths[k + 1];
  }
  model<float> m{std::size_t(weights)};
  auto const owned = ds::memory(m.params, ds::adamw{}, ds::accumulate{n}).bytes;
  std::printf(
      "   %2d parts of %3d rows: activations %6.2f MB, weights %.2f MB, gradients %.2f MB, optimizer %.2f MB; "
      "%.2f G products\n",
      n, int(rows), 4e-6 * double(activations), 4e-6 * double(weights), 4e-6 * double(weights), 1e-6 * double(owned),
      1e-9 * double(products));
  double const bytes[] = {4.0 * double(activations), 4.0 * double(weights), double(owned)};
  for (std::size_t k = 0; k < 3; ++k) {
    drawn.curves[k].points.push_back({double(n), 1e-6 * bytes[k]});
    drawn.curves[k].marks.push_back({double(n), 1e-6 * bytes[k]});
  }
}

}  // namespace example::learn
