// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/host/memory_check.hpp>
#include <descent/engine/step/row_mask.hpp>
#include <descent/engine/step/row_moves.hpp>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace descent::detail {

/// The selection of rows on the host.
template <class Plan> class host_rows {
 public:
  template <class Layout> explicit host_rows(Layout const& where) : masks_(where.tensors.size()) {
    std::int64_t rows = 0;
    for (std::size_t t = 0; t < where.tensors.size(); ++t) {
      records_.push_back({nullptr, nullptr, where.columns[t]});
      rows += rows_of(where, t);
    }
    if constexpr (Plan::keeps_selection) {
      waiting_.resize(std::size_t(rows));
      rows = 0;
      for (std::size_t t = 0; t < where.tensors.size(); ++t) {
        records_[t].waiting = waiting_.data() + rows;
        rows += rows_of(where, t);
      }
      rows = std::ssize(waiting_);
    }
    if constexpr (Plan::per_row_step) {
      updates_.resize(std::size_t(rows));
      rows = 0;
      for (std::size_t t = 0; t < where.tensors.size(); ++t) {
        records_[t].updates = updates_.data() + rows;
        rows += rows_of(where, t);
      }
    }
  }

  row_record const& operator[](std::size_t tensor) const { return records_[tensor]; }

  void select(std::size_t tensor, std::int64_t, std::uint8_t const* mask) { records_[tensor].mask = mask; }
  /// Calls f for each mask that is the caller's.
  template <class Layout, class F> void each_mask(Layout const& where, F const& f) const {
    for (std::size_t t = 0; t < records_.size(); ++t)
      if (records_[t].mask && records_[t].mask != masks_[t].data()) f(mask_of(where, t, records_[t].mask));
  }
  template <class Index>
  void select(std::size_t tensor, std::int64_t rows, Index const* list, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
      if (list[i] >= rows)
        throw std::invalid_argument("select_rows: row number " + std::to_string(i) + " of the list is " +
                                    std::to_string(list[i]) + ", but there are " + std::to_string(rows) + " rows");
    std::vector<std::uint8_t>& mask = masks_[tensor];
    mask.assign(std::size_t(rows > 0 ? rows : 1), 0);
    for (std::int64_t i = 0; i < count; ++i)
      if (list[i] >= 0) mask[std::size_t(list[i])] = 1;
    records_[tensor].mask = mask.data();
  }

 private:
  std::vector<row_record> records_;
  std::vector<std::vector<std::uint8_t>> masks_;  // made from lists
  std::vector<std::int32_t> updates_;
  std::vector<std::uint8_t> waiting_;  // rows that micro-batches have selected
};

template <class Plan> requires(!Plan::selects_rows) class host_rows<Plan> {
 public:
  template <class Layout> explicit host_rows(Layout const&) {}
};

/// Throws std::invalid_argument if a source row does not exist.
template <class Layout> void require_sources(row_changes<Layout> const& changes) {
  for (std::size_t t = 0; t < changes.moves.size(); ++t) {
    row_move const& move = changes.moves[t];
    if (!move.from) continue;
    std::string const& name = changes.now.names[t];
    std::int64_t const rows = rows_of(changes.now, t), most = rows_of(changes.old, std::size_t(move.old));
    require_host_memory({move.from, rows, sizeof *move.from, "rows of '" + name + "': the list"});
    for (std::int64_t r = 0; r < rows; ++r)
      if (move.from[r] < -1 || move.from[r] >= most) refuse_row(name, r, move.from[r], most);
  }
}

/// Copies the rows of one chunk of a new tensor from the old tensor, in one buffer.
inline void gather_chunk(owned_buffer to, owned_buffer from, std::int64_t const* rows, std::int64_t columns,
                         std::int64_t begin, std::int64_t size) {
  for (std::int64_t i = begin; i < begin + size;) {
    std::int64_t const row = i / columns, in_row = i % columns;
    std::int64_t const of_row = columns - in_row, left = begin + size - i, n = of_row < left ? of_row : left;
    std::int64_t const source = rows ? rows[row] : row;
    if (source >= 0)
      std::memcpy(to.at + i * to.size, from.at + (source * columns + in_row) * to.size, std::size_t(n * to.size));
    i += n;
  }
}

}  // namespace descent::detail
