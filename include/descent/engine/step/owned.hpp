// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>
#include <descent/core/rule.hpp>
#include <descent/engine/step/plan.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

/// The buffers that an optimizer owns for each element: the members of the rule's state, then those of policies.
namespace descent::detail {

/// Calls f.operator()<number, type>(name) for each member of the rule's state, then for each buffer of a policy.
template <class Plan, class F> constexpr void each_buffer(F const& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (f.template operator()<I, typename Plan::template slot<I>>("state"), ...);
  }(typename Plan::every_slot{});
  each_kept<Plan>(f);
}

/// One of these buffers, with its elements in the order of the arena or, for one tensor, of its elements.
struct owned_buffer {
  std::byte* at;
  std::int64_t size;  // of an element
};

/// The buffers that a plan has, each from the element `first` on, where at(number) is the first byte of a whole one.
template <class Plan, class At> std::array<owned_buffer, owned_count<Plan>> owned_buffers(At const& at,
                                                                                          std::int64_t first) {
  std::array<owned_buffer, owned_count<Plan>> all{};
  each_buffer<Plan>([&]<std::size_t I, class T>(char const*) {
    std::byte* const p = at(I);
    all[I] = {p ? p + first * std::int64_t(sizeof(T)) : nullptr, sizeof(T)};
  });
  return all;
}

/// Whether a buffer is a member of the rule's state.
template <class Plan> DESCENT_HD constexpr bool is_slot([[maybe_unused]] std::size_t buffer) {
  if constexpr (Plan::slots == 0) return false;  // nvcc warns of a comparison with 0
  else return buffer < Plan::slots;
}

/// Whether it is one that groups use: `used` has the members of the state.
template <class Plan> constexpr bool is_used([[maybe_unused]] std::array<bool, Plan::slots> const& used,
                                             [[maybe_unused]] std::size_t buffer) {
  if constexpr (Plan::slots > 0)
    if (is_slot<Plan>(buffer)) return used[buffer];
  return true;
}

/// The elements for which the optimizer's rule has state, and where those of a tensor begin if ranks share the state.
template <class Plan, class Layout> std::int64_t rule_elements(Layout const& where) {
  if constexpr (!Plan::shards) return where.rule_arena;
  else return Plan::has_matrices ? where.own.rule_size : where.own.size;
}
template <class Plan, class Layout> auto const& rule_offset(Layout const& where, std::size_t tensor) {
  return (Plan::has_matrices ? where.own.rule_offsets : where.own.arena_offsets)[tensor];
}

/// Whether a tensor of these types has this buffer. If not, its memory is uninitialized.
template <class Typed> DESCENT_HD constexpr bool has_owned(std::size_t buffer) {
  if (buffer == owned_index<Typed>::remainder) return Typed::has_remainder;
  if (buffer == owned_index<Typed>::master) return Typed::has_master;
  return true;
}

template <class Rule> std::string slot_name(std::size_t slot) {
  if constexpr (has_slot_names<Rule>) return Rule::slots[slot];
  else return std::to_string(slot);
}

/// What the name of a saved piece calls the member: its name, or its number if another member has the same name.
template <class Rule> std::string slot_in_piece(std::size_t slot) {
  std::string const name = slot_name<Rule>(slot);
  for (std::size_t i = 0; i < members<Rule::template state>; ++i)
    if (i != slot && slot_name<Rule>(i) == name) return std::to_string(slot);
  return name;
}

/// What the name of a saved piece calls a buffer.
template <class Plan> std::string piece_name(std::size_t buffer) {
  if (is_slot<Plan>(buffer)) return "state." + slot_in_piece<typename Plan::rule>(buffer);
  std::string name;
  each_kept<Plan>([&]<std::size_t I, class>(char const* called) {
    if (buffer == I) name = called;
  });
  return name;
}

}  // namespace descent::detail
