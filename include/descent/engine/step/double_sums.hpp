// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/packet_io.hpp>
#include <descent/core/detail/summation_order.hpp>

#include <type_traits>

/// Sums in double over packets: element j of a packet goes into sum j mod 4. simd_pack.hpp has the same for packs.
namespace descent::detail {

struct eight_doubles { double lane[packet_size]; };
template <class Real> using in_double = std::conditional_t<lanes<Real> == 1, eight_doubles, double_pack>;

/// Converts the first n elements and sets the others to 0.
template <class Real> DESCENT_HD void to_doubles(in_double<Real>& out, Real const (&r)[reals<Real>], int n) {
  if constexpr (lanes<Real> == 1) {
    for (int j = 0; j < packet_size; ++j) out.lane[j] = double(r[j]);
    if (n < packet_size)
      for (int j = 0; j < packet_size; ++j)
        if (j >= n) out.lane[j] = 0;
  } else {
    to_doubles(out, r[0]);
    if (n < packet_size) keep(out, (1u << n) - 1);
  }
}
/// Sets elements whose bit is not set to 0.
DESCENT_HD inline void keep(eight_doubles& x, unsigned in) {
  for (int j = 0; j < packet_size; ++j)
    if (!(in >> j & 1)) x.lane[j] = 0;
}
DESCENT_HD inline void square(eight_doubles& x) {
  for (double& one : x.lane) one *= one;
}
DESCENT_HD inline void magnitude(eight_doubles& x, double scale) {
  for (double& one : x.lane) one = abs(one) * scale;
}
template <class Real> DESCENT_HD void clear(double (&sum)[4]) {
  if constexpr (lanes<Real> == 1) for (double& one : sum) one = 0;
  else clear_in_lanes(sum);
}
DESCENT_HD inline void add(double (&sum)[4], eight_doubles const& x) {
  for (int j = 0; j < 4; ++j) sum[j] += x.lane[j] + x.lane[j + 4];
}
/// |x| <= most; false for NaN.
DESCENT_HD inline bool is_at_most(double const& x, double most) { return magnitude_bits(x) <= magnitude_bits(most); }
/// Keeps the largest value of each sum and its elements.
DESCENT_HD inline void enlarge(double (&sum)[4], eight_doubles const& x) {
  for (int j = 0; j < 4; ++j) sum[j] = larger(sum[j], larger(x.lane[j], x.lane[j + 4]));
}

/// fold_four of summation_order.hpp, with SIMD for sums of packs.
template <class Real, bool Largest>
DESCENT_HD double fold_four(double const (&a)[4], double const (&b)[4], double const (&c)[4], double const (&d)[4]) {
  if constexpr (lanes<Real> == 1 || Largest) return fold_four<Largest>(a, b, c, d);
  else return fold_four_in_lanes(a, b, c, d);
}

}  // namespace descent::detail
