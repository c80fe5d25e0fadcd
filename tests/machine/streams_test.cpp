// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Packets between memory and registers: every type, every length, nothing beyond the end.
#include <descent/detail/streams.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <type_traits>

namespace ds = descent;
using ds::half, ds::bfloat16, ds::narrow, ds::widen;
using namespace ds::detail;

namespace {

template <class Real> float number(Real const (&r)[reals<Real>], int j) {
  if constexpr (lanes<Real> == 1) return float(r[j]);
  else return r[0].lane[j];
}

float sample(int i) { return float(i * i) / 7 - 3; }

template <class T, class Real> void check() {
  if constexpr (std::is_same_v<T, double> && lanes<Real> == 8) return;
  else
    for (int size = 1; size <= 8; ++size) {
      if (lanes<Real> == 8 && !has_lanes()) return;
      T in[16];
      for (int i = 0; i < 16; ++i) in[i] = narrow<T>(sample(i));
      extent const e{size, size == 8};
      Real r[reals<Real>];
      read(r, in + 1, e);  // at no special alignment
      for (int j = 0; j < 8; ++j) CHECK(number(r, j) == widen<float>(in[j < size ? j + 1 : 1]));

      double d[packet_size];
      to_doubles(d, r, size);
      for (int j = 0; j < 8; ++j) CHECK(d[j] == (j < size ? widen<double>(in[j + 1]) : 0));

      T out[10];
      for (T& x : out) x = narrow<T>(-99.f);
      write(out + 1, r, e);
      CHECK(widen<float>(out[0]) == -99);
      for (int j = 0; j < 8; ++j)
        CHECK(widen<float>(out[j + 1]) == (j < size ? widen<float>(in[j + 1]) : -99));
      CHECK(widen<float>(out[9]) == -99);
    }
}

template <class T, class Real> void check_rounding() {
  if (lanes<Real> == 8 && !has_lanes()) return;
  float in[8];
  for (int i = 0; i < 8; ++i) in[i] = sample(i + 1) / 3;
  Real r[reals<Real>];
  read(r, in, {8, true});
  round_to<T>(r);
  for (int j = 0; j < 8; ++j) CHECK(number(r, j) == widen<float>(narrow<T>(in[j])));
}

}  // namespace

TEST_CASE(
    "packets of every length read, widen, round and write each type, and touch nothing else") {
  check<float, float>();
  check<half, float>();
  check<bfloat16, float>();
  check<double, double>();
  check<float, double>();
  check<half, double>();
  check<bfloat16, double>();
  check<float, pack>();
  check<half, pack>();
  check<bfloat16, pack>();
}

TEST_CASE("rounding to storage and back gives what storing would have given") {
  check_rounding<float, float>();
  check_rounding<half, float>();
  check_rounding<bfloat16, float>();
  check_rounding<float, double>();
  check_rounding<half, double>();
  check_rounding<float, pack>();
  check_rounding<half, pack>();
  check_rounding<bfloat16, pack>();
}

TEST_CASE("single elements go through the same functions") {
  float const in[1] = {0.1f};
  half out[2] = {half(0.f), half(7.f)};
  float r[1];
  read(r, in, {1, false});
  CHECK(r[0] == 0.1f);
  write(out, r, {1, false});
  CHECK(widen<float>(out[0]) == widen<float>(narrow<half>(0.1f)));
  CHECK(widen<float>(out[1]) == 7);
}
