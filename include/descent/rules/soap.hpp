// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/matrices/detail/side_bases.hpp>
#include <descent/matrices/matrices.hpp>

#include <cstdint>
#include <vector>

namespace descent {

/// SOAP (Vyas et al. 2024, algorithm 3): Adam in the eigenbases of Shampoo's L and R. For matrices:
/// `matrices{soap{...}}`. The defaults are those of the authors' code and pytorch_optimizer's SOAP.
/// Link a BLAS with the CBLAS interface on the host, such as OpenBLAS (`-lopenblas`), and cuBLAS (`-lcublas`) on CUDA.
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
/// With V the root of the sum of all v^2, sqrt(v) below 4 e sqrt(V) is what products with Q lose, e = 2^-23 in float:
/// the quotient is 0. The divisor is at least 2 e_m sqrt(V) / (r c)^(1/4), what a stored m loses: e_m is 2^-7 in
/// bfloat16, 2^-10 in half.
///
/// KL-SOAP is kl_shampoo{.adam = true}.
struct soap {
  /// Learning rate lr; decay rates beta1 of m, beta2 of v and shampoo_beta (b) of L and R, in [0, 1); eps above 0;
  /// weight_decay (wd) and max_precondition_dim at least 0; every at least 1.
  double lr = 3e-3, beta1 = 0.95, beta2 = 0.95, shampoo_beta = 0.95, eps = 1e-8, weight_decay = 1e-2;
  bool bias_correction = true;
  int every = 10;
  std::int64_t max_precondition_dim = 10000;

  template <class Real> struct state { Real m; };
  template <class Real> struct terms { Real b1, a1, b2, a2, b, a_left, a_right, eps, rate, wd; };
  template <class Real> struct inputs { Real g, m; };
  static constexpr char const* slots[] = {"m"};

  DESCENT_HD terms<double> at(std::int64_t t, shape) const {
    double const b = shampoo_beta, a = 1 - b;
    if (t == 1) return {1, 0, 1, 0, b, a, a, eps, 0, 0};
    double const unbias = bias_correction ? sqrt(1 - power(beta2, t - 1)) / (1 - power(beta1, t - 1)) : 1;
    return {beta1, 1 - beta1, beta2, 1 - beta2, b, a, a, eps, lr * unbias, lr * weight_decay};
  }

  template <class Real>
  DESCENT_HD static inputs<Real> direction(Real, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.b1 * s.m + k.a1 * g;
    return {g, s.m};
  }

  /// Operations of products with both factors and of the factors with themselves, up to a constant.
  static double cost(shape s) { return detail::bases_cost(s); }
  /// L, R, Q_L', Q_R', v, and for each side whether its eigenvectors have been computed.
  std::vector<std::int64_t> memory(shape s) const {
    auto const [l, r] = detail::sides(s, max_precondition_dim);
    return {l * l, r * r, l * l, r * r, s.rows * s.columns, 2};
  }
  std::vector<std::int64_t> scratch(shape s) const { return detail::bases_scratch(s, {s, max_precondition_dim}); }
  static constexpr bool starts_memory = true;
  template <class Work> void start_memory(Work const& w) const { detail::side_bases(w, max_precondition_dim).start(); }

  template <class Work> auto* transform(Work const& w) const {
    using real = typename Work::real;
    detail::side_bases const both(w, max_precondition_dim);
    real *g = w.input(0), *m = w.input(1), *x = w.scratch(0), *y = w.scratch(1);
    both.variance(both.turned(g, x, y, false));
    real* const d = both.turned(m, x, y, false);
    both.direction(d);
    real* const u = both.turned(d, d == x ? y : x, m, true);
    detail::dense<real> const G{g, w.rows, w.columns};
    if (both.left) both.statistics(G, 0);
    if (both.right) both.statistics(G.t(), 1);
    auto const nothing = [](real const*) {};
    if (both.left) both.follow(0, every, true, nothing);
    if (both.right) both.follow(1, every, true, nothing);
    return u;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real u, state<Real>&, terms<Real> const& k) {
    p = p - k.rate * u;
    return p - k.wd * p;
  }

  static constexpr field_range<soap> ranges[] = {
      {&soap::lr, at_least_0}, {&soap::beta1, below_1},
      {&soap::beta2, below_1}, {&soap::shampoo_beta, below_1},
      {&soap::eps, above_0},   {&soap::weight_decay, at_least_0},
      {&soap::every, from_1},  {&soap::max_precondition_dim, at_least_0_or_infinite}};
};
static_assert(matrix_rule<soap>);

}  // namespace descent
