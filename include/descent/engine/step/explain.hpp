// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/given_state.hpp>
#include <descent/engine/step/layout.hpp>
#include <descent/engine/step/owned.hpp>
#include <descent/engine/step/terms.hpp>
#include <descent/core/detail/containers.hpp>
#include <descent/core/detail/policy_settings.hpp>
#include <descent/report.hpp>

#include <array>
#include <cstdio>
#include <string>
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

/// Appends ": name x", or ", name x" to other settings. Not inlined, for the code of programs with many rules.
template <class T> [[gnu::noinline]] void add_setting(std::string& text, setting_name const& name, T const& x) {
  text += (text.empty() ? ": " : ", ") + name.text() + " " + text_of_setting(x);
}
/// "sgd: lr 0.1, momentum 0.9".
template <class Rule> std::string explain_rule(Rule rule) {
  std::string text;
  walk_settings(rule, setting_name{}, [&](setting_name const& name, auto const& x) { add_setting(text, name, x); });
  return rule_name<Rule>() + text;
}
template <class P> std::string explain_policy(P const& policy) {
  std::string text;
  each_policy_setting(
      policy, [&](std::string const& name, auto const& x) { add_setting(text, setting_name{nullptr, name}, x); });
  if constexpr (has_hidden_settings<P>) text += ", and fields that cannot be read";
  return name_of_policy<P>() + text;
}

template <class Plan>
std::string explain(layout<typename Plan::value, typename Plan::gradient> const& where,
                    std::array<bool, Plan::slots> const& used,
                    plain_vector<group_entry<typename Plan::rule>> const& groups,
                    typename Plan::policies const& policies, std::string const& backend) {
  std::string text;
  auto const line = [&](char const* format, auto... values) {
    char buffer[256];
    std::snprintf(buffer, sizeof buffer, format, values...);
    text += std::string(buffer) + "\n";
  };
  using integer = long long;
  auto const bytes = [&](auto of) { return mean_over_types<Plan>(where, of); };
  auto const tensors = [](std::size_t n) { return std::to_string(n) + (n == 1 ? " tensor" : " tensors"); };
  auto const m = owned<Plan>(where, used, policies);
  line("%lld parameters in %s, on %s", integer(where.elements), tensors(where.tensors.size()).c_str(), backend.c_str());
  line("storage: value %s, gradient %s, arithmetic %s", names<typename Plan::value>().c_str(),
       names<typename Plan::gradient>().c_str(), type_name<typename Plan::real>());
  for (auto const& b : m.buffers) line("  owned: %s, %lld bytes", b.name.c_str(), integer(b.bytes));
  line("  owned in all: %lld bytes, %s for each parameter", integer(m.bytes),
       printed("%.2f", m.bytes_per_parameter()).c_str());
  constexpr int passes = (Plan::norm_first ? 2 : Plan::measures ? 1 : 0);
  integer launches = Plan::launches;
  if constexpr (Plan::overlaps) {
    typename Plan::parallel_policy const& team = policies;
    constexpr int each = 3 + Plan::gradient_sum::ordered, counted = each - 2;
    launches += each * shared_layout<Plan>::buckets(where, team) - counted;
  }
  line("step: %d read-only %s and 1 update, %lld launches on a device, no synchronisation", passes,
       passes == 1 ? "pass" : "passes", launches);
  double sum = 0;  // bytes to add the ranks' gradients, if a pass or the update adds them
  if constexpr (Plan::adds_when_read) {
    constexpr int wire = sizeof(typename Plan::gradient_sum::wire), kept = sizeof(typename Plan::gradient);
    sum = get<kind::parallel>(policies).comm->size() * wire - (Plan::keeps_sum ? 0 : kept);
  }
  double const read = bytes([&]<class Typed>() { return Plan::template pass_bytes<Typed>(used); }),
               updated_bytes = bytes([&]<class Typed>() { return Plan::template update_bytes<Typed>(used); });
  line("traffic: %s + %s bytes for each parameter", number(read + (Plan::measures ? sum : 0)).c_str(),
       number(updated_bytes + (Plan::measures ? 0 : sum)).c_str());
  if constexpr (Plan::parallel) {
    auto const& comm = *get<kind::parallel>(policies).comm;
    integer updated = 0;
    for (std::size_t t = 0; t < where.tensors.size(); ++t)
      updated += Plan::shards ? where.own.parts[t].size : where.tensors[t].count;
    line("rank %d of %d: updates %lld parameters, %s; gradients go over the wire in %s, %s", comm.rank(), comm.size(),
         updated, Plan::shards ? "sharded" : "replicated", type_name<typename Plan::gradient_sum::wire>(),
         Plan::gradient_sum::ordered ? "added in the order of the ranks" : "added as the communicator does it");
    line("  traffic to the wire: %s bytes for each parameter of the rank",
         number(double(bytes_to_wire<Plan>(where))).c_str());
  }
  if constexpr (Plan::splits) {
    auto const& comm = *get<kind::model>(policies).comm;
    line("rank %d of %d of a model: %s", comm.rank(), comm.size(),
         Plan::measures ? "norm, sums and skips are those of all ranks" : "a step exchanges nothing");
  }
  if constexpr (Plan::has_master)
    text += "the update starts at the masters: call reload_values() after something else has written values\n";
  line("%s", Plan::measures ? "a gradient that is not finite skips the step"
                            : "gradients are not checked: add skip_nonfinite");
  if constexpr (Plan::has_matrices) {
    std::size_t count = 0;
    for (auto const& x : where.tensors) count += x.matrix;
    line("of these, %s by the matrix rule, one after the other", tensors(count).c_str());
    if constexpr (Plan::shards) text += shared_layout<Plan>::owned_matrices(where, policies);
  }
  if constexpr (Plan::zeroes || Plan::zeroes_own) text += "gradients are set to zero in the update\n";
  auto const scheduled_fields = [&]<class Rule>(std::type_identity<Rule>, char const* of) {
    each_scheduled_field<Rule>(std::type_identity<typename Plan::policies>{}, [&](auto field, std::int32_t) {
      line("%s%s follows a schedule and must be %s, or the update is skipped", of,
           std::string(field.value.name).c_str(), field.value.allowed.text);
    });
  };
  scheduled_fields(std::type_identity<typename Plan::rule>{}, "");
  if constexpr (Plan::has_matrices) scheduled_fields(std::type_identity<typename Plan::matrix_rule>{}, "matrix.");
  plain_vector<integer> counts(groups.size()), elements(groups.size());
  for (auto const& x : where.tensors) ++counts[std::size_t(x.group)], elements[std::size_t(x.group)] += x.count;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    line("group %d: %lld parameters in %s%s", int(g), elements[g], tensors(std::size_t(counts[g])).c_str(),
         groups[g].frozen ? ", frozen" : "");
    text += "  " + explain_rule(groups[g].rule) + "\n";
  }
  policies.each([&](auto const& policy) {
    if constexpr (has_settings<std::remove_cvref_t<decltype(policy)>>) text += explain_policy(policy) + "\n";
  });
  if constexpr (Plan::has_matrices) text += "matrix rule " + explain_rule(get<kind::matrices>(policies).rule) + "\n";
  return text;
}

}  // namespace descent::detail
