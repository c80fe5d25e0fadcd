// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>
#include <descent/parameters.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

/// A separate rule for matrices. Include matrices/host.hpp or matrices/cuda.cuh, which provide the matrix products.
namespace descent {

/// An update rule for matrices has three parts. The first and the last are called for every element, as in other rules;
/// the second is called for every matrix in between.
///
///     direction(p, g, s, k)     from the true gradient to the scratch matrices: `inputs<Real>`, one matrix per member
///     transform(work)           the direction of the whole matrix, from these matrices and the rule's memory
///     update(p, d, s, k)        the new parameter from the direction's element d
///
/// `state`, `terms`, `check`, `start` and `uses` are as in core/rule.hpp, but terms come from at(t, shape). A member of
/// the state belongs to direction, or to update if `after(slot)` returns true. `memory(shape)` and `scratch(shape)` are
/// the sizes of the arrays that transform works with (detail::host_work). The memory persists between steps, starts at
/// zero, or with `starts_memory` as `start_memory(work)` leaves it, and changes only in steps that are not skipped.
/// at() may throw: the step has then changed nothing. The others run after elements have changed and must not throw.
/// transform() must do the same operations for all matrices of one shape, which a device processes together.
///
/// Ranks of `sharded` share the matrices by what each costs: `double cost(shape) const` if the rule has it, otherwise
/// r c min(r, c), as products of an r x c matrix with its shorter side.
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

/// A matrix in memory, stored row by row.
template <class Real> struct dense {
  Real* data;
  std::int64_t rows, columns;
  bool transposed = false;
  dense t() const { return {data, rows, columns, !transposed}; }
  std::int64_t height() const { return transposed ? columns : rows; }
  std::int64_t width() const { return transposed ? rows : columns; }
};

/// The largest number. Also for device code, where nvcc cannot call numeric_limits.
template <class Real> inline constexpr Real largest = std::numeric_limits<Real>::max();

// Operations on matrix elements that several rules use.
template <class Real> struct square_of {
  Real const* x;
  DESCENT_HD double operator()(std::int64_t i) const { return double(x[i]) * double(x[i]); }
  DESCENT_HD double operator()(std::int64_t i, std::int64_t, std::int64_t) const { return (*this)(i); }
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

/// A rule with other terms, state and update for matrices names that matrix rule `for_matrices`.
template <class R> struct rule_for_matrices { using type = R; };
template <class R> requires requires { typename R::for_matrices; }
struct rule_for_matrices<R> { using type = typename R::for_matrices; };
}  // namespace detail

/// The type to which a device rounds the operands of matrix products of floats. Sums are in float, and double stays
/// double. The host multiplies floats as they are; there, anything but `exact` allows a rule errors of that size.
enum class operands {
  exact,  ///< as they are
  tf32,  ///< 10 bits after the point: tensor cores of sm_80 and later
  bf16  ///< bfloat16, 7 bits after the point, as in torch.optim.Muon: twice as fast as tf32
};

/// Parameters with a shape of at least 2 x 2 follow `rule` and have its state; the others follow the optimizer's rule.
/// Everything else is shared: t, the norm, the clip factor, the skip, the loss scale, masters and averages. If a group
/// is given, only its matrices follow `rule`. Matrix rules do not suit embeddings and output layers: add those without
/// a shape or to another group.
///
/// States are stored in the type of states<T>, or in the type of the arithmetic if that policy names several. Products
/// are in the type of the arithmetic: float or double. optimizer::matrix_rule() is the rule of one group. Schedules:
/// vary<&muon::lr>(schedule) works; learning_rate(schedule) applies to the optimizer's rule only.
///
/// On the host, step() shares products among the backend's threads, and their bits do not depend on the number of
/// threads, if the program links OpenBLAS: until step() ends, OpenBLAS computes every product of the process by the
/// calling thread alone. Each thread of an OpenMP team computes its own matrix, in its own scratch memory, if the team
/// has at most `at_once` threads and their scratch memory at most 2^26 elements, and if there are enough matrices that
/// the threads end together. Otherwise they compute one matrix after another. Another BLAS uses its own threads, for
/// one matrix after another.
///
/// A device processes up to `at_once` matrices of one group and one shape together, in scratch memory of up to 2^26
/// elements: each of the rule's launches is then for all of them. Products of operands that are not exact are one
/// call, too, for as many matrices on each rank of `sharded` as on a single one, because cuBLAS adds in an order that
/// depends on the number; with model_parallel the number is that of the rank's own. step() enqueues all of it, even if
/// the device then finds that the step is skipped: the products are then wasted.
///
/// With replicated, every rank has all matrices' states and computes all products. With sharded, each matrix belongs to
/// one rank, which has its state and computes its products; vectors are divided as usual. The most expensive matrices
/// are assigned first, each to the rank with the least work. Parts of the wire are as large as the largest part, so
/// the bytes grow if one rank's matrices are larger than the mean; explain() says by how much.
template <class Rule> struct matrices {
  using policy_kind = kind::matrices;
  /// `Rule`, or the rule for matrices that it names.
  using matrix_rule = typename detail::rule_for_matrices<Rule>::type;

  matrix_rule rule;
  int only = -1;  ///< the group whose matrices follow the rule; -1 for all
  int at_once = 8;  ///< matrices that are processed at the same time, at most; in [1, 16]

  constexpr matrices(Rule r) : rule{r} {}
  constexpr matrices(Rule r, group g) : rule{r}, only(g.index) {}

  /// Fails to compile if the rule is not for matrices.
  template <class> static constexpr void require_rule() {
    static_assert(descent::matrix_rule<matrix_rule>,
                  "matrices{rule}: a rule for matrices needs state, terms, inputs, at(t, shape), direction, update, "
                  "memory(shape), scratch(shape) and transform(work)");
  }
  static constexpr field_range<matrices> ranges[] = {{&matrices::at_once, {1, 16, "in [1, 16]"}}};
  /// Calls f(name, field) for the fields beside the rule.
  template <class F> void each_field(F const& f) { f("only", only), f("at_once", at_once); }

  /// What a step of one matrix costs, relative to others.
  double cost(shape s) const {
    if constexpr (requires { rule.cost(s); }) return rule.cost(s);
    else return double(s.rows) * double(s.columns) * double(s.rows < s.columns ? s.rows : s.columns);
  }

  /// Whether a parameter follows the matrix rule.
  template <class View> bool routes(View const& v) const {
    return v.columns > 1 && v.count > v.columns && (only < 0 || v.group == only);
  }
};

}  // namespace descent
