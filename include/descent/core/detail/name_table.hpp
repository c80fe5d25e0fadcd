// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace descent::detail {

/// Finds the index of a name in a list: a hash table with open addressing, at most half full. It does not copy the
/// names; name_of(i) returns the name with index i.
class name_table {
  struct element_of {
    std::vector<std::string> const& names;
    std::string const& operator()(std::size_t i) const { return names[i]; }
  };

 public:
  name_table() = default;
  /// Of a list of strings. Of equal names the last one counts.
  explicit name_table(std::vector<std::string> const& names) {
    reserve(0, names.size(), element_of{names});
    for (std::size_t i = 0; i < names.size(); ++i) add(i, element_of{names});
  }

  /// -1 if the name is not in the list.
  template <class NameOf> std::int64_t find(std::string const& name, NameOf const& name_of) const {
    return places_.empty() ? none : places_[slot_of(name, name_of)];
  }
  std::int64_t find(std::string const& name, std::vector<std::string> const& names) const {
    return find(name, element_of{names});
  }

  /// Makes room for `count` names, of which `there` are in the table. If it throws, nothing has changed.
  template <class NameOf> void reserve(std::size_t there, std::size_t count, NameOf const& name_of) {
    std::size_t slots = places_.size();
    while (slots <= 2 * count) slots = 2 * slots + 2;
    if (slots == places_.size()) return;
    name_table larger;
    larger.places_.resize(slots, none);
    for (std::size_t i = 0; i < there; ++i) larger.add(i, name_of);
    places_.swap(larger.places_);
  }
  /// Adds a name, for which there is room.
  template <class NameOf> void add(std::size_t i, NameOf const& name_of) {
    places_[slot_of(name_of(i), name_of)] = std::int32_t(i);
  }
  /// Removes all names, and keeps the room.
  void clear() {
    for (auto& place : places_) place = none;
  }
  /// Removes the name that was added last.
  template <class NameOf> void remove(std::size_t i, NameOf const& name_of) {
    places_[slot_of(name_of(i), name_of)] = none;
  }

 private:
  static constexpr std::int32_t none = -1;

  template <class NameOf> std::size_t slot_of(std::string const& name, NameOf const& name_of) const {
    std::size_t slot = std::hash<std::string>{}(name) % places_.size();
    while (places_[slot] != none && name_of(std::size_t(places_[slot])) != name) slot = (slot + 1) % places_.size();
    return slot;
  }

  std::vector<std::int32_t> places_;
};

}  // namespace descent::detail
