// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/core/rule.hpp>
#include <descent/parameters.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

/// Matrices follow a rule of their own. Include matrices/host.hpp or matrices/cuda.cuh, which have the products.
namespace descent {

/// What an update rule for matrices is: three parts, of which the machine calls the first and the last for every
/// element, as it does with other rules, and the second for every matrix in between.
///
///     direction(p, g, s, k)     the true gradient's way into the scratch matrices: `inputs<Real>`, one matrix a member
///     transform(work)           the direction of the whole matrix, from these matrices and a memory of its own
///     update(p, d, s, k)        the new parameter from the direction's element d
///
/// `state`, `terms`, `check`, `start` and `uses` are as in core/rule.hpp, but for at(t, shape). A member of the state
/// belongs to direction, or to update if `after(slot)` says so. `memory(shape)` and `scratch(shape)` are the sizes of
/// what transform works with (detail::host_work); memory lives from step to step, starts at zero, or with
/// `starts_memory` as `start_memory(work)` leaves it, and changes only in steps that are not skipped. Of these at() may
/// throw, and the step has changed nothing; the others run when elements have changed, and must not.
template <class R>
concept matrix_rule =
    std::is_trivially_copyable_v<R> && has_state<R> && detail::struct_of_reals<R::template terms> &&
    detail::struct_of_reals<R::template inputs> && detail::updates<R, float> && detail::updates<R, double> &&
    requires(R const r, std::int64_t t, shape s, float x, typename R::template state<float>& m,
             typename R::template terms<float> const& k) {
      { r.at(t, s) } -> std::same_as<typename R::template terms<double>>;
      { R::direction(x, x, m, k) } -> std::same_as<typename R::template inputs<float>>;
      { r.memory(s) } -> std::same_as<std::vector<std::int64_t>>;
      { r.scratch(s) } -> std::same_as<std::vector<std::int64_t>>;
    };

namespace detail {

/// A matrix in memory, row by row.
template <class Real> struct dense {
  Real* data;
  std::int64_t rows, columns;
  bool transposed = false;
  dense t() const { return {data, rows, columns, !transposed}; }
  std::int64_t height() const { return transposed ? columns : rows; }
  std::int64_t width() const { return transposed ? rows : columns; }
};

/// The largest number, in device code, too, where nvcc does not call numeric_limits.
template <class Real> inline constexpr Real largest = std::numeric_limits<Real>::max();

// What several rules do to elements of matrices.
template <class Real> struct square_of {
  Real const* x;
  DESCENT_HD double operator()(std::int64_t i) const { return double(x[i]) * double(x[i]); }
};
template <class Real> struct copy_of {
  Real* to;
  Real const* from;
  DESCENT_HD void operator()(std::int64_t i) const { to[i] = from[i]; }
};
/// x <- I, n x n
template <class Real> struct identity_of {
  Real* x;
  std::int64_t n;
  DESCENT_HD void operator()(std::int64_t i) const { x[i] = i % (n + 1) == 0 ? Real(1) : Real(0); }
};

/// A rule that has other terms, state and update for matrices names that one `for_matrices`.
template <class R> struct rule_for_matrices { using type = R; };
template <class R> requires requires { typename R::for_matrices; }
struct rule_for_matrices<R> { using type = typename R::for_matrices; };
}  // namespace detail

/// Parameters with a shape of at least 2 x 2 follow `rule` and have its state; the others follow the optimizer's rule.
/// Everything else is shared: t, the norm, the clip factor, the skip, the loss scale, masters and averages. Where a
/// group is given, only its matrices. Embeddings and output layers, which matrix rules do not suit, are added without a
/// shape or to another group.
///
/// States are stored in the type of states<T>, or in the type of the arithmetic where that names several. Products are
/// in the type of the arithmetic: float, or double. optimizer::matrix_rule is the rule of one group;
/// vary<&muon::lr>(schedule) is understood, while learning_rate(schedule) is for the optimizer's rule.
///
/// Matrices are done one after the other in scratch that is as large as the largest needs. On CUDA step() enqueues all
/// of it, also where the device will find that the step is skipped: then the products run for nothing.
template <class Rule> struct matrices {
  using policy_kind = kind::matrices;
  using matrix_rule = typename detail::rule_for_matrices<Rule>::type;

  matrix_rule rule;
  int only = -1;

  constexpr matrices(Rule r) : rule{r} {}
  constexpr matrices(Rule r, group g) : rule{r}, only(g.index) {}

  template <class> static constexpr void require_rule() {
    static_assert(descent::matrix_rule<matrix_rule>,
                  "matrices{rule}: a rule for matrices needs state, terms, inputs, at(t, shape), direction, update, "
                  "memory(shape), scratch(shape) and transform(work)");
  }
  void check() const {
    if constexpr (has_check<matrix_rule>) rule.check();
  }

  template <class View> bool routes(View const& v) const {
    return v.columns > 1 && v.count > v.columns && (only < 0 || v.group == only);
  }
};

}  // namespace descent
