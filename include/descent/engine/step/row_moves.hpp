// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/layout.hpp>
#include <descent/engine/step/outside.hpp>
#include <descent/engine/step/owned.hpp>
#include <descent/policies/rows.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// What is copied when parameters gain or lose rows.
namespace descent::detail {

/// Where a tensor's rows come from.
struct row_move {
  std::int64_t old = -1;               // the tensor's number in the old list; -1: a new tensor
  std::int64_t const* from = nullptr;  // the old row of each row; null: the same row
};

/// All moves from one list of parameters to another.
template <class Layout> struct row_changes {
  Layout const &old, &now;
  std::vector<row_move> moves;  // of each new tensor
};

template <class Layout> std::int64_t rows_of(Layout const& where, std::size_t t) {
  return where.tensors[t].count / where.columns[t];
}

/// The caller's mask of the rows of a tensor.
template <class Layout> outside_memory mask_of(Layout const& where, std::size_t t, std::uint8_t const* mask) {
  return {mask, rows_of(where, t), 1, "select_rows of '" + where.names[t] + "': the mask"};
}

/// Throws std::invalid_argument if names or shapes do not match. Does not check the rows in `from`.
template <class Layout>
row_changes<Layout> changes_of_rows(Layout const& old, Layout const& now, std::vector<row_source> const& sources) {
  std::vector<row_move> moves(now.tensors.size());
  for (row_source const& s : sources) {
    auto const fail = [&](std::string const& what) {
      throw std::invalid_argument("rows of '" + s.name + "': " + what);
    };
    row_move& move = moves[now.find(s.name)];
    if (move.old >= 0) fail("they are named twice");
    move = {std::int64_t(old.find(s.name)), s.from};
    if (!s.from && rows_of(now, now.find(s.name)) != 0) fail("the pointer must not be null");
  }
  for (std::size_t t = 0; t < moves.size(); ++t) {
    auto const fail = [&](std::string const& what) {
      throw std::invalid_argument("parameter '" + now.names[t] + "': " + what);
    };
    row_move& move = moves[t];
    bool const named = move.old >= 0;
    if (!named) move.old = old.place_of(now.names[t]);
    if (move.old < 0) continue;
    auto const o = std::size_t(move.old);
    if (old.columns[o] != now.columns[t])
      fail("it had " + std::to_string(old.columns[o]) + " columns and has " + std::to_string(now.columns[t]));
    if (old.tensors[o].types != now.tensors[t].types) fail("its types have changed");
    if (!named && old.tensors[o].count != now.tensors[t].count)
      fail("it had " + std::to_string(rows_of(old, o)) + " rows and has " + std::to_string(rows_of(now, t)) +
           ": say where each comes from");
  }
  return {old, now, std::move(moves)};
}

[[noreturn]] inline void refuse_row(std::string const& name, std::int64_t row, std::int64_t from, std::int64_t rows) {
  throw std::invalid_argument("rows of '" + name + "': row " + std::to_string(row) + " would come from row " +
                              std::to_string(from) + ", allowed are 0 to " + std::to_string(rows - 1) +
                              ", or -1 for a new one");
}

}  // namespace descent::detail
