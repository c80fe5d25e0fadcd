// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The list of parameters and the layout made from it.
#include <descent/engine/step/layout.hpp>
#include <descent/parameters.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"

#include <cuda/std/mdspan>
#include <cuda/std/span>

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace ds = descent;
using ds::detail::layout;
using test::message;

namespace {

float memory[1000];

}  // namespace

TEST_CASE("parameters are views in the order they were added") {
  ds::parameters<float> params;
  CHECK(params.views().empty());
  params.add("w", memory, memory + 10, 10);
  params.add("b", memory + 20, memory + 25, 5u, ds::group{2});
  params.add("none", static_cast<float*>(nullptr), static_cast<float*>(nullptr), 0);
  REQUIRE(params.views().size() == 3);
  auto const& b = params.views()[1];
  CHECK(b.name == "b");
  CHECK(b.value == memory + 20);
  CHECK(b.gradient == memory + 25);
  CHECK(b.count == 5);
  CHECK(b.group == 2);
  CHECK(params.views()[0].group == 0);
  CHECK(params.views()[2].value == nullptr);
}

TEST_CASE("a shape is rows and columns; without one each element is a row") {
  ds::parameters<float> params;
  params.add("w", memory, memory + 500, ds::shape{4, 25}, ds::group{1});
  params.add("b", memory + 100, memory + 600, 25);
  CHECK(params.views()[0].count == 100);
  CHECK(params.views()[0].columns == 25);
  CHECK(params.views()[0].group == 1);
  CHECK(params.views()[1].columns == 1);

  ds::parameters<ds::mixed<float, double>> several;
  double wide[6], gradient[6];
  several.add("w", wide, gradient, ds::shape{2, 3});
  CHECK(several.views()[0].count == 6);
  CHECK(several.views()[0].columns == 3);
  CHECK(several.views()[0].types == 1);

  auto const refused = [&](ds::shape s) {
    std::string const what = message([&] { params.add("x", memory, memory + 10, s); });
    CHECK(params.views().size() == 2);
    return what;
  };
  CHECK(refused({-1, 2}) == "parameter 'x': rows must be at least 0, are -1");
  CHECK(refused({2, 0}) == "parameter 'x': columns must be at least 1, are 0");
  CHECK(refused({std::int64_t{1} << 40, std::int64_t{1} << 40}) ==
        "parameter 'x': rows x columns must be at most 2^60, are 1099511627776 x 1099511627776");
  params.add("none", memory, memory + 10, ds::shape{0, 7});
  CHECK(params.views()[2].count == 0);
}

TEST_CASE("a stack is its matrices, back to back, all or none of them") {
  ds::parameters<float> params;
  params.add_stack("heads", memory, memory + 100, 3, {4, 5}, ds::group{1});
  params.add_stack("none", memory, memory, 0, {4, 5});
  REQUIRE(params.views().size() == 3);
  for (int k = 0; k < 3; ++k) {
    auto const& head = params.views()[std::size_t(k)];
    CHECK(head.name == "heads." + std::to_string(k));
    CHECK((head.value == memory + 20 * k && head.gradient == memory + 100 + 20 * k));
    CHECK((head.count == 20 && head.columns == 5 && head.group == 1));
  }
  ds::parameters<ds::mixed<float, double>, ds::mixed<float, float>> both;
  double wide[8];
  float const* const read_only = memory;
  both.add_stack("wide", wide, read_only, 2, {2, 2});
  CHECK((both.views()[1].types == 1 && !both.views()[1].writes && both.views()[1].value == wide + 4));

  params.add("experts.2", memory + 500, memory + 510, 1);
  auto const refused = [&](std::string const& name, float* value, std::int64_t n, ds::shape s) {
    return message([&] { params.add_stack(name, value, memory + 600, n, s); });
  };
  CHECK(refused("experts", memory + 200, 4, {2, 2}) ==
        "parameter 'experts.2': there is already a parameter of this name");
  CHECK(refused("a", memory, -1, {2, 2}) ==
        "parameter 'a': the number of matrices must be in [0, 16777212], as a list has at most 2^24 parameters, is -1");
  for (ds::shape const s : {ds::shape{0, 5}, ds::shape{1, 1}})
    CHECK(refused("a", memory, std::int64_t{1} << 40, s) ==
          "parameter 'a': the number of matrices must be in [0, 16777212], as a list has at most 2^24 parameters, is "
          "1099511627776");
  CHECK(refused("a", memory, 1 << 23, {1 << 20, 1 << 20}) ==
        "parameter 'a': the matrices must have at most 2^60 elements, are 8388608 x 1048576 x 1048576");
  CHECK(refused("a", memory, 2, {2, 0}) == "parameter 'a.0': columns must be at least 1, are 0");
  CHECK(refused("", memory, 2, {2, 2}) == "parameter '': the name must not be empty");
  CHECK(refused("a", nullptr, 2, {2, 2}) == "parameter 'a.0': value is null, but count is 4");
  CHECK(params.views().size() == 4);
  params.add_stack("experts", memory + 200, memory + 300, 2, {2, 2});  // the names are free again
}

TEST_CASE("marks are looked up, not searched for") {
  // 100,000 searches of 100,000 names would be 10^10 comparisons of strings.
  constexpr int n = 100000;
  ds::parameters<float> params;
  for (int i = 0; i < n; ++i) params.add("tensor" + std::to_string(i), memory, memory, 0);
  for (int i = 0; i < n; ++i) params.mark_part("tensor" + std::to_string(i));
  for (int i = 0; i < n; i += 2) params.mark_copied("tensor" + std::to_string(i));
  bool right = true;
  for (std::size_t i = 0; i < n; ++i) right &= params.views()[i].as == (i % 2 ? ds::held::part : ds::held::copy);
  CHECK(right);
}

TEST_CASE("a name is found in a list of any length, and a list that was moved from is empty") {
  ds::parameters<float> params;
  auto const add = [&](std::string const& name) { return message([&] { params.add(name, memory, memory + 10, 1); }); };
  for (int k = 0; k < 200; ++k) {
    std::string const name = "w" + std::to_string(k);
    CHECK(add(name).empty());
    for (int i = 0; i <= k; i += 7)
      CHECK(add("w" + std::to_string(i)).find("there is already a parameter of this name") != std::string::npos);
  }
  auto const moved = std::move(params);
  CHECK(moved.views().size() == 200);
  CHECK(add("w0").empty());
  CHECK(params.views().size() == 1);
}

TEST_CASE("containers and views are taken as they lie in memory, and an mdspan as a matrix") {
  std::vector<float> w(12), g(12);
  std::array<float, 3> few{}, of_few{};
  float const* const at = w.data();
  cuda::std::mdspan<float, cuda::std::dextents<int, 3>> const weights(w.data(), 3, 2, 2), gradients(g.data(), 3, 2, 2);
  ds::parameters<float> params;
  params.add("vector", w, g);
  params.add("span", std::span(w).first(4), std::span(g).last(4), ds::group{1});
  params.add("shape", cuda::std::span<float>(w.data(), 12), g, ds::shape{4, 3}, ds::group{2});
  params.add("array", few, of_few);
  params.add("mdspan", weights, gradients, ds::group{3});
  params.add("none", std::span<float>{}, std::span<float>{});
  std::size_t next = 0;
  auto const is = [&](float const* value, std::int64_t count, std::int64_t columns, int group) {
    auto const& v = params.views()[next++];
    CHECK(v.value == value);
    CHECK(v.count == count);
    CHECK(v.columns == columns);
    CHECK(v.group == group);
  };
  is(at, 12, 1, 0), is(at, 4, 1, 1), is(at, 12, 3, 2), is(few.data(), 3, 1, 0), is(at, 12, 4, 3), is(nullptr, 0, 1, 0);
  CHECK(params.views()[1].gradient == g.data() + 8);

  ds::parameters<ds::mixed<float, double>> several;
  std::vector<double> wide(6), of_wide(6);
  several.add("wide", wide, of_wide, ds::shape{2, 3});
  CHECK(several.views()[0].types == 1);
  CHECK(several.views()[0].columns == 3);

  auto const refused = [&](auto&&... arguments) { return message([&] { params.add("w", arguments...); }); };
  using columns_first = cuda::std::mdspan<float, cuda::std::dextents<int, 2>, cuda::std::layout_left>;
  std::string const w_is = "parameter 'w': ";
  CHECK(refused(w, few) == w_is + "the value has 12 elements, the gradient 3 elements");
  CHECK(refused(std::span(w).first(1), g) == w_is + "the value has 1 element, the gradient 12 elements");
  CHECK(refused(w, g, ds::shape{3, 5}) == w_is + "the shape is 3 x 5, the value has 12 elements");
  CHECK(refused(w, g, ds::shape{std::int64_t(1) << 40, std::int64_t(1) << 40}) ==
        w_is + "the shape is 1099511627776 x 1099511627776, the value has 12 elements");
  CHECK(refused(w, g, ds::shape{12, 0}) == w_is + "columns must be at least 1, are 0");
  CHECK(refused(columns_first(w.data(), 3, 4), g) == w_is + "the value is not contiguous in row-major order");
  CHECK(refused(w, columns_first(g.data(), 3, 4)) == w_is + "the gradient is not contiguous in row-major order");
  CHECK(refused(columns_first(w.data(), 1, 12), columns_first(g.data(), 1, 12)).empty());  // one row is in both orders
  CHECK(params.views().size() == 7);
}

namespace {
/// A view of 2^40 x 2^40 elements, whose number no 64 bits hold.
struct huge_view {
  float* at;
  float* data_handle() const { return at; }
  std::int64_t extent(std::size_t) const { return std::int64_t(1) << 40; }
  std::int64_t stride(std::size_t i) const { return i == 0 ? extent(1) : 1; }
  static constexpr std::size_t rank() { return 2; }
};
}  // namespace

TEST_CASE("a view whose number of elements overflows is refused") {
  float w = 0, g = 0;
  ds::parameters<float> params;
  CHECK(message([&] { params.add("w", huge_view{&w}, huge_view{&g}); }) ==
        "parameter 'w': count must be at most 2^60, is over 2^63");
  CHECK(message([&] { params.add("w", huge_view{&w}, std::span(&g, 1)); }) ==
        "parameter 'w': count must be at most 2^60, is over 2^63");
  CHECK(params.views().empty());
}

TEST_CASE("value, gradient and shape that differ in their axes are refused; split axes and a single one fit") {
  std::vector<float> w(24), g(24);
  auto const grid2 = [](auto& x, int rows, int columns) {
    return cuda::std::mdspan<float, cuda::std::dextents<int, 2>>(x.data(), rows, columns);
  };
  auto const grid3 = [](auto& x, int i, int j, int k) {
    return cuda::std::mdspan<float, cuda::std::dextents<int, 3>>(x.data(), i, j, k);
  };
  auto const refused = [&](auto&&... arguments) {
    ds::parameters<float> params;
    auto const why = message([&] { params.add("w", arguments...); });
    CHECK(params.views().size() == (why.empty() ? 1u : 0u));
    return why;
  };
  std::string const w_is = "parameter 'w': the value is ";
  CHECK(refused(grid2(w, 6, 4), grid2(g, 4, 6)) == w_is + "6 x 4, the gradient 4 x 6");
  CHECK(refused(grid3(w, 2, 3, 4), grid3(g, 2, 4, 3)) == w_is + "2 x 3 x 4, the gradient 2 x 4 x 3");
  CHECK(refused(grid3(w, 2, 3, 4), grid2(g, 8, 3)) == w_is + "2 x 3 x 4, the gradient 8 x 3");
  CHECK(refused(grid2(w, 6, 4), g, ds::shape{4, 6}) == w_is + "6 x 4, the shape 4 x 6");
  CHECK(refused(w, grid2(g, 6, 4), ds::shape{4, 6}) == "parameter 'w': the gradient is 6 x 4, the shape 4 x 6");
  CHECK(refused(grid2(w, 0, 4), grid2(g, 0, 6)) == w_is + "0 x 4, the gradient 0 x 6");
  CHECK(refused(grid3(w, 2, 3, 4), grid2(g, 2, 12)).empty());
  CHECK(refused(grid3(w, 2, 3, 4), grid2(g, 6, 4)).empty());
  CHECK(refused(grid2(w, 6, 4), g).empty());
  CHECK(refused(w, grid2(g, 6, 4)).empty());
  CHECK(refused(grid3(w, 2, 3, 4), grid3(g, 2, 3, 4), ds::shape{6, 4}).empty());
  CHECK(refused(grid2(w, 6, 4), grid2(g, 6, 4), ds::shape{24, 1}).empty());
}

TEST_CASE("bad parameters are refused, each with its sentence, and the list stays as it was") {
  ds::parameters<float> params;
  params.add("w", memory, memory + 10, 10);
  float* const null = nullptr;
  auto const refused = [&](std::string name, float* value, float* gradient, auto count, int group = 0) {
    std::string const what = message([&] { params.add(name, value, gradient, count, ds::group{group}); });
    CHECK(params.views().size() == 1);
    CHECK(params.views()[0].name == "w");
    return what;
  };
  CHECK(refused("", memory, memory, 1) == "parameter '': the name must not be empty");
  CHECK(refused(std::string("x\0y", 3), memory, memory, 1) ==
        "parameter 'x': the name must not contain a NUL character, has one at 1");
  CHECK(refused("x", memory, memory, -1) == "parameter 'x': count must be at least 0, is -1");
  CHECK(refused("x", memory, memory, std::numeric_limits<std::int64_t>::min()) ==
        "parameter 'x': count must be at least 0, is -9223372036854775808");
  CHECK(refused("x", memory, memory, std::numeric_limits<std::uint64_t>::max()) ==
        "parameter 'x': count must be at most 2^60, is 18446744073709551615");
  CHECK(refused("x", memory, memory, (std::int64_t{1} << 60) + 1) ==
        "parameter 'x': count must be at most 2^60, is 1152921504606846977");
  CHECK(refused("x", null, memory, 3) == "parameter 'x': value is null, but count is 3");
  CHECK(refused("x", memory, null, 3) == "parameter 'x': gradient is null, but count is 3");
  auto* const beyond = reinterpret_cast<float*>(reinterpret_cast<char*>(memory) + 2);  // of half values before it
  CHECK(refused("x", beyond, memory, 3) == "parameter 'x': value must be aligned to 4 bytes, is 2 past a multiple");
  CHECK(refused("x", memory, beyond, 3) == "parameter 'x': gradient must be aligned to 4 bytes, is 2 past a multiple");
  CHECK(refused("x", memory, memory, 3, -1) == "parameter 'x': group must be in [0, 65535], is -1");
  CHECK(refused("x", memory, memory, 3, 65536) == "parameter 'x': group must be in [0, 65535], is 65536");
  CHECK(refused("w", memory + 50, memory + 60, 3) == "parameter 'w': there is already a parameter of this name");
  params.add("x", memory + 50, memory + 60, 3);  // after all these, a valid one
  CHECK(params.views().size() == 2);
}

TEST_CASE("names that cannot be saved are refused, and the pieces of a parameter beside it, in either order") {
  ds::parameters<float> params;
  auto const refused = [&](std::string const& name) {
    return message([&] { params.add(name, memory, memory + 10, 1); });
  };
  std::string const a = "parameter 'a': the name must ";
  CHECK(refused("a\nb") == a + "not contain control characters, has one at 1");
  CHECK(refused("a\x7f") == a + "not contain control characters, has one at 1");
  for (char const* const bad : {"\xe9t", "\x80", "\xc0\xaf", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                "\xf0\x8f\xbf\xbf", "\xf5\x80\x80\x80", "\xe2\x82", "\xe2\x82z"})
    CHECK(refused(std::string("a") + bad) == a + "be UTF-8, is not at 1");
  for (char const* const piece :
       {"made_by", "step", "matrix_updates", "loss_scale", "plateau", "memory", "__metadata__"})
    CHECK(refused(piece) == std::string("parameter '") + piece + "': this is the name of a saved piece of a run");
  CHECK(refused(std::string(4001, 'x')).ends_with("...': the name must have at most 4000 bytes, has 4001"));
  CHECK(params.views().empty());
  for (char const* const good : {"step.x", "x.step", "\xc3\xa9t\xc3\xa9", "\xf0\x9f\x8e\x89", "\xed\x9f\xbf", "W",
                                 "U.average", "V.state.m", "state.m", "W.state", "W.matrix", "encoder.memory"})
    CHECK(refused(good) == "");
  std::size_t const n = params.views().size();
  for (char const* const piece : {"W.master", "W.remainder", "W.average", "W.slow", "W.outer", "W.row_updates",
                                  "W.memory", "W.state.m", "W.state.0", "W.matrix.7"})
    CHECK(refused(piece) == std::string("parameter '") + piece + "': a saved piece of the parameter 'W' has this name");
  CHECK(refused("V") == "parameter 'V': the parameter 'V.state.m' has the name of a saved piece of it");
  CHECK(refused("U") == "parameter 'U': the parameter 'U.average' has the name of a saved piece of it");
  CHECK(refused("W.state.x.y") == "");  // no piece has a dot there
  CHECK(params.views().size() == n + 1);

  // what a stack that was refused would have had is free again
  CHECK(refused("E.state.1") == "");
  CHECK(message([&] { params.add_stack("S.state", memory, memory + 100, 3, {std::int64_t{1} << 59, 1}); }) != "");
  CHECK(message([&] { params.add_stack("E.state", memory, memory + 100, 3, {1, 1}); }) ==
        "parameter 'E.state.1': there is already a parameter of this name");
  CHECK(refused("E") == "parameter 'E': the parameter 'E.state.1' has the name of a saved piece of it");
  CHECK(refused("S") == "");
  for (int k = 0; k < 100; ++k) CHECK(refused("T" + std::to_string(k) + ".slow") == "");
  for (int k = 0; k < 100; ++k) CHECK(refused("T" + std::to_string(k)) != "");
  auto const copy = params;
  ds::parameters<float> moved = std::move(params);
  CHECK(message([&] { moved.add("T5", memory, memory, 1); }) != "");
}

TEST_CASE("a count may be of any integer type and as large as 2^60") {
  ds::parameters<float> params;
  params.add("a", memory, memory, std::uint8_t{5});
  params.add("b", memory, memory, std::size_t{5});
  params.add("c", memory, memory, std::int64_t{1} << 60);
  CHECK(params.views()[2].count == std::int64_t{1} << 60);
}

TEST_CASE("overlapping memory is refused, values and gradients alike") {
  auto const overlap = [](std::ptrdiff_t value, int count, std::ptrdiff_t gradient) {
    ds::parameters<float> params;
    params.add("w", memory, memory + 100, 10);
    params.add("x", memory + value, memory + gradient, count);
    return message([&] { layout<float, float> const checked(params); });
  };
  CHECK(overlap(10, 10, 200) == "");  // neighbours do not overlap
  CHECK(overlap(9, 10, 200) == "the value of 'w' overlaps the value of 'x' in memory");
  CHECK(overlap(2, 3, 200) == "the value of 'w' overlaps the value of 'x' in memory");
  CHECK(overlap(95, 10, 200) == "the value of 'x' overlaps the gradient of 'w' in memory");
  CHECK(overlap(109, 10, 200) == "the gradient of 'w' overlaps the value of 'x' in memory");
  CHECK(overlap(110, 10, 200) == "");
  CHECK(overlap(300, 10, 9) == "the value of 'w' overlaps the gradient of 'x' in memory");
  CHECK(overlap(300, 10, 305) == "the value of 'x' overlaps the gradient of 'x' in memory");
  CHECK(overlap(300, 10, 100) == "the gradient of 'w' overlaps the gradient of 'x' in memory");
  CHECK(overlap(300, 10, 109) == "the gradient of 'w' overlaps the gradient of 'x' in memory");
  CHECK(overlap(300, 10, 91) == "the gradient of 'x' overlaps the gradient of 'w' in memory");
  CHECK(overlap(5, 0, 105) == "");  // an empty tensor overlaps nothing
}

TEST_CASE("a long range that holds many short ones is found behind them") {
  ds::parameters<float> params;
  params.add("long", memory, memory + 500, 100);
  params.add("short", memory + 600, memory + 510, 2);
  params.add("inside", memory + 90, memory + 700, 1);
  CHECK(message([&] { layout<float, float> const checked(params); }) ==
        "the value of 'long' overlaps the value of 'inside' in memory");
}

TEST_CASE("overlap is measured in bytes of each type") {
  alignas(8) static float gradients[64];
  auto* const values = reinterpret_cast<double*>(gradients);
  ds::parameters<double, float> params;
  params.add("w", values, gradients + 7, 4);
  CHECK(message([&] { layout<double, float> const checked(params); }) ==
        "the value of 'w' overlaps the gradient of 'w' in memory");
  ds::parameters<double, float> apart;
  apart.add("w", values, gradients + 8, 4);
  CHECK(message([&] { layout<double, float> const checked(apart); }) == "");
}

TEST_CASE("chunks are numbered over all tensors, and arenas start at multiples of 64") {
  std::vector<float> w(20'000), g(20'000);
  ds::parameters<float> params;
  std::int64_t const counts[] = {1, 0, 4096, 4097, 8192, 65};
  std::int64_t at = 0;
  for (std::int64_t n : counts) {
    params.add("p" + std::to_string(params.views().size()), w.data() + at, g.data() + at, n, ds::group{int(n % 2)});
    at += n;
  }
  layout<float, float> const where(params);
  std::int64_t const first[] = {0, 1, 1, 2, 4, 6}, arena[] = {0, 64, 64, 4160, 4160 + 4160, 4160 + 4160 + 8192};
  for (std::size_t t = 0; t < 6; ++t) {
    CHECK(where.tensors[t].first_chunk == first[t]);
    CHECK(where.tensors[t].arena == arena[t]);
    CHECK(where.tensors[t].count == counts[t]);
  }
  CHECK(where.chunks() == 7);
  CHECK(where.tensor_of_chunk == std::vector<std::int32_t>{0, 2, 3, 3, 4, 4, 5});
  CHECK(where.arena == 4160 + 4160 + 8192 + 128);
  CHECK(where.elements == at);
  CHECK(where.groups == 2);
  auto const span = [&](std::int64_t chunk, std::size_t t) {
    auto const s = ds::detail::span_of(chunk, where.tensors[t]);
    return std::tuple(s.begin, s.size);
  };
  CHECK(span(2, 3) == std::tuple(0, 4096));
  CHECK(span(3, 3) == std::tuple(4096, 1));
  CHECK(span(5, 4) == std::tuple(4096, 4096));
  CHECK(where.find("p3") == 3);
  CHECK(message([&] { where.find("p9"); }) == "there is no parameter 'p9'");
}

TEST_CASE("a packet is aligned when value and gradient both are") {
  alignas(16) static float a[64];
  alignas(16) static ds::half h[64];
  CHECK(ds::detail::packets_aligned(a));
  CHECK(ds::detail::packets_aligned(a + 4));
  CHECK(!ds::detail::packets_aligned(a + 1));
  CHECK(ds::detail::packets_aligned(h + 8));
  CHECK(!ds::detail::packets_aligned(h + 4));
  ds::parameters<float> params;
  params.add("both", a, a + 4, 4);
  params.add("value", a + 8, a + 13, 3);
  params.add("gradient", a + 17, a + 20, 3);
  layout<float, float> const where(params);
  CHECK(where.tensors[0].aligned);
  CHECK(!where.tensors[1].aligned);
  CHECK(!where.tensors[2].aligned);
}

TEST_CASE("no parameters make one group and nothing else") {
  layout<float, float> const where(ds::parameters<float>{});
  CHECK(where.groups == 1);
  CHECK(where.chunks() == 0);
  CHECK(where.arena == 0);
}
