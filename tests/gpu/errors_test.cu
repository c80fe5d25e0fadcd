// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "support.cuh"

#include <descent/cuda.cuh>
#include <descent/detail/cuda_error.hpp>
#include <descent/optimizer.hpp>
#include <descent/rules/adamw.hpp>

#include <stdexcept>
#include <string>

namespace {

using descent::adamw;

/// The message of what f throws.
template <class Exception, class F> std::string message(F const& f) {
  try {
    f();
  } catch (Exception const& e) {
    return e.what();
  }
  FAIL("nothing was thrown");
  return {};
}

}  // namespace

TEST_CASE("host memory on the CUDA backend is refused by name" *
          doctest::skip(!test::host_memory_is_out_of_reach())) {
  test::stream s;
  test::tensors<float> x{{{5}, {9}}, s};
  auto const make = [&](float* value, float* gradient) {
    descent::parameters<float> p;
    p.add("good", x.device_value.data() + 16, x.device_gradient.data() + 16, 5);
    p.add("bad", value, gradient, 9);
    return message<std::invalid_argument>([&] {
      descent::optimizer{p, adamw{}, descent::cuda{s}};
    });
  };
  CHECK(make(&x.value_of(1, 0), x.device_gradient.data() + 32) ==
        "parameter 'bad': its value is host memory, which device 0 cannot reach, or was freed; for host memory use the "
        "backend host{}");
  CHECK(make(x.device_value.data() + 32, &x.gradient_of(1, 0)) ==
        "parameter 'bad': its gradient is host memory, which device 0 cannot reach, or was freed; for host memory use "
        "the backend host{}");
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("device memory on the host backend is refused by name") {
  test::stream s;
  test::tensors<float> x{{{5}}, s};
  auto const make = [&](float* value, float* gradient) {
    descent::parameters<float> p;
    p.add("w", value, gradient, 5);
    return message<std::invalid_argument>([&] { descent::optimizer{p, adamw{}}; });
  };
  CHECK(make(x.device_value.data(), &x.gradient_of(0, 0)) ==
        "parameter 'w': its value is not host memory; for device memory use the backend "
        "cuda{stream}");
  CHECK(make(&x.value_of(0, 0), x.device_gradient.data()) ==
        "parameter 'w': its gradient is not host memory; for device memory use the backend "
        "cuda{stream}");
}

TEST_CASE("managed and pinned memory are within reach of both backends") {
  test::stream s;
  for (bool const managed : {true, false}) {
    CAPTURE(managed);
    float* p = nullptr;
    if (managed) test::cuda(cudaMallocManaged(&p, 32 * sizeof(float)));
    else test::cuda(cudaMallocHost(&p, 32 * sizeof(float)));
    std::fill_n(p, 16, 1.f);
    std::fill_n(p + 16, 16, 0.5f);
    descent::parameters<float> list;
    list.add("w", p, p + 16, 16);
    descent::optimizer on_device{list, adamw{.lr = 0.1}, descent::cuda{s}};
    on_device.step();
    s.wait();
    CHECK(p[15] == doctest::Approx(0.899));
    descent::optimizer{list, adamw{.lr = 0.1}}.step();
    CHECK(p[15] < 0.9f);
    test::cuda(managed ? cudaFree(p) : cudaFreeHost(p));
  }
}

TEST_CASE("a step that throws has changed nothing, and the next one goes on") {
  test::stream s;
  test::tensors<float> x{{{40}, {5, 1}}, s};
  test::twins both{x, adamw{}};
  both.steps(1);
  both.device.group(1).beta1 = 2;
  auto const launches = descent::detail::launches;
  CHECK(message<std::invalid_argument>([&] { both.device.step(); }) ==
        "group 1: adamw: beta1 must be in [0, 1), is 2");
  CHECK(descent::detail::launches == launches);
  both.expect_same();
  both.device.group(1).beta1 = 0.9;
  both.step();
  both.expect_same();
}

TEST_CASE("an error that the caller left behind neither stops a step nor is lost") {
  test::stream s;
  test::tensors<float> x{{{40}}, s};
  descent::optimizer opt{x.on_device(), adamw{}, descent::cuda{s}};
  CHECK(cudaSetDevice(1'000'000) == cudaErrorInvalidDevice);
  opt.step();
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(opt.report().step == 1);
}

TEST_CASE("an optimizer can be moved, and says so where it was moved from") {
  test::stream s;
  test::tensors<float> x{{{40}}, s};
  descent::optimizer first{x.on_device(), adamw{}, descent::cuda{s}};
  first.step();
  auto second = std::move(first);
  second.step();
  CHECK(second.report().step == 2);
  CHECK_THROWS_WITH_AS(first.step(), "this optimizer was moved from", std::logic_error);
  CHECK_THROWS_WITH_AS(first.report(), "this optimizer was moved from", std::logic_error);
  CHECK_THROWS_WITH_AS(first.zero_grad(), "this optimizer was moved from", std::logic_error);
}

/// A device in software would fill all that memory.
TEST_CASE("what does not fit into the device's memory throws what CUDA says, and leaks nothing" *
          doctest::skip(test::in_software())) {
  test::stream s;
  std::size_t free = 0, total = 0, later = 0;
  test::cuda(cudaMemGetInfo(&free, &total));
  // 4 bytes of value each, 4 of gradient, and 8 of state, which do not fit
  std::size_t const count = free / 10;
  {
    descent::detail::device_array<float> const value(count), gradient(count);
    descent::parameters<float> list;
    list.add("w", value.get(), gradient.get(), count);
    auto const text = message<descent::cuda_error>([&] {
      descent::optimizer{list, adamw{}, descent::cuda{s}};
    });
    CHECK(text.starts_with("cudaMalloc failed: cudaErrorMemoryAllocation, out of memory"));
  }
  test::cuda(cudaMemGetInfo(&later, &total));
  CHECK(later + (1 << 24) >= free);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("explain() names the device") {
  test::stream s;
  test::tensors<float> x{{{40}}, s};
  descent::optimizer opt{x.on_device(), adamw{}, descent::cuda{s}};
  CHECK(opt.explain().find(", on CUDA device 0\n") != std::string::npos);
}
