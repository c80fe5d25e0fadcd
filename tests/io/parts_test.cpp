// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// What a run's file is made of beside optimizers, and how types are converted.
#include <descent/data/resident.hpp>
#include <descent/io/checkpoint.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/training/loss_scaler.hpp>
#include <descent/version.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "support/run_file.hpp"
#include "support/saved_objects.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <cuda/std/mdspan>
#include <filesystem>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ds = descent;
using ds::half, ds::bfloat16, ds::named;
using test::bytes, test::copied, test::edited, test::listed, test::message, test::temporary_folder;
using test::counters, test::loader_of, test::source;
using strings = std::vector<std::string>;

namespace {

/// A matrix in half, a vector in float, and a tensor without elements.
struct model {
  std::vector<half> w = std::vector<half>(120, half(0.3f)), dw = w;
  std::vector<float> b = std::vector<float>(3, 0.7f), db = b;
  ds::parameters<ds::mixed<half, float>> parameters() {
    ds::parameters<ds::mixed<half, float>> p;
    p.add("W", w.data(), dw.data(), ds::shape{24, 5});
    p.add("b", b.data(), db.data(), 3);
    p.add("none", static_cast<float*>(nullptr), static_cast<float*>(nullptr), 0);
    return p;
  }
};

}  // namespace

TEST_CASE("checkpoint files: values and views that are not in memory of the host are refused, and no file is made") {
  temporary_folder const folder;
  std::string const path = folder / "run";
  auto* const nowhere = reinterpret_cast<float*>(std::uintptr_t{64});
  std::span<float> const x(nowhere, 3);
  ds::parameters<float> params;
  params.add("w", nowhere, nowhere, 3);
  std::string const none = " is not host memory: there is none at 0x40; for device memory use the backend cuda{stream}";
  CHECK(message([&] { ds::save_file(path, named("x", x)); }) == "named(\"x\", x): the memory of x" + none);
  CHECK(message([&] { ds::save_file(path, params); }) == "values of 'w': the memory" + none);
  CHECK_FALSE(std::filesystem::exists(path));
  float y[3] = {1, 2, 3};
  ds::save_file(path, named("x", y));
  CHECK(message([&] { ds::load_file(path, named("x", x)); }) == "named(\"x\", x): the memory of x" + none);
}

TEST_CASE("checkpoint files: numbers, texts, containers and views are tensors of their names") {
  temporary_folder const folder;
  std::string const path = folder / "run";
  auto const returns = [&]<class T>(T const& x, std::string const& type) {
    T to{};
    ds::save_file(path, named("x", x));
    CHECK(listed(path) == strings{"x " + type + " []"});
    ds::load_file(path, named("x", to));
    CHECK(std::memcmp(&to, &x, sizeof x) == 0);
  };
  returns(true, "BOOL"), returns('x', "U8"), returns(std::int8_t{-1}, "I8"), returns(std::uint8_t{255}, "U8");
  returns(std::int16_t{-2}, "I16"), returns(std::uint16_t{65535}, "U16"), returns(-3, "I32"), returns(4u, "U32");
  returns(INT64_MIN, "I64"), returns(UINT64_MAX, "U64"), returns(-5ll, "I64"), returns(6ull, "U64");
  returns(1.0 / 3, "F64"), returns(1.0f / 3, "F32"), returns(half(0.3f), "F16"), returns(bfloat16(0.3f), "BF16");

  std::string text;
  for (std::string const saved : {"", "a", "longer than any small string", ""}) {
    ds::save_file(path, named("text", saved));
    ds::load_file(path, named("text", text));
    CHECK(text == saved);
  }
  ds::save_file(path, named("text", std::array<std::uint8_t, 4>{}), named("matrix", 1));
  CHECK(message([&] { ds::load_file(path, {.partial = true}, named("matrix", text)); })
            .ends_with("'matrix' is I32 [] in the file, must be U8 [0]"));

  std::vector<float> v{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, w(12), x(12);
  std::array<int, 2> const a{1, 2};
  std::array<int, 2> b{};
  short const c[] = {3, 4, 5};
  short d[3] = {};
  using grid = cuda::std::mdspan<float, cuda::std::dextents<int, 3>>;
  using constant_grid = cuda::std::mdspan<float const, cuda::std::dextents<int, 2>>;
  ds::save_file(path, named("vector", std::as_const(v)), named("array", a), named("c", c),
                named("span", std::span<float const>(v).first(2)), named("grid", constant_grid(v.data(), 3, 4)),
                named("cube", grid(v.data(), 3, 2, 2)), named("bytes", bytes(3)));
  CHECK(listed(path) == strings{"array I32 [2]", "bytes U8 [3]", "c I16 [3]", "cube F32 [3, 4]", "grid F32 [3, 4]",
                                "span F32 [2]", "vector F32 [12]"});
  bytes raw(3, std::byte{1});
  std::vector<float> cube(12);
  ds::load_file(path, named("vector", w), named("array", b), named("c", d), named("span", std::span(x).last(2)),
                named("grid", std::vector<float>(12)), named("cube", grid(cube.data(), 3, 2, 2)), named("bytes", raw));
  CHECK((w == v && cube == v && b == a && std::ranges::equal(c, d) && x[10] == 1 && x[11] == 2 && raw == bytes(3)));
  using columns_first = cuda::std::mdspan<float, cuda::std::dextents<int, 2>, cuda::std::layout_left>;
  CHECK(message([&] { ds::save_file(path, named("turned", columns_first(v.data(), 3, 4))); }) ==
        "named(\"turned\", x): x is not contiguous in row-major order");
}

TEST_CASE("checkpoint files: values, loss scales, loaders and objects are parts, and names nest") {
  temporary_folder const folder;
  std::string const path = folder / "run";
  model m, n;
  std::fill(n.w.begin(), n.w.end(), half(0.0f));
  auto const list = m.parameters();
  ds::loss_scaler<> scaler, other;
  scaler.set_state({.scale = 1024, .good = 17, .left = 0});
  auto data = loader_of(1);
  for (int i = 0; i < 4; ++i) data.next();
  counters c{{5, 6, 7}}, d;
  ds::save_file(path, list, named("a", named("b", ds::values(list))), named("a", scaler), std::as_const(data),
                named("c", std::as_const(c)), named("a", named("n", 3)));
  CHECK(listed(path) == strings{"W F16 [24, 5]", "a.b.W F16 [24, 5]", "a.b.b F32 [3]", "a.b.none F32 [0]",
                                "a.loss_scale U8 [1, 16]", "a.n I32 []", "b F32 [3]", "c.n I64 [3]",
                                "loader.fingerprint U64 [1]", "loader.position I64 [2]", "none F32 [0]"});
  int number = 0;
  ds::resident resident{source, ds::batches{4, ds::last_batch::pad}, ds::shuffled{.seed = 1}};
  auto same = loader_of(1);
  auto const to = n.parameters();
  std::vector<half> unused(120);
  std::vector<float> unused_b(3);
  ds::load_file(path, {.partial = true}, to, named("a", other), same, named("c", d), named("a.n", number));
  CHECK((copied(n.w) == copied(m.w) && d.n == c.n && number == 3 && same.position() == data.position()));
  CHECK((other.state().scale == 1024 && other.state().good == 17 && other.state().left == 0));
  CHECK(std::ranges::equal(same.next().get<"n">(), data.next().get<"n">()));

  resident.seek({3, 1});
  ds::save_file(path, resident);
  resident.seek({0, 0});
  ds::load_file(path, resident);
  CHECK(resident.position() == ds::loader_position{3, 1});
}

TEST_CASE("checkpoint files: with `partial` what nothing asks for is left, and the report says what was read") {
  temporary_folder const folder;
  std::vector<double> x{1, 2, 3}, y(x);
  int const n = 7;
  ds::save_file(folder / "run", named("x", x), named("y", y), named("n", n), named("none", std::string()));
  std::vector<double> to(3);
  CHECK(message([&] { ds::load_file(folder / "run", named("x", to)); }) ==
        (folder / "run") + " does not fit:\n  left over: 'n'\n  left over: 'none'\n  left over: 'y'");
  CHECK(to == std::vector<double>(3));
  auto const report = ds::load_file(folder / "run", {.partial = true}, named("x", to));
  CHECK(to == x);
  CHECK((report.tensors == 1 && report.bytes == 24 && report.converted == 0 && report.same_configuration));
  CHECK(report.left_over == strings{"n", "none", "y"});
  CHECK(report.version == ds::version);
  CHECK(ds::load_file(edited(folder / "run", folder / "other", [](auto&, auto& texts) { texts.clear(); }),
                      {.partial = true}, named("y", to)).version == "");
}

TEST_CASE("checkpoint files: what the file lacks is kept on request, with its state, and the report names it") {
  temporary_folder const folder;
  std::vector<float> w{1, 2, 3}, v{4, 5}, g{1, 1, 1}, dv{1, 1};
  auto const run = [&](bool grown, auto const& f) {
    ds::parameters<float> params;
    params.add("W", w.data(), g.data(), 3);
    if (grown) params.add("V", v.data(), dv.data(), 2);
    ds::optimizer opt{params, ds::adam{.lr = 0.5}};
    f(opt);
  };
  run(false, [&](auto& opt) {
    opt.step(), ds::save_file(folder / "run", opt), ds::save_file(folder / "values", named("W", w));
  });
  auto const trained = w;
  std::string text = "kept";
  run(true, [&](auto& opt) {
    opt.step();
    w = {7, 7, 7};
    auto const before = v;
    std::vector<float> const m(opt.state("V", "m").begin(), opt.state("V", "m").end());
    CHECK(message([&] { ds::load_file(folder / "run", opt); }).find("missing: 'V'\n") != std::string::npos);
    CHECK(w == std::vector<float>{7, 7, 7});
    auto const report = ds::load_file(folder / "run", {.missing = ds::missing_tensors::keep}, opt, named("text", text));
    CHECK(report.kept == strings{"V", "V.state.m", "V.state.v", "text"});
    CHECK((w == trained && v == before && text == "kept" && !report.same_configuration));
    CHECK(std::ranges::equal(opt.state("V", "m"), m));
    opt.step(), w = {7, 7, 7};
    // Values alone: state, step and hyperparameters stay.
    auto const values = ds::load_file(folder / "values", {.missing = ds::missing_tensors::keep}, opt);
    CHECK((w == trained && values.kept.size() == 6 && values.tensors == 1 && opt.report().step == 2));
    auto const stateless = edited(folder / "run", folder / "other", [](auto&, auto& texts) { texts.clear(); });
    CHECK(message([&] {
            ds::load_file(stateless, {.missing = ds::missing_tensors::keep}, opt);
          }).find("missing: 'made_by'") != std::string::npos);
  });
  CHECK(message([&] {
          ds::load_file(folder / "values", {.partial = true, .missing = ds::missing_tensors::keep}, named("x", g));
        }).ends_with("does not fit:\n  missing: 'x'"));
}

TEST_CASE("checkpoint files: masters and slow weights that the file lacks follow its values") {
  temporary_folder const folder;
  auto const number = [](float x) { return ds::narrow<ds::bfloat16>(x); };
  std::vector<ds::bfloat16> w{number(2), number(-3), number(0.5f)}, g(3, number(0));
  auto const trained = w;
  ds::save_file(folder / "values", named("W", w));
  auto const stays = [&](auto policy) {
    std::fill(w.begin(), w.end(), number(0));
    ds::parameters<ds::bfloat16> params;
    params.add("W", w.data(), g.data(), 3);
    ds::optimizer opt{params, ds::sgd{}, policy, ds::lookahead{.k = 1, .alpha = 0.5}};
    auto const report = ds::load_file(folder / "values", {.missing = ds::missing_tensors::keep}, opt);
    CHECK((report.kept.size() == 3 && std::ranges::count(report.kept, "W.slow") == 1));
    opt.step();
    CHECK(std::memcmp(w.data(), trained.data(), 6) == 0);
  };
  stays(ds::master<float>{}), stays(ds::master_remainder{});
}

TEST_CASE("checkpoint files: a tensor of a type that is not known stops nobody who does not ask for it") {
  temporary_folder const folder;
  std::string const header = R"({"W":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("q":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[8,10]}})";
  std::string file(8, '\0');
  file[0] = char(header.size());
  float const w[2] = {1.5f, -2};
  file += header + std::string(reinterpret_cast<char const*>(w), sizeof w) + "88";
  std::string const path = folder.write("x", file);
  std::vector<float> to(2), q(2);
  CHECK(message([&] { ds::load_file(path, named("W", to)); }) == path + " does not fit:\n  left over: 'q'");
  CHECK(ds::load_file(path, {.partial = true}, named("W", to)).left_over == strings{"q"});
  CHECK((to[0] == 1.5f && to[1] == -2));
  for (bool const convert : {false, true})
    CHECK(message([&] { ds::load_file(path, {.convert = convert}, named("W", to), named("q", q)); }) ==
          path + " does not fit:\n  'q' is F8_E4M3 [2] in the file, which is none of the types BOOL, U8, I8, U16, I16, "
                 "F16, BF16, U32, I32, F32, U64, I64, F64, must be F32 [2]");
}

namespace {

template <class T> double largest() {
  if constexpr (std::is_same_v<T, half>) return 0x1.ffcp15;
  else if constexpr (std::is_same_v<T, bfloat16>) return 0x1.fep127;
  else return double(std::numeric_limits<T>::max());
}

}  // namespace

TEST_CASE("checkpoint files: with `convert` numbers are rounded to nearest and counted, also those out of range") {
  temporary_folder const folder;
  double const tie = 1 + 0x1p-11, infinity = std::numeric_limits<double>::infinity();  // between two of half
  std::vector<double> const all{0.0,   -0.0, 1.0 / 3, tie,  tie + 0x1p-40, -tie,     65519.999,
                                65520, 1e5,  -1e300,  3e-8, 1e-45,         infinity, std::nan("")};
  auto const each_type = [](auto const& f) { f(double()), f(float()), f(half()), f(bfloat16()); };
  each_type([&]<class From>(From) {
    std::vector<From> from;
    for (double const x : all) from.push_back(ds::narrow<From>(x));
    ds::save_file(folder / "run", named("x", from), named("n", 1));
    each_type([&]<class To>(To) {
      std::vector<To> to(all.size()), want;
      std::int64_t beyond = 0;
      for (From const x : from) {
        double const wide = ds::widen<double>(x);
        want.push_back(ds::narrow<To>(wide));
        if (std::isinf(ds::widen<double>(want.back())) && !std::isinf(wide))
          want.back() = ds::narrow<To>(std::copysign(largest<To>(), wide)), ++beyond;
      }
      int n = 0;
      if (!std::is_same_v<From, To>) {
        CHECK(message([&] { ds::load_file(folder / "run", named("x", to), named("n", n)); }) ==
              (folder / "run") + " does not fit:\n  'x' is " + ds::name_of(ds::dtype_of<From>) +
                  " [14] in the file, must be " + ds::name_of(ds::dtype_of<To>) + " [14]");
        CHECK(n == 0);
      }
      auto const untouched = copied(to);
      auto const unasked =
          message([&] { ds::load_file(folder / "run", {.convert = true}, named("x", to), named("n", n)); });
      CHECK(unasked == (beyond == 0 ? ""
                                    : (folder / "run") + " does not fit:\n  'x' has " + std::to_string(beyond) +
                                          " of 14 numbers beyond the range of " + ds::name_of(ds::dtype_of<To>) +
                                          "; load_options{.saturate = true} takes its largest number for them"));
      if (beyond > 0) CHECK((copied(to) == untouched && n == 0));
      auto const report =
          ds::load_file(folder / "run", {.convert = true, .saturate = true}, named("x", to), named("n", n));
      CHECK((report.converted == !std::is_same_v<From, To> && report.tensors == 2 && n == 1));
      CHECK(report.saturated == beyond);
      CHECK(report.bytes == std::int64_t(from.size() * sizeof(From) + sizeof n));
      CHECK(copied(to) == copied(want));
    });
  });
  double rounded = 0;
  std::vector<half> halves(2);
  ds::save_file(folder / "run", named("x", std::array{tie, tie + 0x1p-40}), named("n", 1));
  ds::load_file(folder / "run", {.convert = true, .partial = true}, named("x", halves));
  CHECK((ds::widen<double>(halves[0]) == 1 && ds::widen<double>(halves[1]) == 1 + 0x1p-10));
  CHECK(message([&] { ds::load_file(folder / "run", {.convert = true, .partial = true}, named("n", rounded)); })
            .ends_with("'n' is I32 [] in the file, must be F64 []"));

  model m;
  std::vector<float> w(120), b(3);
  ds::parameters<float> wide;
  wide.add("W", w, w), wide.add("b", b, b);
  ds::save_file(folder / "values", ds::values(m.parameters()));
  CHECK(ds::load_file(folder / "values", {.convert = true, .partial = true}, wide).converted == 1);
  for (std::size_t i = 0; i < w.size(); ++i) CHECK(w[i] == ds::widen<float>(m.w[i]));
  CHECK(b == m.b);
}

TEST_CASE("checkpoint files: a shape fits if its axes are split or joined, or are one, and otherwise is refused") {
  temporary_folder const folder;
  std::mt19937 random(20261129);
  auto const draw = [&](std::size_t n) { return std::size_t(random() % n); };
  std::vector<float> data(24), x(24), dx(24);
  std::iota(data.begin(), data.end(), 1.0f);
  int taken = 0, refused = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<std::int64_t> factors{2, 3, 2, 2, 1, 1}, shape{1};  // in some order, some of them joined
    std::ranges::shuffle(factors, random);
    for (auto const f : factors) {
      if (draw(2)) shape.back() *= f;
      else shape.push_back(f);
    }
    std::int64_t const divisors[] = {1, 2, 3, 4, 6, 8, 12, 24}, rows = divisors[draw(8)];
    ds::shape const mine{rows, 24 / rows};
    // by the first elements of rows: those of the parameter are among those of the axes of the file
    auto const axes = std::ranges::count_if(shape, [](auto extent) { return extent > 1; });
    bool fits = axes == 1 || rows == 1 || mine.columns == 1;
    for (std::int64_t n = 1; auto const extent : shape) n *= extent, fits = fits || n == rows;
    CAPTURE(ds::detail::shape_text(shape));
    CAPTURE(rows);
    ds::save_safetensors(folder / "run", {{"W", ds::dtype::f32, shape, std::as_bytes(std::span(data))}});
    ds::parameters<float> params;
    params.add("W", x, dx, mine);
    std::ranges::fill(x, 0.0f);
    auto const why = message([&] { ds::load_file(folder / "run", params); });
    CHECK(why == (fits ? ""
                       : (folder / "run") + " does not fit:\n  'W' is F32 " + ds::detail::shape_text(shape) +
                             " in the file, must be F32 [" + std::to_string(rows) + ", " +
                             std::to_string(mine.columns) + "]"));
    CHECK(x == (fits ? data : std::vector<float>(24)));
    ++(fits ? taken : refused);
  }
  CHECK((taken > 50 && refused > 50));

  // of no elements, and a grid
  auto const load = [&](std::vector<std::int64_t> shape, auto&& part, std::size_t n) {
    ds::save_safetensors(folder / "run", {{"W", ds::dtype::f32, shape, std::as_bytes(std::span(data).first(n))}});
    return message([&] { ds::load_file(folder / "run", named("W", part)); });
  };
  using grid = cuda::std::mdspan<float, cuda::std::dextents<int, 2>>;
  CHECK(load({0, 5}, grid(x.data(), 0, 5), 0).empty());
  CHECK(load({0}, grid(x.data(), 0, 5), 0).empty());
  CHECK(load({0, 3}, grid(x.data(), 0, 5), 0).ends_with("'W' is F32 [0, 3] in the file, must be F32 [0, 5]"));
  CHECK(load({3, 4}, grid(x.data(), 4, 3), 12).ends_with("'W' is F32 [3, 4] in the file, must be F32 [4, 3]"));
  CHECK(load({4, 3, 1, 1}, grid(x.data(), 4, 3), 12).empty());
}

TEST_CASE("checkpoint files: a byte that is no bool is refused") {
  temporary_folder const folder;
  bool flag = true;
  std::vector<std::uint8_t> const bytes{2};
  ds::save_safetensors(folder / "run", {{"flag", ds::dtype::boolean, {}, std::as_bytes(std::span(bytes))}});
  CHECK(message<ds::data_error>([&] { ds::load_file(folder / "run", named("flag", flag)); }) ==
        (folder / "run") + ": tensor 'flag': a byte of a BOOL is 2, must be 0 or 1");
  CHECK(flag);
}
