// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/layout.hpp>
#include <descent/engine/step/terms.hpp>
#include <descent/core/detail/containers.hpp>
#include <descent/report.hpp>

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace descent::detail {

/// The totals over the chunks of the tensors that `wanted` accepts, added in the same order as in a step.
template <class Plan, class Wanted>
norm_totals totals_of(layout<typename Plan::value, typename Plan::gradient> const& where,
                      std::vector<double> const& partial, Wanted const& wanted) {
  return norm_totals_from<Plan>([&](int row) {
    auto const value = [&](std::int64_t c) {
      return wanted(where.tensors[std::size_t(where.tensor_of_chunk[std::size_t(c)])])
                 ? partial[std::size_t(row * where.chunks() + c)]
                 : 0.0;
    };
    return strided_total<total_threads>(Plan::keeps_largest(row), where.chunks(), value);
  });
}

/// The same for one tensor; reads only its own chunks.
template <class Plan>
norm_totals totals_of_tensor(layout<typename Plan::value, typename Plan::gradient> const& where,
                             std::vector<double> const& partial, std::size_t tensor) {
  auto const& x = where.tensors[tensor];
  return norm_totals_from<Plan>([&](int row) {
    auto const value = [&](std::int64_t c) { return partial[std::size_t(row * where.chunks() + c)]; };
    return strided_total<total_threads>(Plan::keeps_largest(row), x.first_chunk, x.first_chunk + chunks_of(x.count),
                                        value);
  });
}

/// All tensors if any gradient is not finite, otherwise none.
template <class Plan>
std::vector<gradient_state> diagnosis_of(layout<typename Plan::value, typename Plan::gradient> const& where,
                                         std::vector<double> const& partial) {
  if (partial.empty()) return {};
  std::vector<gradient_state> all;
  bool finite = true;
  for (std::size_t t = 0; t < where.tensors.size(); ++t) {
    auto const x = totals_of_tensor<Plan>(where, partial, t);
    all.push_back({where.names[t], x.finite(), norm_from<Plan>(x)});
    finite = finite && x.finite();
  }
  return finite ? std::vector<gradient_state>{} : all;
}

/// What was not finite, as text. `tensor` is the tensor's name if the unit is a tensor, otherwise null.
inline std::string text_of(term_fault const& f, std::int64_t update, std::string const& type, std::string const* tensor,
                           std::string const& of_policy = "") {
  if (f.what == term_fault::weight) return "there are no examples: the weights since the last update are all 0";
  if (f.what == term_fault::divisor)
    return "the divisor of the gradients, " + number(f.value) + ", has no inverse in " + type;
  std::string const of = f.what == term_fault::policies ? " of the policies"
                         : tensor                       ? " of '" + *tensor + "'"
                                                        : " of group " + std::to_string(f.unit);
  std::string const at = " not finite in " + type + " at update " + std::to_string(update);
  if (f.what == term_fault::factor) return "the factor of the gradients" + of + " is" + at;
  std::string text = (f.what == term_fault::sums ? "the terms of the sums" : "the terms") + of + " are" + at;
  if (f.index < 0) text += ": lr is " + number(f.value);
  else if (f.what != term_fault::policies)
    text += ": number " + std::to_string(f.index) + of_policy + " is " + number(f.value);
  return text;
}
/// Which field a schedule has moved out of its range.
template <class Plan, class Rule> std::string stray_text(term_fault const& f, std::int64_t update) {
  std::string text;
  each_scheduled_field<Rule>(std::type_identity<typename Plan::policies>{}, [&](auto field, std::int32_t n) {
    if (n == f.index)
      text = (f.what == term_fault::matrix_field ? "the matrix rule's " : "") + std::string(field.value.name) +
             " of group " + std::to_string(f.unit) + " must be " +
             allowed_text<typename Plan::real>(field.value.allowed, f.value) + ", is " + number(f.value) +
             " by its schedule at update " + std::to_string(update);
  });
  return text;
}
template <class Plan>
std::string text_of(layout<typename Plan::value, typename Plan::gradient> const& where, term_fault f,
                    std::int64_t update) {
  if (f.what == term_fault::field) return stray_text<Plan, typename Plan::rule>(f, update);
  if constexpr (Plan::has_matrices)
    if (f.what == term_fault::matrix_field) return stray_text<Plan, typename Plan::matrix_rule>(f, update);
  if constexpr (has<Plan, kind::gradient_factor>)
    if (f.what == term_fault::divisor)
      return "the factor of the gradients, " + number(1 / f.value) + ", is not finite and above 0 in " +
             type_name<typename Plan::real>();
  bool const of_tensor = f.what == term_fault::matrices ||
                         (f.what == term_fault::sums ? Plan::sum_terms_per_tensor : Plan::unit_per_tensor);
  std::string of_policy;  // whose term it is, if it is not the rule's
  int first = int(members<Plan::rule::template terms>);
  each_stage(typename Plan::stages_around{}, [&]<class P>() {
    int const count = int(members<P::template terms>);
    if (int const i = f.index - first; i >= 0 && i < count) f.index = i, of_policy = " of " + rule_name<P>();
    first += count;
  });
  return text_of(f, update, type_name<typename Plan::real>(), of_tensor ? &where.names[std::size_t(f.unit)] : nullptr,
                 of_policy);
}

/// ", because eps is 1e+38" if the terms of update t are finite with the default of one field. `memory`, if the rule
/// has one, is that before the update. Rules whose terms need sums have no cause, nor have the terms of policies.
template <class Rule, class Real, class... Memory>
std::string cause_of([[maybe_unused]] Rule const& r, [[maybe_unused]] std::int64_t t,
                     [[maybe_unused]] Memory const&... memory) {
  if constexpr (has_ranges<Rule> && requires(Memory... m) { Rule{}, r.at(t, m...); }) {
    auto const has_sound_terms = [&](Rule const& rule, Memory... m) {
      return is_sound(narrowed<Rule, Real>(rule.at(t, m...), 1, false));
    };
    if (has_sound_terms(r, memory...)) return "";
    for (auto const& range : Rule::ranges)
      if (auto const field = range.real) {
        Rule usual = r;
        usual.*field = Rule{}.*field;
        if (has_sound_terms(usual, memory...)) return ", because " + range.name(r) + " is " + number(r.*field);
      }
  }
  return "";
}
/// The same for the fault of a skipped step, where the schedules can be called.
template <class Plan, class Groups>
std::string cause_of(layout<typename Plan::value, typename Plan::gradient> const& where, Groups const& groups,
                     typename Plan::policies const& policies, control_block const& c) {
  bool const of_sums = c.fault.what == term_fault::sums;
  if (!of_sums && (c.fault.what != term_fault::term || Plan::sums)) return "";
  bool const of_tensor = of_sums ? Plan::sum_terms_per_tensor : Plan::unit_per_tensor;
  auto const u = std::size_t(c.fault.unit);
  auto const& g = groups[of_tensor ? std::size_t(where.tensors[u].group) : u];
  auto const r = scheduled(g.rule, policies, c.step, g.number, rates_of(c));
  return cause_of<typename Plan::rule, typename Plan::real>(r, c.step + 1);
}

template <class Plan>
[[noreturn]] void refuse_terms(layout<typename Plan::value, typename Plan::gradient> const& where, term_fault const& f,
                               std::int64_t update, std::string const& cause = "") {
  throw std::invalid_argument(text_of<Plan>(where, f, update) + cause);
}

/// Throws std::invalid_argument if a term of update t is not finite in the type of the arithmetic (with sums: a term
/// of the sums). Ignores frozen groups. `memories` has the memory of each unit; empty means that of the start.
template <class Plan>
void check_terms(layout<typename Plan::value, typename Plan::gradient> const& where,
                 plain_vector<group_entry<typename Plan::rule>> const& groups, typename Plan::policies const& policies,
                 std::int64_t t, plain_vector<memory_of<typename Plan::rule>> const& memories = {},
                 rate_change const& rates = {}) {
  constexpr bool of_tensors = Plan::sums ? Plan::sum_terms_per_tensor : Plan::unit_per_tensor;
  for (std::size_t u = 0; u < (of_tensors ? where.tensors.size() : groups.size()); ++u) {
    auto const& group = groups[of_tensors ? std::size_t(where.tensors[u].group) : u];
    if (group.frozen) continue;
    auto const before = u < memories.size() ? memories[u] : memory_of<typename Plan::rule>{};
    auto memory = before;
    auto const unit = [&] {
      if constexpr (Plan::sums) return terms_for_sums<Plan>(group, policies, t, &memory, 0, rates);
      else return terms_of<Plan>(group, policies, t, &memory, 0, rates);
    }();
    if (is_sound(unit)) continue;
    auto const r = scheduled(group.rule, policies, t - 1, group.number, rates);
    auto const stray = stray_field_of<typename Plan::real, typename Plan::policies>(r, group.number, term_fault::field);
    auto const place = Plan::sums ? term_fault::sums : term_fault::term;
    if (stray.what) refuse_terms<Plan>(where, stray, t);
    using rule = typename Plan::rule;
    std::string cause;
    if constexpr (terms_at_step<rule>) cause = cause_of<rule, typename Plan::real>(r, t);
    else cause = cause_of<rule, typename Plan::real>(r, t, before);
    refuse_terms<Plan>(where, fault_of(unit, r, std::int64_t(u), place), t, cause);
  }
  if (!is_sound(find_step_terms<Plan>(groups[0].rule, policies, t, rates)))
    refuse_terms<Plan>(where, {term_fault::policies}, t);
}

/// Training without its own loss scale counts as stuck after this many skips in a row.
inline constexpr int usual_patience = 20;

/// Why the last call updated nothing. `fault` says what was not finite, other than gradients and the loss.
inline std::string why_not(control_block const& c, std::string const& fault, std::vector<std::string> const& names,
                           std::vector<std::int32_t> const& tensor_of_chunk, bool stuck, bool scales_loss) {
  std::string why;
  if (c.lost) why = "ranks were lost";
  else if (c.waiting && c.batches > 0)
    why = "gradients are being accumulated, " + std::to_string(c.batches) + " so far";
  else if (c.waiting) why = "no gradients were waiting";
  else if (c.step + c.skipped == 0) why = "no step was taken yet";
  else if (!fault.empty()) why = fault;
  else if (c.bad_chunk < 0) why = "the loss is not finite";
  else why = "the gradient of '" + names[std::size_t(tensor_of_chunk[std::size_t(c.bad_chunk)])] + "' is not finite";
  if (stuck)
    why += "; training is not recovering: " + std::to_string(c.skipped_in_row) + " steps in a row were skipped" +
           (scales_loss ? ", and the loss scale cannot go lower" : "");
  return why;
}

/// The control block as a report for users. `cause` is added to the reason of a fault.
template <class Plan>
step_report report_of(layout<typename Plan::value, typename Plan::gradient> const& where,
                      [[maybe_unused]] typename Plan::policies const& policies, control_block const& c,
                      loss_scale_state const& scale, std::string const& cause = "") {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  constexpr bool scales_loss = has<Plan, kind::loss_scale>;
  step_report r{c.step, c.skipped, c.applied, {}, c.learning_rate, scale.scale, c.grad_norm, c.clip};
  if (!has_lr<typename Plan::rule>) r.learning_rate = none;
  if (!Plan::measures) r.grad_norm = none;
  r.checked = Plan::measures;
  if (c.applied) return r;
  bool stuck = c.skipped_in_row >= usual_patience;
  if constexpr (Plan::shares_scale) stuck = scale.stuck >= usual_patience;
  else if constexpr (scales_loss) stuck = get<kind::loss_scale>(policies).is_stuck(scale);
  bool const faulty = c.fault.what != term_fault::none;
  std::string fault = faulty ? text_of<Plan>(where, c.fault, c.step + 1) + cause : "";
  if (c.fault.what == term_fault::field || c.fault.what == term_fault::matrix_field)
    fault += "; skipped updates do not advance schedules, so the next one is skipped, too";
  r.why = why_not(c, fault, where.names, where.tensor_of_chunk, stuck, scales_loss);
  return r;
}

}  // namespace descent::detail
