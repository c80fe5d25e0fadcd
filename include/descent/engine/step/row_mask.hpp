// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>

#include <cstdint>

/// Which elements belong to selected rows.
namespace descent::detail {

/// The rows of one tensor, as the passes see them.
struct row_record {
  std::uint8_t const* mask = nullptr;  // of each row, not 0 if it is selected; null: all are
  std::int32_t* updates = nullptr;     // of each row, if rows count their own
  std::int64_t columns = 1;
  std::uint8_t* waiting = nullptr;  // of each row, not 0 if a micro-batch that waits for its update selected it

  DESCENT_HD bool selects(std::int64_t row) const { return !mask || mask[row] || (waiting && waiting[row]); }
  DESCENT_HD std::int64_t row_of(std::int64_t element) const { return element / columns; }
};

inline constexpr unsigned all_selected = 0xff;

/// Bit j, for j < size, is set if element i + j is in a selected row.
DESCENT_HD inline unsigned selected(row_record const& rows, std::int64_t i, int size) {
  unsigned const all = all_selected >> (8 - size);
  if (!rows.mask) return all;
  std::int64_t row = rows.row_of(i), left = (row + 1) * rows.columns - i;
  if (left >= size) return rows.selects(row) ? all : 0;
  unsigned bits = 0;
  for (int j = 0; j < size; ++j, --left) {
    if (left == 0) ++row, left = rows.columns;
    bits |= unsigned(rows.selects(row)) << j;
  }
  return bits;
}

/// Calls all(row) if all `size` elements are selected and, if RowsDiffer, in one row; otherwise one(j, row) for each
/// selected element. `row` is 0 unless RowsDiffer.
DESCENT_CALLS
template <bool RowsDiffer, class All, class One>
DESCENT_HD void each_selected(row_record const& rows, std::int64_t i, int size, All const& all, One const& one) {
  unsigned const bits = selected(rows, i, size);
  if (bits == 0) return;
  std::int64_t const row = RowsDiffer ? rows.row_of(i) : 0;
  if (bits == all_selected >> (8 - size) && (!RowsDiffer || rows.row_of(i + size - 1) == row)) return all(row);
  for (int j = 0; j < size; ++j)
    if (bits >> j & 1) one(j, RowsDiffer ? rows.row_of(i + j) : 0);
}

/// Calls f(row) for each row whose first element is in [begin, begin + size). Each of `threads` threads calls it with
/// its number.
DESCENT_CALLS
template <class F>
DESCENT_HD void rows_from(row_record const& rows, std::int64_t begin, int size, int thread, int threads, F const& f) {
  std::int64_t const first = (begin + rows.columns - 1) / rows.columns;
  std::int64_t const last = (begin + size + rows.columns - 1) / rows.columns;
  for (std::int64_t row = first + thread; row < last; row += threads) f(row);
}
/// Counts an update of each selected one of these rows.
DESCENT_HD inline void count_rows(row_record const& rows, std::int64_t begin, int size, int thread, int threads) {
  rows_from(rows, begin, size, thread, threads, [&](std::int64_t row) {
    if (rows.selects(row)) rows.updates[row] += rows.updates[row] < 0x7fffffff;
  });
}
/// Notes which of these rows the micro-batches that wait have selected; none if none wait.
DESCENT_HD inline void keep_selection(row_record const& rows, std::int64_t begin, int size, bool waits, int thread,
                                      int threads) {
  rows_from(rows, begin, size, thread, threads,
            [&](std::int64_t row) { rows.waiting[row] = waits && rows.selects(row); });
}

}  // namespace descent::detail
