// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../../moments.hpp"

using learn::moments;

int main() {
  moments const a{.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
  auto const with = [&](auto step) {
    return a.after([&](moments& x, double, double t) { return a.lr * step(x, t); }, 0);
  };
  learn::require_path("p", learn::run(adam{}, 0, learn::gradients).p,
                      with([](moments& x, double t) { return x.direction(t); }),
                      {{"the first steps are still too long.",
                        with([&](moments& x, double) { return x.m / (std::sqrt(x.v) + a.eps); })},
                       {"v is still too small at first.",
                        with([&](moments& x, double t) { return x.m_hat(t) / (std::sqrt(x.v) + a.eps); })},
                       {"now m is too small at first.",
                        with([&](moments& x, double t) { return x.m / (std::sqrt(x.v_hat(t)) + a.eps); })}},
                      "with lr = 0.001, ", 1e-6);  // eps may be added before or after the correction
}
