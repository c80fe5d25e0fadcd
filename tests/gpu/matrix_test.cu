// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The rule of matrices on a device, beside the host's. cuBLAS and a BLAS add in different orders, so results agree up
// to rounding; where there are no products, to the bit.
#include "support.cuh"

#include <descent/accumulate.hpp>
#include <descent/average.hpp>
#include <descent/clip.hpp>
#include <descent/cuda.cuh>
#include <descent/matrix.cuh>
#include <descent/matrix.hpp>
#include <descent/optimizer.hpp>
#include <descent/rules/adafactor.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/muon.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/shampoo.hpp>
#include <descent/rules/sm3.hpp>
#include <descent/rules/soap.hpp>
#include <descent/storage.hpp>
#include <descent/zero_grad.hpp>

#include <limits>
#include <utility>

namespace {

namespace ds = descent;
using test::contracted;

struct tensor_shape { std::int64_t rows, columns; int group = 0; };

/// The same tensors in host and device memory.
template <class Value> struct models {
  std::vector<tensor_shape> shapes;
  std::vector<std::vector<Value>> value, gradient;
  std::vector<ds::detail::device_array<Value>> on_device;
  ds::parameters<Value> host, device;
  test::stream s;

  explicit models(std::vector<tensor_shape> list)
      : shapes(std::move(list)), value(shapes.size()), gradient(shapes.size()) {
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      auto const n = std::size_t(shapes[k].rows * shapes[k].columns);
      for (std::size_t i = 0; i < n; ++i) value[k].push_back(Value(float(int((i * 7 + k * 3) % 11) - 5) / 8));
      gradient[k].resize(n);
    }
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      on_device.push_back({value[k], s}), on_device.push_back({gradient[k], s});
      auto const name = "w" + std::to_string(k);
      ds::shape const shape{shapes[k].rows, shapes[k].columns};
      ds::group const group{shapes[k].group};
      host.add(name, value[k].data(), gradient[k].data(), shape, group);
      device.add(name, on_device[2 * k].get(), on_device[2 * k + 1].get(), shape, group);
    }
  }
  void send_gradients(int t) {
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      for (std::size_t i = 0; i < gradient[k].size(); ++i)
        gradient[k][i] =
            Value(float(int((i * i * 37 + i * 11 + std::size_t(t) * 101 * (i + 1) + k * 59) % 127) - 63) / 64);
      send(k);
    }
  }
  void send(std::size_t k) {
    test::cuda(cudaMemcpyAsync(on_device[2 * k + 1].get(), gradient[k].data(), gradient[k].size() * sizeof(Value),
                               cudaMemcpyHostToDevice, s));
    s.wait();
  }
  std::vector<Value> read(std::size_t k) const {
    std::vector<Value> x(value[k].size());
    test::cuda(cudaMemcpyAsync(x.data(), on_device[2 * k].get(), x.size() * sizeof(Value), cudaMemcpyDeviceToHost, s));
    s.wait();
    return x;
  }
  double apart() const {
    double worst = 0;
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      auto const x = read(k);
      for (std::size_t i = 0; i < x.size(); ++i) {
        double const d = std::abs(double(float(x[i])) - double(float(value[k][i])));
        worst = d <= worst ? worst : d;
      }
    }
    return worst;
  }
};

std::vector<tensor_shape> const few = {{5, 1}, {3, 4}, {9, 2}, {7, 1}, {2, 11}};

template <class Value, class Rule, class Matrix, class... Ps>
void follows(double tolerance, Rule rule, Matrix matrix, Ps... policies) {
  models<Value> m(few);
  ds::optimizer on_host{m.host, rule, ds::matrices{matrix}, policies...};
  ds::optimizer on_device{m.device, rule, ds::matrices{matrix}, policies..., ds::cuda{m.s}};
  for (int t = 1; t <= 3; ++t) {
    m.send_gradients(t);
    on_host.step(), on_device.step();
    CHECK(m.apart() <= tolerance);
  }
  CHECK(on_device.report().step == 3);
  CHECK(on_device.report().grad_norm == doctest::Approx(on_host.report().grad_norm));
}

}  // namespace

TEST_CASE("muon on the device is muon on the host") {
  follows<float>(2e-6, ds::adamw{}, ds::muon{.lr = 0.02}, ds::clip_norm{1});
  ds::muon const corrected{.lr = 0.02, .nesterov = false, .bias_correction = true};
  follows<double>(1e-14, ds::lamb{}, corrected, ds::clip_norm{1});
  follows<ds::bfloat16>(0.02, ds::adamw{}, ds::muon{.lr = 0.02}, ds::skip_nonfinite{}, ds::master<float>{}, ds::ema{},
                        ds::zero_grad{});
}

TEST_CASE("rules without products agree to the last bits of t^-0.8") {
  follows<float>(1e-6, ds::adafactor{}, ds::adafactor{.momentum = 0.9}, ds::clip_norm{1});
  follows<float>(contracted ? 1e-6 : 0, ds::sm3{}, ds::sm3{}, ds::clip_norm{1});
}

TEST_CASE("shampoo on the device is shampoo on the host") {
  ds::shampoo const rule{.eps = 0.1, .graft = true, .every = 2, .iterations = 12};
  follows<float>(1e-4, ds::adamw{}, rule, ds::clip_norm{1});
}

TEST_CASE("soap on the device is soap on the host") {
  ds::soap const rule{.lr = 0.05, .every = 2, .max_precondition_dim = 9};
  follows<double>(1e-11, ds::sgd{}, rule, ds::clip_norm{1});
}

TEST_CASE("soap whose first updates are skipped, frozen, and captured") {
  models<double> m({{3, 4}, {4, 4, 1}});
  ds::soap const rule{.every = 1};
  ds::optimizer on_host{m.host, ds::sgd{}, ds::matrices{rule}, ds::skip_nonfinite{}};
  ds::optimizer on_device{m.device, ds::sgd{}, ds::matrices{rule}, ds::skip_nonfinite{}, ds::cuda{m.s}};
  auto const step = [&](int t, auto const& device_step) {
    m.send_gradients(t);
    if (t == 1) m.gradient[1][0] = std::numeric_limits<double>::quiet_NaN(), m.send(1);
    on_host.step(), device_step();
    INFO("update ", t);
    CHECK(m.apart() <= 1e-11);
  };
  auto const eager = [&] { on_device.step(); };
  for (int t = 1; t <= 3; ++t) step(t, eager);
  CHECK(on_device.report().step == 2);
  on_host.freeze(1), on_device.freeze(1);
  auto const frozen = m.read(1), free = m.read(0);
  step(4, eager);
  CHECK(m.read(1) == frozen);
  CHECK(m.read(0) != free);
  on_host.freeze(1, false), on_device.freeze(1, false);
  on_device.commit_groups();
  test::graph const graph(m.s, eager);
  for (int t = 5; t <= 6; ++t) step(t, [&] { graph.launch(m.s); });
}

TEST_CASE("a bad gradient anywhere skips all, and nothing is allocated or waited for in a step") {
  models<float> m(few);
  ds::optimizer opt{m.device, ds::adamw{}, ds::matrices{ds::shampoo{.eps = 0.1, .iterations = 4}}, ds::skip_nonfinite{},
                    ds::cuda{m.s}};
  m.send_gradients(1);
  opt.step();
  auto const memory = [&] {
    std::vector<float> all;
    for (auto part : {opt.matrix_state<0>("w1"), opt.matrix_state<1>("w1"), opt.matrix_state<3>("w1")}) {
      std::vector<float> x(part.size());
      test::cuda(cudaMemcpyAsync(x.data(), part.data(), part.size_bytes(), cudaMemcpyDeviceToHost, m.s));
      m.s.wait();
      all.insert(all.end(), x.begin(), x.end());
    }
    return all;
  };
  for (std::size_t bad : {0, 1}) {
    std::vector<float> before[] = {m.read(0), m.read(1), memory()};
    m.send_gradients(2);
    m.gradient[bad][1] = std::numeric_limits<float>::quiet_NaN();
    m.send(bad);
    if (test::in_software()) cudasim_reset_counters();
    opt.step();
    if (test::in_software()) {
      CHECK(cudasim_count("allocations") == 0);
      CHECK(cudasim_count("synchronisations") == 0);
    }
    CHECK(!opt.report().applied);
    CHECK(m.read(0) == before[0]);
    CHECK(m.read(1) == before[1]);
    CHECK(memory() == before[2]);
    m.send_gradients(2);
    opt.step();
    CHECK(opt.report().applied);
    CHECK(m.read(1) != before[1]);
    for (float x : m.read(1)) CHECK(std::isfinite(x));
  }
}

TEST_CASE("a captured step that accumulates: replays follow the device's count, and changes of the rule") {
  models<float> m(few);
  ds::optimizer on_host{m.host, ds::adamw{}, ds::matrices{ds::muon{}}, ds::accumulate{2}};
  ds::optimizer on_device{m.device, ds::adamw{}, ds::matrices{ds::muon{}}, ds::accumulate{2}, ds::cuda{m.s}};
  m.send_gradients(1);
  test::graph const step(m.s, [&] { on_device.step(); });
  for (int t = 1; t <= 5; ++t) {
    m.send_gradients((t + 1) / 2);
    if (t == 3) {
      on_host.matrix_rule().lr = on_device.matrix_rule().lr = 0.1;
      on_device.commit_groups();
    }
    on_host.step(), step.launch(m.s);
    CHECK(m.apart() <= 2e-6);
  }
  on_host.step(), on_device.step();
  CHECK(m.apart() <= 2e-6);
  CHECK(on_device.report().step == 3);
}

TEST_CASE("frozen matrices stay") {
  models<float> m({{5, 1}, {3, 4, 1}, {4, 4}});
  ds::optimizer opt{m.device, ds::adamw{}, ds::matrices{ds::muon{}}, ds::cuda{m.s}};
  opt.freeze(1);
  auto const frozen = m.read(1), free = m.read(2);
  m.send_gradients(1);
  opt.step();
  CHECK(m.read(1) == frozen);
  CHECK(m.read(2) != free);
}
