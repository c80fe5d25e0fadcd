// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../../moments.hpp"

using learn::moments, learn::path;

int main() {
  path small = learn::gradients;
  for (double& g : small) g *= 1e-6;
  moments const a{.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
  auto const with = [&](auto step) {
    return learn::walk(0, small, [&, x = a](double& p, double g, std::int64_t t) mutable {
      x.average(g);
      p -= a.lr * step(x, double(t));
    });
  };
  learn::require_path("p", learn::run(adam{}, 0, small).p, with([](moments& x, double t) { return x.direction(t); }),
                      {{"small gradients still stall.",
                        with([&](moments& x, double t) { return x.m_hat(t) / std::sqrt(x.v_hat(t) + a.eps); })},
                       {"is eps gone? It keeps the quotient finite when all gradients are 0.",
                        with([&](moments& x, double t) { return x.m_hat(t) / std::sqrt(x.v_hat(t)); })}},
                      "with gradients of about 1e-6 and lr = 0.001, ");
}
