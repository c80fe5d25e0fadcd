// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/matrices/detail/side_bases.hpp>
#include <descent/matrices/matrices.hpp>

#include <cstdint>
#include <vector>

namespace descent {

namespace detail {

/// d^(-1/2), or 0 for d = 0
template <class Real> DESCENT_HD Real inverse_root(Real d) { return d > 0 ? 1 / sqrt(d) : Real(0); }

/// x <- x with its columns, or its rows, divided by the roots of eigenvalues
template <class Real> struct whiten_side {
  Real* x;
  Real const* eigenvalues;
  bool columns;
  DESCENT_HD void operator()(std::int64_t i, std::int64_t row, std::int64_t column) const {
    x[i] = x[i] * inverse_root(eigenvalues[columns ? column : row]);
  }
};
/// r_ij^2 / d with the eigenvalue d of the other side, or r_ij^2 where there are none
template <class Real> struct whitened_square {
  Real const *r, *eigenvalues;
  bool columns;
  DESCENT_HD double operator()(std::int64_t i, std::int64_t row, std::int64_t column) const {
    double const x = double(r[i]) * double(eigenvalues ? inverse_root(eigenvalues[columns ? column : row]) : Real(1));
    return x * x;
  }
};
template <class Real> struct store_mean {
  Real* mean;
  std::int64_t count;
  DESCENT_HD void operator()(std::int64_t i, double sum) const { mean[i] = Real(sum / double(count)); }
};
/// d <- b d + (1 - b) mean, at least `least`; d is kept where it would overflow
template <class Real, class Terms> struct follow_eigenvalues {
  Real* d;
  Real const* mean;
  Terms const* k;
  Real least;
  DESCENT_HD void operator()(std::int64_t i) const {
    Real const next = k->b_values * d[i] + k->a_values * mean[i];
    if (is_finite(next) && k->a_values > 0) d[i] = next > 0 && next < least ? least : next;
  }
};
template <class Real> struct set_to_one {
  Real* x;
  DESCENT_HD void operator()(std::int64_t i) const { x[i] = 1; }
};
/// d <- value if *solved is 0 and *squares is not
template <class Real> struct start_eigenvalues {
  Real* d;
  Real value;
  Real const* solved;
  double const* squares;
  DESCENT_HD void operator()(std::int64_t i) const {
    if (*solved == 0 && *squares > 0) d[i] = value;
  }
};
/// m <- m / (sqrt(d_i d_j) + eps), or 0 where an eigenvalue is 0
template <class Real, class Terms> struct whiten {
  Real* m;
  Real const *left, *right;
  Terms const* k;
  DESCENT_HD void operator()(std::int64_t i, std::int64_t row, std::int64_t column) const {
    Real const l = left ? left[row] : Real(1), r = right ? right[column] : Real(1);
    m[i] = l > 0 && r > 0 ? m[i] / (sqrt(l) * sqrt(r) + k->eps) : Real(0);
  }
};

}  // namespace detail

/// KL-Shampoo and, with `adam`, KL-SOAP (Lin et al. 2025, arXiv:2509.03378), as the authors' code KL-Methods has them:
/// L and R estimate the covariance of g as the Kronecker product closest to it in the Kullback-Leibler divergence,
/// with means over the updates (there claim 2, for means). For matrices: `matrices{kl_shampoo{...}}`. Link a BLAS with
/// the CBLAS interface on the host, such as OpenBLAS (`-lopenblas`), and cuBLAS (`-lcublas`) on CUDA. For r x c
/// matrices, with a basis Q and eigenvalues d of each side:
///
///     m    <- b1 m + (1 - b1) g
///     u_ij <- (Q_L' m Q_R)_ij / (sqrt(dL_i dR_j) + eps)
///             adam: v <- b2 v + (1 - b2) (Q_L' g Q_R)^2,  u <- Q_L' m Q_R / (sqrt(v) + eps)
///     p    <- p - lr Q_L u Q_R'
///     p    <- p - lr wd p
///     L    <- b L + (1 - b) / c  g Q_R diag(dR)^-1 Q_R' g'
///     R    <- b R + (1 - b) / r  g' Q_L diag(dL)^-1 Q_L' g
///     dL_i <- b dL_i + (1 - b) mean over j of (Q_L' g Q_R)_ij^2 / dR_j
///     dR_j <- b dR_j + (1 - b) mean over i of (Q_L' g Q_R)_ij^2 / dL_i      all four with d as it was
///     Q    <- qr(L Q), every k-th time
///
/// The eigenvalues are separate means: they are 1 until the eigenvectors have been found, then start at `initial`, are
/// updated in every step, and do not change when Q does. With `clamp` their inverse roots are at most max(10, min(n,
/// 4000)) for a side of n. There is no bias correction, and columns of Q are not sorted. The first update only sets L,
/// R and Q, as in soap. Also as in soap: `every`, skipped updates, captured steps, a singular L and, for `adam`, the
/// rounding errors of products and of a stored m. A side longer than `max_precondition_dim`, which the authors' code
/// does not have, has Q = I and d = 1.
struct kl_shampoo {
  /// Learning rate lr; decay rates beta1 of m, beta2 of v, for `adam` alone, and shampoo_beta (b) of L, R and d, in
  /// [0, 1); eps and initial above 0; weight_decay (wd) and max_precondition_dim at least 0; every at least 1.
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.98, shampoo_beta = 0.98, eps = 1e-8, weight_decay = 1e-2, initial = 0.1;
  bool adam = false, clamp = true;
  int every = 10;
  std::int64_t max_precondition_dim = 10000;

  template <class Real> struct state { Real m; };
  template <class Real> struct terms { Real b1, a1, b2, a2, b, a_left, a_right, b_values, a_values, eps, rate, wd; };
  template <class Real> struct inputs { Real g, m; };
  static constexpr char const* slots[] = {"m"};

  DESCENT_HD terms<double> at(std::int64_t t, shape s) const {
    double const b = shampoo_beta, a = 1 - b, a_left = a / double(s.columns), a_right = a / double(s.rows);
    if (t == 1) return {1, 0, 1, 0, b, a_left, a_right, 1, 0, eps, 0, 0};
    return {beta1, 1 - beta1, beta2, 1 - beta2, b, a_left, a_right, b, a, eps, lr, lr * weight_decay};
  }

  template <class Real>
  DESCENT_HD static inputs<Real> direction(Real, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.b1 * s.m + k.a1 * g;
    return {g, s.m};
  }

  /// Operations of products with both factors and of the factors with themselves, up to a constant.
  static double cost(shape s) { return detail::bases_cost(s); }
  /// L, R, Q_L', Q_R', v for `adam`, for each side whether its eigenvectors have been computed, dL and dR.
  std::vector<std::int64_t> memory(shape s) const {
    auto const [l, r] = detail::sides(s, max_precondition_dim);
    return {l * l, r * r, l * l, r * r, adam ? s.rows * s.columns : 0, 2, l, r};
  }
  std::vector<std::int64_t> scratch(shape s) const { return detail::bases_scratch(s, {s, max_precondition_dim}); }
  static constexpr bool starts_memory = true;
  template <class Work> void start_memory(Work const& w) const {
    using real = typename Work::real;
    detail::side_bases const both(w, max_precondition_dim);
    both.start();
    if (both.left) w.each(both.left, detail::set_to_one<real>{w.memory(6)});
    if (both.right) w.each(both.right, detail::set_to_one<real>{w.memory(7)});
  }

  template <class Work> auto* transform(Work const& w) const {
    using real = typename Work::real;
    using work_terms = typename Work::terms;
    detail::side_bases const both(w, max_precondition_dim);
    real *g = w.input(0), *m = w.input(1), *x = w.scratch(0), *y = w.scratch(1);
    real *const dL = both.left ? w.memory(6) : nullptr, *const dR = both.right ? w.memory(7) : nullptr;
    real *const mean_left = w.scratch(7), *const mean_right = w.scratch(8);

    real* const r = both.turned(g, x, y, false);
    if (adam) both.variance(r);
    if (dL) w.each_row(detail::whitened_square<real>{r, dR, true}, detail::store_mean<real>{mean_left, w.columns});
    if (dR) w.each_column(detail::whitened_square<real>{r, dL, false}, detail::store_mean<real>{mean_right, w.rows});

    real* const d = both.turned(m, x, y, false);
    if (adam) both.direction(d);
    else w.each_element(detail::whiten<real, work_terms>{d, dL, dR, w.k});
    real* const u = both.turned(d, d == x ? y : x, m, true);

    detail::dense<real> const G{g, w.rows, w.columns};
    if (dL) both.statistics(whitened(w, G, 1, dR, x), 0);  // u is in y or m
    if (dR) both.statistics(whitened(w, G, 0, dL, x).t(), 1);
    follow(w, 6, both.left, mean_left);
    follow(w, 7, both.right, mean_right);
    for (int part : {0, 1}) {
      std::int64_t const n = part == 0 ? both.left : both.right;
      auto const found = [&](real const* solved) {
        w.each(n, detail::start_eigenvalues<real>{w.memory(6 + part), real(initial), solved, w.sums()});
      };
      if (n) both.follow(part, every, false, found);
    }
    return u;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real u, state<Real>&, terms<Real> const& k) {
    p = p - k.rate * u;
    return p - k.wd * p;
  }

  static constexpr field_range<kl_shampoo> ranges[] = {{&kl_shampoo::lr, at_least_0},
                                                       {&kl_shampoo::beta1, below_1},
                                                       {&kl_shampoo::beta2, below_1},
                                                       {&kl_shampoo::shampoo_beta, below_1},
                                                       {&kl_shampoo::eps, above_0},
                                                       {&kl_shampoo::weight_decay, at_least_0},
                                                       {&kl_shampoo::initial, above_0},
                                                       {&kl_shampoo::every, from_1},
                                                       {&kl_shampoo::max_precondition_dim, at_least_0_or_infinite}};

 private:
  /// g Q_R diag(d)^(-1/2), or diag(d)^(-1/2) Q_L' g for side 0, in y; g itself if that side has no basis.
  template <class Work, class Matrix, class Real>
  Matrix whitened(Work const& w, Matrix g, int of, Real const* d, Real* y) const {
    if (!d) return g;
    std::int64_t const n = of == 0 ? w.rows : w.columns;
    Matrix const Q{w.memory(2 + of), n, n};
    if (of == 0) w.product(Q, g, y);
    else w.product(g, Q.t(), y);
    w.each_element(detail::whiten_side<Real>{y, d, of == 1});
    return {y, w.rows, w.columns};
  }
  template <class Work, class Real> void follow(Work const& w, int part, std::int64_t n, Real const* mean) const {
    double const most = n > 4000 ? 4000 : n < 10 ? 10 : double(n);  // of the inverse roots
    Real const least = clamp ? Real(1 / (most * most)) : Real(0);
    if (n) w.each(n, detail::follow_eigenvalues<Real, typename Work::terms>{w.memory(part), mean, w.k, least});
  }
};
static_assert(matrix_rule<kl_shampoo>);

}  // namespace descent
