// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/matrices/detail/thread_team.hpp>
#include <descent/matrices/matrices.hpp>

#include <cstdint>

/// Eigenvectors of a symmetric positive semidefinite matrix by one-sided Jacobi rotations.
namespace descent::detail {

/// Rotates rows p and q of w = v a, and of v, so that those of w become orthogonal. They are pair b of one round of a
/// tournament, in which every row meets every other row once, in n - 1 rounds if n is even, or n if it is odd.
template <class Real> struct turn_rows {
  Real *w, *v;
  Real const* solved;     // there is nothing to do unless it is 0
  double const* squares;  // of all elements of a
  double* turned;         // [sweep % 2]: whether a sweep changed something
  std::int64_t n, round;
  int sweep;

  DESCENT_HD void operator()(thread_team const& all, std::int64_t b) const {
    if (*solved != 0 || (sweep > 0 && turned[(sweep - 1) % 2] == 0)) return;
    std::int64_t const last = n + n % 2 - 1;
    std::int64_t const one = b == 0 ? last : (round + b) % last, two = (round - b + last) % last;
    std::int64_t const p = one < two ? one : two, q = one < two ? two : one;
    if (q >= n) return;
    Real *x = w + p * n, *y = w + q * n;
    all.sums(3, n, [&](int i, std::int64_t j) { return double((i == 1 ? y : x)[j]) * double((i == 0 ? x : y)[j]); });
    double const xx = all.sum[0], yy = all.sum[1], xy = all.sum[2];
    double const digit = 16 * rounding<Real>(1), none = rounding<Real>(n) * rounding<Real>(n) * *squares;
    if (!(xx > none && yy > none) || !(xy * xy > digit * digit * xx * yy)) return;
    double const zeta = (yy - xx) / (2 * xy), root = abs(zeta) + sqrt(1 + zeta * zeta);
    double const tangent = (zeta < 0 ? -1 : 1) / root, cosine = 1 / sqrt(1 + tangent * tangent);
    Real const c = Real(cosine), s = Real(cosine * tangent);
    Real *vx = v + p * n, *vy = v + q * n;
    all.each(n, [&](std::int64_t j) {
      Real const a = x[j], e = vx[j];
      x[j] = c * a - s * y[j], vx[j] = c * e - s * vy[j];
      y[j] = s * a + c * y[j], vy[j] = s * e + c * vy[j];
    });
    all.each(1, [&](std::int64_t) { turned[sweep % 2] = 1; });
  }
};
struct clear_turned {
  double* turned;
  int sweep;
  DESCENT_HD void operator()(std::int64_t) const {
    if (sweep == 0 || turned[(sweep - 1) % 2] != 0) turned[sweep % 2] = 0;
  }
};

inline constexpr int jacobi_sweeps = 16;

/// If *solved is 0: w <- v a and v <- eigenvectors of a as rows, in any order; the lengths of the rows of w are then
/// the eigenvalues. Sweeps until nothing changes, at most jacobi_sweeps times; a device enqueues all of them. Uses
/// three of work.sums() from `sum` on: one for the squares and two for the sweeps.
template <class Work, class Real>
void eigenvectors(Work const& work, Real const* a, Real* w, Real* v, Real const* solved, std::int64_t n, double* sum) {
  work.total(n * n, square_of<Real>{a}, sum);
  work.each(n * n, copy_of<Real>{w, a});
  work.each(n * n, identity_of<Real>{v, n});
  double* const turned = sum + 1;
  for (int sweep = 0; sweep < jacobi_sweeps; ++sweep) {
    work.each(1, clear_turned{turned, sweep});
    for (std::int64_t round = 0; round < n + n % 2 - 1; ++round)
      work.teams((n + 1) / 2, turn_rows<Real>{w, v, solved, sum, turned, n, round, sweep});
    if constexpr (Work::immediate)
      if (turned[sweep % 2] == 0) break;
  }
}

/// values[r] <- sum over j of a_rj b_rj
template <class Real> struct row_products {
  Real const *a, *b;
  Real* values;
  std::int64_t n;
  DESCENT_HD void operator()(thread_team const& all, std::int64_t r) const {
    all.sums(1, n, [&](int, std::int64_t j) { return double(a[r * n + j]) * double(b[r * n + j]); });
    all.each(1, [&](std::int64_t) { values[r] = Real(all.sum[0]); });
  }
};
/// rank[i] <- the number of values before values[i] if the largest comes first
template <class Real> struct rank_of {
  Real* rank;
  Real const* values;
  std::int64_t n;
  DESCENT_HD void operator()(std::int64_t i) const {
    std::int64_t before = 0;
    for (std::int64_t j = 0; j < n; ++j) before += values[j] > values[i] || (values[j] == values[i] && j < i) ? 1 : 0;
    rank[i] = Real(before);
  }
};
/// Puts the rows of `from`, `columns` wide, in the order of their ranks.
template <class Real> struct ranked_rows {
  Real* to;
  Real const *from, *rank;
  std::int64_t columns;
  DESCENT_HD void operator()(std::int64_t i) const {
    to[std::int64_t(rank[i / columns]) * columns + i % columns] = from[i];
  }
};
template <class Real> struct ranked_columns {
  Real* to;
  Real const *from, *rank;
  std::int64_t columns;
  DESCENT_HD void operator()(std::int64_t i) const {
    to[i / columns * columns + std::int64_t(rank[i % columns])] = from[i];
  }
};

}  // namespace descent::detail
