// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/any_elements.hpp>
#include <descent/engine/step/outside.hpp>
#include <descent/core/detail/containers.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// The pieces of what an optimizer owns, with types that are known only at run time. Their code is compiled once for
/// all optimizers.
namespace descent::detail {

struct run_access;  // saves and loads runs, see run_part.hpp

/// What a piece is called, the number of its tensor, and whether it has an element for each of the tensor's. `whole`:
/// its elements, if one rank of those that share the state has all of them.
struct piece_id {
  std::string name;
  std::ptrdiff_t tensor = -1;
  bool by_element = false;
  std::int64_t whole = 0;
};

struct piece {
  piece_id id;
  any_elements elements;  // as they are now
  std::size_t alignment;
  bool is_memory = false;             // of the rule
  sole_any own{};                     // the elements, if they are a copy in memory of the host
  sole_function<void const*> check{}, put{};  // of elements; if empty, any will do, or they are copied
};

inline std::vector<std::string> names_of(std::vector<piece> const& all) {
  std::vector<std::string> names;
  for (piece const& p : all)
    if (p.elements.count > 0) names.push_back(p.id.name);
  return names;
}

using name_pointers = std::vector<std::string const*>;
/// "missing: 'a', 'b' and 3 more".
inline std::string listed(name_pointers const& names, char const* what) {
  constexpr std::size_t most = 20;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most; ++i)
    text += (i ? ", '" : std::string(what) + " '") + *names[i] + "'";
  return names.size() > most ? text + " and " + std::to_string(names.size() - most) + " more" : text;
}

/// Throws std::invalid_argument unless these are the names of all pieces.
inline void require_names(std::vector<piece> const& all, std::vector<std::string> const& there) {
  std::vector<std::string> wanted{"made_by"};
  for (auto& name : names_of(all)) wanted.push_back(std::move(name));
  name_table const in_wanted(wanted), in_there(there);
  name_pointers missing, left;
  for (auto const& name : wanted)
    if (in_there.find(name, there) < 0) missing.push_back(&name);
  for (auto const& name : there)
    if (in_wanted.find(name, wanted) < 0 && &name == &there[std::size_t(in_there.find(name, there))])
      left.push_back(&name);  // once, if it is there twice
  if (missing.empty() && left.empty()) return;
  sort_plain(left, [](std::string const* a, std::string const* b) { return *a < *b; });
  std::string const lacks = listed(missing, "missing:"), has = listed(left, "left over:");
  throw std::invalid_argument("load: " + lacks + (lacks.empty() || has.empty() ? "" : ", ") + has);
}

inline void require_made_by(std::string const& mine, std::string const& theirs) {
  if (theirs != mine)
    throw std::invalid_argument("load: the run was saved by '" + theirs + "', this optimizer is '" + mine + "'");
}

inline void require_size(std::string const& what, std::size_t size, std::size_t got) {
  if (got != size)
    throw std::invalid_argument(what + ": there are " + std::to_string(size) + " elements, got " + std::to_string(got));
}

/// Throws std::invalid_argument unless this can be the answer to a piece. What is only copied may have any alignment.
template <class Engine> void require_answer(piece const& p, void const* at, Engine const& e) {
  outside_memory m{at, std::int64_t(p.elements.bytes()), 1, "load: the answer to '" + p.id.name + "'"};
  e.storage.require_source(m);
  if (!p.check && !p.put) return;
  if (auto const beyond = reinterpret_cast<std::uintptr_t>(at) % p.alignment)
    m.refuse("must be aligned to " + std::to_string(p.alignment) + " bytes, is " + std::to_string(beyond) +
             " past a multiple");
  if (p.put && !e.on_host(at)) m.refuse("must be in host memory");
}

inline any_elements elements_of(std::string const& text) { return elements_of(std::span<char const>(text)); }

}  // namespace descent::detail
