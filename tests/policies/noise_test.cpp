// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The noise: its distribution, its independence, and the accuracy of its functions. Statistical bounds are 5 standard
// deviations, for fixed seeds.
#include <descent/policies/noise.hpp>

#include <doctest/doctest.h>

#include "support/larger.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <stdexcept>
#include <vector>

namespace ds = descent;
using ds::detail::normals, ds::detail::normals_log, ds::detail::sincos_of_turn, ds::detail::two_normals;

static_assert(ds::policy<ds::gradient_noise>);

namespace {

constexpr double pi = 3.14159265358979323846;

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

/// The error of x in units in the last place of a float of the true value's magnitude.
double ulps(float x, double truth) {
  int exponent;
  std::frexp(truth, &exponent);
  return std::abs(double(x) - truth) / std::ldexp(1.0, std::max(exponent, -125) - 24);
}

/// Many normal numbers, from consecutive packets of one step.
std::vector<double> const& sample() {
  static std::vector<double> const all = [] {
    std::vector<double> v;
    for (std::int64_t packet = 0; packet < 1 << 17; ++packet) {
      float z[8];
      normals(z, 17, 3, packet);
      v.insert(v.end(), z, z + 8);
    }
    return v;
  }();
  return all;
}

double correlation(std::vector<double> const& a, std::vector<double> const& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum / double(a.size());
}

std::vector<double> drawn(std::uint64_t seed, std::int64_t step, std::int64_t first) {
  std::vector<double> v;
  for (std::int64_t packet = first; packet < first + 8192; ++packet) {
    float z[8];
    normals(z, seed, step, packet);
    v.insert(v.end(), z, z + 8);
  }
  return v;
}

}  // namespace

TEST_CASE("gradient noise: the variance is eta / (1 + t)^gamma") {
  ds::gradient_noise const noise{.eta = 0.3, .gamma = 0.55};
  CHECK(noise.deviation(0) == doctest::Approx(std::sqrt(0.3)).epsilon(1e-15));
  CHECK(noise.deviation(1) == doctest::Approx(std::sqrt(0.3 / std::pow(2, 0.55))).epsilon(1e-15));
  CHECK(noise.deviation(999) == doctest::Approx(std::sqrt(0.3) * std::pow(10, -3 * 0.55 / 2)).epsilon(1e-14));
  CHECK(noise.deviation(std::int64_t(1) << 60) > 0);
  CHECK(ds::gradient_noise{.eta = 4, .gamma = 0}.deviation(12345) == 2);
  CHECK(ds::gradient_noise{.eta = 0}.deviation(7) == 0);
  CHECK(ds::gradient_noise{}.deviation(0) == doctest::Approx(0.1));
}

TEST_CASE("gradient noise: what is refused") {
  constexpr double inf = std::numeric_limits<double>::infinity(), no_number = std::numeric_limits<double>::quiet_NaN();
  CHECK_NOTHROW(ds::check_rule<double>(ds::gradient_noise{}));
  CHECK_NOTHROW((ds::check_rule<double>(ds::gradient_noise{.eta = 0, .gamma = 0})));
  for (double bad : {-1e-9, inf, no_number}) {
    CHECK_THROWS_AS((ds::check_rule<double>(ds::gradient_noise{.eta = bad})), std::invalid_argument);
    CHECK_THROWS_AS((ds::check_rule<double>(ds::gradient_noise{.gamma = bad})), std::invalid_argument);
  }
  CHECK_THROWS_WITH((ds::check_rule<double>(ds::gradient_noise{.eta = -1})),
                    "gradient_noise: eta must be finite and at least 0, is -1");
}

TEST_CASE("normals: the logarithm is right to 1.5 ulp on all that can be drawn") {
  double worst = 0;
  auto const try_one = [&](float u) {
    if (u == 1) CHECK(normals_log(u) == 0);
    else worst = std::max(worst, ulps(normals_log(u), std::log(double(u))));
  };
  for (std::uint32_t k = 0; k < 4096; ++k) {
    try_one(float(k) * 0x1p-31f + 0x1p-32f);              // the smallest
    try_one(1 - float(k) * 0x1p-24f);                     // the largest
    try_one(0.70710678f + (float(k) - 2048) * 0x1p-24f);  // where the exponent changes
  }
  for (std::uint32_t bits = std::bit_cast<std::uint32_t>(0x1p-32f); bits < 0x3f800000; bits += 997)
    try_one(std::bit_cast<float>(bits));
  CHECK(worst < 1.5);
}

TEST_CASE("normals: sine and cosine are right to 3 ulp in every part of the turn") {
  double worst = 0;
  auto const try_one = [&](std::uint32_t turn) {
    auto const x = sincos_of_turn(turn);
    double const angle = double(turn) * (2 * pi / 4294967296.0);
    // near a multiple of a quarter turn, the rounding of `angle` itself matters
    worst = std::max({worst, std::abs(x.sin) < 1e-6 ? 0 : ulps(x.sin, std::sin(angle)),
                      std::abs(x.cos) < 1e-6 ? 0 : ulps(x.cos, std::cos(angle))});
  };
  for (std::uint64_t turn = 0; turn < 1ull << 32; turn += 4093) try_one(std::uint32_t(turn));
  for (std::uint32_t eighth = 0; eighth < 8; ++eighth)
    for (int k = -2000; k <= 2000; ++k) try_one((eighth << 29) + std::uint32_t(k));
  CHECK(worst < 3);
  CHECK(sincos_of_turn(0).sin == 0);
  CHECK(sincos_of_turn(0).cos == 1);
  CHECK(sincos_of_turn(1u << 30).sin == 1);
  CHECK(sincos_of_turn(1u << 31).cos == -1);
  CHECK(sincos_of_turn(3u << 30).sin == -1);
  CHECK(sincos_of_turn(1).sin == doctest::Approx(2 * pi / 4294967296.0).epsilon(1e-6));
}

TEST_CASE("normals: the radius is sqrt(-2 log u), finite for all words") {
  for (std::uint32_t a : {0u, 1u, 2u, 0x7fffffffu, 0x80000000u, 0xfffffffeu, 0xffffffffu})
    for (std::uint32_t b : {0u, 1u, 0x20000000u, 0x40000000u, 0xffffffffu}) {
      auto const z = two_normals(a, b);
      double const radius = std::hypot(double(z.sin), double(z.cos));
      double const expected = std::sqrt(-2 * std::log((double(a >> 1) + 0.5) * 0x1p-31));
      // u is rounded to a float, which near 1 leaves only a few values for the smallest radii
      CHECK(std::abs(radius - expected) < (expected < 1e-3 ? 5e-4 : 1e-6 * expected));
      CHECK(radius < 6.7);
    }
}

TEST_CASE("normals: the first four moments are those of N(0, 1)") {
  auto const& z = sample();
  double m[5] = {};
  for (double x : z) m[1] += x, m[2] += x * x, m[3] += x * x * x, m[4] += x * x * x * x;
  double const n = double(z.size()), deviation = 5 / std::sqrt(n);
  CHECK(std::abs(m[1] / n) < deviation);
  CHECK(std::abs(m[2] / n - 1) < deviation * std::sqrt(2.0));
  CHECK(std::abs(m[3] / n) < deviation * std::sqrt(15.0));
  CHECK(std::abs(m[4] / n - 3) < deviation * std::sqrt(96.0));
}

TEST_CASE("normals: each of the eight is N(0, 1), and none depends on another") {
  auto const& z = sample();
  std::size_t const packets = z.size() / 8;
  double const deviation = 5 / std::sqrt(double(packets));
  for (std::size_t a = 0; a < 8; ++a) {
    double mean = 0, square = 0;
    for (std::size_t i = 0; i < packets; ++i) mean += z[i * 8 + a], square += z[i * 8 + a] * z[i * 8 + a];
    CHECK(std::abs(mean / double(packets)) < deviation);
    CHECK(std::abs(square / double(packets) - 1) < deviation * std::sqrt(2.0));
    for (std::size_t b = 0; b < a; ++b) {
      double product = 0, squares = 0;
      for (std::size_t i = 0; i < packets; ++i) {
        double const x = z[i * 8 + a], y = z[i * 8 + b];
        product += x * y;
        squares += (x * x - 1) * (y * y - 1);
      }
      CHECK(std::abs(product / double(packets)) < deviation);
      CHECK(std::abs(squares / double(packets)) < deviation * 2);
    }
  }
}

TEST_CASE("normals: the distribution function is that of N(0, 1), into the tails") {
  auto z = sample();
  std::sort(z.begin(), z.end());
  double const n = double(z.size());
  double distance = 0;  // Kolmogorov-Smirnov
  for (std::size_t i = 0; i < z.size(); ++i)
    distance = test::larger(distance, std::abs((double(i) + 0.5) / n - normal_cdf(z[i])));
  CHECK(distance * std::sqrt(n) < 1.95);  // exceeded once in a thousand samples
  for (double x : {-4.5, -4.0, -3.0, -2.0, 2.0, 3.0, 4.0, 4.5}) {
    double const beyond = x < 0 ? double(std::lower_bound(z.begin(), z.end(), x) - z.begin())
                                : double(z.end() - std::upper_bound(z.begin(), z.end(), x));
    double const expected = n * normal_cdf(-std::abs(x));
    CAPTURE(x);
    CHECK(std::abs(beyond - expected) < 5 * std::sqrt(expected));
  }
}

TEST_CASE("normals: other packets, steps and seeds are uncorrelated; the same ones give the same bits") {
  auto const base = drawn(1, 0, 0);
  double const bound = 5 / std::sqrt(double(base.size()));
  CHECK(base == drawn(1, 0, 0));
  CHECK(std::abs(correlation(base, drawn(1, 1, 0))) < bound);
  CHECK(std::abs(correlation(base, drawn(1, 0, 8192))) < bound);
  CHECK(std::abs(correlation(base, drawn(1, 0, 1))) < bound);
  CHECK(std::abs(correlation(base, drawn(2, 0, 0))) < bound);
  CHECK(std::abs(correlation(base, drawn(1, std::int64_t(1) << 32, 0))) < bound);
  std::vector<double> const shifted(base.begin() + 8, base.end());
  CHECK(std::abs(correlation(shifted, base)) < bound);
}

TEST_CASE("loss weight: N(1, deviation^2), one for each example and step") {
  constexpr int n = 1 << 18;
  double mean = 0, square = 0, next_step = 0, neighbour = 0, other_noise = 0;
  for (std::int64_t e = 0; e < n; ++e) {
    double const z = (ds::loss_weight(5, 2, e, 0.25f) - 1) / 0.25;
    float noise[8];
    normals(noise, 5, 2, e);
    mean += z;
    square += z * z;
    next_step += z * (ds::loss_weight(5, 3, e, 0.25f) - 1) / 0.25;
    neighbour += z * (ds::loss_weight(5, 2, e + 1, 0.25f) - 1) / 0.25;
    other_noise += (z * z - 1) * (double(noise[0]) * noise[0] - 1) / 2;
  }
  double const bound = 5 / std::sqrt(double(n));
  CHECK(std::abs(mean / n) < bound);
  CHECK(std::abs(square / n - 1) < bound * std::sqrt(2.0));
  CHECK(std::abs(next_step / n) < bound);
  CHECK(std::abs(neighbour / n) < bound);
  CHECK(std::abs(other_noise / n) < bound);
  CHECK(ds::loss_weight(5, 2, 77, 0) == 1);
  CHECK(ds::loss_weight(5, 2, 77, 0.5f) == ds::loss_weight(5, 2, 77, 0.5f));
  CHECK(ds::loss_weight(6, 2, 77, 0.5f) != ds::loss_weight(5, 2, 77, 0.5f));
}

TEST_CASE("loss weight: the noise of the mean gradient has the covariance of the examples' gradients") {
  // Two parameters and 64 examples whose gradients differ only in the second: a factor of the mean cannot do that.
  constexpr int examples = 64, steps = 20000;
  constexpr float deviation = 0.5f;
  double g[examples][2], expected[2] = {}, noise[2] = {};
  for (int e = 0; e < examples; ++e) {
    g[e][0] = 0;
    g[e][1] = e % 2 ? 1 : -1;
    for (int d = 0; d < 2; ++d) expected[d] += g[e][d] * g[e][d] * deviation * deviation / examples / examples;
  }
  for (int t = 0; t < steps; ++t) {
    double sum[2] = {};
    for (int e = 0; e < examples; ++e)
      for (int d = 0; d < 2; ++d) sum[d] += ds::loss_weight(8, t, e, deviation) * g[e][d] / examples;
    for (int d = 0; d < 2; ++d) noise[d] += sum[d] * sum[d] / steps;
  }
  CHECK(noise[0] == 0);
  CHECK(noise[1] == doctest::Approx(expected[1]).epsilon(5 * std::sqrt(2.0 / steps)));
}
