// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Addresses that come from outside, on a device: null, misaligned, overlapping, and in the memory of the other side. A
// kernel that used one of them would take the context with it.
#include "support.cuh"

#include <descent/policies/average.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/training/loss_scaler.hpp>

#include "support/message.hpp"
#include "support/outside_calls.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

namespace {

namespace ds = descent;
using test::message;

struct device_resource {
  void* at;
  void* allocate(std::size_t, cudaStream_t) const { return at; }
  void deallocate(void*, std::size_t, cudaStream_t) const {}
};
struct host_resource {
  void* at;
  void* allocate(std::size_t, std::size_t) const { return at; }
  void deallocate(void*, std::size_t, std::size_t) const {}
};

bool has(std::string const& text, char const* word) { return text.find(word) != text.npos; }

/// Six arrays, each at a multiple of 256 bytes.
constexpr std::size_t stride = 64;
test::outside_places places_in(float* at) {
  return {at, at + stride, at + 2 * stride, at + 3 * stride, at + 4 * stride, at + 5 * stride};
}

}  // namespace

TEST_CASE("an address from outside is refused on a device if it is null, misaligned, overlapping or host memory") {
  test::stream s;
  std::vector<float> const ones(6 * stride, 1.f);
  std::vector<float> on_host(2 * stride, 1.f);
  test::device_vector<float> there(ones, s), spare(ones, s);
  for (auto const& call : test::outside_calls<device_resource>(places_in(there.data()), ds::cuda{s})) {
    CAPTURE(call.name);
    auto const said = [&](void* p) { return message([&] { call.with(p); }); };
    if (call.name == "memory_from") CHECK_THROWS_AS(call.with(nullptr), std::bad_alloc);
    else if (call.name != "load") CHECK(has(said(nullptr), "null") == !call.takes_null);
    auto* const room = reinterpret_cast<std::byte*>(spare.data());
    if (call.size > 1) CHECK(has(said(room + call.size / 2), "must be aligned to "));
    if (call.in_use) CHECK(has(said(call.in_use), "overlaps"));
    bool const is_copied = call.name == "set_state" || call.name == "load";
    if (test::host_memory_is_out_of_reach() && !is_copied) {
      auto* const near = reinterpret_cast<float*>((reinterpret_cast<std::uintptr_t>(on_host.data()) + 255) / 256 * 256);
      CHECK(has(said(near), "is host memory, which device 0 cannot reach; for host memory use the backend host{}"));
    }
    CHECK(has(said(reinterpret_cast<void*>(std::uintptr_t{1} << 20)), "is not memory: there is none at 0x100000"));
    CHECK(there.get(s) == ones);
    if (call.in_use) CHECK(said(room) == "");
    if (call.in_use) spare.put(ones, s), there.put(ones, s);
    CHECK(cudaStreamSynchronize(s) == cudaSuccess);
  }
}

TEST_CASE("device memory is refused by everything on the host that takes an address") {
  test::stream s;
  std::vector<float> here(7 * stride, 1.f);
  std::vector<float> const before = here;
  test::device_vector<float> there(here, s);
  for (auto const& call : test::outside_calls<host_resource>(places_in(here.data()))) {
    CAPTURE(call.name);
    CHECK(has(message([&] { call.with(there.data()); }),
              "is not host memory; for device memory use the backend cuda{stream}"));
    CHECK(here == before);
  }
}

TEST_CASE("the first swap_average() allocates, so it is refused in a capture, which stays valid") {
  test::stream s;
  std::vector<float> const ones(8, 1.f);
  test::device_vector<float> w(ones, s), g(ones, s);
  ds::parameters<float> params;
  params.add("w", w.data(), g.data(), 8);
  ds::optimizer opt{params, ds::sgd{.lr = 0.5}, ds::ema{.decay = 0.5}, ds::cuda{s}};
  test::graph const step(s, [&] {
    CHECK(message([&] { opt.swap_average(); }) ==
          "the first swap_average() allocates memory, and the stream is capturing: call it once before the capture");
    opt.step();
  });
  opt.swap_average(), opt.swap_average();
  test::graph const swap(s, [&] { opt.swap_average(); });
  step.launch(s);
  CHECK(w.get(s) == std::vector<float>(8, 0.5f));
  swap.launch(s);
  CHECK(w.get(s) == std::vector<float>(8, 0.75f));
}

TEST_CASE("a call on a device that has failed says that it was not the call") {
  auto const said = [](cudaError_t code) {
    return message<std::runtime_error>([&] { ds::detail::require_cuda(code, "cudaMalloc"); });
  };
  char const* const earlier = "; the device failed earlier in this process and can no longer be used";
  CHECK(has(said(cudaErrorIllegalAddress), earlier));
  CHECK(has(said(cudaErrorMisalignedAddress), earlier));
  CHECK_FALSE(has(said(cudaErrorMemoryAllocation), earlier));
}

TEST_CASE("a loss_scaler and its optimizers have the same backend") {
  test::stream s;
  std::vector<float> w(8, 1.f), g(8, 1.f);
  test::device_vector<float> dw(w, s), dg(g, s);
  ds::loss_scaler here{ds::dynamic_loss_scale{}};
  ds::loss_scaler there{ds::dynamic_loss_scale{}, ds::cuda{s}};
  auto const list = [](float* value, float* gradient) {
    ds::parameters<float> params;
    params.add("w", value, gradient, 8);
    return params;
  };
  CHECK(message([&] { ds::optimizer opt{list(w.data(), g.data()), ds::sgd{}, ds::shared_loss_scale{there}}; }) ==
        "shared_loss_scale: the loss_scaler is on CUDA, the optimizer on the host; give both the same backend, as "
        "loss_scaler{policy, cuda{stream}}");
  CHECK(message([&] {
          ds::optimizer opt{list(dw.data(), dg.data()), ds::sgd{}, ds::shared_loss_scale{here}, ds::cuda{s}};
        }) ==
        "shared_loss_scale: the loss_scaler is on the host, the optimizer on CUDA; give both the same backend, as "
        "loss_scaler{policy, cuda{stream}}");
}
