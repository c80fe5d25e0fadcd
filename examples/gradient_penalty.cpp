// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// A gradient penalty under a loss scale (Gulrajani et al. 2017, eq. 3). The loss contains the gradient u of the network
// with respect to its input, so its own gradient goes through the network twice.
//
//     f(x) = sum_j a_j tanh(w_j x)        loss = mean of (f - y)^2 + lambda (||u|| - 1)^2        u = df/dx
//
// The first backward pass also uses the loss scale, so that u survives in half. u is divided by the scale before it
// enters the loss; the scale then multiplies that loss once, like any other.
#include "parts/arguments.hpp"
#include "parts/claim.hpp"
#include "parts/device.hpp"
#include "parts/random.hpp"

#include <descent/descent.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace {

using namespace example;
namespace ds = descent;

constexpr int rows = 16, inputs = 3, units = 8, size = units * (inputs + 1);  // w, then a
constexpr double lambda = 2;

/// z_j = w_j x
template <class Real, class P> DESCENT_HD Real input_of(P const* p, float const* x, int j) {
  Real z = 0;
  for (int i = 0; i < inputs; ++i) z += Real(p[j * inputs + i]) * Real(x[i]);
  return z;
}

/// The output of the network, and du = factor df/dx.
template <class Real, class P, class U> DESCENT_HD Real forward(P const* p, float const* x, Real factor, U* du) {
  Real f = 0, u[inputs] = {};
  for (int j = 0; j < units; ++j) {
    Real const a = Real(p[units * inputs + j]), t = std::tanh(input_of<Real>(p, x, j));
    f += a * t;
    for (int i = 0; i < inputs; ++i) u[i] += a * (1 - t * t) * Real(p[j * inputs + i]);
  }
  for (int i = 0; i < inputs; ++i) du[i] = U(factor * u[i]);
  return f;
}

template <class Real, class U> DESCENT_HD Real norm_of(U const* u, Real factor) {
  Real sum = 0;
  for (int i = 0; i < inputs; ++i) sum += factor * Real(u[i]) * (factor * Real(u[i]));
  return std::sqrt(sum);
}

/// The first backward pass. Each index is a row.
struct input_gradients {
  float const *p, *x;
  float* f;
  ds::half* scaled_u;
  float const* loss_scale;

  DESCENT_HD void operator()(std::int64_t r) const {
    f[r] = forward(p, x + r * inputs, *loss_scale, scaled_u + r * inputs);
  }
};

/// The second backward pass. Each index is a hidden unit; q is the gradient of the penalty with respect to u.
struct parameter_gradients {
  float const *p, *x, *y, *f;
  ds::half const* scaled_u;
  ds::half* g;
  float const* loss_scale;
  bool divides;  // false makes the mistake

  DESCENT_HD void operator()(std::int64_t unit) const {
    int const j = int(unit);
    float const a = p[units * inputs + j], scale = *loss_scale, inverse = divides ? 1 / scale : 1;
    float dw[inputs] = {}, da = 0;
    for (int r = 0; r < rows; ++r) {
      float const* const xr = x + r * inputs;
      float const t = std::tanh(input_of<float>(p, xr, j)), slope = 1 - t * t;
      float const error = 2 * (f[r] - y[r]) / rows;

      ds::half const* const ur = scaled_u + r * inputs;
      float const norm = norm_of(ur, inverse), factor = 2 * float(lambda) / rows * (norm - 1) / norm * inverse;
      float wq = 0;
      for (int i = 0; i < inputs; ++i) wq += p[j * inputs + i] * factor * float(ur[i]);

      da += error * t + slope * wq;
      for (int i = 0; i < inputs; ++i) dw[i] += a * slope * ((error - 2 * t * wq) * xr[i] + factor * float(ur[i]));
    }
    for (int i = 0; i < inputs; ++i) g[j * inputs + i] = ds::half(scale * dw[i]);
    g[units * inputs + j] = ds::half(scale * da);
  }
};

struct measures { double loss, mean_norm; };

/// The loss in double, on the host.
measures measured(std::vector<double> const& p, std::vector<float> const& x, std::vector<float> const& y) {
  measures m{};
  for (int r = 0; r < rows; ++r) {
    double u[inputs];
    double const f = forward(p.data(), x.data() + r * inputs, 1.0, u), norm = norm_of(u, 1.0);
    m.loss += ((f - y[std::size_t(r)]) * (f - y[std::size_t(r)]) + lambda * (norm - 1) * (norm - 1)) / rows;
    m.mean_norm += norm / rows;
  }
  return m;
}

std::vector<double> finite_differences(std::vector<double> p, std::vector<float> const& x,
                                       std::vector<float> const& y) {
  std::vector<double> g;
  for (double& one : p) {
    double const middle = one, h = 1e-5;
    one = middle + h;
    double const above = measured(p, x, y).loss;
    one = middle - h;
    g.push_back((above - measured(p, x, y).loss) / (2 * h));
    one = middle;
  }
  return g;
}

double norm(std::vector<double> const& x) {
  double sum = 0;
  for (double one : x) sum += one * one;
  return std::sqrt(sum);
}

void run() {
  random_source random{3};
  std::vector<float> start(size), x0(rows * inputs), y0(rows);
  for (float& one : start) one = float(random.uniform(-1, 1));
  for (float& one : x0) one = float(random.uniform(-1, 1));
  for (int r = 0; r < rows; ++r) y0[std::size_t(r)] = 2 * x0[std::size_t(r * inputs)];

  device d;
  device::array<float> p(start), x(x0), y(y0), f(rows);
  device::array<ds::half> g(size), u(rows * inputs);
  ds::parameters<float, ds::half> params;
  params.add("p", p.data(), g.data(), size);
  ds::optimizer opt{params, ds::adamw{.lr = 0.02, .weight_decay = 0}, ds::dynamic_loss_scale{.init = 4096},
                    d.backend()};

  float const* const scale = opt.loss_scale_pointer();
  auto const backward = [&](bool divides) {
    d.each(rows, input_gradients{p.data(), x.data(), f.data(), u.data(), scale});
    d.each(units, parameter_gradients{p.data(), x.data(), y.data(), f.data(), u.data(), g.data(), scale, divides});
  };
  auto const doubles = [&] {
    auto const values = d.to_host(p);
    return std::vector<double>(values.begin(), values.end());
  };
  auto const error_to = [&](std::vector<double> want) {
    auto const scaled = d.to_host(g);
    for (std::size_t i = 0; i < want.size(); ++i) want[i] -= double(float(scaled[i])) / opt.loss_scale();
    return norm(want);
  };

  double first_norm = 0;
  for (char const* when : {"at the start", "after 150 steps"}) {
    auto const want = finite_differences(doubles(), x0, y0);
    backward(false);
    double const undivided = error_to(want);
    backward(true);
    double const error = error_to(want), got_norm = opt.gradient_norm(), want_norm = norm(want);
    auto const [loss, mean_norm] = measured(doubles(), x0, y0);
    std::printf("%s: loss %.4f, mean of ||u|| %.3f\n"
                "  norm of the gradient %.5f, by finite differences %.5f; error %.1e, with u left scaled %.1e\n",
                when, loss, mean_norm, got_norm, want_norm, error, undivided);
    first_norm = std::max(first_norm, want_norm);
    claim(error < 1e-3 * first_norm, "the gradient in half, under the loss scale, is that of finite differences");
    claim(close(got_norm, want_norm, 0, 1e-3 * first_norm), "gradient_norm() is free of the loss scale");
    claim(!(undivided < first_norm), "a penalty of the scaled gradient is another one");

    if (opt.report().step > 0) claim(std::fabs(mean_norm - 1) < 0.2, "the penalty holds ||u|| near 1");
    else
      for (int t = 0; t < 150; ++t) {
        backward(true);
        opt.step();
      }
  }
}

constexpr char const* help = R"(usage: gradient_penalty

Trains with a gradient penalty under a loss scale, in float and in half.
)";

}  // namespace

int main(int argc, char** argv) { return example::exit_code(argc, argv, help, run); }
