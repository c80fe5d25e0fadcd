// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The C interface on a device: the same bits as on the host, for every rule and type.
#include "descent_c.h"

#include "on_cuda.cu"

#include <doctest/doctest.h>

#include "gpu/support.cuh"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t rows = 5, columns = 8, bias = 3, elements = rows * columns + bias;

/// One optimizer of the C interface, on the host or on a device.
template <class T> struct client {
  std::vector<T> w, g;
  bool on_cuda;
  test::stream s;
  test::device_vector<T> device_w, device_g;
  descent_optimizer* of = nullptr;

  client(char const* rule, descent_type type, bool on_cuda)
      : w(elements, T(1.f)), g(elements), on_cuda(on_cuda), device_w(w, s), device_g(g, s) {
    T* const value = on_cuda ? device_w.data() : w.data();
    T* const gradient = on_cuda ? device_g.data() : g.data();
    descent_parameter const parameters[] = {{"w", value, gradient, rows, columns, 0},
                                            {"b", value + rows * columns, gradient + rows * columns, bias, 1, 1}};
    descent_options const options{type, 1.0, sizeof(T) == 2 ? 64.0 : 0.0, on_cuda, cudaStream_t(s)};
    descent_setting const lr{"lr", 0.05};
    REQUIRE(descent_create(&of, rule, &lr, 1, parameters, 2, &options) == DESCENT_OK);
  }
  ~client() { descent_destroy(of); }

  void step(std::uint64_t t) {
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = T(test::noise(i, t));
    if (on_cuda) device_g.put(g, s);
    CHECK(descent_step(of) == DESCENT_OK);
  }
  std::vector<T> values() const { return on_cuda ? device_w.get(s) : w; }
};

std::vector<std::vector<char>> saved(descent_optimizer* of) {
  std::vector<std::vector<char>> pieces;
  auto const write = [](char const*, void const* data, std::size_t bytes, void* user) {
    auto const* p = static_cast<char const*>(data);
    static_cast<std::vector<std::vector<char>>*>(user)->emplace_back(p, p + bytes);
    return 0;
  };
  CHECK(descent_save(of, write, &pieces) == DESCENT_OK);
  return pieces;
}

template <class T> void same_as_host(descent_type type) {
  for (char const* rule : {"sgd", "adamw", "lion", "lamb"}) {
    CAPTURE(rule);
    client<T> host(rule, type, false), device(rule, type, true);
    for (std::uint64_t t = 1; t <= 4; ++t) host.step(t), device.step(t);
    CHECK(test::same_bits(host.values(), device.values()));
    CHECK(saved(host.of) == saved(device.of));
  }
  client<T> muon("muon", type, true);  // its products are cuBLAS's
  for (std::uint64_t t = 1; t <= 2; ++t) muon.step(t);
  CHECK_FALSE(test::same_bits(muon.w, muon.values()));
}

}  // namespace

TEST_CASE("the C interface on a device gives the bits of the host, and saves the same") {
  same_as_host<float>(DESCENT_FLOAT);
  same_as_host<descent::half>(DESCENT_HALF);
  same_as_host<descent::bfloat16>(DESCENT_BFLOAT16);
}

TEST_CASE("the C interface refuses host memory on a device") {
  std::vector<float> w(4), g(4);
  descent_parameter const parameter{"w", w.data(), g.data(), 4, 1, 0};
  descent_options const options{DESCENT_FLOAT, 0, 0, 1, nullptr};
  descent_optimizer* of = nullptr;
  CHECK(descent_create(&of, "sgd", nullptr, 0, &parameter, 1, &options) == DESCENT_INVALID_ARGUMENT);
  CHECK(std::string(descent_message()).find("parameter 'w': its value is host memory") == 0);
  CHECK(of == nullptr);
}
