// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Algorithms that call the evaluation themselves: L-BFGS makes the same iterations on the device as on the host; the
// population of ESGD equals the host's to the bit.
#include "support.cuh"

#include <descent/cuda.cuh>
#include <descent/minimizers/esgd.cuh>
#include <descent/minimizers/lbfgs.cuh>
#include <descent/rules/adamw.hpp>
#include <descent/rules/sgd.hpp>

#include <stdexcept>
#include <variant>
#include <vector>

// ---- L-BFGS ---------------------------------------------------------------------------------------------------------

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

__global__ void evaluate(bowl b, double* loss) { *loss = b.evaluate(); }

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
  CHECK(x.furthest() <= 1e-5);
}

TEST_CASE("lbfgs: half values over several chunks, one of them a tail, fall to the minimum") {
  test::stream s;
  test::tensors<descent::half> x{{{4096 + 100}, {7, 0, 1, 1}, {0}}, s};
  // the first step is lr / ||g||_1 times the gradient, which must be visible in half
  descent::lbfgs_optimizer opt{x.on_device(), descent::lbfgs{.lr = 4000, .max_iterations = 6}, descent::cuda{s}};
  auto const result = opt.minimize([&] {  // f = |x|^2 / 2, with gradient x
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

TEST_CASE("lbfgs: memory of the host is refused on the device" * doctest::skip(!test::host_memory_is_out_of_reach())) {
  test::stream s;
  test::tensors<float> x{{{5}}, s};
  CHECK_THROWS_AS(descent::lbfgs_optimizer(x.on_host(), descent::lbfgs{}, descent::cuda{s}), std::invalid_argument);
}

// ---- ESGD -----------------------------------------------------------------------------------------------------------

namespace {

/// f = |x|^2 / 2, with gradient x, in memory order.
template <class Value> double half_square(test::tensors<Value> const& x, std::vector<Value> const& v) {
  double f = 0;
  x.each([&](std::size_t t, std::int64_t i) {
    double const p = test::number(v[x.place(t, i)]);
    f += p * p / 2;
  });
  return f;
}

/// The gradients are the values at the start.
template <class Value> void device_follows_host(std::vector<test::tensor> const& list, descent::esgd const& settings) {
  test::stream s;
  test::tensors<Value> x{list, s};
  using rule = std::variant<descent::sgd, descent::adamw>;
  std::vector<rule> const rules{descent::sgd{.lr = 0.25}, descent::adamw{.lr = 0.0625}};
  descent::esgd_optimizer host{x.on_host(), rules, settings};
  descent::esgd_optimizer device{x.on_device(), rules, settings, descent::cuda{s}};
  std::vector<double> on_host, on_device;
  x.gradient = x.value;
  x.send_gradients();
  auto const train = [](auto& opt) { opt.step(); };
  auto const h = host.minimize(train, [&] { return on_host.push_back(half_square(x, x.value)), on_host.back(); });
  auto const d = device.minimize(train, [&] {
    on_device.push_back(half_square(x, x.device_value.get(s)));
    return on_device.back();
  });
  CHECK(h.why == d.why);
  CHECK(h.generations == d.generations);
  CHECK(h.evaluations == d.evaluations);
  CHECK(h.backed_off == d.backed_off);
  REQUIRE(on_host.size() == on_device.size());
  if (!test::contracted) CHECK(on_host == on_device);
  CHECK(d.best < on_device[0]);
  CHECK(half_square(x, x.device_value.get(s)) == d.best);
  CHECK(host.memory().bytes == device.memory().bytes);
  x.expect_same(std::min(test::digits<Value>, test::digits<float>));  // random numbers are drawn in float
}

}  // namespace

TEST_CASE("esgd: the device has the individuals of the host, bit for bit") {
  descent::esgd const settings{.population = 3, .offspring = 4, .parents = 2, .elite = 1, .generations = 3,
                               .deviation = 0.125, .spread = 0.5, .seed = 5};
  device_follows_host<float>({{4096 + 9}, {7, 0, 1, 1}, {0}, {70}}, settings);
  device_follows_host<double>({{67}, {3}}, settings);
  device_follows_host<descent::half>({{130, 0, 3, 3}, {5}}, settings);
  device_follows_host<descent::bfloat16>({{130}}, settings);
}

TEST_CASE("esgd: values of several types on the device are the best individual, bit for bit") {
  test::stream s;
  using half = descent::half;
  test::device_vector<half> a{std::vector<half>(11, half(1.5f)), s}, ga{std::vector<half>(11), s};
  test::device_vector<float> b{std::vector<float>(70, -1.5f), s}, gb{std::vector<float>(70), s};
  descent::parameters<descent::mixed<half, float>> list;
  list.add("a", a.data(), ga.data(), 11);
  list.add("b", b.data(), gb.data(), 70);
  descent::esgd const settings{.population = 2, .offspring = 2, .elite = 1, .generations = 3, .deviation = 0.125};
  descent::esgd_optimizer opt{list, std::vector{descent::sgd{.lr = 0.25}}, settings, descent::cuda{s}};
  auto const fitness = [&] {
    double f = 0;
    for (auto e : a.get(s)) f += test::number(e) * test::number(e);
    for (float e : b.get(s)) f += double(e) * e;
    return f;
  };
  auto const r = opt.minimize(
      [&](auto& one) {
        ga.put(a.get(s), s);
        gb.put(b.get(s), s);
        one.step();
        s.wait();
      },
      fitness);
  CHECK(r.best < 0.5 * 81 * 2.25);
  CHECK(fitness() == r.best);
}

TEST_CASE("esgd: an exception leaves the start on the device") {
  test::stream s;
  test::tensors<float> x{{{70}}, s};
  descent::esgd_optimizer opt{x.on_device(), std::vector{descent::sgd{}}, descent::esgd{.population = 2, .elite = 1},
                              descent::cuda{s}};
  auto const before = x.device_value.get(s);
  int calls = 0;
  auto const fitness = [&] {
    if (++calls == 2) throw 1;
    return 1.0;
  };
  CHECK_THROWS_AS(opt.minimize([](auto&) {}, fitness), int);
  CHECK(x.device_value.get(s) == before);
}

TEST_CASE("esgd: memory of the host is refused on the device" * doctest::skip(!test::host_memory_is_out_of_reach())) {
  test::stream s;
  test::tensors<float> x{{{70}}, s};
  CHECK_THROWS_AS(descent::esgd_optimizer(x.on_host(), std::vector{descent::sgd{}}, descent::esgd{}, descent::cuda{s}),
                  std::invalid_argument);
}
