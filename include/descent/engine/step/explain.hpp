// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/explain_text.hpp>
#include <descent/engine/step/given_state.hpp>
#include <descent/engine/step/layout.hpp>
#include <descent/engine/step/owned.hpp>
#include <descent/engine/step/terms.hpp>
#include <descent/core/detail/containers.hpp>
#include <descent/core/detail/policy_settings.hpp>
#include <descent/report.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace descent::detail {

/// "half", or "half and float" if there are several.
template <class T> std::string names() {
  return []<int... I>(std::integer_sequence<int, I...>) {
    std::string text;
    ((text += (I == 0 ? "" : " and ") + std::string(type_name<typename types<T>::template at<I>>())), ...);
    return text;
  }(std::make_integer_sequence<int, types<T>::count>{});
}

/// ", master float", or nothing.
template <class Plan> std::string master_name() {
  if constexpr (Plan::has_remainder) return ", master float";
  else if constexpr (Plan::has_master) return std::string(", master ") + type_name<typename Plan::master>();
  else return "";
}

/// The mean of of<Typed>(), which depends on the types, over all parameters that the rule updates.
template <class Plan, class Of>
double mean_over_types(layout<typename Plan::value, typename Plan::gradient> const& where, Of const& of) {
  if constexpr (Plan::pairs == 1) return double(of.template operator()<Plan>());
  double sum = 0;
  std::int64_t elements = 0;
  for (auto const& x : where.tensors)
    if (!x.matrix) {
      elements += x.count;
      sum += double(x.count) *
             double(with_types<Plan>(x.types, [&]<class Typed>() { return of.template operator()<Typed>(); }));
    }
  return elements ? sum / double(elements) : 0;
}

/// Bytes per parameter to put gradients on the wire: to read the caller's, zero them if asked, and write the wire's.
template <class Plan> double bytes_to_wire(layout<typename Plan::value, typename Plan::gradient> const& where) {
  double sum = 0;
  for (std::size_t t = 0; t < where.tensors.size(); ++t)
    sum += double(where.tensors[t].count) * double(where.own_gradients[t].size);
  if (where.elements == 0) return 0;
  return sum / double(where.elements) * (Plan::zeroes_own ? 2 : 1) + double(sizeof(typename Plan::gradient_sum::wire));
}

template <class Plan>
memory_report owned(layout<typename Plan::value, typename Plan::gradient> const& where,
                    std::array<bool, Plan::slots> const& used, typename Plan::policies const& policies) {
  memory_report m{{}, where.elements, 0};
  auto const add_bytes = [&](std::string const& name, std::int64_t bytes) {
    m.buffers.push_back({name, bytes});
    m.bytes += bytes;
  };
  auto const add_some = [&]<class T>(std::type_identity<T>, std::string name, std::int64_t count) {
    add_bytes(name + " (" + type_name<T>() + ")", count * std::int64_t(sizeof(T)));
  };
  auto const is_given = [&](std::size_t number) { return lists_buffer<Plan>(where, policies, number); };
  each_kept<Plan>([&]<std::size_t I, class T>(char const* name) {
    if (!is_given(I)) add_some(std::type_identity<T>{}, name, where.own.size);
  });
  if constexpr (has<Plan, kind::perturbation>)
    add_bytes(std::string("values kept by ") + (Plan::is_sam ? "sam" : "gradient_ahead"),
              where.arena * Plan::largest_value);
  if constexpr (Plan::per_row_step || Plan::keeps_selection) {
    std::int64_t rows = 0;
    for (std::size_t t = 0; t < where.tensors.size(); ++t) rows += where.tensors[t].count / where.columns[t];
    if (Plan::per_row_step) add_bytes("updates of each row", rows * std::int64_t(sizeof(std::int32_t)));
    if (Plan::keeps_selection) add_bytes("rows of micro-batches", rows);
  }
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    [[maybe_unused]] std::int64_t const room = rule_elements<Plan>(where);
    ((used[I] && !is_given(I) ? add_some(std::type_identity<typename Plan::template slot<I>>{},
                                         "state " + slot_name<typename Plan::rule>(I), room) : void()), ...);
  }(typename Plan::every_slot{});
  if constexpr (Plan::has_matrices) add_matrix_buffers<Plan>(where, policies, add_some);
  if constexpr (Plan::parallel) {
    typename Plan::parallel_policy const& team = policies;
    auto const room = shared_layout<Plan>::memory(where, team);
    if (room.sum) add_bytes("sum of gradients over ranks", room.sum);
    if (room.sent) add_bytes("gradients for other ranks", room.sent);
    if (room.received) add_bytes("gradients of other ranks", room.received);
    if (room.values) add_bytes("values of all ranks", room.values);
  }
  return m;
}

/// "clip_norm: max 1, eps 0", or "schedule of lr, cosine: peak 0.1, ...".
template <class P> std::string explain_policy(P policy) {
  std::string name = rule_name<P>();
  std::vector<std::string> settings;
  if constexpr (requires { P::of_field(); }) {
    name = (P::how == way::multiply ? "factor of " : "schedule of ") + P::of_field() +
           (policy.group < 0 ? "" : " for group " + std::to_string(policy.group)) + ", " +
           type_of_schedule<decltype(policy.schedule)>();
    settings = settings_of(policy.schedule);
  } else {
    each_policy_setting(
        policy, [&](std::string const& of, auto const& x) { add_setting(settings, setting_name{nullptr, of}, x); });
  }
  if constexpr (has_hidden_settings<P>) settings.push_back("fields that cannot be read");
  return listed_after(name, settings);
}

/// "now 0.1, first 0.01, largest 0.1 at update 10, last 0 from update 101 on", after `step` updates. The largest value
/// of a schedule of more than a million steps is left out.
template <class S> std::string values_of_schedule(S const& s, std::int64_t step) {
  auto const shown = [&](std::int64_t t) { return number(s(t)); };
  std::string text = "now " + shown(step) + ", first " + shown(0);
  if constexpr (has_length<S>) {
    std::int64_t const length = s.length();
    if (length == endless || length <= 0) return text;
    if (length <= 1000000) {
      std::int64_t largest = 0;
      for (std::int64_t t = 1; t <= length; ++t)
        if (s(t) > s(largest)) largest = t;
      text += ", largest " + shown(largest) + " at update " + std::to_string(largest + 1);
    }
    text += ", last " + shown(length) + " from update " + std::to_string(length + 1) + " on";
  }
  return text;
}

/// Whether explain() may call a policy's schedule if the optimizer is on a device.
template <class P> inline constexpr bool calls_schedule = true;
template <follows_step P> inline constexpr bool calls_schedule<P> = has_length<decltype(P::schedule)>;
template <class Policies> inline constexpr bool calls_schedules = true;
template <class... Ps> inline constexpr bool calls_schedules<policy_set<Ps...>> = (calls_schedule<Ps> && ...);

/// The settings of a group's rule. Those that follow a schedule are "lr 0.1 now", which is that of `moved`, the rule of
/// the next update, or "lr by its schedule" if the schedules may not be called.
template <bool ForMatrices, bool Calls, class Rule, class Policies>
std::vector<std::string> settings_of_group(Rule const& rule, Rule const& moved, Policies const& policies, int group) {
  Rule other = rule;
  policies.each([&]<class P>(P const& p) {
    if constexpr (follows_step<P> && (!ForMatrices || reaches_matrices<P>)) p.forget_in(other, group);
  });
  auto all = settings_of(rule);
  auto const without = settings_of(other), now = settings_of(moved), shown = settings_of(moved, false);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != without[i] || all[i] != now[i])
      all[i] = Calls ? shown[i] + " now" : all[i].substr(0, all[i].find(' ')) + " by its schedule";
  if (!has_named_settings<Rule>()) all.push_back("fields that cannot be read");
  return all;
}

/// The backend, and the control block of the newest finished step that the host knows of.
struct explained_run {
  std::string backend;
  control_block control;
};

/// Which tensors there are: "3 tensors ('w', 'b', 'c')".
struct tensor_list {
  std::int64_t tensors = 0, elements = 0;
  name_list names = {};

  void add(std::string const& name, std::int64_t count) { ++tensors, elements += count, names.add(name); }
  std::string text() const { return counted(tensors, "tensor") + (tensors ? " (" + names.text() + ")" : ""); }
};

/// The rule of group 0, and of each other group what differs from it; `add` takes the lines.
template <class Plan, bool OnDevice, class Add>
void explain_groups(layout<typename Plan::value, typename Plan::gradient> const& where,
                    plain_vector<group_entry<typename Plan::rule>> const& groups,
                    typename Plan::policies const& policies, control_block const& control, Add const& add) {
  std::vector<tensor_list> lists(groups.size());
  for (std::size_t t = 0; t < where.tensors.size(); ++t)
    lists[std::size_t(where.tensors[t].group)].add(where.names[t], where.tensors[t].count);
  constexpr bool calls = !OnDevice || calls_schedules<typename Plan::policies>;
  std::vector<std::string> first;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    auto moved = groups[g].rule;
    if constexpr (calls) moved = scheduled(moved, policies, control.step, int(g), rates_of(control));
    auto const settings = settings_of_group<false, calls>(groups[g].rule, moved, policies, int(g));
    if (g == 0) add(listed_after(rule_name<typename Plan::rule>(), first = settings));
    auto const other = differing(settings, first);
    add("group " + std::to_string(g) + ": " + counted(lists[g].elements, "parameter") + " in " + lists[g].text() +
        (groups[g].frozen ? ", frozen" : "") + (other.empty() ? "" : ", with " + listed(other)));
  }
}

/// The same for the matrix rule.
template <class Plan, bool OnDevice, class Rules, class Add>
void explain_matrices(layout<typename Plan::value, typename Plan::gradient> const& where, Rules const& rules,
                      typename Plan::policies const& policies, control_block const& control, Add const& add) {
  tensor_list list;
  for (std::size_t t = 0; t < where.tensors.size(); ++t)
    if (where.tensors[t].matrix) list.add(where.names[t], where.tensors[t].count);
  constexpr bool calls = !OnDevice || calls_schedules<typename Plan::policies>;
  std::vector<std::string> first;
  for (std::size_t g = 0; g < rules.size(); ++g) {
    auto moved = rules[g];
    if constexpr (calls) moved = scheduled_for_matrices(moved, policies, control.step, int(g), rates_of(control));
    auto const settings = settings_of_group<true, calls>(rules[g], moved, policies, int(g));
    if (g == 0) add("matrix rule for " + list.text() + ", " +
                    listed_after(rule_name<typename Plan::matrix_rule>(), first = settings));
    if (auto const other = differing(settings, first); !other.empty())
      add("  group " + std::to_string(g) + ": " + listed(other));
  }
}

/// What the ranks share.
template <class Plan, class Add>
void explain_ranks(layout<typename Plan::value, typename Plan::gradient> const& where,
                   typename Plan::policies const& policies, Add const& add) {
  if constexpr (Plan::parallel) {
    typename Plan::parallel_policy const& team = policies;
    auto const& comm = *team.comm;
    std::int64_t updated = 0;
    for (std::size_t t = 0; t < where.tensors.size(); ++t)
      updated += Plan::shards ? where.own.parts[t].size : where.tensors[t].count;
    add("rank " + std::to_string(comm.rank()) + " of " + std::to_string(comm.size()) + ": updates " +
        counted(updated, "parameter") + (Plan::shards ? ", sharded" : ", replicated"));
    add("  gradients are sent in " + std::string(type_name<typename Plan::gradient_sum::wire>()) +
        (Plan::gradient_sum::ordered ? " and added in the order of the ranks" : " and added by the communicator") +
        (Plan::overlaps ? ", in buckets of " + std::to_string(team.bucket_bytes) + " bytes" : ""));
    if (team.updates_between > 0)
      add("  ranks are compared every " + std::to_string(team.updates_between) + " updates");
    add("  traffic to send them: " + number(double(bytes_to_wire<Plan>(where))) + " bytes per parameter of this rank");
  }
  if constexpr (Plan::splits) {
    auto const& comm = *get<kind::model>(policies).comm;
    add("rank " + std::to_string(comm.rank()) + " of " + std::to_string(comm.size()) + " of a model: " +
        (Plan::measures ? "norm, sums and skips are those of all ranks" : "a step exchanges nothing"));
  }
}

/// Passes, launches and bytes of a step.
template <class Plan, bool OnDevice, class Add>
void explain_step(layout<typename Plan::value, typename Plan::gradient> const& where,
                  std::array<bool, Plan::slots> const& used, typename Plan::policies const& policies, Add const& add) {
  constexpr int passes = (Plan::norm_first ? 2 : Plan::measures ? 1 : 0);
  std::string text = "step: ";
  if (passes) text += std::to_string(passes) + (passes == 1 ? " read-only pass and " : " read-only passes and ");
  text += "1 update";
  if constexpr (OnDevice) {
    std::int64_t launches = Plan::launches;
    if constexpr (Plan::overlaps) {
      typename Plan::parallel_policy const& team = policies;
      constexpr int each = 3 + Plan::gradient_sum::ordered, without = each - 2;
      launches += each * shared_layout<Plan>::buckets(where, team) - without;
    }
    text += ", " + std::to_string(launches) + " launches on a device, no synchronisation";
  }
  add(text);
  double sum = 0;  // bytes to add the ranks' gradients, if a pass or the update adds them
  if constexpr (Plan::adds_when_read) {
    constexpr int wire = sizeof(typename Plan::gradient_sum::wire), kept = sizeof(typename Plan::gradient);
    sum = get<kind::parallel>(policies).comm->size() * wire - (Plan::keeps_sum ? 0 : kept);
  }
  auto const bytes = [&](auto of) { return mean_over_types<Plan>(where, of); };
  double const read = bytes([&]<class Typed>() { return Plan::template pass_bytes<Typed>(used); }) +
                      (Plan::measures ? sum : 0),
               updated = bytes([&]<class Typed>() { return Plan::template update_bytes<Typed>(used); }) +
                         (Plan::measures ? 0 : sum);
  add("traffic: " + (passes ? number(read) + " bytes per parameter before the update, " + number(updated) + " in it"
                            : number(updated) + " bytes per parameter"));
}

template <class Plan, bool OnDevice, class Matrices>
std::string explain(layout<typename Plan::value, typename Plan::gradient> const& where,
                    std::array<bool, Plan::slots> const& used,
                    plain_vector<group_entry<typename Plan::rule>> const& groups,
                    typename Plan::policies const& policies, [[maybe_unused]] Matrices const& matrices,
                    explained_run const& run) {
  std::string text;
  auto const add = [&](std::string const& line) { text += wrapped(line); };
  add(counted(where.elements, "parameter") + " in " + counted(std::int64_t(where.tensors.size()), "tensor") +
      ", after " + counted(run.control.step, "update") + ", on " + run.backend);
  explain_groups<Plan, OnDevice>(where, groups, policies, run.control, add);
  if constexpr (Plan::has_matrices) {
    explain_matrices<Plan, OnDevice>(where, matrices.common.rules, policies, run.control, add);
    if constexpr (Plan::shards) add(shared_layout<Plan>::owned_matrices(where, policies));
  }
  std::vector<std::string> others;  // policies without settings
  policies.each([&]<class P>(P const& policy) {
    if constexpr (has_settings<P> && !std::is_same_v<typename P::policy_kind, kind::parallel>) {
      std::string const line = explain_policy(policy);
      if (line == rule_name<P>()) others.push_back(line);
      else add(line);
    }
    if constexpr (follows_step<P> && requires { policy.schedule(run.control.step); } &&
                  (!OnDevice || calls_schedule<P>))
      add("  " + values_of_schedule(policy.schedule, run.control.step));
  });
  if (!others.empty()) add("also " + listed(others));
  auto const add_ranges = [&]<class Rule>(std::type_identity<Rule>, char const* of) {
    each_scheduled_field<Rule>(std::type_identity<typename Plan::policies>{}, [&](auto field, std::int32_t) {
      add(of + std::string(field.value.name) + " follows a schedule and must be " + field.value.allowed.text +
          ", or the update is skipped");
    });
  };
  add_ranges(std::type_identity<typename Plan::rule>{}, "");
  if constexpr (Plan::has_matrices) add_ranges(std::type_identity<typename Plan::matrix_rule>{}, "matrix.");

  add("storage: value " + names<typename Plan::value>() + ", gradient " + names<typename Plan::own_gradient>() +
      master_name<Plan>() + ", arithmetic " + type_name<typename Plan::real>());
  auto const m = owned<Plan>(where, used, policies);
  add("memory: " + counted(m.bytes, "byte") + ", " + printed("%.2f", m.bytes_per_parameter()) + " per parameter");
  for (auto const& b : m.buffers) add("  " + b.name + ": " + counted(b.bytes, "byte"));
  if (Plan::has_master)
    add("the update starts at the masters: call reload_values() after something else has written values");
  explain_step<Plan, OnDevice>(where, used, policies, add);
  explain_ranks<Plan>(where, policies, add);
  add(Plan::measures ? "a gradient that is not finite skips the step"
                     : "gradients are not checked: add skip_nonfinite");
  if (Plan::zeroes || Plan::zeroes_own) add("gradients are set to zero in the update");
  return text;
}

}  // namespace descent::detail
