// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/step/plan.hpp>
#include <descent/detail/step/scheduled.hpp>
#include <descent/detail/step/step_terms.hpp>
#include <descent/detail/util/summation_order.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/schedules/plateau.hpp>

#include <cstdint>

/// The control block: what changes from step to step and lives beside the data, in the memory of the backend. The
/// functions below are one state machine for host and device, all in double. They never touch a parameter.
///
///     decide:   count or update? skip? norm, clip factor
///     rescale:  loss scale
///     terms:    schedules -> rule -> what the update needs, for each group (or tensor, for sums over tensors), in
///               detail/step/terms.hpp
///     advance:  t <- t + 1; or, where a term is not finite, skip
namespace descent {

/// Why an update was skipped whose gradients were finite: something that it would compute with was not, in the type of
/// the arithmetic.
struct term_fault {
  enum place : std::int32_t { none, divisor, term, factor, policies, sums, matrices };
  place what = none;
  std::int32_t index = 0;  ///< of the term; -1: the field lr
  std::int64_t unit = 0;   ///< group or tensor
  double value = 0;
};

struct control_block {
  std::int64_t step = 0;     ///< t, the updates applied so far
  std::int64_t calls = 0;    ///< of step(), whatever they did
  std::int64_t skipped = 0;  ///< updates that were skipped for a gradient, loss or term that is not finite
  std::int64_t bad_chunk = -1;
  double grad_norm = 0;      ///< of the last call, of the true gradient, before clipping
  double clip = 1;           ///< of groups or tensors that are clipped by themselves, the smallest
  double factor = 1;  ///< from gradients in memory to what the rule sees, without clipping per group or tensor
  double learning_rate = 0;  ///< of group 0, in the last applied update
  bool applied = false;  ///< whether the last call updated the parameters
  bool waiting = false;  ///< whether the last call only counted its gradients
  bool unscaled = false;  ///< whether the gradients in memory are free of the loss scale already
  bool lost = false;  ///< whether the last call did nothing because ranks were lost
  std::int32_t skipped_in_row = 0;
  std::int32_t batches = 0;  ///< gradients counted since the last update, and the sum of their weights
  double weight = 0;
  loss_scale_state scale;  ///< the optimizer's own
  plateau_state plateau{1, 0, 0, 0, 0, 0};
  double sweep = 0;  ///< the learning rate of a sweep, if above 0
  double last_clip = 1;  ///< `clip` of the last applied update, while the next one may still be skipped
  term_fault fault;  ///< of the last call
};

/// What the caller says about one call.
struct step_call {
  double weight = 1;  ///< of the gradients since the last call
  bool flush = false;  ///< nothing new: update with what there is
  bool look = false;  ///< no step: only measure
};

/// A loss scale that several optimizers share, in the memory of the backend.
struct shared_scale {
  loss_scale_state state;
  std::int32_t judged = 0, found = 0;  ///< whether gradients were judged since the last update, and found not finite
};

/// A group's copy of the rule.
template <class Rule> struct group_entry {
  Rule rule;
  bool frozen = false;
  std::int32_t number = 0;  ///< of the group
};

namespace detail {

DESCENT_HD inline rate_change rates_of(control_block const& c) { return {c.plateau.value, c.sweep}; }

/// The totals of the read-only pass over some gradients as they lie in memory.
struct norm_totals {
  double main = 0, large = 0, parameters = 0;

  /// Neither infinite nor not a number. Holds for every finite value: no square and no sum of them overflows.
  DESCENT_HD bool finite() const { return is_finite(main) && is_finite(large); }
};

/// The totals of some gradients, from the total of each row.
DESCENT_CALLS
template <class Plan, class Total> DESCENT_HD norm_totals norm_totals_from(Total const& total) {
  norm_totals x;
  x.main = total(0);
  if constexpr (Plan::has_large) x.large = total(1);
  if constexpr (Plan::measures_parameters) x.parameters = total(Plan::norm_sums - 1);
  return x;
}

/// The norm that the totals stand for.
template <class Plan> DESCENT_HD double norm_from(norm_totals const& x) {
  if constexpr (Plan::norm_of == norm::l2) {
    bool const none = __builtin_bit_cast(std::uint64_t, x.large) == 0;  // behind x.large == 0 it would pass for finite
    return none ? sqrt(x.main) : sqrt(x.large + x.main * large_scale * large_scale) / large_scale;
  } else if constexpr (Plan::norm_of == norm::l1) return x.main / Plan::sum_scale;
  else return x.main;
}

/// What sam multiplies the gradients in memory by to ascend.
template <class Plan>
DESCENT_HD double perturbation_factor(typename Plan::policies const& policies, norm_totals const& x) {
  double const norm = norm_from<Plan>(x);
  if (!x.finite() || norm == 0) return 0;
  double const rho = get<kind::perturbation>(policies).rho;
  double const factor = (Plan::maximizes ? -rho : rho) / norm;
  return is_finite(typename Plan::real(factor)) ? factor : 0;
}

/// The clip policy's factor for a true gradient, from its totals in memory and what makes it true.
template <class Plan>
DESCENT_HD double clip_factor(typename Plan::policies const& policies, norm_totals const& x, double inverse) {
  if constexpr (has<Plan, kind::clip>) {
    auto const& clip = get<kind::clip>(policies);
    double const norm = norm_from<Plan>(x) * inverse;
    if constexpr (Plan::measures_parameters) return clip.factor(norm, sqrt(x.parameters));
    else return clip.factor(norm);
  } else {
    return 1;
  }
}

/// The micro-batches of the update after `step` others.
template <class Plan>
DESCENT_HD std::int64_t micro_batches(typename Plan::policies const& policies, std::int64_t step) {
  return micro_batches_at(get<kind::accumulation>(policies), step);
}

/// Whether this call ends in an update, and does not only count. Ranks meet in every flush(): what waits on the others
/// is not known before.
template <class Plan>
DESCENT_HD bool completes(control_block const& c, [[maybe_unused]] typename Plan::policies const& policies,
                          step_call const& call) {
  if constexpr (has<Plan, kind::accumulation>) {
    if (call.flush) return Plan::parallel || c.batches > 0;
    return call.look || c.batches + 1 >= micro_batches<Plan>(policies, c.step);
  } else {
    return true;
  }
}

/// Whether this rank has nothing to add where ranks meet in a flush(): then it sends zeros with weight 0.
DESCENT_HD inline bool adds_nothing(control_block const& c, step_call const& call) {
  return call.flush && c.batches == 0;
}

/// The weights of this rank's gradients in memory.
template <class Plan> DESCENT_HD double weight_of([[maybe_unused]] control_block const& c, step_call const& call) {
  if constexpr (has<Plan, kind::accumulation>) return c.weight + (call.flush ? 0 : call.weight);
  else return call.weight;
}

/// What makes the gradients in memory true: 1 / (loss scale, weights of the micro-batches, on all ranks).
template <class Plan>
DESCENT_HD double gradient_factor(control_block const& c, [[maybe_unused]] typename Plan::policies const& policies,
                             [[maybe_unused]] loss_scale_state const& scale, [[maybe_unused]] step_call const& call) {
  double divisor = 1;
  if constexpr (has<Plan, kind::loss_scale>) divisor = c.unscaled ? 1 : double(scale.scale);
  if constexpr (Plan::parallel) divisor *= get<kind::parallel>(policies).now->weight();
  else if constexpr (has<Plan, kind::accumulation>) divisor *= weight_of<Plan>(c, call);
  return 1 / divisor;
}

/// Whether something can be multiplied by x, with nothing lost but digits.
template <class Real> DESCENT_HD bool is_factor(double x) {
  Real const narrow = Real(x);
  return is_finite(narrow) && narrow > 0;
}

/// The loss that rules look at: on several ranks the mean.
template <class Plan> DESCENT_HD double loss_of(typename Plan::policies const& policies) {
  if constexpr (Plan::parallel) return get<kind::parallel>(policies).now->loss();
  else return *get<kind::loss>(policies).where;
}

/// The update does not take place.
DESCENT_HD inline void skip(control_block& c) {
  c.applied = false;
  ++c.skipped;
  ++c.skipped_in_row;
}

/// Once per call of step, given the scale in force and the totals over all gradients, which are not read when the step
/// measures none. What it lets pass is for advance() or skip().
template <class Plan>
DESCENT_HD void decide(control_block& c, typename Plan::policies const& policies, loss_scale_state const& scale,
                       norm_totals const& totals, step_call const& call = {}) {
  ++c.calls;
  c.fault = {};
  c.applied = completes<Plan>(c, policies, call);
  c.waiting = !c.applied;
  if constexpr (Plan::parallel) {
    c.lost = c.applied && !get<kind::parallel>(policies).now->complete();
    if (c.lost) {
      c.applied = false;
      c.waiting = true;
      return;
    }
    if (call.flush && get<kind::parallel>(policies).now->weights == 0) {  // nothing on any rank
      c.applied = false;
      c.waiting = true;
      return;
    }
  }
  double const inverse = gradient_factor<Plan>(c, policies, scale, call);
  if constexpr (has<Plan, kind::accumulation>) {
    if (c.waiting) {
      if (!call.flush) ++c.batches, c.weight += call.weight;
      return;
    }
    c.batches = 0;
    c.weight = 0;
  }
  c.unscaled = false;
  bool const divides = is_factor<typename Plan::real>(inverse);
  if constexpr (Plan::measures) {
    c.grad_norm = norm_from<Plan>(totals) * inverse;
    c.applied = totals.finite();
    if constexpr (has_loss<typename Plan::rule>) {
      double const loss = loss_of<Plan>(policies);
      c.applied = c.applied && (is_finite(loss) || !divides);
    }
  }
  if (c.applied && !divides) c.fault = {term_fault::divisor, 0, 0, 1 / inverse};
  if (!c.applied || !divides) return skip(c);
  c.last_clip = c.clip;
  c.clip = Plan::clip_over == scope::model ? clip_factor<Plan>(policies, totals, inverse) : 1;
  c.factor = inverse * c.clip;
}

/// The update takes place, given the rule of group 0: all that it computes with is finite.
template <class Plan>
DESCENT_HD void advance(control_block& c, [[maybe_unused]] typename Plan::rule const& rule,
                        [[maybe_unused]] typename Plan::policies const& policies) {
  c.bad_chunk = -1;
  c.skipped_in_row = 0;
  if constexpr (has_lr<typename Plan::rule>) c.learning_rate = scheduled(rule, policies, c.step, 0, rates_of(c)).lr;
  ++c.step;
}
/// It does not, for a fault that was found behind decide(). The loss scale is of gradients, and has followed them.
DESCENT_HD inline void skip(control_block& c, term_fault const& why) {
  c.fault = why;
  c.bad_chunk = -1;
  c.clip = c.last_clip;
  skip(c);
}

/// Shows the plateau a metric, in memory or by value.
template <class Plan>
DESCENT_HD void observe_metric(control_block& c, typename Plan::policies const& policies, float const* where,
                               double metric) {
  get<kind::plateau>(policies).settings.next(c.plateau, where ? double(*where) : metric);
}

/// The control block of an optimizer that has taken no step.
template <class Plan> control_block start_of([[maybe_unused]] typename Plan::policies const& policies) {
  control_block c;
  if constexpr (has<Plan, kind::loss_scale> && !Plan::shares_scale) c.scale = get<kind::loss_scale>(policies).start();
  if constexpr (has<Plan, kind::plateau>) c.plateau = get<kind::plateau>(policies).settings.start();
  return c;
}

/// Once per iteration, after all that share the scale have judged their gradients. Nothing when none has.
template <class Policy> DESCENT_HD void update_shared(shared_scale& s, Policy const& policy) {
  if (s.judged) policy.next(s.state, !s.found);
  s.judged = s.found = 0;
}

/// The loss scale after decide(). It follows the gradients: they were finite where only their divisor was not.
template <class Plan>
DESCENT_HD void rescale(control_block& c, [[maybe_unused]] typename Plan::policies const& policies) {
  if constexpr (has<Plan, kind::loss_scale>) {
    auto const& policy = get<kind::loss_scale>(policies);
    if (c.waiting) return;
    bool const finite = c.applied || c.fault.what != term_fault::none;
    if constexpr (Plan::shares_scale) {
      policy.shared->judged = 1;
      if (!finite) policy.shared->found = 1;
    } else {
      policy.next(c.scale, finite);
    }
  }
}

}  // namespace detail
}  // namespace descent
