// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/rules/detail/inner_rule.hpp>

namespace descent {

/// LARC: layer-wise adaptive rate control around any rule that has lr and no sums, as in NVIDIA apex. It is LARS (You
/// et al. 2017) applied to the gradient. Each tensor is a layer. With `clip` a layer's rate is the smaller of lr and
/// the trust ratio, otherwise their product.
///
///     a <- trust ||p|| / (||g|| + wd ||p|| + eps)         over the tensor
///     a <- min(a / lr, 1)                                 (clip)
///     g <- a (g + wd p)                                   a = 1 where ||p|| or ||g|| is 0, and without `adapt`
///     p <- rule(p, g)                                     with larc's lr and without decay in the rule
///
/// Where a norm is 0, apex also skips the decay. Example: `larc<sgd>{.rule = {.momentum = 0.9}, .lr = 0.1}`.
template <class Rule> struct larc {
  static_assert(detail::inner_rule<Rule>,
                "larc<Rule>: Rule is an update rule with a field lr that has no sums and takes no normals");

  /// The inner rule, its learning rate lr, the trust coefficient trust, eps and weight_decay (wd), the last four at
  /// least 0.
  Rule rule{};
  double lr = Rule{}.lr, trust = 0.02, eps = 1e-8, weight_decay = 0;
  bool clip = true, adapt = true;

  template <class Real> using state = typename Rule::template state<Real>;
  template <class Real> struct terms { typename Rule::template terms<Real> inner; Real a, wd; };
  template <class Real> struct sums { Real pp, gg; };  // squared norms
  using memory = detail::memory_of_inner<Rule>;
  static constexpr auto slots = detail::slots_of_inner<Rule>();
  static constexpr scope sums_over = scope::tensor;

  DESCENT_HD static constexpr bool unbounded(std::size_t term) requires has_unbounded_terms<Rule> {
    return term < detail::members<Rule::template terms> && Rule::unbounded(term);
  }
  bool uses(std::size_t slot) const requires has_optional_state<Rule> { return rule.uses(slot); }
  static constexpr bool counts(std::size_t slot) { return detail::is_count<Rule>(slot); }

  template <class Real> DESCENT_HD state<Real> start(Real p) const requires has_start<Rule> { return rule.start(p); }

  template <class Real> DESCENT_HD static sums<Real> sum(Real p, Real g, terms<Real> const&) { return {p * p, g * g}; }

  DESCENT_HD terms<double> at(std::int64_t) const { return {{}, 1, weight_decay}; }  // for the sums

  template <class... Memory>
  DESCENT_HD terms<double> at(std::int64_t t, sums<double> const& total, Memory&... old) const
      requires detail::has_terms_of<Rule, Memory...> {
    double const p = sqrt(total.pp), g = sqrt(total.gg);
    terms<double> k{detail::with_lr(rule, lr).at(t, old...), 1, weight_decay};
    if (!(adapt && p > 0 && g > 0)) return k;
    k.a = trust * p / (g + weight_decay * p + eps);
    if (clip) k.a = min(k.a / lr, 1.0);
    return k;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    return Rule::update(p, k.a * (g + k.wd * p), s, k.inner);
  }

  static constexpr field_range<larc> ranges[] = {
      {&larc::lr, at_least_0}, {&larc::trust, at_least_0}, {&larc::eps, at_least_0}, {&larc::weight_decay, at_least_0}};
  void check() const { detail::check_inner("larc", rule); }
};

}  // namespace descent
