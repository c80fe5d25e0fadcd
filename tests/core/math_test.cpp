// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The functions that rules use, for scalars and for each lane of packs.
#include <descent/engine/step/simd_pack.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace ds = descent;
using ds::detail::pack;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
float const no_number = std::numeric_limits<float>::quiet_NaN();

/// Numbers of every kind; each pair of them meets in a lane.
std::vector<float> const& numbers() {
  static std::vector<float> const all = {0.f, -0.f, 1.f, -1.f, 0.3f, -0.7f, 3e38f,
                                         -3e38f, 1e-38f, 1e-40f, -1e-45f, 0x1.fffffep0f, 1e-20f, 1e20f,
                                         inf, -inf, no_number, -no_number, 65504.f};
  return all;
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

pack filled(float const* x) {
  pack p;
  for (int i = 0; i < 8; ++i) p.lane[i] = x[i];
  return p;
}

/// Whether on_packs(a, b) equals on_floats(a, b) in every lane, for every pair of numbers.
template <class OnPacks, class OnFloats> bool agree(OnPacks on_packs, OnFloats on_floats) {
  auto const& x = numbers();
  std::size_t const n = x.size();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      float a[8], b[8];
      for (std::size_t lane = 0; lane < 8; ++lane) {
        a[lane] = x[(i + lane) % n];
        b[lane] = x[(j + lane * 3) % n];
      }
      pack const r = on_packs(filled(a), filled(b));
      for (int lane = 0; lane < 8; ++lane)
        if (!same(r.lane[lane], on_floats(a[lane], b[lane]))) return false;
    }
  return true;
}
template <class Both> bool agree(Both both) { return agree(both, both); }

}  // namespace

TEST_CASE("power: x^n with a relative error below n 2^-53") {
  for (double x : {0.0, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0, 1.0001, -0.9, -1.0, 2.0})
    for (std::int64_t n = 0; n <= 1000; ++n) {
      long double const want = std::pow(static_cast<long double>(x), static_cast<long double>(n));
      long double const bound = std::fabs(want) * double(n) * 0x1p-53 + 2 * std::numeric_limits<double>::min();
      CHECK(std::fabs(ds::power(x, n) - want) <= bound);
    }
  for (std::int64_t n : {std::int64_t{65537}, std::int64_t{1} << 20, (std::int64_t{1} << 31) + 1}) {
    double const x = 1 - 1.0 / double(n);
    long double const want = std::pow(static_cast<long double>(x), static_cast<long double>(n));
    CHECK(std::fabs(ds::power(x, n) / want - 1) <= double(n) * 0x1p-53);
  }
}

TEST_CASE("power: exact where x^n is, one at n = 0, zero once x^n is too small") {
  for (double x : {0.0, 0.5, -3.0, 1e300, double(inf), double(no_number)}) CHECK(ds::power(x, 0) == 1);
  CHECK(ds::power(0.5, 40) == 0x1p-40);
  CHECK(ds::power(3, 20) == 3486784401.0);
  CHECK(ds::power(-2, 3) == -8);
  CHECK(ds::power(0, 5) == 0);
  CHECK(ds::power(0.999, std::int64_t{1} << 40) == 0);
  CHECK(ds::power(1, std::int64_t{1} << 62) == 1);
}

TEST_CASE("cbrt: to one unit in the last place for normal numbers above 0, others as they are") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    double const x = std::ldexp(1 + double(random() >> 12) * 0x1p-52, int(random() % 2040) - 1020);
    CHECK(std::fabs(ds::cbrt(x) / std::cbrt(static_cast<long double>(x)) - 1) <= 0x1p-52);
    float const y = float(std::ldexp(1 + double(random() >> 40) * 0x1p-24, int(random() % 250) - 125));
    CHECK(std::fabs(double(ds::cbrt(y)) / std::cbrt(double(y)) - 1) <= 0x1p-23);
  }
  CHECK(ds::cbrt(27.0) == 3);
  CHECK(ds::cbrt(0.f) == 0);
  CHECK(ds::cbrt(-1.0) == -1);
  CHECK(std::isnan(ds::cbrt(no_number)));
}

TEST_CASE("pow: roots for a half and a quarter, the library's power for all else, in packs the same bits") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    float const x = float(std::ldexp(1 + double(random() >> 40) * 0x1p-24, int(random() % 250) - 125));
    CHECK(ds::pow(x, 0.5f) == std::sqrt(x));
    CHECK(std::fabs(double(ds::pow(x, 0.25f)) / std::pow(double(x), 0.25) - 1) <= 0.75 * 0x1p-23);
  }
  float const infinite = std::numeric_limits<float>::infinity(), none = float(no_number), tiny = 0x1p-149f;
  float const bases[] = {2, 0, -0.f, -1, infinite, -infinite, none, tiny, 1e-30f, 3e38f};
  auto const same = [](float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b); };
  for (float const y : {0.5f, 0.25f, 0.3f, 0.f, 1.f, -0.5f, infinite, none})
    for (float const x : bases) {
      if (!(x > 0 && (y == 0.5f || y == 0.25f))) CHECK(same(ds::pow(x, y), std::pow(x, y)));
      if (!ds::detail::has_lanes()) continue;
      for (float const other : bases)
        for (float const power : {y, 0.25f}) {
          ds::detail::pack a(x), b(y);
          a.lane[3] = other;
          b.lane[5] = power;
          auto const c = pow(a, b);
          for (int j = 0; j < 8; ++j) CHECK(same(c.lane[j], ds::pow(a.lane[j], b.lane[j])));
        }
    }
}

TEST_CASE("is_finite and is_nan ask the bits, in both types, at compile time and lane by lane") {
  for (float x : numbers()) {
    CHECK(ds::is_finite(x) == bool(std::isfinite(x)));
    CHECK(ds::is_nan(x) == bool(std::isnan(x)));
    CHECK(ds::is_finite(double(x)) == bool(std::isfinite(x)));
    CHECK(ds::is_nan(double(x)) == bool(std::isnan(x)));
    pack p(1);
    p.lane[5] = x;
    auto const finite = is_finite(p), nan = is_nan(p);
    for (int j = 0; j < 8; ++j) {
      CHECK(finite.lane[j] == (j != 5 || std::isfinite(x) ? -1 : 0));
      CHECK(nan.lane[j] == (j == 5 && std::isnan(x) ? -1 : 0));
    }
  }
  constexpr double largest = std::numeric_limits<double>::max();
  CHECK((ds::is_finite(largest) && ds::is_finite(-largest) && !ds::is_nan(largest)));
  CHECK(ds::is_nan(std::bit_cast<double>(std::uint64_t{0xfff0000000000001})));
  static_assert(ds::is_finite(1.0) && !ds::is_finite(inf) && ds::is_nan(std::numeric_limits<double>::quiet_NaN()));
}

TEST_CASE("max and min give the second where either is not a number; sign gives 0") {
  CHECK(ds::max(1.0, 2.0) == 2);
  CHECK(ds::max(2.f, 1.f) == 2);
  CHECK(ds::min(1.0, 2.0) == 1);
  CHECK(ds::min(2.f, 1.f) == 1);
  CHECK(ds::max(no_number, 1.f) == 1);
  CHECK(ds::min(no_number, 1.f) == 1);
  CHECK(std::isnan(ds::max(1.f, no_number)));
  CHECK(ds::sign(-3.0) == -1);
  CHECK(ds::sign(0.25f) == 1);
  CHECK(ds::sign(0.f) == 0);
  CHECK(ds::sign(-0.0) == 0);
  CHECK(ds::sign(no_number) == 0);
  CHECK(ds::sign(-inf) == -1);
  CHECK(ds::select(true, 1.0, 2.0) == 1);
  CHECK(ds::select(false, 1.f, 2.f) == 2);
}

TEST_CASE("packs compute what floats compute, lane by lane and bit by bit") {
  if (!ds::detail::has_lanes()) return;
  CHECK(agree([](auto const& a, auto const& b) { return a + b; }));
  CHECK(agree([](auto const& a, auto const& b) { return a - b; }));
  CHECK(agree([](auto const& a, auto const& b) { return a * b; }));
  CHECK(agree([](auto const& a, auto const& b) { return a / b; }));
  CHECK(agree([](auto const& a, auto const&) { return -a; }));
  CHECK(agree([](auto const& a, auto const&) { return ds::detail::abs(a); },
              [](float a, float) { return std::fabs(a); }));
  CHECK(agree([](auto const& a, auto const&) { return ds::detail::sqrt(a); },
              [](float a, float) { return std::sqrt(a); }));
  CHECK(agree([](auto const& a, auto const&) { return ds::detail::cbrt(a); }));
  CHECK(agree([](auto const& a, auto const& b) { return ds::detail::pow(a, b); }));
  CHECK(agree([](auto const& a, auto const& b) { return ds::max(a, b); }));
  CHECK(agree([](auto const& a, auto const& b) { return ds::min(a, b); }));
  CHECK(agree([](auto const& a, auto const&) { return ds::sign(a); }));
}

TEST_CASE("comparisons of packs and their combinations choose lane by lane") {
  if (!ds::detail::has_lanes()) return;
  auto const chosen = [](auto compare) {
    return agree([=](pack const& a, pack const& b) { return ds::detail::select(compare(a, b), a, b); },
                 [=](float a, float b) { return compare(a, b) ? a : b; });
  };
  CHECK(chosen([](auto const& a, auto const& b) { return a < b; }));
  CHECK(chosen([](auto const& a, auto const& b) { return a > b; }));
  CHECK(chosen([](auto const& a, auto const& b) { return a <= b; }));
  CHECK(chosen([](auto const& a, auto const& b) { return a >= b; }));
  CHECK(chosen([](auto const& a, auto const& b) { return a == b; }));
  CHECK(chosen([](auto const& a, auto const& b) { return a != b; }));
  CHECK(chosen([](auto const& a, auto const& b) { return a > b && a > 0.f; }));
  CHECK(chosen([](auto const& a, auto const& b) { return a > b || b < 0.f; }));
  CHECK(chosen([](auto const& a, auto const& b) { return !(a > b); }));
}
