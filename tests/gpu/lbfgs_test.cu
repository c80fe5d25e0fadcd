// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// L-BFGS on the device: the same iterations as on the host.
#include "support.cuh"

#include <descent/cuda.cuh>
#include <descent/lbfgs.cuh>

#include <stdexcept>

namespace {

/// f = sum a x^2 / 2 + x^4 / 4 with a from 1 to 7.
struct bowl {
  float const* x;
  float* g;
  std::int64_t n;
  __host__ __device__ double evaluate() const {
    double f = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      float const a = 1 + float(i % 7);
      g[i] = a * x[i] + x[i] * x[i] * x[i];
      f += double(a) * x[i] * x[i] / 2 + double(x[i]) * x[i] * x[i] * x[i] / 4;
    }
    return f;
  }
};

__global__ void evaluate(bowl b, double* loss) {
  *loss = b.evaluate();
}

}  // namespace

TEST_CASE("lbfgs: the device follows the host") {
  test::stream s;
  test::tensors<float> x{{{300}}, s};
  auto const n = x.list[0].count;
  bowl const on_host{&x.value_of(0, 0), &x.gradient_of(0, 0), n};
  auto const views = x.on_device();
  bowl const on_device{views.views()[0].value, views.views()[0].gradient, n};
  test::device_vector<double> loss{{0}, s};
  descent::lbfgs const settings{.history = 3, .max_iterations = 12, .max_evaluations = 50};
  descent::lbfgs_optimizer host{x.on_host(), settings};
  descent::lbfgs_optimizer device{views, settings, descent::cuda{s}};
  auto const a = host.minimize([&] { return on_host.evaluate(); });
  auto const b = device.minimize([&] {
    evaluate<<<1, 1, 0, s>>>(on_device, loss.data());
    return loss.get(s)[0];
  });
  CHECK(a.why == b.why);
  CHECK(a.iterations == b.iterations);
  CHECK(a.evaluations == b.evaluations);
  CHECK(a.loss == doctest::Approx(b.loss).epsilon(1e-9));
  auto const d = x.device_value.get(s);
  double furthest = 0;
  for (std::size_t i = 0; i < d.size(); ++i) furthest = std::max(furthest, std::abs(double(d[i]) - double(x.value[i])));
  CHECK(furthest <= 1e-5);
}

TEST_CASE("lbfgs: half values over several chunks, one of them a tail, fall to the minimum") {
  test::stream s;
  test::tensors<descent::half> x{{{4096 + 100}, {7, 0, 1, 1}, {0}}, s};
  // the first step is lr / ||g||_1 of the gradient, which must be visible in half
  descent::lbfgs_optimizer opt{x.on_device(), descent::lbfgs{.lr = 4000, .max_iterations = 6}, descent::cuda{s}};
  auto const result = opt.minimize([&] {  // f = |x|^2 / 2, of which the gradient is x
    auto const v = x.device_value.get(s);
    auto g = v;
    double f = 0;
    for (std::size_t i = 0; i < v.size(); ++i) f += test::number(v[i]) * test::number(v[i]) / 2;
    x.device_gradient.put(g, s);
    s.wait();
    return f;
  });
  CHECK(result.iterations >= 1);
  for (std::size_t k = 0; k < 2; ++k) {
    auto const& view = x.on_device().views()[k];
    for (auto p : test::from_device(view.value, std::size_t(view.count), s)) CHECK(std::abs(test::number(p)) < 1e-2);
  }
}

TEST_CASE("lbfgs: memory of the host is refused on the device" *
          doctest::skip(!test::host_memory_is_out_of_reach())) {
  test::stream s;
  test::tensors<float> x{{{5}}, s};
  CHECK_THROWS_AS(descent::lbfgs_optimizer(x.on_host(), descent::lbfgs{}, descent::cuda{s}), std::invalid_argument);
}
