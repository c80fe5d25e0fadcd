// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/rules/detail/chain_plan.hpp>
#include <descent/core/detail/loops.hpp>

namespace descent {

namespace detail {
/// The parts as base classes, numbered so that two parts may have the same type.
template <std::size_t I, class Part> struct chain_part : Part {};
template <class Numbers, class... Parts> struct chain_parts;
template <std::size_t... I, class... Parts>
struct chain_parts<std::index_sequence<I...>, Parts...> : chain_part<I, Parts>... {
  constexpr chain_parts() = default;
  constexpr explicit chain_parts(Parts... parts) : chain_part<I, Parts>{parts}... {}
};
}  // namespace detail

/// Gradient transforms in front of a rule. A chain is itself a rule and runs as one kernel, storing nothing in between.
///
///     g <- first(p, g),  g <- second(p, g),  ...,  p <- rule(p, g)         p: before the update
///
/// `chain{clip_value{1.0}, l2{1e-4}, adam{}}`. The chain has the abilities of its rule. One part may have sums, and one
/// may take normals, but not before the one with sums. Each field of a part is a field of the chain. If two parts have
/// fields of the same name, name the part: `opt.group(0).l2::weight_decay`, or `opt.group(0).get<1>().weight_decay`.
/// Schedules work, too: `learning_rate(...)`, `vary<&clip_value::c>(...)`.
template <class... Parts>
class chain : public detail::chain_parts<std::index_sequence_for<Parts...>, Parts...> {
  using plan = detail::chain_plan<Parts...>;
  using bases = detail::chain_parts<std::index_sequence_for<Parts...>, Parts...>;
  using inner = typename plan::rule;
  template <std::size_t I> using part = typename plan::template part<I>;

 public:
  constexpr chain() = default;
  constexpr chain(Parts... parts) : bases(parts...) {}

  /// The I-th part.
  template <std::size_t I> DESCENT_HD constexpr part<I>& get() {
    return static_cast<detail::chain_part<I, part<I>>&>(*this);
  }
  template <std::size_t I> DESCENT_HD constexpr part<I> const& get() const {
    return static_cast<detail::chain_part<I, part<I>> const&>(*this);
  }

  /// Calls f(part) for each part, in order.
  template <class F> void each_part(F const& f) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (f(get<I>()), ...); }(std::make_index_sequence<plan::count>{});
  }

  template <class Real> using state = detail::numbers<Real, plan::slots>;  // the rule's, then the transforms'
  template <class Real> using terms = detail::numbers<Real, plan::terms>;
  static constexpr auto slots = plan::names();
  static constexpr bool step_needs_p = (has_step_of_p<Parts> || ...);

  bool uses(std::size_t slot) const requires has_optional_state<inner> {
    return slot >= detail::members<inner::template state> || get<plan::last>().uses(slot);
  }
  DESCENT_HD static constexpr bool unbounded(std::size_t term) requires(has_unbounded_terms<Parts> || ...) {
    return plan::unbounded(term);
  }
  static constexpr bool for_sums_only(std::size_t slot) requires has_state_for_sums<inner> {
    return slot < detail::members<inner::template state> && inner::for_sums_only(slot);
  }

  static constexpr bool counts(std::size_t slot) { return plan::counted(slot); }

  template <class Real> DESCENT_HD state<Real> start(Real p) const requires has_start<inner> {
    state<Real> s{};
    detail::paste<inner::template state, 0>(s, get<plan::last>().start(p));
    return s;
  }

  template <class Real> DESCENT_HD Real averaged(Real p, state<Real> const& s) const requires has_averaged<inner> {
    return get<plan::last>().averaged(p, detail::cut<inner::template state, 0>(s));
  }

  /// at(t) of all parts. `facts` (totals, memory, loss) go to the parts that need them.
  template <class... Facts> DESCENT_HD terms<double> at(std::int64_t t, Facts&&... facts) const
      requires(plan::template finds<Facts...>()) {
    terms<double> k{};
    detail::unrolled<plan::count>([&]<std::size_t I>(detail::constant<I>) {
      detail::paste<part<I>::template terms, plan::template terms_at<I>>(k, terms_of<I>(t, facts...));
    });
    return k;
  }

  template <class Real> DESCENT_HD static auto sum(Real p, Real g, terms<Real> const& k)
      requires(plan::summing != plan::none && !plan::sums_of_state) {
    state<Real> s{};
    return plan::summing_part::sum(p, transformed<plan::summing>(p, g, s, k), of<plan::summing>(k));
  }
  template <class Real> DESCENT_HD static auto sum(Real p, Real g, state<Real> s, terms<Real> const& k)
      requires(plan::summing != plan::none && plan::sums_of_state) {
    g = transformed<plan::summing>(p, g, s, k);
    if constexpr (has_sums_of_state<typename plan::summing_part>)
      return inner::sum(p, g, detail::cut<inner::template state, 0>(s), of<plan::last>(k));
    else return plan::summing_part::sum(p, g, of<plan::summing>(k));
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k)
      requires(plan::noisy == plan::none) {
    return updated(p, g, s, k);
  }
  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k, Real z)
      requires(plan::noisy != plan::none) {
    return updated(p, g, s, k, z);
  }

 private:
  /// The terms of one part.
  template <std::size_t I, class Real> DESCENT_HD static auto of(terms<Real> const& k) {
    return detail::cut<part<I>::template terms, plan::template terms_at<I>>(k);
  }

  /// The gradient after the first N parts.
  template <std::size_t N, class Real, class... Normal>
  DESCENT_HD static Real transformed(Real p, Real g, state<Real>& s, terms<Real> const& k, Normal... z) {
    detail::unrolled<N>([&]<std::size_t I>(detail::constant<I>) {
      if constexpr (has_state<part<I>>) {
        auto own = detail::cut<part<I>::template state, plan::template slot_at<I>>(s);
        g = part<I>::apply(p, g, own, of<I>(k));
        detail::paste<part<I>::template state, plan::template slot_at<I>>(s, own);
      } else if constexpr (I == plan::noisy) {
        g = part<I>::apply(p, g, of<I>(k), z...);
      } else {
        g = part<I>::apply(p, g, of<I>(k));
      }
    });
    return g;
  }

  template <class Real, class... Normal>
  DESCENT_HD static Real updated(Real p, Real g, state<Real>& s, terms<Real> const& k, Normal... z) {
    g = transformed<plan::last>(p, g, s, k, z...);
    auto own = detail::cut<inner::template state, 0>(s);
    if constexpr (plan::noisy == plan::last) p = inner::update(p, g, own, of<plan::last>(k), z...);
    else p = inner::update(p, g, own, of<plan::last>(k));
    detail::paste<inner::template state, 0>(s, own);
    return p;
  }

  template <std::size_t I> DESCENT_HD auto terms_of(std::int64_t t) const {
    if constexpr (I < plan::last || detail::terms_at_step<inner>) return get<I>().at(t);
    else return typename inner::template terms<double>{};  // the rule has memory; a transform's sums do not use them
  }
  template <std::size_t I, class Fact, class... Rest>
  DESCENT_HD auto terms_of(std::int64_t t, Fact& fact, Rest&... rest) const {
    if constexpr (I == plan::last && plan::transform_sums) return get<I>().at(t, rest...);
    else if constexpr (I == plan::last) return get<I>().at(t, fact, rest...);
    else if constexpr (I == plan::summing) return get<I>().at(t, fact);
    else return get<I>().at(t);
  }
};

}  // namespace descent
