// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/rules/detail/inner_rule.hpp>

#include <limits>

namespace descent {

/// The trust ratio (You et al. 2020, algorithm 1, with phi(x) = x) around any rule that has lr and no sums, and whose
/// step depends on p only through its decay, which layerwise applies itself. A step has length lr ||p||. As in
/// optax.scale_by_trust_ratio after the decay, the ratio is 1 where a norm is 0. It can be clamped.
///
///     u <- -rule(0, g) + wd p                             with lr 1 and without decay in the rule
///     r <- clamp(trust ||p|| / ||u||, min_ratio, max_ratio)     over the tensor; 1 where ||p|| or ||u|| is 0
///     p <- p - lr r u
///
/// layerwise<adam> is lamb. With max_ratio = 1 it caps the step at trust ||p||, bitsandbytes' max_unorm.
template <class Rule> struct layerwise {
  static_assert(detail::inner_rule<Rule>,
                "layerwise<Rule>: Rule is an update rule with a field lr that has no sums and takes no normals");
  static_assert(!has_step_of_p<Rule>,
                "layerwise<Rule>: the step of Rule depends on the parameter itself, so it has no direction at p = 0");

  /// The inner rule; learning rate lr, weight_decay (wd) and the trust coefficient trust at least 0; 0 <= min_ratio <=
  /// max_ratio, the limits of r.
  Rule rule{};
  double lr = Rule{}.lr, weight_decay = 0, trust = 1;
  double min_ratio = 0, max_ratio = std::numeric_limits<double>::infinity();

  template <class Real> using state = typename Rule::template state<Real>;
  template <class Real> struct terms { typename Rule::template terms<Real> inner; Real rate, wd; };
  template <class Real> struct sums { Real pp, uu; };  // squared norms
  using memory = detail::memory_of_inner<Rule>;
  static constexpr auto slots = detail::slots_of_inner<Rule>();
  static constexpr scope sums_over = scope::tensor;

  DESCENT_HD static constexpr bool unbounded(std::size_t term) requires has_unbounded_terms<Rule> {
    return term < detail::members<Rule::template terms> && Rule::unbounded(term);
  }
  bool uses(std::size_t slot) const requires has_optional_state<Rule> { return rule.uses(slot); }
  static constexpr bool counts(std::size_t slot) { return detail::is_count<Rule>(slot); }

  template <class Real> DESCENT_HD state<Real> start(Real p) const requires has_start<Rule> { return rule.start(p); }

  template <class Real> DESCENT_HD static Real direction(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    return k.wd * p - Rule::update(Real(0), g, s, k.inner);
  }

  template <class Real> DESCENT_HD static sums<Real> sum(Real p, Real g, state<Real> s, terms<Real> const& k) {
    Real const u = direction(p, g, s, k);
    return {p * p, u * u};
  }

  /// For the sums; does not change the memory.
  template <class... Memory> DESCENT_HD terms<double> at(std::int64_t t, Memory... old) const
      requires detail::has_terms_of<Rule, Memory...> {
    return {detail::with_lr(rule, 1).at(t, old...), lr, weight_decay};
  }

  template <class... Memory>
  DESCENT_HD terms<double> at(std::int64_t t, sums<double> const& total, Memory&... old) const
      requires detail::has_terms_of<Rule, Memory...> {
    terms<double> k{detail::with_lr(rule, 1).at(t, old...), lr, weight_decay};
    double const ratio = trust * sqrt(total.pp) / sqrt(total.uu);
    if (total.pp > 0 && total.uu > 0) k.rate *= min(max(ratio, min_ratio), max_ratio);
    return k;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    return p - k.rate * direction(p, g, s, k);
  }

  static constexpr field_range<layerwise> ranges[] = {{&layerwise::lr, at_least_0},
                                                      {&layerwise::weight_decay, at_least_0},
                                                      {&layerwise::trust, at_least_0},
                                                      {&layerwise::min_ratio, at_least_0},
                                                      {&layerwise::max_ratio, at_least_0_or_infinite}};
  void check() const {
    detail::check_inner("layerwise", rule);
    detail::require(max_ratio >= min_ratio, "layerwise", "max_ratio", "at least min_ratio", max_ratio);
  }
};

}  // namespace descent
