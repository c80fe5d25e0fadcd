// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Stochastic rounding, for all 65536 random numbers, against neighbours that are found here by search.
#include <descent/engine/step/packet_random.hpp>
#include <descent/policies/rounding.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <type_traits>
#include <vector>

namespace ds = descent;
using ds::half, ds::bfloat16, ds::widen, ds::narrow, ds::detail::narrow_stochastic, ds::detail::random_bits;

static_assert(ds::policy<ds::stochastic_rounding>);

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

template <class T> std::uint16_t word(T x) { return std::bit_cast<std::uint16_t>(x); }
template <class T> double from(std::uint16_t w) { return widen<double>(std::bit_cast<T>(w)); }

/// All finite non-negative numbers of T in ascending order, without -0.
template <class T> std::vector<double> const& positives() {
  static std::vector<double> const all = [] {
    std::vector<double> v;
    for (int w = 0; w < 0x8000; ++w)
      if (double const x = from<T>(std::uint16_t(w)); std::isfinite(x)) v.push_back(x);
    return v;
  }();
  return all;
}

/// The numbers of T next to |x|, up to the largest one.
struct interval { double below, above; };
template <class T> interval around(double x) {
  auto const& all = positives<T>();
  auto const above = std::lower_bound(all.begin(), all.end(), x);
  REQUIRE(above != all.end());
  return {*above == x ? x : *(above - 1), *above};
}

/// For how many of all 65536 random numbers x moves away from zero; checks that it goes to a neighbour with its sign.
template <class T> int times_up(float x) {
  auto const [below, above] = around<T>(std::abs(double(x)));
  int up = 0, wrong = 0;
  for (std::uint32_t r = 0; r < 65536; ++r) {
    T const y = narrow_stochastic<T>(x, r);
    double const a = std::abs(widen<double>(y));
    wrong += a != below && a != above;
    wrong += std::signbit(widen<double>(y)) != std::signbit(x);
    up += a != below;
  }
  CHECK(wrong == 0);
  return up;
}

/// Magnitudes of every kind in the range of T's finite numbers.
template <class T> std::vector<float> samples() {
  std::vector<float> v;
  std::uint64_t state = 1;
  auto const next = [&] {
    return state = state * 6364136223846793005u + 1442695040888963407u, std::uint32_t(state >> 32);
  };
  double const largest = positives<T>().back();
  auto const add = [&](double x) {
    if (x <= largest) v.push_back(float(x));
  };
  auto const& all = positives<T>();
  for (std::size_t i : {std::size_t(0), std::size_t(1), std::size_t(2), std::size_t(100), all.size() / 3,
                        all.size() / 2, all.size() - 2})
    for (double part : {0.5, 0.25, 0.75, 1. / 8, 1 - 1. / 64, 1. / 3, 0x1p-7, 1 - 0x1p-7})
      add(all[i] + part * (all[i + 1] - all[i]));
  double const smallest_normal = std::is_same_v<T, half> ? 0x1p-14 : 0x1p-126;
  for (double x : {1.0, 2.0, 0.1, 3.14159, smallest_normal}) {
    add(x);
    add(std::nextafter(float(x), inf));
    add(std::nextafter(float(x), 0.f));
  }
  for (int i = 0; i < 40; ++i) add(std::ldexp(1 + next() * 0x1p-32, int(next() % 45) - 30));
  for (int i = 0; i < 40; ++i) add(smallest_normal * (next() * 0x1p-32));
  for (int i = 0; i < 10; ++i) add(std::ldexp(smallest_normal * (next() * 0x1p-32), -int(next() % 10)));
  return v;
}

}  // namespace

TEST_CASE_TEMPLATE("stochastic rounding: up in exactly the dropped fraction of all cases, always to a neighbour", T,
                   half, bfloat16) {
  for (float x : samples<T>()) {
    CAPTURE(x);
    auto const [below, above] = around<T>(x);
    double const expected = above == below ? 0 : (double(x) - below) / (above - below) * 65536;
    bool const rough = std::is_same_v<T, half> && x < 0x1p-14f;  // more than 16 bits are dropped
    for (float s : {x, -x}) {
      int const up = times_up<T>(s);
      if (rough) CHECK(std::abs(up - expected) < 1);
      else CHECK(up == expected);
    }
  }
}

TEST_CASE_TEMPLATE("stochastic rounding: a number that T represents stays, for any random number", T, half, bfloat16) {
  int moved = 0;
  for (int w = 0; w < 0x10000; ++w) {
    float const wide = widen<float>(std::bit_cast<T>(std::uint16_t(w)));
    for (std::uint32_t r : {0u, 1u, 7u, 8u, 0x7fffu, 0x8000u, 0xfff8u, 0xffffu}) {
      T const y = narrow_stochastic<T>(wide, r);
      moved += std::isnan(wide) ? !std::isnan(widen<float>(y)) : word(y) != w;
    }
  }
  CHECK(moved == 0);
}

TEST_CASE_TEMPLATE("stochastic rounding: beyond the largest finite number it is rounding to nearest", T, half,
                   bfloat16) {
  double const largest = positives<T>().back(), gap = largest - *(positives<T>().end() - 2);
  float const threshold = float(largest + gap / 2);  // a tie, which goes to infinity: the even one
  for (float x :
       {std::nextafter(float(largest), inf), float(largest + gap / 4), std::nextafter(threshold, 0.f), threshold,
        std::nextafter(threshold, inf), float(largest + gap * 0.75), 3.4e38f, std::numeric_limits<float>::max(), inf})
    for (float s : {x, -x}) {
      CAPTURE(s);
      int different = 0;
      for (std::uint32_t r = 0; r < 65536; ++r) different += word(narrow_stochastic<T>(s, r)) != word(narrow<T>(s));
      CHECK(different == 0);
      CHECK(std::isinf(widen<float>(narrow_stochastic<T>(s, 0))) == (x >= threshold));
    }
  auto const near_top = std::nextafter(float(largest), 0.f);
  int infinite = 0;
  for (std::uint32_t r = 0; r < 65536; ++r) infinite += !std::isfinite(widen<float>(narrow_stochastic<T>(near_top, r)));
  CHECK(infinite == 0);
}

TEST_CASE_TEMPLATE("stochastic rounding: NaN stays NaN, with any payload", T, half, bfloat16) {
  for (std::uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu, 0x7fbfffffu})
    for (std::uint32_t r : {0u, 1u, 0x8000u, 0xffffu})
      CHECK(std::isnan(widen<float>(narrow_stochastic<T>(std::bit_cast<float>(bits), r))));
}

TEST_CASE_TEMPLATE(
    "stochastic rounding: numbers below half of T's smallest one can go up, and do so as often as is right", T, half,
    bfloat16) {
  double const smallest = positives<T>()[1];
  CHECK(times_up<T>(float(smallest / 4)) == 16384);
  CHECK(times_up<T>(float(smallest / 64)) == 1024);
  CHECK(times_up<T>(std::numeric_limits<float>::denorm_min()) == (std::is_same_v<T, bfloat16> ? 1 : 0));
}

TEST_CASE_TEMPLATE("stochastic rounding: a thousand small updates add up, where rounding to nearest loses them", T,
                   half, bfloat16) {
  float const update = std::is_same_v<T, half> ? 0x1p-15f : 0x1p-12f;  // 1/32 of a unit in the last place of 1
  constexpr int elements = 512, steps = 1024;
  double sum = 0;
  for (int e = 0; e < elements; ++e) {
    T p = narrow<T>(1.f), nearest = p;
    for (int t = 0; t < steps; ++t) {
      auto const r = random_bits(3, t, e / 8, 0);
      p = narrow_stochastic<T>(widen<float>(p) + update, r.bits[e % 8]);
      nearest = narrow<T>(widen<float>(nearest) + update);
    }
    CHECK(widen<float>(nearest) == 1);
    sum += widen<double>(p) - 1;
  }
  double const mean = sum / elements, expected = double(update) * steps;
  // each step has a variance of at most 31 update^2
  CHECK(std::abs(mean - expected) < 5 * update * std::sqrt(31. * steps / elements));
}

TEST_CASE("random_bits: 16 bits each, a function of seed, step, packet and stream") {
  std::set<std::vector<std::uint32_t>> seen;
  int calls = 0;
  for (std::uint64_t seed : {0ull, 1ull, 1ull << 40})
    for (std::int64_t step : {std::int64_t(0), std::int64_t(1), std::int64_t(1) << 40})
      for (std::int64_t packet : {std::int64_t(0), std::int64_t(1), (std::int64_t(1) << 57) - 1})
        for (int stream : {0, 1, 255}) {
          auto const r = random_bits(seed, step, packet, stream);
          for (auto b : r.bits) CHECK(b < 65536);
          seen.insert(std::vector<std::uint32_t>(r.bits, r.bits + 8));
          ++calls;
        }
  CHECK(int(seen.size()) == calls);
}

TEST_CASE("random_bits: those of two streams made in lanes are the same") {
  if (!ds::detail::has_lanes()) return;
  std::uint64_t const seeds[] = {0, 1, 0x123456789abcdef0, ~std::uint64_t(0)};
  std::int64_t const numbers[] = {0, 1, 8, 0x7fffffff, 0x80000000, 0x123456789abcde};
  auto const same = [](auto const& a, auto const& b) { return std::ranges::equal(a.bits, b.bits); };
  for (auto const seed : seeds)
    for (auto const step : numbers)
      for (auto const packet : numbers)
        for (int a : {0, 2, 100, 239})
          for (int b : {1, 3, 239}) {
            ds::detail::random_packet first, second;
            ds::detail::random_bits_in_lanes(first, second, seed, step, packet, a, b);
            CHECK(same(first, random_bits(seed, step, packet, a)));
            CHECK(same(second, random_bits(seed, step, packet, b)));
          }
}

TEST_CASE("random_bits: each of the eight is uniform, and uncorrelated with the others") {
  constexpr int n = 1 << 16;
  double mean[8] = {}, product[8][8] = {};
  std::vector<int> bins(16 * 8);
  for (int i = 0; i < n; ++i) {
    auto const r = random_bits(9, 4, i, 2);
    for (int a = 0; a < 8; ++a) {
      double const u = (r.bits[a] + 0.5) / 65536 - 0.5;
      mean[a] += u / n;
      ++bins[std::size_t(a) * 16 + (r.bits[a] >> 12)];
      for (int b = 0; b < a; ++b) product[a][b] += u * ((r.bits[b] + 0.5) / 65536 - 0.5) / n;
    }
  }
  for (int a = 0; a < 8; ++a) {
    CHECK(std::abs(mean[a]) < 5 * std::sqrt(1. / 12 / n));
    for (int b = 0; b < a; ++b) CHECK(std::abs(product[a][b]) < 5. / 12 / std::sqrt(double(n)));
  }
  for (int count : bins) CHECK(std::abs(count - n / 16) < 5 * 64);
}
