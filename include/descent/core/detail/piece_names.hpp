// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/detail/containers.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Names of parameters as they are saved, and those that saved pieces take beside them.
namespace descent::detail {

/// Where a text is no UTF-8, or has a control character; npos if nowhere.
inline std::size_t first_unsaved_byte(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    auto const at = [&](std::size_t k) -> unsigned {
      return k < text.size() ? static_cast<unsigned char>(text[k]) : 0;
    };
    unsigned const first = at(i);
    if (first < 0x20 || first == 0x7f) return i;
    std::size_t const n = first < 0x80   ? 1
                          : first < 0xc2 ? 0
                          : first < 0xe0 ? 2
                          : first < 0xf0 ? 3
                          : first < 0xf5 ? 4
                                         : 0;
    // neither longer than needed, nor a surrogate, nor above U+10FFFF
    unsigned const least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned const most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (n == 0 || (n > 1 && (at(i + 1) < least || at(i + 1) > most))) return i;
    for (std::size_t k = 2; k < n; ++k)
      if (at(i + k) < 0x80 || at(i + k) > 0xbf) return i;
    i += n;
  }
  return text.npos;
}

/// What a run is saved with beside the pieces of parameters, see optimizer::save; and a key of the file format.
inline bool is_piece_of_run(std::string_view name) {
  for (std::string_view const piece :
       {"made_by", "step", "matrix_updates", "loss_scale", "plateau", "memory", "__metadata__"})
    if (name == piece) return true;
  return false;
}

/// Calls f(parameter) for each parameter of which a name would be a piece: "W" for "W.master", "W.state.m".
template <class F> void each_owner_of_piece(std::string_view name, F const& f) {
  std::size_t const dot = name.rfind('.');
  if (dot == name.npos) return;
  std::string_view const front = name.substr(0, dot), last = name.substr(dot + 1);
  for (std::string_view const piece : {"master", "remainder", "average", "slow", "outer", "row_updates", "memory"})
    if (last == piece) f(front);
  for (std::string_view const kind : {".state", ".matrix"})
    if (front.ends_with(kind)) f(front.substr(0, front.size() - kind.size()));
}

/// Throws std::invalid_argument unless a parameter can be saved under the name.
inline void require_saved_name(std::string const& name) {
  auto const refuse = [&](std::string const& shown, std::string const& what) {
    throw std::invalid_argument("parameter '" + shown + "': " + what);
  };
  constexpr std::size_t most_bytes = 4000;  // of 4096, which a file allows, with what follows in a piece's name
  if (name.empty()) refuse(name, "the name must not be empty");
  if (auto const at = first_unsaved_byte(name); at != name.npos) {
    bool const control = static_cast<unsigned char>(name[at]) < 0x20 || name[at] == 0x7f;
    char const* const must = name[at] == 0 ? "not contain a NUL character, has one at "
                             : control     ? "not contain control characters, has one at "
                                           : "be UTF-8, is not at ";
    refuse(name.substr(0, at), std::string("the name must ") + must + std::to_string(at));
  }
  if (name.size() > most_bytes)
    refuse(name.substr(0, 20) + "...", "the name must have at most 4000 bytes, has " + std::to_string(name.size()));
  if (is_piece_of_run(name)) refuse(name, "this is the name of a saved piece of a run");
}

/// A parameter of which parameter number `piece` has the name of a piece.
struct owner_of_piece {
  std::string name;
  std::size_t piece;
};
inline std::vector<owner_of_piece> owners_of_piece(std::string const& name, std::size_t piece) {
  std::vector<owner_of_piece> all;
  each_owner_of_piece(name, [&](std::string_view of) { all.push_back({std::string(of), piece}); });
  return all;
}

/// The names that no parameter may take because others are already called as their pieces would be.
class piece_owners {
  auto name_at() const {
    return [this](std::size_t i) -> std::string const& { return all_[i].name; };
  }

 public:
  std::size_t size() const { return all_.size(); }
  /// The number of a parameter that has the name of a piece of this one; -1 if there is none.
  std::int64_t piece_of(std::string const& name) const {
    std::int64_t const i = places_.find(name, name_at());
    return i < 0 ? -1 : std::int64_t(all_[std::size_t(i)].piece);
  }
  /// Makes room for `more`. If it throws, nothing has changed.
  void reserve(std::size_t more) {
    if (all_.size() + more > all_.capacity()) all_.reserve(2 * all_.size() + more);
    if (more > 0) places_.reserve(all_.size(), all_.size() + more, name_at());
  }
  /// Takes those for which there is room.
  void take(std::vector<owner_of_piece>& more) {
    for (auto& x : more) all_.push_back(std::move(x)), places_.add(all_.size() - 1, name_at());
  }
  void forget_after(std::size_t count) {
    while (all_.size() > count) all_.pop_back();
    places_.clear();
    for (std::size_t i = 0; i < count; ++i) places_.add(i, name_at());
  }

 private:
  std::vector<owner_of_piece> all_;
  name_table places_;
};

}  // namespace descent::detail
