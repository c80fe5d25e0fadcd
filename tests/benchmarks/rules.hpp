// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../../examples/parts/rules.hpp"
#include "ours.hpp"

/// A recipe rule_<name> in float for every element-wise rule in the examples' list.
namespace bench {

template <class... Rules> bool add_rules(example::rule_group<Rules...>) {
  for (std::string const& name : example::rule_names()) {
    example::any_rule const rule = example::rule_named(name);
    auto const add = [&](auto const* chosen) {
      if constexpr (!ds::has_sums<std::remove_cvref_t<decltype(*chosen)>>)
        if (chosen) recipe("rule_" + name, make<float>(1, 1, *chosen));
    };
    (add(std::get_if<Rules>(&rule)), ...);
  }
  return true;
}

}  // namespace bench
