// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/plan.hpp>
#include <descent/engine/step/scheduled.hpp>
#include <descent/engine/step/step_terms.hpp>
#include <descent/core/detail/summation_order.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/schedules/plateau.hpp>

#include <cstdint>

/// The control block: what changes from step to step besides the tensors, in the backend's memory. The functions below
/// are one state machine for host and device, all in double. They never access a parameter.
///
///     decide:   count or update? skip? norm, clip factor
///     rescale:  loss scale
///     terms:    schedules -> rule -> what the update needs, for each group (or tensor, for sums over tensors), in
///               engine/step/terms.hpp
///     advance:  t <- t + 1; or, where a term is not finite, skip
namespace descent {

/// Why an update was skipped although its gradients were finite: something else that it uses is not finite in the type
/// of the arithmetic, a schedule has moved a field of a rule out of its range, or there are no examples.
struct term_fault {
  enum place : std::int32_t { none, divisor, term, factor, policies, sums, matrices, field, matrix_field, weight };
  place what = none;
  std::int32_t index = 0;  ///< number of the term, -1 for the field lr; of a field: the policy that schedules it
  std::int64_t unit = 0;   ///< group or tensor
  double value = 0;
};

struct control_block {
  std::int64_t step = 0;     ///< t, the number of applied updates
  std::int64_t calls = 0;    ///< of step(), with or without an update
  std::int64_t skipped = 0;  ///< updates skipped: a gradient, loss or term not finite, a field out of range
  std::int64_t bad_chunk = -1;
  double grad_norm = 0;      ///< of the true gradient in the last call, before clipping
  double clip = 1;           ///< the clip factor; the smallest if groups or tensors are clipped separately
  double factor = 1;  ///< applied to every stored gradient; excludes clipping per group or tensor
  double learning_rate = 0;  ///< of group 0, in the last applied update
  bool applied = false;  ///< whether the last call updated the parameters
  bool waiting = false;  ///< whether the last call only counted its gradients
  bool unscaled = false;  ///< whether the stored gradients are already divided by the loss scale
  bool lost = false;  ///< whether the last call did nothing because ranks were lost
  std::int32_t skipped_in_row = 0;
  std::int32_t batches = 0;  ///< micro-batches counted since the last update; `weight` sums their weights
  bool holds_scale = false;  ///< whether these keep a shared loss scale from changing
  double weight = 0;
  loss_scale_state scale;  ///< the optimizer's own
  plateau_state plateau{1, 0, 0, 0, 0, 0};
  double sweep = 0;  ///< the learning rate set by a sweep, if above 0
  double last_clip = 1;  ///< `clip` of the last applied update, in case the next one is skipped
  term_fault fault;  ///< of the last call
};

/// The arguments of one call.
struct step_call {
  double weight = 1;  ///< of the gradients since the last call
  bool flush = false;  ///< no new gradients: update with those accumulated
  bool measure_only = false;  ///< measure only, without a step
};

/// A loss scale that several optimizers share, in the memory of the backend.
struct shared_scale {
  loss_scale_state state;
  std::int32_t judged = 0, found = 0;  ///< whether gradients were checked since the last update, and any not finite
  std::int32_t waiting = 0;  ///< optimizers whose micro-batches were made with this scale and wait for their update
};

/// A group's copy of the rule.
template <class Rule> struct group_entry {
  Rule rule;
  bool frozen = false;
  std::int32_t number = 0;  ///< of the group
};

namespace detail {

DESCENT_HD inline rate_change rates_of(control_block const& c) { return {c.plateau.value, c.sweep}; }

/// The totals of a read-only pass over stored gradients.
struct norm_totals {
  double main = 0, large = 0, parameters = 0;

  /// Whether the gradients are finite. No square and no sum of finite gradients overflows.
  DESCENT_HD bool finite() const { return is_finite(main) && is_finite(large); }
};

/// The totals of gradients, from total(row) of each row of partial sums.
DESCENT_CALLS
template <class Plan, class Total> DESCENT_HD norm_totals norm_totals_from(Total const& total) {
  norm_totals x;
  x.main = total(0);
  if constexpr (Plan::has_large) x.large = total(1);
  if constexpr (Plan::measures_parameters) x.parameters = total(Plan::norm_sums - 1);
  return x;
}

/// The norm, from the totals.
template <class Plan> DESCENT_HD double norm_from(norm_totals const& x) {
  if constexpr (Plan::norm_of == norm::l2) {
    bool const none = __builtin_bit_cast(std::uint64_t, x.large) == 0;  // -ffinite-math-only may let NaN == 0
    return none ? sqrt(x.main) : sqrt(x.large + x.main * large_scale * large_scale) / large_scale;
  } else if constexpr (Plan::norm_of == norm::l1) return x.main / Plan::sum_scale;
  else return x.main;
}

/// The factor by which sam multiplies the stored gradients to ascend; 0 if their norm is 0 or not finite.
template <class Plan>
DESCENT_HD double perturbation_factor(typename Plan::policies const& policies, norm_totals const& x) {
  double const rho = get<kind::perturbation>(policies).rho;
  double const factor = (has<Plan, kind::maximize> ? -rho : rho) / norm_from<Plan>(x);
  return is_finite(typename Plan::real(factor)) ? factor : 0;
}

/// The clip policy's factor, from the totals of the stored gradients and the factor that makes them true gradients.
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

/// The number of micro-batches in the update that follows `step` others.
template <class Plan>
DESCENT_HD std::int64_t micro_batches(typename Plan::policies const& policies, std::int64_t step) {
  return micro_batches_at(get<kind::accumulation>(policies), step);
}

/// Whether this call ends in an update instead of only counting. With ranks, every flush() does: a rank does not know
/// in advance what the others have accumulated.
template <class Plan>
DESCENT_HD bool completes(control_block const& c, [[maybe_unused]] typename Plan::policies const& policies,
                          step_call const& call) {
  if constexpr (has<Plan, kind::accumulation>) {
    if (call.flush) return Plan::parallel || c.batches > 0;
    return call.measure_only || c.batches + 1 >= micro_batches<Plan>(policies, c.step);
  } else {
    return true;
  }
}

/// The sum of the weights of this rank's stored gradients.
template <class Plan> DESCENT_HD double weight_of([[maybe_unused]] control_block const& c, step_call const& call) {
  if constexpr (has<Plan, kind::accumulation>) return c.weight + (call.flush ? 0 : call.weight);
  else return call.weight;
}

/// The call with the weight that it adds: measuring gradients that are already counted adds none.
DESCENT_HD inline step_call as_counted(control_block const& c, step_call call) {
  if (call.measure_only && c.batches > 0) call.weight = 0;
  return call;
}

/// Whether this rank has no examples, or no micro-batches in a flush(). Its gradients are not read then: it sends zeros
/// with weight 0.
template <class Plan> DESCENT_HD bool adds_nothing(control_block const& c, step_call const& call) {
  return weight_of<Plan>(c, call) == 0;
}

/// Whether this rank keeps its gradients, because it has no micro-batches in a flush().
DESCENT_HD inline bool keeps_gradients(control_block const& c, step_call const& call) {
  return call.flush && c.batches == 0;
}

/// Whether any rank has examples for the update.
template <class Plan>
DESCENT_HD bool has_examples([[maybe_unused]] control_block const& c,
                             [[maybe_unused]] typename Plan::policies const& policies,
                             [[maybe_unused]] step_call const& call) {
  if constexpr (Plan::parallel) return get<kind::parallel>(policies).now->weights > 0;
  else return weight_of<Plan>(c, call) > 0;
}

/// The factor from stored to true gradients: that from outside / (loss scale * weights of the micro-batches on all
/// ranks). 0 without examples.
template <class Plan>
DESCENT_HD double gradient_factor(control_block const& c, [[maybe_unused]] typename Plan::policies const& policies,
                             [[maybe_unused]] loss_scale_state const& scale, [[maybe_unused]] step_call const& call) {
  double divisor = 1;
  if constexpr (has<Plan, kind::loss_scale>) divisor = c.unscaled ? 1 : double(scale.scale);
  if constexpr (Plan::parallel) divisor *= get<kind::parallel>(policies).now->weight();
  else if constexpr (has<Plan, kind::accumulation>) divisor *= weight_of<Plan>(c, call);
  if (divisor == 0) return 0;
  if constexpr (has<Plan, kind::gradient_factor>) return double(*get<kind::gradient_factor>(policies).where) / divisor;
  else return 1 / divisor;
}

/// Whether x is finite and above 0 in Real, and so can be a factor.
template <class Real> DESCENT_HD bool is_factor(double x) {
  Real const narrow = Real(x);
  return is_finite(narrow) && narrow > 0;
}

/// The loss that rules see; with ranks, the mean over them.
template <class Plan> DESCENT_HD double loss_of(typename Plan::policies const& policies) {
  if constexpr (Plan::parallel) return get<kind::parallel>(policies).now->loss();
  else return *get<kind::loss>(policies).where;
}

/// Records that the update is skipped.
DESCENT_HD inline void skip(control_block& c) {
  c.applied = false;
  ++c.skipped;
  ++c.skipped_in_row;
}

/// Called once per step(), with the loss scale in use and the totals over all gradients, which are not read if the plan
/// does not measure, and whether all ranks that have a part of the model are in them. If it lets the step go on,
/// advance() or skip() follows.
template <class Plan>
DESCENT_HD void decide(control_block& c, typename Plan::policies const& policies, loss_scale_state const& scale,
                       norm_totals const& totals, step_call const& call = {}, [[maybe_unused]] bool met = true) {
  ++c.calls;
  c.fault = {};
  c.applied = completes<Plan>(c, policies, call);
  c.waiting = !c.applied;
  if constexpr (Plan::parallel || Plan::splits) {
    if constexpr (Plan::parallel) met = met && get<kind::parallel>(policies).now->complete();
    c.lost = c.applied && !met;
    if (c.lost) {
      c.applied = false;
      c.waiting = true;
      return;
    }
  }
  if (c.applied && !has_examples<Plan>(c, policies, call)) {
    c.applied = false;
    c.batches = 0;
    if (Plan::parallel && call.flush) {  // some ranks may have no micro-batches
      c.waiting = true;
      return;
    }
    c.unscaled = false;
    c.grad_norm = 0;
    c.fault = {term_fault::weight};
    c.bad_chunk = -1;
    return skip(c);
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

/// Records that the update is applied, as all that it uses is finite. `rule` is that of group 0.
template <class Plan>
DESCENT_HD void advance(control_block& c, [[maybe_unused]] typename Plan::rule const& rule,
                        [[maybe_unused]] typename Plan::policies const& policies) {
  c.bad_chunk = -1;
  c.skipped_in_row = 0;
  if constexpr (has_lr<typename Plan::rule>) c.learning_rate = scheduled(rule, policies, c.step, 0, rates_of(c)).lr;
  ++c.step;
}
/// Records that the update is skipped for a fault found after decide(). The loss scale depends only on gradients.
DESCENT_HD inline void skip(control_block& c, term_fault const& why) {
  c.fault = why;
  c.bad_chunk = -1;
  c.clip = c.last_clip;
  skip(c);
}

/// Passes a metric to the plateau: *where, or `metric` if `where` is null.
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

/// Counts the optimizer among those whose micro-batches wait, or no longer.
template <class Plan>
DESCENT_HD void hold_scale([[maybe_unused]] control_block& c, [[maybe_unused]] typename Plan::policies const& policies,
                           [[maybe_unused]] bool waits) {
  if constexpr (Plan::shares_scale && has<Plan, kind::accumulation>) {
    if (waits == c.holds_scale) return;
    c.holds_scale = waits;
    std::int32_t* const all = &get<kind::loss_scale>(policies).shared->waiting;
#if defined(__CUDA_ARCH__)
    atomicAdd(all, waits ? 1 : -1);  // optimizers may step on several streams
#else
    __atomic_fetch_add(all, waits ? 1 : -1, __ATOMIC_RELAXED);
#endif
  }
}

/// Called once per iteration, after the optimizers that share the scale. Does nothing if none has checked gradients.
/// While micro-batches wait, keeps the scale and what was found: stored gradients have one scale.
template <class Policy> DESCENT_HD void update_shared(shared_scale& s, Policy const& policy) {
  if (s.waiting > 0) return;
  if (s.judged) policy.next(s.state, !s.found);
  s.judged = s.found = 0;
}

/// Updates the loss scale after decide(). Only gradients count, and they are finite if there is a fault.
template <class Plan>
DESCENT_HD void rescale(control_block& c, [[maybe_unused]] typename Plan::policies const& policies) {
  if constexpr (has<Plan, kind::loss_scale>) {
    auto const& policy = get<kind::loss_scale>(policies);
    hold_scale<Plan>(c, policies, c.batches > 0);
    if (c.waiting) return;
    if (c.fault.what == term_fault::weight) return;
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
