// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/matrices/detail/thread_team.hpp>
#include <descent/core/detail/philox.hpp>
#include <descent/matrices/matrices.hpp>

#include <cstdint>

/// An orthonormal basis from matrix products and one block of threads for each panel of rows. Except for signs it is
/// what a QR factorization of the transpose would give.
namespace descent::detail {

inline constexpr int panel_rows = thread_team::capacity;

/// x_r <- x_r / ||x_r|| for row r, or 0 if the row is nothing but rounding error.
template <class Real> struct divide_row {
  Real* x;
  double const* squares;
  std::int64_t n;
  DESCENT_HD void operator()(thread_team const& all, std::int64_t r) const {
    Real* row = x + r * n;
    all.sums(1, n, [&](int, std::int64_t j) { return double(row[j]) * double(row[j]); });
    double const norm = sqrt(all.sum[0]);
    bool const keep = norm > (squares ? rounding<Real>(n) * sqrt(*squares) : 0);
    all.each(n, [&](std::int64_t j) { row[j] = keep ? Real(row[j] / norm) : Real(0); });
  }
};
/// x <- x - y
template <class Real> struct subtract {
  Real* x;
  Real const* y;
  DESCENT_HD void operator()(std::int64_t i) const { x[i] -= y[i]; }
};

/// Gram-Schmidt within one panel. Its rows had length 1 and were then made orthogonal to all rows before the panel.
/// What is left of a dependent row is rounding error: the row is replaced by that of `instead` or, if that is dependent
/// too, by a random one. The next pass makes these orthogonal to the rows before the panel.
template <class Real> struct orthonormal_panel {
  Real* p;
  Real const* instead;
  std::int64_t n, first;
  int rows, pass;

  DESCENT_HD Real other(std::int64_t i, int tries) const {
    if (pass == 0 && tries == 0 && instead) return instead[i];
    return Real(double(random_at(0, pass, i, tries).word[0]) * 0x1p-31 - 1) / sqrt(Real(n));
  }
  /// Makes the row orthogonal to the r rows before it. Returns its length.
  DESCENT_HD double orthogonal(thread_team const& all, Real* x, int r, int times) const {
    for (int again = 0; r > 0 && again < times; ++again) {
      all.sums(r, n, [&](int i, std::int64_t j) { return double(p[i * n + j]) * double(x[j]); });
      all.each(n, [&](std::int64_t j) {
        Real rest = x[j];
        for (int i = 0; i < r; ++i) rest -= Real(all.sum[i]) * p[i * n + j];
        x[j] = rest;
      });
    }
    all.sums(1, n, [&](int, std::int64_t j) { return double(x[j]) * double(x[j]); });
    return sqrt(all.sum[0]);
  }
  DESCENT_HD void operator()(thread_team const& all, std::int64_t) const {
    double const dependent = 4 * rounding<Real>(n);
    for (int r = 0; r < rows; ++r) {
      Real* x = p + r * n;
      double norm = orthogonal(all, x, r, pass == 0 ? 2 : 1);
      for (int tries = 0; tries < 3 && (is_nan(norm) || norm <= dependent); ++tries) {
        all.each(n, [&](std::int64_t j) { x[j] = other((first + r) * n + j, tries); });
        norm = orthogonal(all, x, r, 2);
      }
      all.each(n, [&](std::int64_t j) { x[j] = Real(x[j] / norm); });
    }
  }
};

/// Makes the n rows of x orthonormal: row r is made orthogonal to those before it. c and y have panel_rows n elements
/// each. `instead`, n x n, may be null. `squares` may be null, or x is a product with a matrix whose elements have this
/// sum of squares. Blocked Gram-Schmidt in four passes: one is not enough (Giraud, Langou & Rozloznik 2005), another
/// one follows for rows that were replaced, and another one for their replacements.
template <class Work, class Real>
void orthonormal_rows(Work const& w, Real* x, Real const* instead, double const* squares, std::int64_t n, Real* c,
                      Real* y) {
  w.teams(n, divide_row<Real>{x, squares, n});
  for (std::int64_t first = 0; first < n; first += panel_rows) {
    std::int64_t const rows = n - first < panel_rows ? n - first : panel_rows;
    dense<Real> const P{x + first * n, rows, n}, before{x, first, n};
    for (int pass = 0; pass < 4; ++pass) {
      if (first > 0) {
        w.product(P, before.t(), c);
        w.product({c, rows, first}, before, y);
        w.each(rows * n, subtract<Real>{P.data, y});
      }
      w.teams(1, orthonormal_panel<Real>{P.data, instead, n, first, int(rows), pass});
    }
  }
}

}  // namespace descent::detail
