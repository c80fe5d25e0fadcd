// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/rule.hpp>
#include <descent/engine/step/around.hpp>
#include <descent/engine/step/gradient_reduction.hpp>
#include <descent/parameters.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/rows.hpp>
#include <descent/policies/storage.hpp>
#include <descent/schedules/vary.hpp>

#include <array>
#include <cstdint>
#include <utility>

/// What one step does, decided at compile time from the types of parameters, rule and policies.
namespace descent::detail {

template <class T> inline constexpr std::int64_t bytes_of = sizeof(T);
template <> inline constexpr std::int64_t bytes_of<void> = 0;

/// Types by index; a single type is used for all.
template <class... Ts> struct type_list {
  template <std::size_t I> static auto pick() {
    if constexpr (sizeof...(Ts) == 1) return pick_from<0, Ts...>();
    else return pick_from<I, Ts...>();
  }
  template <std::size_t I, class T, class... Rest> static auto pick_from() {
    if constexpr (I == 0) return std::type_identity<T>{};
    else return pick_from<I - 1, Rest...>();
  }
  template <std::size_t I> using type = typename decltype(pick<I>())::type;
  static constexpr std::size_t size = sizeof...(Ts);
  static constexpr bool any_double = (std::is_same_v<Ts, double> || ...);
};

template <class P> struct master_type { using type = void; };
template <class M> struct master_type<master<M>> { using type = M; };
template <class P, class Default> struct states_type { using type = type_list<Default>; };
template <class... Ts, class Default> struct states_type<states<Ts...>, Default> { using type = type_list<Ts...>; };

/// The type of a member of the rule's state: that of a count, or the type for members that are not.
template <class Rule, class Types, std::size_t I, bool = is_count<Rule>(I)> struct slot_type {
  using type = typename Types::template type<I - counts_before<Rule>(I)>;
};
template <class Rule, class Types, std::size_t I> struct slot_type<Rule, Types, I, true> {
  using type = std::uint32_t;
};
/// Whether all members of the state have one type.
template <class Plan>
inline constexpr bool has_one_state_type =
    Plan::state_types::size == 1 && counts_before<typename Plan::rule>(Plan::slots) == 0;

template <class P> struct matrix_rule_type { using type = void; };
template <class P> requires requires { typename P::matrix_rule; }
struct matrix_rule_type<P> { using type = typename P::matrix_rule; };

/// Whether a policy has a stage of the update of its own, with terms.
template <class P> inline constexpr bool has_stage = false;
template <class P> requires requires { typename P::template terms<float>; } inline constexpr bool has_stage<P> = true;

/// Whether a policy after the rule keeps a momentum beside its slow weights.
template <class P> inline constexpr bool keeps_momentum = false;
template <class P> requires requires(typename P::template kept<float> kept) { kept.b; }
inline constexpr bool keeps_momentum<P> = true;

template <class Plan, int I> struct typed_plan;

/// Whether the optimizer has a policy of this kind.
template <class Plan, class Kind> inline constexpr bool has = Plan::template has<Kind>;

/// Numbers of the buffers that an optimizer owns for each element: the members of the rule's state, then these.
template <class Plan> struct owned_index {
  static constexpr std::size_t remainder = Plan::slots, master = remainder + 1, average = master + 1,
                               slow = average + 1, outer = slow + 1;
};
template <class Plan> inline constexpr std::size_t owned_count = owned_index<Plan>::outer + 1;

/// Calls f.operator()<number, type>(name) for each buffer of a policy that the plan has. This is the one list of them:
/// what allocates, saves, compares or describes buffers walks it.
DESCENT_CALLS
template <class Plan, class F> DESCENT_HD constexpr void each_kept([[maybe_unused]] F const& f) {
  using index = owned_index<Plan>;
  if constexpr (Plan::has_remainder) f.template operator()<index::remainder, std::uint16_t>("remainder");
  if constexpr (Plan::has_master) f.template operator()<index::master, typename Plan::master>("master");
  if constexpr (has<Plan, kind::average>) f.template operator()<index::average, typename Plan::real>("average");
  if constexpr (has<Plan, kind::lookahead>) f.template operator()<index::slow, typename Plan::slow>("slow");
  if constexpr (Plan::has_outer) f.template operator()<index::outer, typename Plan::real>("outer");
}

template <class Value, class Gradient, class Rule, class... Ps> struct plan {
  /// The policy of a kind, or void.
  template <class Kind> using policy = policy_of<Kind, void, Ps...>;
  template <class Kind> static constexpr bool has = !std::is_void_v<policy<Kind>>;
  template <class... Kinds> static constexpr bool has_any = (has<Kinds> || ...);

  using value = Value;  // mixed<...> if there are several types
  using parallel_policy = policy_of<kind::parallel, single, Ps...>;
  using gradient_sum = gradient_reduction<Gradient, parallel_policy>;
  static constexpr bool parallel = gradient_sum::parallel, shards = gradient_sum::shards,
                        overlaps = gradient_sum::overlaps;
  using gradient = typename gradient_sum::sum;  // what the step reads
  using own_gradient = Gradient;           // the caller's
  using rule = Rule;
  using policies = policy_set<Ps...>;
  /// The policies of these kinds that have terms, in this order: those before the rule, and all stages.
  template <class... Kinds>
  using stages_of =
      decltype((policy_list<>{} + ... +
                std::conditional_t<has_stage<policy<Kinds>>, policy_list<policy<Kinds>>, policy_list<>>{}));
  using stages_before = stages_of<kind::clip_value, kind::noise, kind::maximize>;
  using stages = decltype(stages_before{} + stages_of<kind::lookahead, kind::average>{});
  /// The policies around the update, in the order given, and what updates: the rule with them.
  using stages_around =
      decltype((policy_list<>{} + ... + std::conditional_t<is_around<Ps>, policy_list<Ps>, policy_list<>>{}));
  using update = typename update_type<Rule, stages_around>::type;
  using master = typename master_type<policy<kind::master>>::type;

 private:
  using states_policy = policy<kind::states>;
  static constexpr bool any_double = types<Value>::any_double || types<gradient>::any_double ||
                                     std::is_same_v<master, double> ||
                                     states_type<states_policy, float>::type::any_double;

 public:
  /// The type of the arithmetic.
  using real = std::conditional_t<any_double, double, float>;
  using state_types = typename states_type<states_policy, real>::type;
  static constexpr std::size_t slots = members<Rule::template state>;
  template <std::size_t I> using slot = typename slot_type<Rule, state_types, I>::type;
  using every_slot = std::make_index_sequence<slots>;

  static constexpr bool has_master = !std::is_void_v<master>;
  /// What the rule updates: the master copy, or the value if there is none.
  using master_or_value = std::conditional_t<has_master, master, Value>;

  /// The pairs of types of values and gradients; typed<I> is this plan for tensors of the I-th pair.
  static constexpr int pairs = types<Value>::count;
  static constexpr std::int64_t largest_value = types<Value>::largest;
  template <int I> using typed = std::conditional_t<types<Value>::several, typed_plan<plan, I>, plan>;

  /// Whether the value and 16 separately stored bits make a float.
  static constexpr bool has_remainder = std::is_same_v<policy<kind::master>, master_remainder>;

  using clip = policy<kind::clip>;
  using loss_scale = policy<kind::loss_scale>;
  using accumulation = policy<kind::accumulation>;
  using average = policy<kind::average>;
  using lookahead = policy<kind::lookahead>;
  using perturbation = policy<kind::perturbation>;
  /// Whether the perturbation is sam, or gradient_ahead.
  static constexpr bool is_sam = requires { &perturbation::rho; },
                        moves_ahead = !is_sam && !std::is_void_v<perturbation>;
  using rows = policy<kind::rows>;
  using plateau = policy<kind::plateau>;
  /// The type of lookahead's slow weights.
  using slow = std::conditional_t<has_remainder || types<master_or_value>::several, real, master_or_value>;
  /// Whether the pull to the slow weights has momentum.
  static constexpr bool has_outer = keeps_momentum<lookahead>;
  /// Whether the values, where the rule starts, are ahead of the parameters, which are then the slow weights.
  static constexpr bool leads = requires { policy<kind::lookahead>::leads; };

  /// The rule that updates matrices, and its policy.
  using matrices = policy<kind::matrices>;
  using matrix_rule = typename matrix_rule_type<matrices>::type;
  static constexpr bool has_matrices = !std::is_void_v<matrices>;

  static constexpr bool shares_scale = requires { &loss_scale::shared; };
  /// Whether stored gradients may be divided by the loss scale: not in half, and not if micro-batches accumulate.
  static constexpr bool unscales =
      has<kind::loss_scale> && !has<kind::accumulation> && !std::is_same_v<own_gradient, half>;
  /// Whether other ranks have other parameters of the same model.
  using model_policy = policy<kind::model>;
  static constexpr bool splits = has<kind::model>;
  /// Whether the caller's gradients are set to zero, and whether the update does that.
  static constexpr bool zeroes_own = has<kind::zero_grad>, zeroes = zeroes_own && !parallel;
  /// Whether swap_average() has an average to use, the policy's or the rule's.
  static constexpr bool averages = has<kind::average> || (has_averaged<Rule> && !has_matrices);
  static constexpr bool selects_rows = has<kind::rows>;
  /// Whether some of the state is in the caller's memory.
  static constexpr bool has_given = has<kind::state_memory>;
  /// Whether each row counts its own updates.
  static constexpr bool per_row_step = [] {
    if constexpr (selects_rows) return rows::own_step;
    else return false;
  }();
  /// Whether the rows that each micro-batch has selected are kept until the update.
  static constexpr bool keeps_selection = selects_rows && has<kind::accumulation>;
  static constexpr bool sums = has_sums<update>;
  /// Whether stored gradients are multiplied by a factor.
  static constexpr bool scales =
      parallel || has_any<kind::clip, kind::loss_scale, kind::accumulation, kind::gradient_factor>;
  static constexpr bool measures = sums || has_any<kind::clip, kind::loss_scale, kind::finiteness>;
  /// Whether the terms of the update depend on no sum over the gradients. A device finds them while it measures.
  static constexpr bool terms_ahead = measures && !sums && !has_memory<Rule>;
  /// Whether kernels check that the step goes on. If not, terms that are not finite freeze all units instead. That does
  /// not stop the zeroing of gradients, the update of matrices or the counts of rows.
  static constexpr bool may_skip = measures || has_any<kind::accumulation, kind::gradient_factor> || parallel ||
                                   zeroes_own || has_matrices || per_row_step;
  /// Whether gradients are summed over ranks when first read, and whether the sum is stored for later reads.
  static constexpr bool adds_when_read = gradient_sum::when_read, keeps_sum = !adds_when_read || measures;
  /// Whether the norm has a separate pass: the rule's sums need the clip factor, which needs the norm.
  static constexpr bool norm_first = has<kind::clip> && sums;
  /// Whether the update uses buffers other than gradient, value, master and state.
  static constexpr bool has_extras =
      has_any<kind::noise, kind::rounding, kind::average, kind::lookahead, kind::perturbation> || takes_normal<Rule> ||
      has_remainder || has_averaged<Rule> || has_matrices;
  /// Whether the update needs step_terms.
  static constexpr bool has_step_terms =
      !std::is_same_v<stages, policy_list<>> || has<kind::rounding> || takes_normal<Rule>;

  static constexpr norm norm_of = [] {
    if constexpr (has<kind::clip>) return clip::of;
    else return norm::l2;
  }();
  static constexpr scope clip_over = [] {
    if constexpr (has<kind::clip>) return clip::over;
    else return scope::model;
  }();
  /// Rows of partial sums for the norm: the gradients, for doubles the large gradients, and the parameters.
  static constexpr bool has_large = norm_of == norm::l2 && types<gradient>::any_double;
  /// Multiplies the elements of an L1 norm, so that no sum of finite ones overflows.
  static constexpr double sum_scale = types<gradient>::any_double ? 0x1p-64 : 1;
  static constexpr bool measures_parameters = std::is_same_v<clip, clip_adaptive>;
  static constexpr int norm_sums = 1 + has_large + measures_parameters;
  /// Whether the rows of a tensor that has several columns are clipped separately.
  static constexpr bool clips_rows = measures_parameters;
  /// Whether a row of partial sums keeps the largest value instead of the sum.
  DESCENT_HD static constexpr bool keeps_largest(int row) { return norm_of == norm::inf && row == 0; }

  static constexpr std::size_t sum_count = [] {
    if constexpr (sums) return members<update::template sums>;
    else return std::size_t{0};
  }();
  static constexpr bool sums_per_tensor = [] {
    if constexpr (sums) return update::sums_over == scope::tensor;
    else return false;
  }();

  /// Whether each tensor has its own terms.
  static constexpr bool unit_per_tensor = sums_per_tensor || clip_over == scope::tensor;
  /// Whether each tensor's sums have their own terms, because they need its memory.
  static constexpr bool sum_terms_per_tensor = sums_per_tensor && has_sums_of_memory<Rule>;
  static constexpr bool totals_per_tensor = sums_per_tensor || clip_over != scope::model;

  /// Whether what is stored as T is rounded stochastically.
  template <class T> static constexpr bool rounds = has<kind::rounding> && sizeof(T) == 2;

  /// Whether values beside a master are rounded stochastically, and whether there are any that this can change.
  static constexpr bool rounds_beside = requires { requires policy<kind::rounding>::beside_master; };
  static constexpr bool narrow_value = types<Value>::template has<half> || types<Value>::template has<bfloat16>;

  static constexpr bool any_rounds = [] {
    bool const parameters = has_master ? bytes_of<master> == 2 || rounds_beside : narrow_value;
    return []<std::size_t... I>(std::index_sequence<I...>) { return (false || ... || rounds<slot<I>>); }
    (every_slot{}) || (has<kind::rounding> && !has_remainder && parameters);
  }();

  static constexpr bool in_update(std::size_t slot) {
    if constexpr (has_state_for_sums<Rule>) return !Rule::for_sums_only(slot);
    else if constexpr (slots == 0) return false;
    else return slot < slots;
  }
  template <std::size_t I> static constexpr bool updates = in_update(I);

  /// Bytes that one step moves per parameter: in read-only passes, and in the update. Slow weights and their momentum
  /// count in full, although only every k-th update moves them.
  template <class Typed = plan> static constexpr std::int64_t pass_bytes(std::array<bool, slots> const& used) {
    constexpr std::int64_t gradient = bytes_of<typename Typed::gradient>, master = master_bytes<Typed>;
    std::int64_t const norm = gradient + (measures_parameters ? master : 0);
    std::int64_t const all =
        gradient + master + state_bytes(used, [](std::size_t) { return has_sums_of_state<update>; });
    return (measures && !sums ? norm : 0) + (sums ? all : 0) + (norm_first ? norm : 0);
  }
  template <class Typed = plan> static constexpr std::int64_t update_bytes(std::array<bool, slots> const& used) {
    std::int64_t bytes = bytes_of<typename Typed::gradient> * (zeroes ? 2 : 1) + 2 * master_bytes<Typed> +
                         (Typed::has_master ? bytes_of<typename Typed::value> : 0) + 2 * state_bytes(used, in_update);
    each_kept<plan>([&]<std::size_t I, class T>(char const*) {
      if (I > owned_index<plan>::master) bytes += 2 * bytes_of<T>;
    });
    return bytes;
  }
  /// With all of the state.
  static constexpr std::int64_t largest_update_bytes = [] {
    std::array<bool, slots> all{};
    for (bool& one : all) one = true;
    return update_bytes(all);
  }();
  /// The number of kernels of one step on a device, without a communicator's.
  static constexpr int launches = (norm_first ? 2 : 0) + (measures ? 1 : 0) + per_row_step + keeps_selection + 2 +
                                  (parallel ? 2 : 0) + (gradient_sum::ordered && !adds_when_read) + (shards ? 4 : 0) +
                                  (splits && measures ? 1 + norm_first : 0);

 private:
  template <class Typed>
  static constexpr std::int64_t master_bytes = Typed::has_remainder ? 4 : bytes_of<typename Typed::master_or_value>;
  static constexpr std::int64_t state_bytes(std::array<bool, slots> const& used, auto counts) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (std::int64_t{0} + ... + (used[I] && counts(I) ? bytes_of<slot<I>> : 0));
    }(every_slot{});
  }
};

/// A plan for tensors of its I-th pair of types. A value that has the type of the masters has no master.
template <class Plan, int I> struct typed_plan : Plan {
  using value = typename types<typename Plan::value>::template at<I>;
  using gradient = typename types<typename Plan::gradient>::template at<I>;
  static constexpr bool has_remainder = Plan::has_remainder && std::is_same_v<value, bfloat16>;
  static constexpr bool has_master = Plan::has_master && !std::is_same_v<value, typename Plan::master>;
  using master_or_value = std::conditional_t<has_master, typename Plan::master, value>;
};

/// The same with the caller's gradients.
template <class Plan, int I> struct own_plan : Plan::template typed<I> {
  using gradient = typename types<typename Plan::own_gradient>::template at<I>;
};

/// The same for all pairs, and for work that each rank does alone.
template <class Plan> struct callers_plan : Plan {
  using gradient = typename Plan::own_gradient;
  static constexpr bool parallel = false, shards = false, overlaps = false, adds_when_read = false;
  template <int I> using typed = own_plan<Plan, I>;
};

/// Calls f<Typed>() with the plan for a tensor's pair of types.
DESCENT_CALLS
template <class Plan, class F, int I = 0> DESCENT_HD decltype(auto) with_types([[maybe_unused]] int types, F const& f) {
  if constexpr (I + 1 < Plan::pairs) {
    if (types != I) return with_types<Plan, F, I + 1>(types, f);
  }
  return f.template operator()<typename Plan::template typed<I>>();
}

template <class Plan, class Typed = Plan>
constexpr std::int64_t bytes_of_step(std::array<bool, Plan::slots> const& used) {
  return Plan::template pass_bytes<Typed>(used) + Plan::template update_bytes<Typed>(used);
}

}  // namespace descent::detail
