// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>
#include <descent/core/precision.hpp>

#include <cstdint>

/// What muon does to the elements of a matrix, besides products. T is the type of the operands of products.
namespace descent::detail {

/// y <- x / max(||x||, eps), or x / (||x|| + eps) with eps_added
template <class T, class Real, class Terms> struct divide_by_norm {
  T* y;
  Real const* x;
  double const* squares;
  Terms const* k;
  DESCENT_HD void operator()(std::int64_t i) const {
    Real const norm = Real(sqrt(*squares)), d = k->eps_added != 0 ? norm + k->eps : norm > k->eps ? norm : k->eps;
    y[i] = narrow<T>(d > 0 ? x[i] / d : Real(0));
  }
};

/// b <- a3 b + a2 a + a1 I, all n x n
template <class T, class Real> struct add_polynomial {
  T* b;
  T const* a;
  Real a1, a2, a3;
  DESCENT_HD void operator()(std::int64_t i, std::int64_t row, std::int64_t column) const {
    b[i] = narrow<T>(a3 * widen<Real>(b[i]) + a2 * widen<Real>(a[i]) + (row == column ? a1 : Real(0)));
  }
};

template <class Real> struct elementwise_product {
  Real const *x, *y;
  DESCENT_HD double operator()(std::int64_t i) const { return double(x[i]) * double(y[i]); }
};

/// v <- beta2 v + (1 - beta2) mean of the row's squares
template <class Real, class Terms> struct row_moment {
  Real* v;
  Terms const* k;
  std::int64_t columns;
  DESCENT_HD void operator()(std::int64_t i, double squares) const {
    v[i] = k->b2 * v[i] + k->a2 * Real(squares / double(columns));
  }
};

/// x <- x / (sqrt(v) + eps2), v of the element's row
template <class Real, class Terms> struct divide_by_row_moment {
  Real* x;
  Real const* v;
  Terms const* k;
  DESCENT_HD void operator()(std::int64_t i, std::int64_t row, std::int64_t) const {
    Real const d = sqrt(v[row]) + k->eps2;
    x[i] = d > 0 ? x[i] / d : Real(0);
  }
};

/// x <- length / (||x|| + eps2) x, where 0 stands for the length before, and dual x if there is one
template <class Real, class Terms> struct scale_direction {
  Real* x;
  double const *before, *squares, *dual;
  Terms const* k;
  DESCENT_HD void operator()(std::int64_t i) const {
    Real factor = 1;
    if (squares) {
      Real const now = Real(sqrt(*squares));
      factor = now > 0 ? (k->length != 0 ? k->length : Real(sqrt(*before))) / (now + k->eps2) : Real(0);
    }
    if (dual) factor = factor * Real(*dual);
    x[i] = factor * x[i];
  }
};

}  // namespace descent::detail
