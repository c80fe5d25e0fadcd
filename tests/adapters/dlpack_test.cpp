// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/adapters/dlpack.hpp>
#include <descent/optimizer.hpp>
#include <descent/rules/adamw.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace ds = descent;
using test::message;

namespace {

/// The layout of dlpack.h, version 1.
struct tensor {
  void* data;
  struct { int device_type; std::int32_t device_id; } device;
  std::int32_t ndim;
  struct { std::uint8_t code, bits; std::uint16_t lanes; } dtype;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};

/// A contiguous float tensor that owns its elements.
struct owner {
  std::vector<float> elements;
  std::vector<std::int64_t> shape, strides;
  explicit owner(std::vector<std::int64_t> s, float x = 0) : shape(std::move(s)), strides(shape.size()) {
    std::int64_t n = 1;
    for (std::size_t i = shape.size(); i-- > 0;) strides[i] = n, n *= shape[i];
    elements.assign(std::size_t(n), x);
  }
  tensor view() { return {elements.data(), {1, 0}, int(shape.size()), {2, 32, 1}, shape.data(), strides.data(), 0}; }
};

}  // namespace

TEST_CASE("dlpack: tensors of any number of dimensions, offsets and no strides are parameters in place") {
  owner w({3, 2, 2}), dw({3, 2, 2}), b({5}), db({5}), s({}), dsc({}), none({0, 4}), dnone({0, 4});
  tensor part = b.view();  // the last three elements
  std::int64_t three = 3;
  part.byte_offset = 8, part.shape = &three, part.strides = nullptr;
  tensor of_part = db.view();
  of_part.shape = &three;
  ds::parameters<float> params;
  ds::add_dlpack(params, "w", w.view(), dw.view());
  ds::add_dlpack(params, "b", part, of_part, ds::group{1});
  ds::add_dlpack(params, "s", s.view(), dsc.view());
  ds::add_dlpack(params, "none", none.view(), dnone.view());
  auto const& v = params.views();
  CHECK(v[0].value == w.elements.data());
  CHECK(v[0].gradient == dw.elements.data());
  CHECK(v[0].count == 12);
  CHECK(v[0].columns == 4);
  CHECK(v[1].value == b.elements.data() + 2);
  CHECK(v[1].count == 3);
  CHECK(v[1].columns == 1);
  CHECK(v[1].group == 1);
  CHECK(v[2].count == 1);
  CHECK(v[3].count == 0);

  dw.elements.assign(12, 1);
  ds::optimizer opt{params, ds::adamw{.lr = 0.5, .eps = 0x1p-126}};
  opt.step();
  for (float x : w.elements) CHECK(x == doctest::Approx(-0.5));
}

TEST_CASE("dlpack: half, bfloat16 and double by their type codes") {
  std::vector<std::uint16_t> memory(16);
  std::int64_t n = 8;
  auto const view = [&](void* p, std::uint8_t code, std::uint8_t bits) {
    return tensor{p, {2, 0}, 1, {code, bits, 1}, &n, nullptr, 0};
  };
  ds::parameters<ds::half, ds::bfloat16> narrow;
  ds::add_dlpack(narrow, "w", view(memory.data(), 2, 16), view(memory.data() + 8, 4, 16));
  CHECK(narrow.views()[0].count == 8);
  std::vector<double> wide(16);
  ds::parameters<double> doubles;
  ds::add_dlpack(doubles, "w", view(wide.data(), 2, 64), view(wide.data() + 8, 2, 64));
  CHECK(doubles.views()[0].count == 8);
}

TEST_CASE("dlpack: what does not fit is refused with its sentence, and the list stays as it was") {
  owner w({3, 4}), dw({3, 4}), transposed({4, 3});
  ds::parameters<float> params;
  auto const refused = [&](tensor const& value, tensor const& gradient) {
    std::string const why = message([&] { ds::add_dlpack(params, "w", value, gradient); });
    CHECK(params.views().empty());
    return why;
  };
  auto const with = [](tensor x, auto const& change) {
    change(x);
    return x;
  };
  std::string const value_is = "parameter 'w': the value ";
  tensor const good = dw.view();
  CHECK(refused(with(w.view(), [](tensor& x) { x.dtype.bits = 16; }), good) ==
        value_is + "must be float32, is float16");
  CHECK(refused(with(w.view(), [](tensor& x) { x.dtype.code = 4; }), good) ==
        value_is + "must be float32, is bfloat32");
  CHECK(refused(with(w.view(), [](tensor& x) { x.dtype = {0, 64, 1}; }), good) ==
        value_is + "must be float32, is type code 0, 64");
  CHECK(refused(with(w.view(), [](tensor& x) { x.dtype.lanes = 4; }), good) ==
        value_is + "must be float32, is float32 x 4");
  CHECK(refused(with(w.view(), [](tensor& x) { x.device.device_type = 7; }), good) ==
        value_is + "must be in the memory of a CPU or of CUDA (device type 1, 2, 3 or 13), is of device type 7");
  std::int64_t strides[] = {1, 3}, negative[] = {3, -1}, huge[] = {std::int64_t(1) << 40, std::int64_t(1) << 40};
  CHECK(refused(with(w.view(), [&](tensor& x) { x.strides = strides; }), good) ==
        value_is + "is not contiguous in row-major order");
  CHECK(refused(with(w.view(), [&](tensor& x) { x.shape = negative; }), good) ==
        value_is + "has a negative dimension: -1");
  CHECK(refused(with(w.view(), [&](tensor& x) { x.shape = huge, x.strides = nullptr; }), good) ==
        value_is + "has more than 2^63 elements");
  CHECK(refused(with(w.view(), [](tensor& x) { x.shape = nullptr; }), good) == value_is + "has no shape");
  CHECK(refused(w.view(), with(good, [](tensor& x) { x.dtype.bits = 64; })) ==
        "parameter 'w': the gradient must be float32, is float64");
  CHECK(refused(w.view(), transposed.view()) == value_is + "is 3 x 4, the gradient 4 x 3");
  owner cube({2, 3, 4}), turned({2, 4, 3});
  CHECK(refused(cube.view(), turned.view()) == value_is + "is 2 x 3 x 4, the gradient 2 x 4 x 3");
  CHECK(refused(w.view(), with(good, [](tensor& x) { x.device.device_type = 2; })) ==
        value_is + "and the gradient are on different devices");
  CHECK(refused(w.view(), with(good, [](tensor& x) { x.data = nullptr; })) ==
        "parameter 'w': the gradient is null, but there must be 12 elements");
}
