// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/matrices/detail/eigenbasis.hpp>
#include <descent/matrices/detail/orthonormal.hpp>
#include <descent/matrices/matrices.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

/// Statistics of the two sides of a matrix, and eigenbases that follow them by QR: what soap and kl_shampoo share.
namespace descent::detail {

/// v <- b2 v + a2 r^2
template <class Real, class Terms> struct soap_variance {
  Real* v;
  Real const* r;
  Terms const* k;
  DESCENT_HD void operator()(std::int64_t i) const { v[i] = k->b2 * v[i] + k->a2 * r[i] * r[i]; }
};
/// m <- m / (sqrt(v) + eps), where v is more than the error of products with Q: up to that, v says nothing, and
/// m <- 0. sqrt(v) is at least what m loses where it is stored.
template <class Real, class Terms> struct soap_direction {
  Real* m;
  Real const* v;
  Terms const* k;
  double const* squares;  // the sum of v^2, or null without Q
  double stored;  // what m loses, relative to the root of the sum's root
  DESCENT_HD void operator()(std::int64_t i) const {
    double const size = squares && is_finite(*squares) ? sqrt(sqrt(*squares)) : 0;
    Real const root = sqrt(v[i]), error = Real(4 * machine_epsilon<Real> * size), least = Real(stored * size);
    m[i] = root < error ? Real(0) : m[i] / ((root < least ? least : root) + k->eps);
  }
};
/// s <- b s + a x; s is kept where products of a row of s would overflow
template <class Real, class Terms> struct side_statistics {
  Real* s;
  Real const* x;
  Terms const* k;
  bool left;
  DESCENT_HD void operator()(std::int64_t i) const {
    constexpr Real most = largest<Real> * Real(0x1p-16);
    Real const next = k->b * s[i] + (left ? k->a_left : k->a_right) * x[i];
    if (is_finite(next) && abs(next) < most) s[i] = next;
  }
};
template <class Real> struct copy_unsolved {
  Real* to;
  Real const *from, *solved;
  DESCENT_HD void operator()(std::int64_t i) const {
    if (*solved == 0) to[i] = from[i];
  }
};
/// solved <- 1 if s is not 0; `squares` is the sum of the squares of s
template <class Real> struct set_solved {
  Real* solved;
  double const* squares;
  DESCENT_HD void operator()(std::int64_t i) const {
    if (*squares > 0) solved[i] = 1;
  }
};

/// The sides that have a basis; 0 for one that is longer than the rule allows.
struct sides {
  std::int64_t left, right;
  sides(shape s, std::int64_t most) : left(s.rows <= most ? s.rows : 0), right(s.columns <= most ? s.columns : 0) {}
};
/// The scratch memory that side_bases works in: two matrices of the shape first.
inline std::vector<std::int64_t> bases_scratch(shape s, sides of) {
  std::int64_t const n = std::max(of.left, of.right), size = s.rows * s.columns;
  return {size, size, n * n, n * n, n * n, panel_rows * n, panel_rows * n, n, n};
}
/// Operations of products with both factors and of the factors with themselves, up to a constant.
inline double bases_cost(shape s) {
  double const r = double(s.rows), c = double(s.columns);
  return r * c * (r + c) + r * r * r + c * c * c;
}

/// Works in the first six parts of a rule's memory: L, R, Q_L', Q_R', v of the matrix's size or empty, and for each
/// side whether its eigenvectors have been computed. `left` and `right` are the sides, 0 where there is no basis.
template <class Work> struct side_bases {
  using real = typename Work::real;
  using terms = typename Work::terms;
  Work const& w;
  std::int64_t left, right;

  side_bases(Work const& work, std::int64_t most) : side_bases(work, sides({work.rows, work.columns}, most)) {}
  side_bases(Work const& work, sides of) : w(work), left(of.left), right(of.right) {}

  void start() const {
    if (left) w.each(left * left, identity_of<real>{w.memory(2), left});
    if (right) w.each(right * right, identity_of<real>{w.memory(3), right});
  }

  /// Q_L' x Q_R, or Q_L x Q_R' if back. The result is in y with both sides, in t with one, and in x with none.
  real* turned(real* x, real* t, real* y, bool back) const {
    auto const basis = [&](int part, std::int64_t n) {
      dense<real> const Q{w.memory(part), n, n};
      return back ? Q.t() : Q;
    };
    if (left) {
      w.product(basis(2, left), {x, w.rows, w.columns}, t);
      x = t, t = y;
    }
    if (right) {
      w.product({x, w.rows, w.columns}, basis(3, right).t(), t);
      x = t;
    }
    return x;
  }
  /// v <- b2 v + a2 r^2, for r = Q_L' g Q_R
  void variance(real const* r) const { w.each(w.size(), soap_variance<real, terms>{w.memory(4), r, w.k}); }
  /// Adam's direction of d = Q_L' m Q_R, in place.
  void direction(real* d) const {
    real* const v = w.memory(4);
    double* const squares = left || right ? w.sums() : nullptr;
    double const stored = 2 * machine_epsilon<typename Work::template state<0>> / sqrt(sqrt(double(w.size())));
    if (squares) w.total(w.size(), square_of<real>{v}, squares);
    w.each(w.size(), soap_direction<real, terms>{d, v, w.k, squares, stored});
  }
  /// Updates the statistics of one side with a a'.
  void statistics(dense<real> a, int part) const {
    std::int64_t const n = part == 0 ? left : right;
    w.square(a, w.scratch(2));
    w.each(n * n, side_statistics<real, terms>{w.memory(part), w.scratch(2), w.k, part == 0});
  }

  /// Updates the basis of one side if it is due. `sorted`: columns of Q, and v, by falling diag(Q' L Q). found(solved)
  /// is called where eigenvectors may have been computed: they have been if *solved is 0 and *w.sums() is not.
  template <class Found> void follow(int part, int every, bool sorted, Found const& found) const {
    std::int64_t const n = part == 0 ? left : right;
    real *s = w.memory(part), *q = w.memory(2 + part), *v = w.memory(4), *solved = w.memory(5) + part;
    real *x = w.scratch(2), *next = w.scratch(3), *old = w.scratch(4), *c = w.scratch(5), *y = w.scratch(6),
         *values = w.scratch(7), *rank = w.scratch(8), *v_sorted = w.scratch(0);
    auto const sort = [&](real const* one, real const* other) {
      w.teams(n, row_products<real>{one, other, values, n});
      w.each(n, rank_of<real>{rank, values, n});
    };
    if ((w.updates & (w.updates - 1)) == 0) {
      bool wanted = true;
      if constexpr (Work::immediate) wanted = *solved == 0;
      if (wanted) {
        eigenvectors(w, s, x, old, solved, n, w.sums());
        sort(x, x);
        w.each(n * n, ranked_rows<real>{next, old, rank, n});
        orthonormal_rows(w, next, static_cast<real*>(nullptr), nullptr, n, c, y);
        w.each(n * n, copy_unsolved<real>{q, next, solved});
        found(solved);
        w.each(1, set_solved<real>{solved, w.sums()});
      }
    }
    if (!w.due(every)) return;
    w.product({q, n, n}, {s, n, n}, x);
    if (sorted) {
      sort(q, x);
      w.each(n * n, ranked_rows<real>{next, x, rank, n});
      w.each(n * n, ranked_rows<real>{old, q, rank, n});
    } else {
      w.each(n * n, copy_of<real>{next, x});
      w.each(n * n, copy_of<real>{old, q});
    }
    w.total(n * n, square_of<real>{s}, w.sums());
    orthonormal_rows(w, next, old, w.sums(), n, c, y);
    w.each(n * n, copy_of<real>{q, next});
    if (!sorted) return;
    if (part == 0) w.each(w.size(), ranked_rows<real>{v_sorted, v, rank, w.columns});
    else w.each(w.size(), ranked_columns<real>{v_sorted, v, rank, w.columns});
    w.each(w.size(), copy_of<real>{v, v_sorted});
  }
};

}  // namespace descent::detail
