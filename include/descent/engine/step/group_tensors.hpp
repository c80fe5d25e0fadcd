// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/rule.hpp>
#include <descent/version.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace descent::detail {

/// The tensors of each group, for steps that clip groups separately: those of group g are of[begin[g]] to
/// of[begin[g + 1] - 1], in ascending order. A search of all tensors for each group would take groups x tensors.
struct group_tensors {
  std::vector<std::int32_t> begin, of;

  group_tensors() = default;
  template <class Tensors>
  group_tensors(Tensors const& tensors, std::size_t groups) : begin(groups + 1), of(tensors.size()) {
    for (auto const& x : tensors) ++begin[std::size_t(x.group) + 1];
    for (std::size_t g = 0; g < groups; ++g) begin[g + 1] += begin[g];
    auto next = begin;
    for (std::size_t t = 0; t < tensors.size(); ++t)
      of[std::size_t(next[std::size_t(tensors[t].group)]++)] = std::int32_t(t);
  }
};

/// The same in the memory of the backend.
template <class Plan, bool = Plan::clip_over == scope::group> struct group_tensors_view {
  void add_to(auto&, auto const&, std::size_t) {}
};
template <class Plan> struct group_tensors_view<Plan, true> {
  std::int32_t const *begin = nullptr, *of = nullptr;

  template <class Tensors> void add_to(auto& arena, Tensors const& tensors, std::size_t groups) {
    group_tensors const all(tensors, groups);
    arena.add_copy(begin, all.begin);
    arena.add_copy(of, all.of);
  }
};

}  // namespace descent::detail
