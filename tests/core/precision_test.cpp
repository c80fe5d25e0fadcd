// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Conversions between storage types and the arithmetic, against exact rounding written here.
#include <descent/core/precision.hpp>
#include <descent/engine/step/simd_pack.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

namespace ds = descent;
using ds::half, ds::bfloat16, ds::narrow, ds::widen;

namespace {

/// A binary format: digits of the significand, the smallest normal exponent and the largest number.
template <class T> struct format;
template <> struct format<half> {
  static constexpr int digits = 11, smallest = -14;
  static constexpr double largest = 65504;
};
template <> struct format<bfloat16> {
  static constexpr int digits = 8, smallest = -126;
  static constexpr double largest = 0x1.fep127;
};
template <> struct format<float> {
  static constexpr int digits = 24, smallest = -126;
  static constexpr double largest = std::numeric_limits<float>::max();
};

template <class T> T from_code(unsigned code) {
  auto const bits = std::uint16_t(code);
  T x;
  std::memcpy(static_cast<void*>(&x), &bits, 2);
  return x;
}
template <class T> unsigned code_of(T x) {
  std::uint16_t bits;
  std::memcpy(&bits, &x, 2);
  return bits;
}

/// The value of a code, by the definition of the format.
template <class T> double meaning(unsigned code) {
  constexpr int fraction_bits = format<T>::digits - 1, all_ones = (1 << (15 - fraction_bits)) - 1;
  int const exponent = int(code >> fraction_bits) & all_ones, fraction = int(code & ((1u << fraction_bits) - 1));
  double const sign = code & 0x8000 ? -1 : 1;
  if (exponent == all_ones)
    return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  int const significand = exponent ? fraction + (1 << fraction_bits) : fraction;
  return sign * std::ldexp(significand, format<T>::smallest + (exponent ? exponent - 1 : 0) - fraction_bits);
}

/// x rounded once to the format, to nearest, ties to even.
template <class T> double rounded(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  int const exponent = std::max(std::ilogb(x), format<T>::smallest) - (format<T>::digits - 1);
  double const r = std::ldexp(std::nearbyint(std::ldexp(x, -exponent)), exponent);
  return std::fabs(r) > format<T>::largest ? std::copysign(std::numeric_limits<double>::infinity(), x) : r;
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// Every code, its ties with the next one, their neighbours, and floats of all magnitudes.
template <class T> std::vector<float> dense() {
  constexpr float inf = std::numeric_limits<float>::infinity();
  std::vector<float> all;
  for (unsigned code = 0; code < 65536; ++code) {
    auto const x = float(meaning<T>(code)), next = float(meaning<T>((code + 1) & 0xffff));
    auto const tie = float((double(x) + next) / 2);
    for (float y : {x, tie})
      for (float z : {y, std::nextafter(y, inf), std::nextafter(y, -inf)}) all.push_back(z);
  }
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 9973)
    all.push_back(std::bit_cast<float>(std::uint32_t(bits)));
  auto const largest = float(format<T>::largest), ulp = largest - float(meaning<T>(code_of(narrow<T>(largest)) - 1));
  for (float x : {largest, largest + ulp / 4, largest + ulp / 2, std::nextafter(largest + ulp / 2, 0.f), inf})
    all.insert(all.end(), {x, -x});
  while (all.size() % 8 != 0) all.push_back(0);
  return all;
}

template <class T> void check_codes() {
  bool exact = true, back = true;
  for (unsigned code = 0; code < 65536; ++code) {
    T const x = from_code<T>(code);
    double const want = meaning<T>(code);
    exact = exact && same(widen<float>(x), want) && same(widen<double>(x), want);
    if (!std::isnan(want))
      back = back && code_of(narrow<T>(widen<float>(x))) == code && code_of(narrow<T>(widen<double>(x))) == code;
    else back = back && std::isnan(widen<float>(narrow<T>(widen<float>(x))));
  }
  CHECK(exact);
  CHECK(back);
}

template <class T> void check_floats() {
  std::size_t wrong = 0;
  for (float x : dense<T>()) {
    wrong += !same(widen<double>(narrow<T>(x)), rounded<T>(x));
    wrong += !same(widen<double>(narrow<T>(double(x))), rounded<T>(x));
  }
  CHECK(wrong == 0);
}

/// Doubles next to a tie: rounding to float first would give the tie, and then its even neighbour.
template <class T> void check_doubles() {
  constexpr double inf = std::numeric_limits<double>::infinity();
  std::size_t wrong = 0, telling = 0;
  for (unsigned code = 0; code < 65535; ++code) {
    double const tie = (meaning<T>(code) + meaning<T>(code + 1)) / 2;
    if (!std::isfinite(tie)) continue;
    for (double x : {tie, std::nextafter(tie, inf), std::nextafter(tie, -inf), tie * (1 + 1e-12)}) {
      wrong += !same(widen<double>(narrow<T>(x)), rounded<T>(x));
      telling += !same(rounded<T>(rounded<float>(x)), rounded<T>(x));
    }
  }
  CHECK(wrong == 0);
  CHECK(telling > 60000);
}

template <class T> void check_packs() {
  if (!ds::detail::has_lanes()) return;
  std::size_t wrong = 0;
  for (unsigned code = 0; code < 65536; code += 8) {
    T in[8];
    for (unsigned i = 0; i < 8; ++i) in[i] = from_code<T>(code + i);
    ds::detail::pack r;
    load(r, in);
    ds::detail::double_pack d;
    to_doubles(d, r);
    for (unsigned i = 0; i < 8; ++i)
      wrong += !same(r.lane[i], widen<float>(in[i])) || !same(d.lane[i], widen<double>(in[i]));
  }
  CHECK(wrong == 0);
  std::vector<float> const all = dense<T>();
  for (std::size_t i = 0; i < all.size(); i += 8) {
    ds::detail::pack r;
    load(r, &all[i]);
    T out[9] = {};
    store(out + 1, r);  // at any alignment
    for (std::size_t j = 0; j < 8; ++j) {
      T const want = narrow<T>(all[i + j]);
      wrong += std::isnan(all[i + j]) ? !std::isnan(widen<float>(out[j + 1])) : code_of(out[j + 1]) != code_of(want);
    }
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE_TEMPLATE("16 bits: every code means what the format says and comes back", T, half, bfloat16) {
  check_codes<T>();
}
TEST_CASE_TEMPLATE("16 bits: floats round to nearest, ties to even, over the end to infinity", T, half, bfloat16) {
  check_floats<T>();
}
TEST_CASE_TEMPLATE("16 bits: doubles round once", T, half, bfloat16) { check_doubles<T>(); }
TEST_CASE_TEMPLATE("16 bits: packs load and store what scalars do, for every code and a dense set of floats", T, half,
                   bfloat16) {
  check_packs<T>();
}

TEST_CASE("float and double pass through, a double rounding once to float") {
  CHECK(narrow<float>(0.1) == 0.1f);
  CHECK(narrow<float>(1e300) == std::numeric_limits<float>::infinity());
  CHECK(narrow<double>(0.1) == 0.1);
  CHECK(narrow<double>(0.1f) == double(0.1f));
  CHECK(widen<float>(0.1) == 0.1f);
  CHECK(widen<double>(0.1f) == double(0.1f));
  CHECK(std::isnan(narrow<float>(std::numeric_limits<double>::quiet_NaN())));
}

TEST_CASE("the ends of the formats") {
  CHECK(std::isinf(widen<float>(narrow<half>(65520.f))));
  CHECK(widen<float>(narrow<half>(65519.f)) == 65504);
  CHECK(widen<float>(narrow<half>(0x1p-24f)) == 0x1p-24f);  // the smallest denormal
  CHECK(widen<float>(narrow<half>(0x1p-25f)) == 0);         // a tie with 0
  CHECK(widen<float>(narrow<half>(0x1.01p-25f)) == 0x1p-24f);
  CHECK(std::isinf(widen<float>(narrow<bfloat16>(std::numeric_limits<float>::max()))));
  CHECK(widen<float>(narrow<bfloat16>(0x1.fep127f)) == 0x1.fep127f);
  CHECK(widen<float>(narrow<bfloat16>(0x1p-133f)) == 0x1p-133f);
  CHECK(widen<float>(narrow<bfloat16>(0x1p-134f)) == 0);
  CHECK(std::signbit(widen<float>(narrow<half>(-0.f))));
  CHECK(std::signbit(widen<float>(narrow<bfloat16>(-0.f))));
}

TEST_CASE("storage types are four and have names") {
  CHECK(ds::type_name<double>() == std::string_view("double"));
  CHECK(ds::type_name<float>() == std::string_view("float"));
  CHECK(ds::type_name<half>() == std::string_view("half"));
  CHECK(ds::type_name<bfloat16>() == std::string_view("bfloat16"));
  CHECK(!ds::storage_type<int>);
  CHECK(!ds::storage_type<long double>);
  CHECK(!ds::storage_type<float const>);
  CHECK(!ds::storage_type<std::uint32_t>);
  CHECK(ds::type_name<std::uint32_t>() == std::string_view("uint32"));
}

TEST_CASE("counts: whole numbers pass through, fractions are cut off, what is out of range becomes its end") {
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  constexpr std::uint32_t largest = ~0u;
  auto const of = [](auto x) { return narrow<std::uint32_t>(x); };
  for (std::uint32_t n : {0u, 1u, 7u, (1u << 24) - 1, 1u << 24, 1u << 31}) {
    CHECK(of(widen<float>(n)) == n);
    CHECK(of(widen<double>(n)) == n);
  }
  CHECK(of(widen<double>(largest)) == largest);
  CHECK(widen<float>((1u << 24) + 1) == 0x1p24f);
  CHECK((of(2.75f) == 2 && of(2.75) == 2 && of(-0.f) == 0 && of(-1.f) == 0 && of(-infinity) == 0));
  CHECK((of(0x1p32f) == largest && of(0x1p32) == largest && of(infinity) == largest && of(std::nanf("")) == 0));
  CHECK(of(0x1.fffffep31f) == 0xffffff00u);
}
