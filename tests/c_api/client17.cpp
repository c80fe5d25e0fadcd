// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// A C++17 program that trains through examples/c_api, with an optimizer that frees itself.
#include "descent_c.h"

#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

static_assert(__cplusplus < 202002L, "compile this as C++17");

namespace {

void require(descent_status status) {
  if (status != DESCENT_OK) throw std::runtime_error(descent_message());
}

class adamw {
 public:
  adamw(std::vector<float>& w, std::vector<float>& g, double lr) : of_(nullptr, descent_destroy) {
    descent_parameter const p{"w", w.data(), g.data(), std::int64_t(w.size()), 1, 0};
    descent_setting const settings[] = {{"lr", lr}, {"weight_decay", 0.0}};
    descent_options options{};
    descent_optimizer* made = nullptr;
    require(descent_create(&made, "adamw", settings, 2, &p, 1, &options));
    of_.reset(made);
  }
  void step() { require(descent_step(of_.get())); }

 private:
  std::unique_ptr<descent_optimizer, void (*)(descent_optimizer*)> of_;
};

}  // namespace

int main() {
  std::vector<float> w(5, 1.0f), g(5);
  adamw opt(w, g, 0.1);
  double m = 0, v = 0, p = 1;  // the formula in double
  for (int t = 1; t <= 20; ++t) {
    for (std::size_t i = 0; i < w.size(); ++i) g[i] = w[i] * w[i];
    double const d = double(g[0]);
    opt.step();
    m = 0.9 * m + 0.1 * d, v = 0.999 * v + 0.001 * d * d;
    p -= 0.1 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
  }
  try {
    std::vector<float> other(5);
    adamw(other, other, 0.1);
  } catch (std::runtime_error const& e) {
    std::printf("refused: %s\n", e.what());
    std::printf("%.6f, by the formula %.6f\n", w[4], p);
    return std::fabs(w[4] - p) < 1e-5 ? 0 : 1;
  }
  return 2;
}
