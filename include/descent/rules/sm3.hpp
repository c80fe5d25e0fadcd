// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/matrices/matrices.hpp>

#include <cstdint>
#include <vector>

namespace descent {

struct sm3_for_matrices;

/// SM3 (Anil et al. 2019, algorithm SM3-II): Adagrad with shared accumulators, as optax.sm3. `matrices{sm3{...}}` keeps
/// one for each row and column (sm3_for_matrices). As the optimizer's rule it is Adagrad, for vectors.
///
///     v <- b2 v + (1 - b2) g^2;   b2 = 1: v <- v + g^2
///     u <- g / sqrt(v + eps), 0 where v is 0
///     m <- mu m + (1 - mu) u
///     p <- p - lr m
struct sm3 {
  /// Learning rate lr; momentum (mu) in [0, 1); beta2, the decay rate of v, in [0, 1]; eps at least 0.
  double lr = 1e-3, momentum = 0.9, beta2 = 1, eps = 1e-8;

  /// The rule for matrices.
  using for_matrices = sm3_for_matrices;

  template <class Real> struct state { Real v, m; };
  template <class Real> struct terms { Real lr, mu, a1, b2, a2, eps; };  // a1 = 1 - mu
  static constexpr char const* slots[] = {"v", "m"};

  bool uses(std::size_t slot) const { return slot == 0 || momentum != 0; }

  DESCENT_HD terms<double> at(std::int64_t) const {
    return {lr, momentum, 1 - momentum, beta2, beta2 == 1 ? 1 : 1 - beta2, eps};
  }

  template <class Real> DESCENT_HD static Real direction(Real g, Real v, terms<Real> const& k) {
    return select(v > Real(0), g / sqrt(v + k.eps), Real(0));
  }
  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.v = k.b2 * s.v + k.a2 * g * g;
    s.m = k.mu * s.m + k.a1 * direction(g, s.v, k);
    return p - k.lr * s.m;
  }

  static constexpr field_range<sm3> ranges[] = {
      {&sm3::lr, at_least_0}, {&sm3::momentum, below_1}, {&sm3::beta2, up_to_1}, {&sm3::eps, at_least_0}};
};
static_assert(update_rule<sm3>);

namespace detail {

/// v_ij <- b2 min(r_i, c_j) + a2 g_ij^2
template <class Real, class Terms> struct sm3_second_moment {
  Real const *g, *row, *column;
  Terms const* k;
  DESCENT_HD Real value(std::int64_t i, std::int64_t r, std::int64_t c) const {
    return k->b2 * (row[r] < column[c] ? row[r] : column[c]) + k->a2 * g[i] * g[i];
  }
  DESCENT_HD double operator()(std::int64_t i, std::int64_t r, std::int64_t c) const { return double(value(i, r, c)); }
};
template <class Real> struct keep_result {
  Real* to;
  DESCENT_HD void operator()(std::int64_t i, double x) const { to[i] = Real(x); }
};
template <class Real, class Terms> struct sm3_direction {
  sm3_second_moment<Real, Terms> v;
  Real* g;
  DESCENT_HD void operator()(std::int64_t i, std::int64_t r, std::int64_t c) const {
    g[i] = sm3::direction(g[i], v.value(i, r, c), *v.k);
  }
};
template <class Real> struct copy_elements {
  Real* to;
  Real const* from;
  DESCENT_HD void operator()(std::int64_t i) const { to[i] = from[i]; }
};

}  // namespace detail

/// SM3 for matrices:
///
///     v_ij <- b2 min(r_i, c_j) + (1 - b2) g_ij^2,  r_i <- max_j v_ij,  c_j <- max_i v_ij
struct sm3_for_matrices : sm3 {
  template <class Real> struct state { Real m; };
  template <class Real> struct inputs { Real g; };
  static constexpr char const* slots[] = {"m"};

  bool uses(std::size_t) const { return momentum != 0; }
  static constexpr bool after(std::size_t) { return true; }

  DESCENT_HD terms<double> at(std::int64_t t, shape) const { return sm3::at(t); }

  template <class Real>
  DESCENT_HD static inputs<Real> direction(Real, Real g, state<Real>&, terms<Real> const&) {
    return {g};
  }

  /// One operation for each element: there are no products.
  static double cost(shape s) { return double(s.rows) * double(s.columns); }
  static std::vector<std::int64_t> memory(shape s) { return {s.rows, s.columns}; }
  static std::vector<std::int64_t> scratch(shape s) { return {s.rows, s.columns}; }

  template <class Work> auto* transform(Work const& w) const {
    using real = typename Work::real;
    using work_terms = typename Work::terms;
    real *g = w.input(0), *row = w.memory(0), *column = w.memory(1);
    real *new_row = w.scratch(0), *new_column = w.scratch(1);
    detail::sm3_second_moment<real, work_terms> const v{g, row, column, w.k};
    w.template each_row<true>(v, detail::keep_result<real>{new_row});
    w.template each_column<true>(v, detail::keep_result<real>{new_column});
    w.each_element(detail::sm3_direction<real, work_terms>{v, g});
    w.each(w.rows, detail::copy_elements<real>{row, new_row});
    w.each(w.columns, detail::copy_elements<real>{column, new_column});
    return g;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real u, state<Real>& s, terms<Real> const& k) {
    s.m = k.mu * s.m + k.a1 * u;
    return p - k.lr * s.m;
  }
};
static_assert(matrix_rule<sm3_for_matrices>);

}  // namespace descent
