// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/core/range.hpp>
#include <descent/core/detail/philox.hpp>

#include <cmath>
#include <cstdint>

/// Noise on gradients and on losses. The random numbers depend only on seed, step and element (or example).
namespace descent {

/// Annealed Gaussian noise on the gradient (Neelakantan et al. 2015, eq. 1 and 2). t is the number of updates applied
/// so far, from 0. The authors try eta of 0.01, 0.3 and 1.
///
///     g <- g + N(0, s^2)          s^2 = eta / (1 + t)^gamma
///
/// In a chain it is a transform and adds the noise at its place. In front of sgd, with gamma = 0 and eta = 2 T / lr, it
/// gives Langevin dynamics (Welling & Teh 2011) at temperature T: p <- p - lr g + N(0, 2 lr T).
struct gradient_noise {
  double eta = 0.01, gamma = 0.55;  ///< initial variance and its decay, both at least 0
  std::uint64_t seed = 0;           ///< of the random numbers

  using policy_kind = kind::noise;

  /// s after t updates.
  DESCENT_HD double deviation(std::int64_t t) const { return sqrt(eta / ::pow(1 + double(t), gamma)); }

  template <class Real> struct terms { Real deviation; };
  /// In float, as the normals are: that drops the last bits of pow, which differ between libraries.
  DESCENT_HD terms<double> at(std::int64_t t) const { return {float(deviation(t - 1))}; }
  template <class Real> DESCENT_HD static Real apply(Real, Real g, terms<Real> const& k, Real z) {
    return g + k.deviation * z;
  }

  static constexpr field_range<gradient_noise> ranges[] = {{&gradient_noise::eta, at_least_0},
                                                           {&gradient_noise::gamma, at_least_0}};
};

namespace detail {

// The functions below use only + - * and sqrt, so that host and device agree bit for bit if neither contracts
// a * b + c.

/// log x for positive normal x, to 1.5 ulp: x = m 2^e with m in [sqrt(1/2), sqrt(2)), and Cephes' logf for m.
DESCENT_HD inline float normals_log(float x) {
  std::int32_t const bits = __builtin_bit_cast(std::int32_t, x) - 0x3f3504f3;
  float const e = float(bits >> 23), m = __builtin_bit_cast(float, (bits & 0x7fffff) + 0x3f3504f3);
  float const f = m - 1, z = f * f;
  float y = 7.0376836292e-2f;
  y = y * f - 1.1514610310e-1f;
  y = y * f + 1.1676998740e-1f;
  y = y * f - 1.2420140846e-1f;
  y = y * f + 1.4249322787e-1f;
  y = y * f - 1.6668057665e-1f;
  y = y * f + 2.0000714765e-1f;
  y = y * f - 2.4999993993e-1f;
  y = y * f + 3.3333331174e-1f;
  return e * 0.693359375f + (f + (e * -2.12194440e-4f + (y * f * z - 0.5f * z)));
}

struct sine_cosine { float sin, cos; };

/// Sine and cosine of 2 pi turn / 2^32, each to 3 ulp: the nearest quarter turn, and Cephes' sinf and cosf.
DESCENT_HD inline sine_cosine sincos_of_turn(std::uint32_t turn) {
  std::uint32_t const quarter = (turn + 0x20000000) >> 30;
  float const x = float(std::int32_t(turn - (quarter << 30))) * 1.46291807926715968e-9f, z = x * x;
  float const s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * x + x;
  float const c = ((2.4433157118e-5f * z - 1.3887316255e-3f) * z + 4.1666645683e-2f) * z * z - 0.5f * z + 1;
  std::uint32_t const sin_bits = __builtin_bit_cast(std::uint32_t, quarter & 1 ? c : s) ^ (quarter & 2) << 30;
  std::uint32_t const cos_bits = __builtin_bit_cast(std::uint32_t, quarter & 1 ? s : c) ^ ((quarter + 1) & 2) << 30;
  return {__builtin_bit_cast(float, sin_bits), __builtin_bit_cast(float, cos_bits)};
}

/// Two independent standard normals from two random words (Box & Muller 1958). Their magnitudes stay below 6.7.
DESCENT_HD inline sine_cosine two_normals(std::uint32_t a, std::uint32_t b) {
  float const u = float(std::int32_t(a >> 1)) * 0x1p-31f + 0x1p-32f;  // in (0, 1]
  float const r = descent::sqrt(-2 * normals_log(u));
  sine_cosine const direction = sincos_of_turn(b);
  return {r * direction.sin, r * direction.cos};
}

inline constexpr int noise_stream = 252, weight_stream = 254;

/// Standard normals for the 8 elements of a packet (element / 8) at a step. They use two streams.
DESCENT_HD inline void normals(float (&z)[8], std::uint64_t seed, std::int64_t step, std::int64_t packet,
                               int stream = noise_stream) {
  random_words const a = random_at(seed, step, packet, stream);
  random_words const b = random_at(seed, step, packet, stream + 1);
  for (int i = 0; i < 4; ++i) {
    sine_cosine const pair = two_normals(a.word[i], b.word[i]);
    z[i] = pair.sin;
    z[i + 4] = pair.cos;
  }
}

}  // namespace detail

/// The weight of one example's loss, 1 + deviation z with z ~ N(0, 1), which may be negative: multiplicative noise
/// (Hoffer et al. 2017, section 4). Each example has its own weight, so the noise of the mean gradient has the
/// covariance of the examples' gradients: a batch of M acts like one of about M / (1 + deviation^2). One factor for the
/// mean gradient would not do that: it only makes the step longer or shorter.
DESCENT_HD inline float loss_weight(std::uint64_t seed, std::int64_t step, std::int64_t example, float deviation) {
  detail::random_words const random = detail::random_at(seed, step, example, detail::weight_stream);
  return 1 + deviation * detail::two_normals(random.word[0], random.word[1]).sin;
}

}  // namespace descent
