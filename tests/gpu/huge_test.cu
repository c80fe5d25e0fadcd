// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "support.cuh"

#include <descent/clip.hpp>
#include <descent/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/rules/adamw.hpp>

namespace {

/// More elements than 32 bits count, in one tensor.
constexpr std::int64_t count = (std::int64_t{1} << 31) + 4096 + 5;

bool fits() {
  std::size_t free = 0, total = 0;
  return !test::in_software() && cudaMemGetInfo(&free, &total) == cudaSuccess &&
         free > (std::size_t{40} << 30);
}

__global__ void fill(float* p, float value) {
  std::int64_t const threads = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += threads)
    p[i] = value;
}

__global__ void count_others(float const* p, float value, unsigned long long* others) {
  std::int64_t const threads = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += threads)
    if (p[i] != value) atomicAdd(others, 1ull);
}

}  // namespace

TEST_CASE("a tensor of more than 2^31 elements is updated to its end" * doctest::skip(!fits())) {
  test::stream s;
  descent::detail::device_array<float> const value(count), gradient(count);
  fill<<<1024, 256, 0, s>>>(value.get(), 1.f);
  fill<<<1024, 256, 0, s>>>(gradient.get(), 0.5f);
  descent::parameters<float> list;
  list.add("w", value.get(), gradient.get(), count);
  descent::optimizer opt{list, descent::adamw{}, descent::skip_nonfinite{}, descent::cuda{s}};
  opt.step();
  CHECK(opt.report().grad_norm == doctest::Approx(0.5 * std::sqrt(double(count))).epsilon(1e-12));

  float p = 1, g = 0.5f;
  descent::parameters<float> one;
  one.add("w", &p, &g, 1);
  descent::optimizer{one, descent::adamw{}}.step();
  auto const last = test::from_device(value.get() + count - 1, 1, s)[0];
  test::expect_same(std::vector<float>{p}, std::vector<float>{last}, "the last element");
  test::device_vector<unsigned long long> others{{0}, s};
  count_others<<<1024, 256, 0, s>>>(value.get(), last, others.data());
  CHECK(others.get(s)[0] == 0);

  float const bad = INFINITY;
  test::cuda(
      cudaMemcpyAsync(gradient.get() + count - 1, &bad, sizeof bad, cudaMemcpyHostToDevice, s));
  opt.step();
  CHECK(!opt.report().applied);
}
