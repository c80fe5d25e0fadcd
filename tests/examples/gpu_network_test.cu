// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "../../examples/parts/gpu.cuh"
#include "../../examples/parts/network.hpp"

#include "../../examples/parts/cpu.hpp"

#include <doctest/doctest.h>

using namespace example;

namespace {

struct results {
  std::vector<float> gradients;
  double loss;
  std::int64_t correct;
};

/// All gradients of one batch, and its loss.
template <class Value, class Device> results one_batch(std::vector<layer_size> const& hidden) {
  auto digits = embedded_digits();
  digits.train.limit(7);
  Device device;
  auto const backwards = ds::ordered_by{[](std::int64_t, std::int64_t place) { return std::int64_t(5 - place); }, 5};
  auto batches = batches_of(digits.train, {.size = 5}, backwards, device);
  random_source random{4};
  network<Device, Value> net{device, digits.train.features, hidden, digits.classes, 5, random};
  net.forward(rows_of(batches.next(), digits.train));
  net.backward();

  auto const [loss, correct] = net.take_totals();
  results r{{}, loss, correct};
  for (auto& layer : net.layers())
    for (auto const* gradient : {&layer.weight_gradient, &layer.bias_gradient})
      for (Value const g : device.to_host(*gradient)) r.gradients.push_back(float(g));
  return r;
}

}  // namespace

TEST_CASE_TEMPLATE("gpu: loss and gradients are those of the host", Value, float, descent::half, descent::bfloat16) {
  double const tolerance = std::is_same_v<Value, float> ? 1e-5 : std::is_same_v<Value, descent::half> ? 4e-3 : 3e-2;
  std::vector<layer_size> const hidden{{6, activation::sigmoid}, {5, activation::relu}};
  auto const host = one_batch<float, cpu>(hidden), device = one_batch<Value, gpu>(hidden);
  CHECK(device.loss == doctest::Approx(host.loss).epsilon(tolerance));
  CHECK(device.correct == host.correct);
  REQUIRE(device.gradients.size() == host.gradients.size());
  for (std::size_t i = 0; i < host.gradients.size(); ++i) {
    INFO("gradient ", i);
    CHECK(device.gradients[i] == doctest::Approx(host.gradients[i]).epsilon(tolerance).scale(1));
  }
}
