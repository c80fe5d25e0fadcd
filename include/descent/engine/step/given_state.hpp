// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/layout.hpp>
#include <descent/engine/step/outside.hpp>
#include <descent/engine/step/owned.hpp>
#include <descent/engine/step/packet.hpp>
#include <descent/core/detail/containers.hpp>
#include <descent/policies/state_in.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

/// State in the caller's memory, see state_in.
namespace descent::detail {

/// Each tensor's buffers in the caller's memory, by owned_index; null where the optimizer owns them.
template <class Plan> using given_state = std::vector<std::array<void*, owned_count<Plan>>>;

/// Whether a tensor of these types has the buffer.
template <class Typed> bool stores(std::size_t buffer, std::array<bool, Typed::slots> const& used) {
  bool there = false;
  each_buffer<Typed>([&]<std::size_t I, class>(char const*) { there = there || I == buffer; });
  return there && is_used<Typed>(used, buffer);
}
struct stored_type {
  char const* name;
  std::int64_t size;
};
template <class Plan> stored_type type_of_buffer(std::size_t buffer) {
  stored_type type{"", 0};
  each_buffer<Plan>([&]<std::size_t I, class T>(char const*) {
    if (I == buffer) type = {type_name<T>(), sizeof(T)};
  });
  return type;
}

/// Throws std::invalid_argument if the list does not fit the optimizer. reach(memory) throws if the backend cannot
/// access it.
template <class Plan, class Reach>
given_state<Plan> find_given(layout<typename Plan::value, typename Plan::gradient> const& where,
                             std::array<bool, Plan::slots> const& used, typename Plan::policies const& policies,
                             Reach const& reach) {
  auto const& policy = get<kind::state_memory>(policies);
  auto const fail = [](std::string const& what) { throw std::invalid_argument("state_in: " + what); };
  auto const& list = policy.where->entries();
  auto const name_of = [&](std::size_t i) -> std::string const& { return list[i].name; };
  name_table places;
  places.reserve(0, list.size(), name_of);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (places.find(list[i].name, name_of) >= 0) fail("'" + list[i].name + "' is in the list twice");
    places.add(i, name_of);
  }
  std::vector<bool> taken(list.size());
  std::vector<memory_range> ranges = where.memory_ranges();
  given_state<Plan> given(where.tensors.size());
  std::array<std::string, owned_count<Plan>> with, without;
  for (std::size_t t = 0; t < where.tensors.size(); ++t) {
    auto const& x = where.tensors[t];
    with_types<Plan>(x.types, [&]<class Typed>() {
      for (std::size_t b = 0; b < owned_count<Plan>; ++b) {
        if (!stores<Typed>(b, used)) continue;
        std::string const name = where.names[t] + "." + piece_name<Plan>(b);
        std::int64_t const place = places.find(name, name_of);
        if (place < 0 && x.count == 0) continue;  // save() does not name it either
        if (place < 0) {
          if (policy.initialized) fail("it is initialized, but '" + name + "' is not in the list");
          without[b] = name;
          continue;
        }
        with[b] = name;
        auto const& entry = list[std::size_t(place)];
        taken[std::size_t(place)] = true;
        stored_type const type = type_of_buffer<Plan>(b);
        if (type.name != std::string(entry.type))
          fail("'" + name + "' is stored in " + type.name + ", the list has " + entry.type);
        if (entry.count >= 0 && entry.count != x.count)
          fail("'" + name + "' has " + std::to_string(x.count) + " elements, in the list " +
               std::to_string(entry.count));
        if (x.count == 0) continue;
        reach(outside_memory{entry.at, x.count, type.size, "state_in: '" + name + "'"});
        ranges.push_back(memory_range::of(entry.at, x.count * type.size, nullptr, entry.name));
        given[t][b] = entry.at;
      }
    });
  }
  for (std::size_t b = 0; b < owned_count<Plan>; ++b)
    if (!with[b].empty() && !without[b].empty()) fail("'" + with[b] + "' is in the list, '" + without[b] + "' is not");
  for (std::size_t i = 0; i < list.size(); ++i)
    if (!taken[i]) fail("'" + list[i].name + "' is not a piece of this optimizer");
  refuse_overlaps(ranges);
  return given;
}

struct no_given {};

template <std::size_t Count>
void put_given(std::array<owned_buffer, Count>& buffers, std::array<void*, Count> const& given) {
  for (std::size_t b = 0; b < Count; ++b)
    if (given[b]) buffers[b].at = static_cast<std::byte*>(given[b]);
}

/// Adds the memory of the list to the ranges.
template <class Plan, class Layout>
void add_given_ranges(std::vector<memory_range>& ranges, Layout const& where, given_state<Plan> const& given) {
  for (std::size_t t = 0; t < given.size(); ++t)
    for (std::size_t b = 0; b < owned_count<Plan>; ++b)
      if (given[t][b])
        ranges.push_back(memory_range::of(given[t][b], where.tensors[t].count * type_of_buffer<Plan>(b).size,
                                          "the state", where.names[t]));
}

/// Whether the list has a buffer, so that the optimizer does not allocate it.
template <class Plan> bool is_given(given_state<Plan> const& given, std::size_t buffer) {
  for (auto const& of_tensor : given)
    if (of_tensor[buffer]) return true;
  return false;
}

/// Whether the list of the policies has a buffer.
template <class Plan>
bool lists_buffer([[maybe_unused]] layout<typename Plan::value, typename Plan::gradient> const& where,
                  [[maybe_unused]] typename Plan::policies const& policies, [[maybe_unused]] std::size_t buffer) {
  if constexpr (Plan::has_given) {
    std::string const piece = "." + piece_name<Plan>(buffer);
    for (auto const& entry : get<kind::state_memory>(policies).where->entries())
      if (entry.name.ends_with(piece) && where.place_of(entry.name.substr(0, entry.name.size() - piece.size())) >= 0)
        return true;
  }
  return false;
}

template <class Plan> DESCENT_HD void use_given(buffers<Plan>& x, void* const* at) {
  using index = owned_index<Plan>;
  for (std::size_t i = 0; i < Plan::slots; ++i)
    if (at[i]) x.slot[i] = at[i];
  if constexpr (Plan::has_master)
    if (at[index::master]) x.master = static_cast<typename Plan::master*>(at[index::master]);
  if constexpr (Plan::has_extras)
    each_kept<Plan>([&]<std::size_t I, class T>(char const*) {
      if constexpr (I != index::master)
        if (at[I]) x.extra.template at<I>() = static_cast<T*>(at[I]);
    });
}

}  // namespace descent::detail
