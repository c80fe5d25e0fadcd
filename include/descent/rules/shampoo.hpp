// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/matrices/matrices.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace descent {

namespace detail {

/// s <- b2 s + a x
template <class Real, class Terms> struct shampoo_statistics {
  Real* s;
  Real const* x;
  Terms const* k;
  DESCENT_HD void operator()(std::int64_t i) const { s[i] = k->b2 * s[i] + k->a * x[i]; }
};
/// a = s + eps I, n x n; operator() is the square of an element
template <class Real, class Terms> struct shampoo_matrix {
  Real const* s;
  Terms const* k;
  std::int64_t n;
  DESCENT_HD Real value(std::int64_t i) const { return i % (n + 1) == 0 ? s[i] + k->eps : s[i]; }
  DESCENT_HD double operator()(std::int64_t i) const { return double(value(i)) * double(value(i)); }
};
/// m <- z a, x <- z^(1/4) I with z = 5 / (2 ||a||)
template <class Real, class Terms> struct root_start {
  shampoo_matrix<Real, Terms> a;
  Real *m, *x;
  double const* squares;
  DESCENT_HD void operator()(std::int64_t i) const {
    double const z = 2.5 / sqrt(*squares);
    m[i] = Real(z) * a.value(i);
    x[i] = i % (a.n + 1) == 0 ? Real(sqrt(sqrt(z))) : Real(0);
  }
};
/// (m - I)^2
template <class Real> struct root_error {
  Real const* m;
  std::int64_t n;
  DESCENT_HD double operator()(std::int64_t i) const {
    double const e = double(m[i]) - (i % (n + 1) == 0 ? 1 : 0);
    return e * e;
  }
};
/// f <- (5 I - m) / 4, or I once m has converged to I
template <class Real> struct root_factor {
  Real* f;
  Real const* m;
  double const* error;
  double enough;
  std::int64_t n;
  DESCENT_HD void operator()(std::int64_t i) const {
    Real const one = i % (n + 1) == 0 ? Real(1) : Real(0);
    f[i] = *error < enough ? one : Real(1.25) * one - Real(0.25) * m[i];
  }
};
/// root <- x, unless m is far from I: then the iterations have not converged. 0 for a matrix that has overflowed
template <class Real> struct found_root {
  Real* root;
  Real const* x;
  double const *squares, *error;
  std::int64_t n;
  DESCENT_HD void operator()(std::int64_t i) const {
    if (!is_finite(*squares)) root[i] = 0;
    else if (is_finite(*error) && *error < 4 * double(n)) root[i] = x[i];
  }
};
/// u <- ||g|| / ||u|| u
template <class Real> struct graft {
  Real* u;
  double const *gg, *uu;
  DESCENT_HD void operator()(std::int64_t i) const {
    if (*uu > 0) u[i] = Real(sqrt(*gg / *uu)) * u[i];
  }
};

}  // namespace detail

/// Shampoo (Gupta, Koren & Singer 2018, algorithm 1). For matrices: `matrices{shampoo{...}}`.
/// Link a BLAS with the CBLAS interface on the host, such as OpenBLAS (`-lopenblas`), and cuBLAS (`-lcublas`) on CUDA.
///
///     L <- b2 L + (1 - b2) g g',  R <- b2 R + (1 - b2) g' g;   b2 = 1: sums, without the factor 1 - b2
///     u <- (L + eps I)^(-1/4) g (R + eps I)^(-1/4)
///     u <- ||g|| / ||u|| u                                     with `graft`: the step has the length of SGD's
///     m <- mu m + u
///     p <- p - lr (m + wd p)
///
/// The roots start as I and are recomputed in every `every`-th update, from the first on, counting skipped updates; a
/// captured step recomputes them in every replay. They are computed by coupled Newton iterations, which need only
/// products (Higham, Functions of Matrices, 2008, section 7.3). The host stops at convergence, and after `iterations`
/// at the latest; a device runs all of them. In float, eps should be above 1e-6 of the largest eigenvalue. If the
/// matrix is singular up to rounding, the iterations diverge and the root keeps its old value. If the matrix has
/// overflowed, the root is 0, and the values stop moving. KL-Shampoo is kl_shampoo.
struct shampoo {
  /// Learning rate lr; momentum (mu) in [0, 1); beta2, the decay rate of L and R, in [0, 1]; eps above 0; weight_decay
  /// (wd) at least 0; every and iterations at least 1.
  double lr = 1e-2, momentum = 0.9, beta2 = 1, eps = 1e-4, weight_decay = 0;
  bool graft = false;
  int every = 1, iterations = 40;

  template <class Real> struct state { Real m; };
  template <class Real> struct terms { Real lr, mu, b2, a, eps, wd; };
  template <class Real> struct inputs { Real g; };
  static constexpr char const* slots[] = {"m"};

  bool uses(std::size_t) const { return momentum != 0; }
  static constexpr bool after(std::size_t) { return true; }

  DESCENT_HD terms<double> at(std::int64_t, shape) const {
    return {lr, momentum, beta2, beta2 == 1 ? 1 : 1 - beta2, eps, lr * weight_decay};
  }

  template <class Real>
  DESCENT_HD static inputs<Real> direction(Real, Real g, state<Real>&, terms<Real> const&) {
    return {g};
  }

  /// Operations of products with both factors and of the factors with themselves, up to a constant.
  static double cost(shape s) {
    double const r = double(s.rows), c = double(s.columns);
    return r * c * (r + c) + r * r * r + c * c * c;
  }
  /// L and R, then their roots.
  static std::vector<std::int64_t> memory(shape s) {
    std::int64_t const l = s.rows * s.rows, r = s.columns * s.columns;
    return {l, r, l, r};
  }
  static std::vector<std::int64_t> scratch(shape s) {
    std::int64_t const n = s.rows > s.columns ? s.rows : s.columns;
    return {s.rows * s.columns, n * n, n * n, n * n, n * n, n * n};
  }
  static constexpr bool starts_memory = true;
  template <class Work> void start_memory(Work const& w) const {
    using real = typename Work::real;
    w.each(w.rows * w.rows, detail::identity_of<real>{w.memory(2), w.rows});
    w.each(w.columns * w.columns, detail::identity_of<real>{w.memory(3), w.columns});
  }

  template <class Work> auto* transform(Work const& w) const {
    using real = typename Work::real;
    real *g = w.input(0), *y = w.scratch(0), *L = w.memory(2), *R = w.memory(3);
    detail::dense<real> const G{g, w.rows, w.columns};
    detail::dense<real> const Y{y, w.rows, w.columns};
    w.total(w.size(), detail::square_of<real>{g}, w.sums());
    statistics(w, G, 0, w.rows);
    statistics(w, G.t(), 1, w.columns);
    if (w.due(every)) find_root(w, 0, w.rows), find_root(w, 1, w.columns);
    w.product({L, w.rows, w.rows}, G, y);
    w.product(Y, {R, w.columns, w.columns}, g);
    if (graft) {
      w.total(w.size(), detail::square_of<real>{g}, w.sums() + 1);
      w.each(w.size(), detail::graft<real>{g, w.sums(), w.sums() + 1});
    }
    return g;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real u, state<Real>& s, terms<Real> const& k) {
    s.m = k.mu * s.m + u;
    return p - k.wd * p - k.lr * s.m;
  }

  static constexpr field_range<shampoo> ranges[] = {{&shampoo::lr, at_least_0},
                                                    {&shampoo::momentum, below_1},
                                                    {&shampoo::beta2, up_to_1},
                                                    {&shampoo::eps, above_0},
                                                    {&shampoo::weight_decay, at_least_0},
                                                    {&shampoo::every, from_1},
                                                    {&shampoo::iterations, from_1}};

 private:
  /// Updates the statistics of one side with a a'.
  template <class Work, class Matrix> void statistics(Work const& w, Matrix a, int part, std::int64_t n) const {
    using real = typename Work::real;
    w.square(a, w.scratch(4));
    w.each(n * n, detail::shampoo_statistics<real, typename Work::terms>{w.memory(part), w.scratch(4), w.k});
  }
  /// Finds the root of one side. All matrices of the iteration are polynomials of A, so their products are symmetric.
  template <class Work> void find_root(Work const& w, int part, std::int64_t n) const {
    using real = typename Work::real;
    using work_terms = typename Work::terms;
    real *s = w.memory(part), *x = w.scratch(1), *m = w.scratch(2), *f = w.scratch(3), *t1 = w.scratch(4),
         *t2 = w.scratch(5);
    // M <- F^4 M, X <- X F with F = (5 I - M) / 4: M converges to I, and X to A^(-1/4)
    auto const of = [&](real* p) { return detail::dense<real>{p, n, n}; };
    double const digit = std::is_same_v<real, double> ? 1e-13 : 1e-5, enough = digit * digit * double(n);
    detail::shampoo_matrix<real, work_terms> const A{s, w.k, n};
    w.total(n * n, A, w.sums() + 2);
    w.each(n * n, detail::root_start<real, work_terms>{A, m, x, w.sums() + 2});
    for (int i = 0; i < iterations; ++i) {
      w.total(n * n, detail::root_error<real>{m, n}, w.sums() + 3);
      if constexpr (Work::immediate)
        if (w.sums()[3] < enough) break;
      w.each(n * n, detail::root_factor<real>{f, m, w.sums() + 3, enough, n});
      w.symmetric_product(of(x), of(f), t1);
      std::swap(x, t1);
      w.square(of(f), t1);
      w.square(of(t1), t2);
      w.symmetric_product(of(t2), of(m), t1);
      std::swap(m, t1);
    }
    w.total(n * n, detail::root_error<real>{m, n}, w.sums() + 3);
    w.each(n * n, detail::found_root<real>{w.memory(part + 2), x, w.sums() + 2, w.sums() + 3, n});
  }
};
static_assert(matrix_rule<shampoo>);

}  // namespace descent
