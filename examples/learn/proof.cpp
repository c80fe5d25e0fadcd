// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Gradient descent converges on a quadratic: the lines of the proof as numbers. docs/learn/condition.md.
#include "../parts/claim.hpp"
#include "experiment.hpp"
#include "valley.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ds = descent;
using namespace example;

constexpr double mu = 1, L = 50, lr = 0.035, best = 2 / (mu + L);

double length(point p) { return std::hypot(p.x, p.y); }
/// By what a step multiplies the distance at most.
double factor(double rate) { return std::max(std::fabs(1 - rate * mu), std::fabs(1 - rate * L)); }

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::options const options{argc, argv, learn::options::only_help("Prints a proof of convergence as numbers.")};
    learn::valley const f{30};  // f(x) = (mu a^2 + L b^2) / 2 with x = a e1 + b e2, axes turned by 30 degrees
    auto const all = learn::walked(f, ds::sgd{.lr = lr}, 500);
    auto const& x = all.path;
    auto const x0 = x[0], x1 = x[1];
    double const a = f.u(x0), b = f.v(x0), q = factor(lr);

    auto const g = f.at(mu * a, L * b);
    std::printf("1. x0 = (%.4f, %.4f) = a e1 + b e2 with a = %.4f, b = %.4f\n", x0.x, x0.y, a, b);
    std::printf("2. g = mu a e1 + L b e2 = (%.4f, %.4f)\n", g.x, g.y);
    std::printf("3. x1 = x0 - lr g = (%.4f, %.4f); the optimizer's: (%.4f, %.4f)\n", x0.x - lr * g.x, x0.y - lr * g.y,
                x1.x, x1.y);
    std::printf("4. its parts: (1 - lr mu) a = %.4f, measured %.4f; (1 - lr L) b = %.4f, measured %.4f\n",
                (1 - lr * mu) * a, f.u(x1), (1 - lr * L) * b, f.v(x1));
    std::printf("5. q = max(|1 - lr mu|, |1 - lr L|) = max(%.4f, %.4f) = %.4f\n", std::fabs(1 - lr * mu),
                std::fabs(1 - lr * L), q);
    std::printf("6. |x1|^2 = %.4f <= q^2 |x0|^2 = %.4f\n", std::pow(length(x1), 2), std::pow(q * length(x0), 2));
    for (int t : {10, 100})
      std::printf("7. |x%d| = %.5f <= q^%d |x0| = %.5f\n", t, length(x[std::size_t(t)]), t,
                  std::pow(q, t) * length(x0));
    std::printf("8. lr     0.0300 0.0350 %.4f 0.0395 0.0400 0.0420\n   q     ", best);
    for (double rate : {0.03, 0.035, best, 0.0395, 0.04, 0.042}) std::printf(" %.4f", factor(rate));
    double const k = L / mu, least = factor(best), bound = (k + 1) / 2 * std::log(1e6);
    std::printf("\n9. k = L / mu = %.0f, (k - 1) / (k + 1) = %.4f\n", k, (k - 1) / (k + 1));
    auto const fast = learn::walked(f, ds::sgd{.lr = best}, 500).path;
    int const proved = int(std::ceil(std::log(1e-6) / std::log(least)));
    int steps = 0;
    while (length(fast[std::size_t(steps)]) > 1e-6 * length(x0)) ++steps;
    std::printf("10. a millionth of the distance after %d steps; q^t asks for %d, (k + 1) / 2 ln(10^6) = %.1f\n", steps,
                proved, bound);

    claim(close(x1.x, x0.x - lr * g.x, 1e-14) && close(x1.y, x0.y - lr * g.y, 1e-14), "3: the step is the formula's");
    claim(close(f.u(x1), (1 - lr * mu) * a, 1e-13) && close(f.v(x1), (1 - lr * L) * b, 1e-13), "4: parts are separate");
    for (std::size_t t = 0; t < 500; ++t) {
      claim(length(x[t + 1]) <= q * length(x[t]) * (1 + 1e-14), "6: each step shrinks the distance by q or more");
      claim(length(x[t]) <= std::pow(q, t) * length(x0) * (1 + 1e-12), "7: so do t steps");
      claim(all.losses[t].y <= L / 2 * std::pow(q, 2 * t) * std::pow(length(x0), 2), "and the loss by q squared");
    }
    for (double rate = 0.001; rate < 0.06; rate += 0.001)
      claim(factor(rate) >= least, "8: no other rate has a smaller q");
    claim(close(least, (k - 1) / (k + 1), 1e-14), "9: q follows from the condition number");
    claim(steps <= proved && proved <= bound + 1, "10: so do the steps");
  });
}
