// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/ranks/detail/agreement.hpp>
#include <descent/engine/step/prints.hpp>
#include <descent/core/detail/containers.hpp>
#include <descent/core/detail/hash.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// What ranks compare while they train: fingerprints of all that they own.
namespace descent::detail {

inline std::string fact_of_print(std::string const& what, std::string const& of, std::uint64_t print) {
  return what + " of '" + of + "' " + hash_text(print);
}

/// The current state of the optimizer on this rank as facts: first the global state, then each parameter's buffers.
template <class Plan>
std::vector<std::string> facts_now(layout<typename Plan::value, typename Plan::gradient> const& where,
                                   plain_vector<group_entry<typename Plan::rule>> const& groups, control_block const& c,
                                   loss_scale_state const& scale,
                                   std::span<memory_of<typename Plan::rule> const> memories,
                                   std::vector<std::uint64_t> const& prints,
                                   std::vector<std::string> const& of_matrices) {
  auto facts = facts_of_control(c, scale, groups);
  for (std::size_t u = 0; u < memories.size() && has_memory<typename Plan::rule>; ++u) {
    facts.push_back("memory of the rule " + std::to_string(u) + ":");
    each_number(memories[u], [&](auto x) { facts.back() += " " + exact(double(x)); });
  }
  for (std::size_t t = 0; t < where.tensors.size(); ++t) {
    auto const add = [&](std::size_t b, std::string const& what) {
      facts.push_back(fact_of_print(what, where.names[t], prints[t * prints_of_tensor<Plan> + b]));
    };
    add(0, "value");
    if constexpr (!Plan::shards) {
      for (std::size_t i = 0; i != Plan::slots; ++i) add(1 + i, "state " + slot_name<typename Plan::rule>(i));
      each_kept<Plan>([&]<std::size_t I, class>(char const* name) { add(1 + I, name); });
    }
  }
  facts.insert(facts.end(), of_matrices.begin(), of_matrices.end());
  return facts;
}
/// What agree() compares of the matrix rules. `stage` has their state; print(buffer, elements) is the fingerprint of
/// a buffer.
template <class Plan, class Stage, class Print>
std::vector<std::string> facts_of_matrices(Stage const& stage, std::vector<std::string> const& names,
                                           Print const& print) {
  std::vector<std::string> facts{std::to_string(stage.common.updates) + " updates of matrices"};
  for (auto& fact : facts_of_matrix_rules(stage.common.rules)) facts.push_back(std::move(fact));
  if constexpr (!Plan::shards)
    stage.each_buffer([&](auto const& x, std::string const& what, auto const* buffer, std::int64_t n) {
      facts.push_back(fact_of_print(what, names[std::size_t(x.tensor)], print(buffer, n)));
    });
  return facts;
}

inline constexpr char const* have_diverged = "ranks have diverged:";

}  // namespace descent::detail
