// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

/// Update rules. `Real` is float, double or a SIMD pack of floats. The structs `state`, `terms` and `sums` are
/// templates over it and have members of type Real only, so that each member can be stored as an array.
///
/// The functions called per element (update, start, sum, averaged, ahead and a transform's apply) must not branch or
/// throw: they run on packs, in many threads and on devices. at(), check() and schedules may throw on the host. The
/// step has then changed nothing, except for rows that count their own updates (masked_rows<row_step::own>), for which
/// at() is called while they are updated.
namespace descent {

namespace detail {
/// The number of Real members of such a struct; 0 for an empty one.
template <template <class> class Struct>
inline constexpr std::size_t members = std::is_empty_v<Struct<double>> ? 0 : sizeof(Struct<double>) / sizeof(double);
/// Whether all members of the struct can be made from Real and fill it completely.
struct mark {};
template <template <class> class Struct, std::size_t... I> constexpr bool holds_reals(std::index_sequence<I...>) {
  return requires { Struct<mark>{(static_cast<void>(I), mark{})...}; };
}
template <template <class> class Struct>
concept struct_of_reals = std::is_trivially_copyable_v<Struct<double>> && std::is_aggregate_v<Struct<double>> &&
                          holds_reals<Struct>(std::make_index_sequence<members<Struct>>{}) &&
                          (std::is_empty_v<Struct<double>> || sizeof(Struct<float>) == members<Struct> * sizeof(float));
/// Member i of such a struct. It has the layout of an array: struct_of_reals checks it. This is the only place that
/// relies on it.
template <class Real, class Struct> DESCENT_HD Real& real_at(Struct& s, auto i) {
  return reinterpret_cast<Real*>(&s)[i];
}
template <class Real, class Struct> DESCENT_HD Real const& real_at(Struct const& s, auto i) {
  return reinterpret_cast<Real const*>(&s)[i];
}
}  // namespace detail

/// State: what the rule stores for each parameter element. Starts at zero.
template <class R> concept has_state = detail::struct_of_reals<R::template state>;

/// Terms: what the update needs besides the element. `at(t)` computes them once per group and step, in double, for
/// update t = 1, 2, .... A rule with memory (below) and no sums may have `at(t, memory)` instead.
namespace detail {
template <class R>
concept terms_at_step = requires(R const r, std::int64_t t) {
  { r.at(t) } -> std::same_as<typename R::template terms<double>>;
};
template <class R>
concept terms_of_memory = requires(R const r, std::int64_t t, typename R::memory& memory) {
  { r.at(t, memory) } -> std::same_as<typename R::template terms<double>>;
};
}  // namespace detail
template <class R>
concept has_terms =
    detail::struct_of_reals<R::template terms> && (detail::terms_at_step<R> || detail::terms_of_memory<R>);

namespace detail {
template <class R, class Real>
concept updates = requires(Real x, typename R::template state<Real>& s, typename R::template terms<Real> const& k) {
  { R::update(x, x, s, k) } -> std::same_as<Real>;
};
}  // namespace detail

namespace detail {
template <class R, class Real>
concept updates_with_normal =
    requires(Real x, typename R::template state<Real>& s, typename R::template terms<Real> const& k) {
      { R::update(x, x, s, k, x) } -> std::same_as<Real>;
    };
}  // namespace detail

/// Normals, an ability: `update(p, g, s, k, z)` gets a standard normal z, different for each element and update, drawn
/// with the rule's field `std::uint64_t seed`. All groups use the seed of group 0.
template <class R>
concept takes_normal =
    detail::updates_with_normal<R, float> && detail::updates_with_normal<R, double> && requires(R const r) {
      { (r.seed) } -> std::same_as<std::uint64_t const&>;
    };

/// Update: computes the new parameter from parameter p, gradient g, state s (changed in place) and terms k.
template <class R> concept has_update = (detail::updates<R, float> && detail::updates<R, double>) || takes_normal<R>;

/// An update rule: trivially copyable, with state, terms and update.
template <class R>
concept update_rule = std::is_trivially_copyable_v<R> && has_state<R> && has_terms<R> && has_update<R>;

// ---- abilities: each is optional and found by its name -------------------------------------------------------------

/// Start: the state starts at `start(p)` instead of zero, by the rule that the optimizer's constructor gets.
template <class R>
concept has_start = requires(R const r, float x, double y) {
  { r.start(x) } -> std::same_as<typename R::template state<float>>;
  { r.start(y) } -> std::same_as<typename R::template state<double>>;
};

/// Names of the state's members, in order: `static constexpr char const* slots[] = {"m", "v"};`
template <class R> concept has_slot_names = requires { R::slots[0]; };

/// Optional state: `uses(slot)` says whether the rule with these settings needs that member of the state. A member that
/// no group needs is not allocated, read or written; update then sees 0 there.
template <class R>
concept has_optional_state = requires(R const r, std::size_t slot) {
  { r.uses(slot) } -> std::same_as<bool>;
};

/// Counts: `static constexpr bool counts(std::size_t slot)` says that a member of the state is a whole number from 0
/// on, such as an element's number of updates. update sees a Real, exact up to 2^24 in float and 2^32 in double. In
/// memory it is a std::uint32_t, whatever states<T...> says, and never rounded at random.
template <class R>
concept has_counts = requires(std::size_t slot) {
  { R::counts(slot) } -> std::same_as<bool>;
};
namespace detail {
template <class R> constexpr bool is_count([[maybe_unused]] std::size_t slot) {
  if constexpr (has_counts<R>) return R::counts(slot);
  else return false;
}
/// The number of counts before a member.
template <class R> constexpr std::size_t counts_before(std::size_t slot) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < slot; ++i) n += is_count<R>(i);
  return n;
}
}  // namespace detail

/// State for sums only: `update` neither reads nor changes that member, and sees 0 there.
template <class R>
concept has_state_for_sums = requires(std::size_t slot) {
  { R::for_sums_only(slot) } -> std::same_as<bool>;
};

/// What sums and norms run over. The sums of a rule run over a tensor or the model.
enum class scope { tensor, group, model };

/// Sums: `sum(p, g, k)`, or `sum(p, g, s, k)` if it needs the state, returns each element's contribution, with s before
/// the update and k = at(t). A contribution is computed in the type of the arithmetic: in float, squares of numbers
/// below 2^-75 = 2.6e-23 are 0 and those above 1.8e19 infinite. Before the first element is updated, contributions are
/// added in double over each tensor or over the whole model (`static constexpr scope sums_over`). update then gets
/// `at(t, totals)`.
template <class R>
concept has_sums_of_state =
    requires(float x, typename R::template state<float> const& s, typename R::template terms<float> const& k) {
      { R::sum(x, x, s, k) } -> std::same_as<typename R::template sums<float>>;
    };
template <class R>
concept has_sums =
    detail::struct_of_reals<R::template sums> && requires(float x, typename R::template terms<float> const& k) {
      { R::sums_over } -> std::convertible_to<scope>;
      requires has_sums_of_state<R> || requires {
        { R::sum(x, x, k) } -> std::same_as<typename R::template sums<float>>;
      };
    };

/// Memory: `struct memory` has scalars that persist from step to step: one per tensor if the sums are over tensors,
/// else one per group. update then gets `at(t, totals, memory)`, or `at(t, memory)` if the rule has no sums.
namespace detail {
template <class R>
concept terms_of_sums_and_memory = requires(R const r, std::int64_t t, typename R::template sums<double> const& totals,
                                            typename R::memory& memory) {
  { r.at(t, totals, memory) } -> std::same_as<typename R::template terms<double>>;
} || requires(R const r, std::int64_t t, typename R::template sums<double> const& totals, typename R::memory& memory) {
  { r.at(t, totals, memory, 1.0) } -> std::same_as<typename R::template terms<double>>;
};
}  // namespace detail
template <class R>
concept has_memory = std::is_trivially_copyable_v<typename R::memory> &&
                     (has_sums<R> ? detail::terms_of_sums_and_memory<R> : detail::terms_of_memory<R>);

/// Loss: a rule with sums that uses the loss of the batch has `at(t, totals, loss)`, or `at(t, totals, memory, loss)`
/// if it has memory. It needs the policy loss_at.
template <class R>
concept has_loss =
    has_sums<R> && (requires(R const r, std::int64_t t, typename R::template sums<double> const& totals) {
      { r.at(t, totals, 1.0) } -> std::same_as<typename R::template terms<double>>;
    } || requires(R const r, std::int64_t t, typename R::template sums<double> const& totals,
                  typename R::memory& memory) {
      { r.at(t, totals, memory, 1.0) } -> std::same_as<typename R::template terms<double>>;
    });

/// Sums that need the memory get k = at(t, memory). It sees the memory before the update and must not change it.
template <class R> concept has_sums_of_memory = has_sums<R> && has_memory<R> && detail::terms_of_memory<R>;

/// Average: a rule whose state determines averaged parameters has `averaged(p, s)`, for optimizer::swap_average().
template <class R>
concept has_averaged = requires(R const r, float x, double y, typename R::template state<float> const& s,
                                typename R::template state<double> const& z) {
  { r.averaged(x, s) } -> std::same_as<float>;
  { r.averaged(y, z) } -> std::same_as<double>;
};

/// Ahead: `ahead(p, s)` is the point that the momentum alone would reach, for the policy gradient_ahead.
template <class R>
concept has_ahead = requires(R const r, float x, double y, typename R::template state<float> const& s,
                             typename R::template state<double> const& z) {
  { r.ahead(x, s) } -> std::same_as<float>;
  { r.ahead(y, z) } -> std::same_as<double>;
};

/// Step that needs p: `static constexpr bool step_needs_p = true;` says that the step depends on p other than by decay
/// with the field weight_decay. layerwise evaluates the step at p = 0 and does not accept such a rule.
template <class R> concept has_step_of_p = requires { requires R::step_needs_p; };

/// Unbounded terms: `static constexpr bool unbounded(std::size_t term)` says that a member of the terms may be
/// infinite, such as a limit that is switched off. If any other term is not finite in the type of the arithmetic, the
/// update is skipped.
template <class R>
concept has_unbounded_terms = requires(std::size_t term) {
  { R::unbounded(term) } -> std::same_as<bool>;
};
namespace detail {
template <class R> DESCENT_HD constexpr bool may_be_infinite([[maybe_unused]] std::size_t term) {
  if constexpr (has_unbounded_terms<R>) return R::unbounded(term);
  else return false;
}
}  // namespace detail

/// Check: `check()` throws std::invalid_argument for settings that are not allowed together. It is called where a rule
/// is given to an optimizer, not in steps. Which values each field may have is listed as `ranges`, see range.hpp.

}  // namespace descent
