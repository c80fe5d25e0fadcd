// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/precision.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace descent {

/// The group of a parameter. Each group has its own copy of the rule; see optimizer::group.
struct group {
  int index = 0;
};

/// A list of named views over the caller's values and gradients. Nothing is copied or owned: the memory must stay
/// where it is for as long as an optimizer built from the list is used. Values need not be finite.
template <storage_type Value, storage_type Gradient = Value> class parameters {
 public:
  struct view {
    std::string name;
    Value* value;
    Gradient* gradient;
    std::int64_t count;
    int group;
  };

  /// Throws std::invalid_argument, with the list as it was: a name twice or empty, a negative or too large count, a null
  /// pointer with a count above 0, a group outside [0, 65535].
  template <std::integral Count>
  void add(std::string name, Value* value, Gradient* gradient, Count count, group g = {}) {
    auto const fail = [&](std::string const& what) { throw std::invalid_argument("parameter '" + name + "': " + what); };
    if (name.empty()) fail("the name must not be empty");
    if (std::cmp_less(count, 0)) fail("count must be at least 0, is " + std::to_string(count));
    if (std::cmp_greater(count, most)) fail("count must be at most 2^60, is " + std::to_string(count));
    if (count != 0 && !value) fail("value is null, but count is " + std::to_string(count));
    if (count != 0 && !gradient) fail("gradient is null, but count is " + std::to_string(count));
    if (g.index < 0 || g.index > 65535) fail("group must be in [0, 65535], is " + std::to_string(g.index));
    if (names_.contains(name)) fail("there is a parameter of this name already");
    if (views_.size() == views_.capacity()) views_.reserve(2 * views_.size() + 1);
    names_.insert(name);
    views_.push_back({std::move(name), value, gradient, std::int64_t(count), g.index});
  }

  std::vector<view> const& views() const { return views_; }

 private:
  static constexpr std::int64_t most = std::int64_t{1} << 60;
  std::vector<view> views_;
  std::unordered_set<std::string> names_;
};

}  // namespace descent
