// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/host.hpp>
#include <descent/core/rule.hpp>
#include <descent/optimizer/detail/largest_rate.hpp>
#include <descent/engine/step/control_block.hpp>
#include <descent/engine/step/layout.hpp>
#include <descent/engine/step/owned.hpp>
#include <descent/engine/step/plan.hpp>
#include <descent/core/detail/containers.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/storage.hpp>
#include <descent/schedules/vary.hpp>

namespace descent::detail {

template <class R> concept names_sums = requires { typename R::template sums<double>; } || requires { R::sums_over; };
template <class R> concept names_memory = requires { requires !std::is_void_v<typename R::memory>; };
template <class R> inline constexpr bool sums_over_known = true;
template <has_sums R> inline constexpr bool sums_over_known<R> = R::sums_over != scope::group;
template <class R> concept names_start = requires(R const r, float x) { r.start(x); };
template <class R> concept names_uses = requires { &R::uses; };
template <class R> concept names_counts = requires { &R::counts; };

template <class Policy, class Rule, class MatrixRule> constexpr bool suits_rule() {
  if constexpr (requires { Policy::template require_rule<Rule, MatrixRule>(); })
    Policy::template require_rule<Rule, MatrixRule>();
  else if constexpr (requires { Policy::template require_rule<Rule>(); }) Policy::template require_rule<Rule>();
  return true;
}

template <class P, class Rule> inline constexpr bool suits_slots = true;
template <class... Ts, has_state Rule>
inline constexpr bool suits_slots<states<Ts...>, Rule> =
    sizeof...(Ts) <= 1 ||
    sizeof...(Ts) + counts_before<Rule>(members<Rule::template state>) == members<Rule::template state>;

template <class Rule, class... Ps> inline constexpr std::size_t lr_schedules = count_of<kind::field<nullptr>, Ps...>;
template <has_lr Rule, class... Ps>
inline constexpr std::size_t lr_schedules<Rule, Ps...> =
    count_of<kind::field<nullptr>, Ps...> + count_of<kind::field<&Rule::lr>, Ps...>;

/// Each field of a rule follows one schedule: learning_rate, vary, scale and scale_learning_rate exclude each other.
template <class Rule, class Kind, class... Ps> inline constexpr bool replaces_scaled = false;
template <class Rule, auto Field, class... Ps>
inline constexpr bool replaces_scaled<Rule, kind::scaled_field<Field>, Ps...> = count_of<kind::field<Field>, Ps...> > 0;
template <class Rule, class... Ps>
inline constexpr std::size_t lr_scales = count_of<kind::scaled_field<nullptr>, Ps...>;
template <has_lr Rule, class... Ps>
inline constexpr std::size_t lr_scales<Rule, Ps...> =
    count_of<kind::scaled_field<nullptr>, Ps...> + count_of<kind::scaled_field<&Rule::lr>, Ps...>;
/// Whether the matrix rule's lr, which learning_rate() does not change, has at most one schedule.
template <class Rule, class... Ps> inline constexpr bool one_matrix_rate = true;
template <has_lr Rule, class... Ps>
inline constexpr bool one_matrix_rate<Rule, Ps...> =
    lr_scales<Rule, Ps...> + count_of<kind::field<&Rule::lr>, Ps...> <= 1;

/// Error messages for invalid arguments. A base class of the optimizer, so that they come before all other errors.
template <class Rule, class... Ps> struct rule_checks {
  static_assert(has_state<Rule> || !policy<Rule>,
                "the rule comes first, after the parameters: optimizer{params, rule, policies...}");
  static_assert(has_state<Rule>,
                "an update rule needs 'template <class Real> struct state', whose members are all of type Real");
  static_assert(has_terms<Rule>,
                "an update rule needs 'template <class Real> struct terms', whose members are all of type Real, and "
                "'terms<double> at(std::int64_t t) const'");
  static_assert(has_update<Rule>,
                "an update rule needs 'template <class Real> static Real update(Real p, Real g, state<Real>& s, "
                "terms<Real> const& k)'");
  static_assert(std::is_trivially_copyable_v<Rule>, "an update rule is trivially copyable");
  static_assert(has_sums<Rule> || !names_sums<Rule>,
                "a rule with sums needs 'template <class Real> struct sums', 'static constexpr scope sums_over' and "
                "'template <class Real> static sums<Real> sum(Real p, Real g, terms<Real> const& k)'");
  static_assert(has_memory<Rule> || !names_memory<Rule>,
                "a rule with memory needs 'terms<double> at(std::int64_t t, memory& old) const', or with sums "
                "'terms<double> at(std::int64_t t, sums<double> const& total, memory& old) const'");
  static_assert(has_start<Rule> || !names_start<Rule>,
                "the start of a rule's state is 'template <class Real> state<Real> start(Real p) const'");
  static_assert(has_optional_state<Rule> || !names_uses<Rule>, "optional state is 'bool uses(std::size_t slot) const'");
  static_assert(!has_sums<Rule> || sums_over_known<Rule>, "a rule's sums run over scope::tensor or scope::model");
  static_assert((policy<Ps> && ...),
                "an argument after the rule is not a policy: a policy names its kind, 'using policy_kind = ...'; a "
                "schedule goes into learning_rate(schedule), a transform into chain{transform, rule}");
  static_assert(
      ((!policy<Ps> || is_known_kind<typename kind_of<Ps>::type>) && ...),
      "a policy of a kind that no engine knows would do nothing: policy_kind is one of descent::kind, such as "
      "kind::around<P>, which acts on the update, or kind::average");
  static_assert(stage_before_rule<policy_of<kind::clip_value, void, Ps...>> &&
                    stage_before_rule<policy_of<kind::noise, void, Ps...>> &&
                    stage_before_rule<policy_of<kind::maximize, void, Ps...>>,
                "a policy of kind::clip_value, kind::noise or kind::maximize is a gradient transform without state: it "
                "needs 'terms<double> at(std::int64_t t) const' and 'template <class Real> static Real apply(Real p, "
                "Real g, terms<Real> const& k)'");
  static_assert(stage_after_rule<policy_of<kind::lookahead, void, Ps...>>,
                "a policy of kind::lookahead needs 'terms<double> at(std::int64_t t) const', 'template <class Real> "
                "struct kept' with slow, and 'template <class Real> static Real after(Real p, kept<Real>& s, "
                "terms<Real> const& k)'");
  static_assert(averaging_stage<policy_of<kind::average, void, Ps...>>,
                "a policy of kind::average needs 'terms<double> at(std::int64_t t) const' and 'template <class Real> "
                "static Real after(Real p, Real e, terms<Real> const& k)'");
  static_assert(((!is_kind_around<typename kind_of<Ps>::type> || is_around<Ps>) && ...),
                "a policy P around the update names itself: 'using policy_kind = kind::around<P>;'");
  static_assert(((!is_around<Ps> || stage_around_rule<Ps>) && ...),
                "a policy around the update needs 'template <class Real> struct terms', 'terms<double> at(std::int64_t "
                "t, double lr) const' and 'template <class Real> static Real around(Real p, Real g, Real next, "
                "terms<Real> const& k)'");
  static_assert(((!is_around<Ps> || !names_sums_around<Ps> || sums_around_rule<Ps>) && ...),
                "a policy around the update that has sums needs 'static constexpr scope sums_over', 'template <class "
                "Real> static sums<Real> sum(Real p, Real g, Real next, terms<Real> const& k)' and 'terms<double> "
                "at(std::int64_t t, double lr, sums<double> const& total) const'");
  static_assert(((!policy<Ps> || count_of<typename kind_of<Ps>::type, Ps...> == 1) && ...) &&
                    lr_schedules<Rule, Ps...> <= 1,
                "two policies of one kind: each kind of policy may be given at most once");
  static_assert(((!replaces_scaled<Rule, typename kind_of<Ps>::type, Ps...>) && ...) &&
                    (lr_schedules<Rule, Ps...> == 0 || lr_scales<Rule, Ps...> == 0) && lr_scales<Rule, Ps...> <= 1 &&
                    one_matrix_rate<typename matrix_rule_type<policy_of<kind::matrices, void, Ps...>>::type, Ps...>,
                "a field follows one schedule: learning_rate and vary, which replace it, exclude scale_learning_rate "
                "and scale, which multiply it");
  static_assert(has_counts<Rule> || !names_counts<Rule>,
                "counts in a rule's state are named by 'static constexpr bool counts(std::size_t slot)'");
  static_assert((suits_slots<Ps, Rule> && ...),
                "states<T...>: one type for all members of the rule's state, or one for each; counts are left out");
  static_assert((suits_rule<Ps, Rule, typename matrix_rule_type<policy_of<kind::matrices, void, Ps...>>::type>() &&
                 ...));
};

template <class List> inline constexpr int policies_with_sums = 0;
template <class... Ps>
inline constexpr int policies_with_sums<policy_list<Ps...>> = (0 + ... + int(names_sums_around<Ps>));

/// Error messages for policies that do not fit each other, the rule or the types of the parameters.
template <class Plan> struct policy_checks {
  using value = typename Plan::value;
  static_assert(!has<Plan, kind::perturbation> || !has<Plan, kind::accumulation>,
                "sam and gradient_ahead cannot be combined with accumulate: each micro-batch would need its own "
                "move");
  static_assert(!has<Plan, kind::perturbation> || Plan::is_sam || !Plan::has_matrices,
                "gradient_ahead cannot be combined with matrices: a matrix rule does not say where it leads");
  static_assert(!Plan::moves_ahead || !Plan::leads,
                "gradient_ahead cannot be combined with ema_nesterov: both say where the gradient is taken");
  static_assert(!Plan::is_sam || Plan::norm_of == norm::l2,
                "sam: the ascent is along the L2 norm, so the clip policy must be of that norm too");
  static constexpr bool around = !std::is_same_v<typename Plan::stages_around, policy_list<>>;
  static constexpr int sums_around = policies_with_sums<typename Plan::stages_around>;
  static_assert(sums_around <= 1, "two policies around the update have sums: at most one may");
  static_assert(sums_around == 0 || (!has_sums<typename Plan::rule> && !has_memory<typename Plan::rule> &&
                                     !takes_normal<typename Plan::rule>),
                "a policy around the update that has sums needs a rule without sums, memory and random normals");
  static_assert(!around || !has_averaged<typename Plan::rule>,
                "policies around the update cannot be combined with a rule that has an average: its state would not "
                "follow the parameter");
  static_assert(!around || !Plan::has_matrices,
                "policies around the update cannot be combined with matrices: the direction has no elements of the "
                "gradient");
  static_assert(!around || !Plan::per_row_step,
                "policies around the update cannot be combined with masked_rows<row_step::own>: they have one t");
  static_assert(!has_loss<typename Plan::rule> || has<Plan, kind::loss>,
                "the rule uses the loss of the batch: give the policy loss_at{pointer}");
  static_assert(!takes_normal<typename Plan::rule> || !has<Plan, kind::noise>,
                "gradient_noise: the rule takes random normals itself; noise comes from the rule or from the policy");
  static_assert(!has_sums_of_memory<typename Plan::rule> || Plan::sums_per_tensor || Plan::clip_over != scope::tensor,
                "clipping of each tensor cannot come before sums over the model that depend on the rule's memory");
  static_assert(!Plan::is_sam || !Plan::selects_rows,
                "sam cannot be combined with masked_rows: ascend() would move rows that are not selected");
  static_assert(!Plan::has_matrices || !grows_batch<typename Plan::accumulation>,
                "accumulate_by cannot be combined with matrices: the host must know which calls update");
  static_assert(!Plan::has_matrices || !Plan::selects_rows,
                "matrices cannot be combined with masked_rows: a matrix rule moves whole matrices");
  static_assert(!Plan::has_given || !Plan::shards,
                "state_in cannot be combined with sharded: a rank owns parts of tensors");
  static_assert(!Plan::has_given || !Plan::has_matrices,
                "state_in cannot be combined with matrices: their state is not one buffer per tensor");
  static_assert(!Plan::parallel || !has<Plan, kind::gradient_factor>,
                "gradient_factor_at cannot be combined with replicated or sharded: each rank would have its own "
                "factor; give step() a weight");
  static_assert(!Plan::parallel || !Plan::selects_rows,
                "masked_rows cannot be combined with replicated or sharded: each rank would select its own rows");
  static_assert(!Plan::splits || !Plan::selects_rows,
                "masked_rows cannot be combined with model_parallel: each rank would select its own rows");
  static_assert(!Plan::shards || !has<Plan, kind::perturbation>,
                "sam and gradient_ahead cannot be combined with sharded: a rank would need the others' state");
  static_assert(!Plan::overlaps || !Plan::is_sam,
                "overlap cannot be combined with sam: ascend() would need the gradients of all ranks, too");
  static_assert(!Plan::overlaps || !grows_batch<typename Plan::accumulation>,
                "overlap cannot be combined with accumulate_by: ready() must know which micro-batch is the last");
  static_assert(!Plan::per_row_step || (!Plan::sums && !has_memory<typename Plan::rule>),
                "masked_rows<row_step::own>: a rule with sums or memory has one t for all rows");
  static_assert(!Plan::has_remainder || types<value>::template has<bfloat16>,
                "master_remainder: the 16 bits are those that a bfloat16 value lacks; there is no such value");
  static_assert(
      !has<Plan, kind::rounding> || Plan::any_rounds,
      "stochastic_rounding: nothing that it rounds is stored in 16 bits; values beside a master are the master "
      "rounded to nearest, with stochastic_values at random");
  static_assert(!Plan::rounds_beside || (Plan::has_master && Plan::narrow_value),
                "stochastic_values: no 16-bit value has a master<M> beside it; without a master, give "
                "stochastic_rounding");
};

/// The members of the state that any group needs. A field that follows a schedule may take any value.
template <class Plan>
std::array<bool, Plan::slots> used_slots(plain_vector<group_entry<typename Plan::rule>> const& groups,
                                         typename Plan::policies const& set) {
  std::array<bool, Plan::slots> used;
  for (std::size_t i = 0; i != Plan::slots; ++i) {
    used[i] = !has_optional_state<typename Plan::rule>;
    if constexpr (has_optional_state<typename Plan::rule>)
      for (auto const& g : groups) used[i] = used[i] || unscheduled(g.rule, set, g.number).uses(i);
  }
  return used;
}

inline void require_weight(double weight, bool has_inverse, char const* type, bool is_taken) {
  if (!is_finite(weight) || weight < 0)
    throw std::invalid_argument("step: weight must be finite and at least 0, is " + number(weight));
  if (!has_inverse)
    throw std::invalid_argument(std::string("step: weight must have an inverse in ") + type + ", is " + number(weight));
  if (!is_taken && weight != 1)
    throw std::invalid_argument("step: a weight needs the policy accumulate{n}, replicated or sharded");
}
[[noreturn]] inline void refuse_group(std::size_t group, std::string const& why) {
  throw std::invalid_argument("group " + std::to_string(group) + ": " + why);
}
/// The field that makes the rule use member i of its state, and its value; empty if there is not one such field.
template <class Rule> std::string field_that_uses(Rule const& rule, std::size_t i) {
  if constexpr (has_ranges<Rule>)
    for (auto const& range : Rule::ranges)
      if (range.real && range.of(rule) != 0) {
        Rule without = rule;
        without.*range.real = 0;
        if (!without.uses(i)) return range.name(rule) + " = " + number(range.of(rule));
      }
  return "";
}
inline void require_group(int index, std::size_t groups) {
  if (index < 0 || std::size_t(index) >= groups)
    throw std::invalid_argument("there is no group " + std::to_string(index) + ": groups are 0 to " +
                                std::to_string(groups - 1));
}

/// Throws std::invalid_argument if the policies write gradients, and one is const.
template <class Plan, class Layout> void refuse_const_gradients(Layout const& where) {
  if (Plan::zeroes_own && !where.read_only.empty())
    throw std::invalid_argument("parameter '" + where.read_only +
                                "': its gradient is const, but zero_grad{} writes it");
}

/// Throws std::invalid_argument unless a loss_scaler has the backend of its optimizer.
inline void require_scaler_of(bool scaler_on_host, bool optimizer_on_host) {
  constexpr char const* on[] = {"on CUDA", "on the host"};
  if (scaler_on_host != optimizer_on_host)
    throw std::invalid_argument(std::string("shared_loss_scale: the loss_scaler is ") + on[scaler_on_host] +
                                ", the optimizer " + on[optimizer_on_host] +
                                "; give both the same backend, as loss_scaler{policy, cuda{stream}}");
}

/// The type of a backend's streams; a host has none.
class no_stream { no_stream(); };
template <class Backend> struct stream_of { using type = no_stream; };
template <class Backend> requires requires { typename Backend::stream_type; } struct stream_of<Backend> {
  using type = typename Backend::stream_type;
};

/// The plan of an optimizer; bundles of policies are split into their parts.
template <class Value, class Gradient, class Rule, class List> struct traits_of_list;
template <class Value, class Gradient, class Rule, class... Ps>
struct traits_of_list<Value, Gradient, Rule, policy_list<Ps...>> {
  using plan = detail::plan<Value, Gradient, Rule, Ps...>;
  using backend = policy_of<kind::backend, host<>, Ps...>;
  using stream = typename stream_of<backend>::type;
  struct checked : rule_checks<Rule, Ps...>, policy_checks<plan> {};
  template <class... Arguments> static auto set([[maybe_unused]] Arguments const&... arguments) {
    return policy_set<Ps...>{policy_in<Ps>(arguments...)...};
  }
  /// The layout, with the matrices last.
  template <class... Arguments>
  static layout<Value, typename plan::gradient> layout_of(parameters<Value, Gradient> const& params,
                                                          [[maybe_unused]] Arguments const&... arguments) {
    layout<Value, Gradient> given = [&] {
      if constexpr (plan::has_matrices)
        return layout<Value, Gradient>(
            params, [&](auto const& v) { return policy_in<typename plan::matrices>(arguments...).routes(v); });
      else return layout<Value, Gradient>(params);
    }();
    refuse_const_gradients<plan>(given);
    if constexpr (plan::parallel) {
      layout<Value, typename plan::gradient> where(sum_over_ranks{}, given);
      typename plan::parallel_policy const& team = policy_in<typename plan::parallel_policy>(arguments...);
      if constexpr (plan::shards) {
        if constexpr (plan::has_matrices) find_costs(where, policy_in<typename plan::matrices>(arguments...));
        where.own = shared_layout<plan>::own(where, team);
      }
      return where;
    } else {
      return given;
    }
  }
  /// Sets the costs of the matrices, by which ranks share them.
  template <class Layout, class Matrices> static void find_costs(Layout& where, Matrices const& policy) {
    for (std::size_t t = 0; t < where.tensors.size(); ++t) {
      std::int64_t const columns = where.columns[t];
      double const cost = where.tensors[t].matrix ? policy.cost({where.tensors[t].count / columns, columns}) : 0;
      require(is_finite(cost) && cost >= 0, "matrices", "the rule's cost(shape)", "finite and at least 0", cost);
      where.costs.push_back(cost);
    }
  }
  static backend backend_in([[maybe_unused]] policy_set<Ps...> const& set) {
    if constexpr (std::is_base_of_v<backend, policy_set<Ps...>>) return set;
    else return {};
  }
  static void check_weight(double weight) {
    require_weight(weight, weight == 0 || is_factor<typename plan::real>(1 / weight), type_name<typename plan::real>(),
                   plan::parallel || has<plan, kind::accumulation>);
  }
  /// Throws if a group needs a member of the state that `used` says is not allocated.
  static void check_slots([[maybe_unused]] plain_vector<group_entry<Rule>> const& groups,
                          [[maybe_unused]] policy_set<Ps...> const& set,
                          [[maybe_unused]] std::array<bool, plan::slots> const& used) {
    if constexpr (has_optional_state<Rule>)
      for (auto const& g : groups) {
        Rule const rule = unscheduled(g.rule, set, g.number);
        for (std::size_t i = 0; i != plan::slots; ++i)
          if (!used[i] && rule.uses(i)) {
            std::string const field = field_that_uses(rule, i);
            refuse_group(std::size_t(g.number),
                         (field.empty() ? "the rule" : field) + " needs the state '" + slot_name<Rule>(i) +
                             "', which no group needed at construction, so it was not allocated");
          }
      }
  }
  /// Checks all policies. `groups` is the number of groups, or 0 if not known yet.
  static void check([[maybe_unused]] policy_set<Ps...> const& set, [[maybe_unused]] int groups = 0) {
    (check_one<Ps>(set, groups), ...);
    if constexpr (plan::shares_scale)
      require_scaler_of(get<kind::loss_scale>(set).on_host, std::is_same_v<stream, no_stream>);
  }

 private:
  template <class P> static void check_one(P const& policy, int groups) {
    check_rule<typename plan::real>(policy);
    if constexpr (requires { policy.check_groups(groups); }) policy.check_groups(groups);
  }
};
template <class Value, class Gradient, class Rule, class... Ps>
using optimizer_traits = traits_of_list<Value, Gradient, Rule, flat_list<Ps...>>;

}  // namespace descent::detail
