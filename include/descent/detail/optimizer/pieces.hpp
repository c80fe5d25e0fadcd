// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/any_elements.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

/// The pieces of what an optimizer owns, with types that are known only at run time. Their code is compiled once for
/// all optimizers.
namespace descent::detail {

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
  std::shared_ptr<void const> own{};  // the elements, if they are a copy in memory of the host
  std::function<void(void const*)> check{}, put{};  // takes elements; if empty, any will do, or they are copied
};

using any_writer = std::function<void(std::string const&, any_elements const&)>;
using any_reader = std::function<any_answer(std::string const&, any_elements const&)>;

inline std::vector<std::string> names_of(std::vector<piece> const& all) {
  std::vector<std::string> names;
  for (piece const& p : all)
    if (p.elements.count > 0) names.push_back(p.id.name);
  return names;
}

/// Throws std::invalid_argument unless these are the names of all pieces.
inline void require_names(std::vector<piece> const& all, std::unordered_set<std::string> there) {
  std::vector<std::string> missing;
  if (!there.erase("made_by")) missing.push_back("made_by");
  for (auto const& name : names_of(all))
    if (!there.erase(name)) missing.push_back(name);
  std::vector<std::string> left(there.begin(), there.end());
  std::ranges::sort(left);
  if (missing.empty() && left.empty()) return;
  auto const listed = [](std::vector<std::string> const& names, char const* what) {
    std::size_t const shown = std::min(names.size(), std::size_t(20));
    std::string text;
    for (std::size_t i = 0; i < shown; ++i) text += (i ? ", '" : std::string(what) + " '") + names[i] + "'";
    return shown < names.size() ? text + " and " + std::to_string(names.size() - shown) + " more" : text;
  };
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

inline any_elements elements_of(std::string const& text) { return elements_of(std::span<char const>(text)); }

inline void write_pieces(std::string const& made_by, std::vector<piece> const& all, any_writer const& write) {
  write("made_by", elements_of(made_by));
  for (piece const& p : all)
    if (p.elements.count > 0) write(p.id.name, p.elements);
}

/// The answers to all pieces, those of no elements empty. `names`, those of all saved pieces, may be null. Throws
/// std::invalid_argument if an answer does not fit, or a name is missing or left over.
inline std::vector<any_answer> read_pieces(std::string const& made_by, std::vector<piece> const& all,
                                           any_reader const& read, std::unordered_set<std::string> const* names) {
  if (names && !names->contains("made_by")) require_names(all, *names);
  any_answer const theirs = read("made_by", elements_of(made_by));
  require_made_by(made_by, {static_cast<char const*>(theirs.data()), theirs.bytes()});
  if (names) require_names(all, *names);
  std::vector<any_answer> answers;
  for (piece const& p : all) {
    if (p.elements.count == 0) {
      answers.emplace_back(nullptr, 0);
      continue;
    }
    any_answer const& answer = answers.emplace_back(read(p.id.name, p.elements));
    auto const refuse = [&](std::string const& what) {
      throw std::invalid_argument("load: '" + p.id.name + "' " + what);
    };
    if (answer.bytes() % p.elements.size != 0)
      refuse("has " + std::to_string(answer.bytes()) + " bytes, no multiple of " + std::to_string(p.elements.size));
    if (reinterpret_cast<std::uintptr_t>(answer.data()) % p.alignment != 0)
      refuse("must be aligned to " + std::to_string(p.alignment) + " bytes");
    require_size("load: '" + p.id.name + "'", std::size_t(p.elements.count), answer.bytes() / p.elements.size);
  }
  return answers;
}

}  // namespace descent::detail
