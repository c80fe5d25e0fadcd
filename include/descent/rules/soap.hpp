// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/detail/rule/eigenbasis.hpp>
#include <descent/detail/rule/orthonormal.hpp>
#include <descent/policies/matrices.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace descent {

namespace detail {

/// v <- b2 v + a2 r^2
template <class Real, class Terms> struct soap_variance {
  Real* v;
  Real const* r;
  Terms const* k;
  DESCENT_HD void operator()(std::int64_t i) const { v[i] = k->b2 * v[i] + k->a2 * r[i] * r[i]; }
};
/// m <- m / (sqrt(v) + eps)
template <class Real, class Terms> struct soap_direction {
  Real* m;
  Real const* v;
  Terms const* k;
  DESCENT_HD void operator()(std::int64_t i) const { m[i] = m[i] / (sqrt(v[i]) + k->eps); }
};
/// s <- b s + a x; s is kept where products of a row of s would overflow
template <class Real, class Terms> struct soap_statistics {
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
/// x <- x with its columns, or its rows, multiplied by roots
template <class Real> struct weigh {
  Real* x;
  Real const* roots;
  bool columns;
  DESCENT_HD void operator()(std::int64_t i, std::int64_t row, std::int64_t column) const {
    x[i] = x[i] * roots[columns ? column : row];
  }
};
/// roots <- (eigenvalue + eps)^(-1/2) where there are eigenvalues, and if *solved is 0 or `solved` null
template <class Real, class Terms> struct inverse_roots {
  Real* roots;
  Real const *eigenvalues, *solved;
  double const* squares;
  Terms const* k;
  DESCENT_HD void operator()(std::int64_t i) const {
    if ((solved && *solved != 0) || !(*squares > 0)) return;
    roots[i] = 1 / sqrt((eigenvalues[i] > 0 ? eigenvalues[i] : Real(0)) + k->eps);
  }
};
template <class Real> struct set_to_one {
  Real* x;
  DESCENT_HD void operator()(std::int64_t i) const { x[i] = 1; }
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

}  // namespace detail

/// SOAP (Vyas et al. 2024, algorithm 3): Adam in the eigenbases of Shampoo's L and R. For matrices:
/// `matrices{soap{...}}`. The defaults are those of the authors' code and pytorch_optimizer's SOAP.
///
///     m <- b1 m + (1 - b1) g
///     v <- b2 v + (1 - b2) (Q_L' g Q_R)^2
///     p <- p - a Q_L ((Q_L' m Q_R) / (sqrt(v) + eps)) Q_R',  a = lr sqrt(1 - b2^(t-1)) / (1 - b1^(t-1))
///     p <- p - lr wd p
///     L <- b L + (1 - b) g g',  R <- b R + (1 - b) g' g
///     Q <- qr(L Q), every k-th time, columns of Q and v sorted by falling diag(Q' L Q)
///
/// k is `every`; skipped updates count. The first update only sets L, R and Q, with eigenvectors from Jacobi rotations
/// run to convergence. If it is skipped, the first of updates 2, 4, 8, ... that is not skipped computes them; until
/// then qr starts from Q = I. A captured step runs qr in every replay; capture after the first updates. Where L is
/// singular, Q keeps its columns. A side longer than `max_precondition_dim` has no L, and Q = I.
///
/// With `kl`, KL-SOAP (Lin et al. 2025): the statistics of a side are weighed by the inverse of the other's, so that L
/// and R together fit the gradients' covariance. For r x c matrices:
///
///     L <- b L + (1 - b) / c g R_^-1 g',  R <- b R + (1 - b) / r g' L_^-1 g
///
/// where R_ = Q_R diag(Q_R' R Q_R + eps I) Q_R' as it was when Q_R was found last, and I before that and without R.
struct soap {
  /// Learning rate lr; decay rates beta1 of m, beta2 of v and shampoo_beta (b) of L and R, in [0, 1); eps above 0;
  /// weight_decay (wd) and max_precondition_dim at least 0; every at least 1.
  double lr = 3e-3, beta1 = 0.95, beta2 = 0.95, shampoo_beta = 0.95, eps = 1e-8, weight_decay = 1e-2;
  bool bias_correction = true, kl = false;
  int every = 10;
  std::int64_t max_precondition_dim = 10000;

  template <class Real> struct state { Real m; };
  template <class Real> struct terms { Real b1, a1, b2, a2, b, a_left, a_right, eps, rate, wd; };
  template <class Real> struct inputs { Real g, m; };
  static constexpr char const* slots[] = {"m"};

  DESCENT_HD terms<double> at(std::int64_t t, shape s) const {
    double const b = shampoo_beta, a = 1 - b, a_left = kl ? a / double(s.columns) : a,
                 a_right = kl ? a / double(s.rows) : a;
    if (t == 1) return {1, 0, 1, 0, b, a_left, a_right, eps, 0, 0};
    double const unbias = bias_correction ? sqrt(1 - power(beta2, t - 1)) / (1 - power(beta1, t - 1)) : 1;
    return {beta1, 1 - beta1, beta2, 1 - beta2, b, a_left, a_right, eps, lr * unbias, lr * weight_decay};
  }

  template <class Real>
  DESCENT_HD static inputs<Real> direction(Real, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.b1 * s.m + k.a1 * g;
    return {g, s.m};
  }

  /// Operations of products with both factors and of the factors with themselves, up to a constant.
  static double cost(shape s) {
    double const r = double(s.rows), c = double(s.columns);
    return r * c * (r + c) + r * r * r + c * c * c;
  }
  /// L, R, Q_L', Q_R', v, for each side whether its eigenvectors have been computed, and with kl the inverse roots of
  /// its eigenvalues.
  std::vector<std::int64_t> memory(shape s) const {
    std::int64_t const l = side(s.rows), r = side(s.columns);
    std::vector parts{l * l, r * r, l * l, r * r, s.rows * s.columns, std::int64_t{2}};
    if (kl) parts.insert(parts.end(), {l, r});
    return parts;
  }
  std::vector<std::int64_t> scratch(shape s) const {
    std::int64_t const n = std::max(side(s.rows), side(s.columns)), size = s.rows * s.columns;
    return {size, size, n * n, n * n, n * n, detail::panel_rows * n, detail::panel_rows * n, n, n};
  }
  static constexpr bool starts_memory = true;
  template <class Work> void start_memory(Work const& w) const {
    using real = typename Work::real;
    std::int64_t const l = side(w.rows), r = side(w.columns);
    if (l) w.each(l * l, detail::identity_of<real>{w.memory(2), l});
    if (r) w.each(r * r, detail::identity_of<real>{w.memory(3), r});
    if (kl && l) w.each(l, detail::set_to_one<real>{w.memory(6)});
    if (kl && r) w.each(r, detail::set_to_one<real>{w.memory(7)});
  }

  template <class Work> auto* transform(Work const& w) const {
    using real = typename Work::real;
    using work_terms = typename Work::terms;
    real *g = w.input(0), *m = w.input(1), *v = w.memory(4), *x = w.scratch(0), *y = w.scratch(1);
    real* const r = turned(w, g, x, y, false);
    w.each(w.size(), detail::soap_variance<real, work_terms>{v, r, w.k});
    real* const d = turned(w, m, x, y, false);
    w.each(w.size(), detail::soap_direction<real, work_terms>{d, v, w.k});
    real* const u = turned(w, d, d == x ? y : x, m, true);
    detail::dense<real> const G{g, w.rows, w.columns};
    if (side(w.rows)) statistics(w, weighed(w, G, 1), 0, w.rows);
    if (side(w.columns)) statistics(w, weighed(w, G, 0).t(), 1, w.columns);
    if (side(w.rows)) follow(w, 0, w.rows);
    if (side(w.columns)) follow(w, 1, w.columns);
    return u;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real u, state<Real>&, terms<Real> const& k) {
    p = p - k.rate * u;
    return p - k.wd * p;
  }

  static constexpr field_range<soap> ranges[] = {
      {"lr", &soap::lr, at_least_0},    {"beta1", &soap::beta1, below_1},
      {"beta2", &soap::beta2, below_1}, {"shampoo_beta", &soap::shampoo_beta, below_1},
      {"eps", &soap::eps, above_0},     {"weight_decay", &soap::weight_decay, at_least_0},
      {"every", &soap::every, from_1},  {"max_precondition_dim", &soap::max_precondition_dim, at_least_0_or_infinite}};
  void check() const { detail::check_ranges(*this); }

 private:
  /// The side of the basis; 0 if there is none.
  std::int64_t side(std::int64_t n) const { return n <= max_precondition_dim ? n : 0; }

  /// Q_L' x Q_R, or Q_L x Q_R' if back. The result is in y with both sides, in t with one, and in x with none.
  template <class Work, class Real> Real* turned(Work const& w, Real* x, Real* t, Real* y, bool back) const {
    auto const basis = [&](int part, std::int64_t n) {
      detail::dense<Real> const Q{w.memory(part), n, n};
      return back ? Q.t() : Q;
    };
    if (side(w.rows)) {
      w.product(basis(2, w.rows), {x, w.rows, w.columns}, t);
      x = t, t = y;
    }
    if (side(w.columns)) {
      w.product({x, w.rows, w.columns}, basis(3, w.columns).t(), t);
      x = t;
    }
    return x;
  }

  /// With kl g Q_R D_R^(-1/2), or D_L^(-1/2) Q_L' g for side 0, where D is the diagonal matrix of the other side.
  template <class Work, class Matrix> Matrix weighed(Work const& w, Matrix g, int other) const {
    using real = typename Work::real;
    std::int64_t const n = other == 0 ? w.rows : w.columns;
    if (!kl || !side(n)) return g;
    Matrix const Q{w.memory(2 + other), n, n}, y{w.scratch(0), w.rows, w.columns};
    if (other == 0) w.product(Q, g, y.data);
    else w.product(g, Q.t(), y.data);
    w.each_element(detail::weigh<real>{y.data, w.memory(6 + other), other == 1});
    return y;
  }
  /// Updates the statistics of one side with a a'.
  template <class Work, class Matrix> void statistics(Work const& w, Matrix a, int part, std::int64_t n) const {
    using real = typename Work::real;
    w.square(a, w.scratch(2));
    w.each(n * n, detail::soap_statistics<real, typename Work::terms>{w.memory(part), w.scratch(2), w.k, part == 0});
  }
  /// The inverse roots of the eigenvalues for kl.
  template <class Work, class Real = typename Work::real>
  void find_roots(Work const& w, int part, std::int64_t n, Real const* solved) const {
    Real *q = w.memory(2 + part), *x = w.scratch(2), *eigenvalues = w.scratch(7);
    w.product({q, n, n}, {w.memory(part), n, n}, x);
    w.teams(n, detail::row_products<Real>{q, x, eigenvalues, n});
    w.each(n,
           detail::inverse_roots<Real, typename Work::terms>{w.memory(6 + part), eigenvalues, solved, w.sums(), w.k});
  }

  /// Updates the basis of one side if it is due.
  template <class Work> void follow(Work const& w, int part, std::int64_t n) const {
    using real = typename Work::real;
    real *s = w.memory(part), *q = w.memory(2 + part), *v = w.memory(4), *solved = w.memory(5) + part;
    real *x = w.scratch(2), *sorted = w.scratch(3), *old = w.scratch(4), *c = w.scratch(5), *y = w.scratch(6),
         *values = w.scratch(7), *rank = w.scratch(8), *v_sorted = w.scratch(0);
    auto const sort = [&](real const* one, real const* other) {
      w.teams(n, detail::row_products<real>{one, other, values, n});
      w.each(n, detail::rank_of<real>{rank, values, n});
    };
    if ((w.updates & (w.updates - 1)) == 0) {
      bool wanted = true;
      if constexpr (Work::immediate) wanted = *solved == 0;
      if (wanted) {
        detail::eigenvectors(w, s, x, old, solved, n, w.sums());
        sort(x, x);
        w.each(n * n, detail::ranked_rows<real>{sorted, old, rank, n});
        detail::orthonormal_rows(w, sorted, static_cast<real*>(nullptr), nullptr, n, c, y);
        w.each(n * n, detail::copy_unsolved<real>{q, sorted, solved});
        if (kl) find_roots(w, part, n, solved);
        w.each(1, detail::set_solved<real>{solved, w.sums()});
      }
    }
    if (!w.due(every)) return;
    w.product({q, n, n}, {s, n, n}, x);
    sort(q, x);
    w.each(n * n, detail::ranked_rows<real>{sorted, x, rank, n});
    w.each(n * n, detail::ranked_rows<real>{old, q, rank, n});
    w.total(n * n, detail::square_of<real>{s}, w.sums());
    detail::orthonormal_rows(w, sorted, old, w.sums(), n, c, y);
    w.each(n * n, detail::copy_of<real>{q, sorted});
    if (kl) find_roots(w, part, n, static_cast<real const*>(nullptr));
    if (part == 0) w.each(w.size(), detail::ranked_rows<real>{v_sorted, v, rank, w.columns});
    else w.each(w.size(), detail::ranked_columns<real>{v_sorted, v, rank, w.columns});
    w.each(w.size(), detail::copy_of<real>{v, v_sorted});
  }
};
static_assert(matrix_rule<soap>);

}  // namespace descent
