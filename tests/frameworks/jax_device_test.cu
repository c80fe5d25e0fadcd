// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The kernels of examples/jax: the bits of the host, also from a graph that is replayed.
#include "adamw.cuh"

#include <doctest/doctest.h>

#include "gpu/support.cuh"

#include <cstdint>
#include <memory>
#include <vector>

TEST_CASE("the AdamW step of examples/jax gives the bits of the host, step by step and from a graph") {
  using namespace adamw_step;
  test::stream const s;
  adamw const rule{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1};
  constexpr int steps = 5, eager = 2;
  constexpr float lr = 0.01f;

  // More tensors than one launch takes, some of them empty, one larger than the grid.
  constexpr std::size_t tensors = batch::most + 3;
  std::vector<std::vector<float>> p, g, m, v;
  for (std::size_t i = 0; i < tensors; ++i) {
    std::size_t const n = i == 5 ? 1000 : i % 7;
    for (auto* x : {&p, &g, &m, &v}) x->emplace_back(n);
    for (std::size_t j = 0; j < n; ++j) p[i][j] = test::noise(j, i), g[i][j] = test::noise(j, i + 100);
  }
  using memory = test::device_vector<float>;
  std::vector<std::unique_ptr<memory>> kept;
  auto const on_device = [&](std::vector<float> x) {
    if (x.empty()) x.resize(1);
    return kept.emplace_back(std::make_unique<memory>(x, s))->data();
  };
  std::vector<tensor> there;
  for (std::size_t i = 0; i < tensors; ++i)
    there.push_back({on_device(p[i]), on_device(g[i]), on_device(m[i]), on_device(v[i]), std::int64_t(p[i].size())});
  test::device_vector<std::int32_t> const count({0}, s);
  float* const rate = on_device({lr});
  auto const step = [&] { test::cuda(enqueue(s, there.data(), there.size(), rule, rate, count.data(), 2)); };
  for (int t = 0; t < eager; ++t) step();
  test::graph const graph(s, step);
  CHECK(graph.nodes == 3);
  for (int t = eager; t < steps; ++t) graph.launch(s);

  for (int t = 1; t <= steps; ++t) {
    auto const k = terms_of(rule, lr, t);
    for (std::size_t i = 0; i < tensors; ++i) {
      tensor const x{p[i].data(), g[i].data(), m[i].data(), v[i].data(), std::int64_t(p[i].size())};
      for (std::int64_t j = 0; j < x.n; ++j) update(x, j, k);
    }
  }
  CHECK(count.get(s)[0] == steps);

  // A rate or count that is not allowed changes nothing; the count stays at its end.
  auto const before = test::from_device(there[5].p, 1000, s);
  for (float const bad : {-0.1f, NAN, INFINITY}) {
    float* const bad_rate = on_device({bad});
    test::cuda(enqueue(s, there.data(), there.size(), rule, bad_rate, count.data(), 2));
  }
  test::device_vector<std::int32_t> const negative({-1}, s), last({2147483647}, s);
  test::cuda(enqueue(s, there.data(), there.size(), rule, rate, negative.data(), 2));
  CHECK(count.get(s)[0] == steps);
  CHECK(negative.get(s)[0] == -1);
  CHECK(test::same_bits(test::from_device(there[5].p, 1000, s), before));
  test::cuda(enqueue(s, nullptr, 0, rule, rate, last.data(), 2));
  CHECK(last.get(s)[0] == 2147483647);
  for (std::size_t i = 0; i < tensors; ++i) {
    CAPTURE(i);
    auto const get = [&](float const* x) { return test::from_device(x, p[i].size(), s); };
    CHECK(test::same_bits(get(there[i].p), p[i]));
    CHECK(test::same_bits(get(there[i].m), m[i]));
    CHECK(test::same_bits(get(there[i].v), v[i]));
  }
}
