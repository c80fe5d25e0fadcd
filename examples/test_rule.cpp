// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// A rule that descent does not have, a sign method with momentum, in use and under test: docs/own_rule.md.
#include "parts/arguments.hpp"
#include "parts/claim.hpp"

#include <descent/descent.hpp>
#include <descent/io/checkpoint.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace ds = descent;
using example::claim;

// snippet: sign_momentum
/// Momentum on the sign of the gradient:   b <- mu b + sign(g)     p <- p - lr b
struct sign_momentum {
  double lr = 1e-2, momentum = 0.9;

  template <class Real> struct state { Real b; };
  template <class Real> struct terms { Real lr, mu; };

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, momentum}; }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using ds::sign;
    s.b = k.mu * s.b + sign(g);
    return p - k.lr * s.b;
  }
};
static_assert(ds::update_rule<sign_momentum>);
// end

// snippet: by_hand
constexpr int size = 1003, steps = 200;  // no multiple of a packet of eight

/// Of both signs, sometimes 0, and exact in bfloat16.
double gradient(int t, int i) { return ((i * 37 + t * 101) % 17 - 8) / 8.; }

/// The formula of the paper in double, without update() and without the library.
std::vector<double> by_hand(double lr, double momentum) {
  std::vector<double> p(size, 1), b(size);
  for (int t = 1; t <= steps; ++t)
    for (int i = 0; i < size; ++i) {
      double const g = gradient(t, i), sign = g > 0 ? 1 : g < 0 ? -1 : 0;
      b[i] = momentum * b[i] + sign;
      p[i] = p[i] - lr * b[i];
    }
  return p;
}
// end

// snippet: compared
/// One run of the rule. T is the type of values and gradients.
template <class T, class... Policies> struct run {
  std::vector<T> w = std::vector<T>(size, T(1.f)), dw = std::vector<T>(size);
  ds::optimizer<T, T, sign_momentum, Policies...> opt;

  explicit run(Policies... policies) : opt{list(w, dw), sign_momentum{.lr = 1e-3}, policies...} {}
  static ds::parameters<T> list(std::vector<T>& w, std::vector<T>& dw) {
    ds::parameters<T> params;
    params.add("w", w, dw);
    return params;
  }
  void train(int from, int to) {
    for (int t = from; t <= to; ++t) {
      for (int i = 0; i < size; ++i) dw[i] = T(float(gradient(t, i)));
      opt.step();
    }
  }
};

double distance(auto const& a, auto const& b) {
  double most = 0;
  for (int i = 0; i < size; ++i) most = std::max(most, std::abs(double(a[i]) - double(b[i])));
  return most;
}
// end

/// What the page shows first: the rule in use.
void use(std::string const& path) {
  // snippet: used
  std::vector<ds::bfloat16> w(1000, ds::bfloat16(1.f)), dw(1000, ds::bfloat16(1.f));
  ds::parameters<ds::bfloat16> params;
  params.add("w", w, dw);
  ds::optimizer opt{params, sign_momentum{.lr = 1e-3}, ds::master<float>{}, ds::clip_norm{1}};
  for (int t = 0; t < 100; ++t) opt.step();
  ds::save_file(path, opt);  // values, masters, w.state.0, the step, lr and momentum
  // end
  claim(opt.report().clip_factor < 1 && opt.master("w")[0] < 0.5f, "the rule gets masters and clipping");
}

int main() {
  return example::exit_code([] {
    std::string const path = (std::filesystem::temp_directory_path() / "test_rule.safetensors").string();
    use(path);
    // snippet: tests
    std::vector<double> const want = by_hand(1e-3, 0.9);

    run<double> exact;
    exact.train(1, steps);
    claim(distance(exact.w, want) < 1e-13, "in double the rule is the paper's formula");

    run<ds::bfloat16, ds::master<float>> stored{ds::master<float>{}};
    stored.train(1, steps);
    claim(distance(stored.opt.master("w"), want) < 1e-5, "the masters of bfloat16 differ by the rounding of float");

    run<ds::bfloat16, ds::master<float>> first{ds::master<float>{}}, second{ds::master<float>{}};
    first.train(1, 80);
    ds::save_file(path, first.opt);
    ds::load_file(path, second.opt);
    second.train(81, steps);
    claim(std::ranges::equal(second.opt.master("w"), stored.opt.master("w")) &&
              std::ranges::equal(second.opt.template state<0>("w"), stored.opt.template state<0>("w")),
          "a run that is resumed has the same bits");
    // end
    std::filesystem::remove(path);
    std::printf("from the loop sign_momentum differs by at most %.1g in double, %.1g in bfloat16 with masters\n",
                distance(exact.w, want), distance(stored.opt.master("w"), want));
  });
}
