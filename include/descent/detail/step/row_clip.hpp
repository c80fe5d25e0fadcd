// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/step/control_block.hpp>
#include <descent/detail/step/double_sums.hpp>
#include <descent/detail/step/layout.hpp>
#include <descent/detail/step/packet.hpp>
#include <descent/detail/util/summation_order.hpp>

#include <cstdint>
#include <numeric>
#include <vector>

/// Rows that are clipped separately: their norms, summed by pieces that end where a row or a chunk ends.
namespace descent::detail {

/// The rows of one tensor and their pieces, numbered across all tensors. With one column the tensor is one unit.
struct row_pieces {
  std::int64_t columns = 1, first_row = 0, first_piece = 0;
  std::int64_t period = 1;    // in elements; at its multiples a row and a chunk begin together
  std::uint64_t inverse = 0;  // inverse_of_count(columns)

  DESCENT_HD bool several() const { return columns > 1; }
  /// The number of the piece that begins at this element; at the tensor's end, the number that comes next.
  DESCENT_HD std::int64_t piece_at(std::int64_t element) const {
    return piece_at(element, (element + columns - 1) / columns);
  }
  /// The number of the first piece of a row.
  DESCENT_HD std::int64_t piece_of(std::int64_t row) const { return piece_at(row * columns, row); }

 private:
  DESCENT_HD std::int64_t piece_at(std::int64_t element, std::int64_t rows_begun) const {
    return first_piece + rows_begun + chunks_of(element) - (element + period - 1) / period;
  }
};

/// Elements [begin, end) of a tensor: piece k of a chunk.
struct piece_span { std::int64_t begin, end; };
DESCENT_HD inline piece_span piece_in(row_pieces const& rows, chunk_span const& chunk, std::int64_t k) {
  std::int64_t const row = chunk.begin / rows.columns + k, last = chunk.begin + chunk.size;
  std::int64_t const end = (row + 1) * rows.columns;
  return {k == 0 ? chunk.begin : row * rows.columns, end < last ? end : last};
}
DESCENT_HD inline std::int64_t pieces_in(row_pieces const& rows, chunk_span const& chunk) {
  return rows.piece_at(chunk.begin + chunk.size) - rows.piece_at(chunk.begin);
}

/// The rows and pieces of all tensors.
struct all_row_pieces {
  std::vector<row_pieces> of;
  std::int64_t rows = 0, pieces = 0;

  template <class Where> explicit all_row_pieces(Where const& where) {
    for (std::size_t t = 0; t < where.tensors.size(); ++t) {
      std::int64_t const columns = where.columns[t], count = where.tensors[t].count;
      of.push_back({columns, rows, pieces, std::lcm(columns, chunk_size), inverse_of_count(columns)});
      if (columns == 1) continue;
      pieces = of.back().piece_at(count);
      rows += count / columns;
    }
  }
};

/// The host's buffers for them: the partial sums of norms by piece, and the factors with a packet of padding.
template <class Plan, bool = Plan::clips_rows> struct host_row_clip {
  template <class Where> explicit host_row_clip(Where const&) {}
};
template <class Plan> struct host_row_clip<Plan, true> {
  all_row_pieces rows;
  std::vector<double> partial;
  std::vector<typename Plan::real> factors;

  template <class Where>
  explicit host_row_clip(Where const& where)
      : rows(where), partial(std::size_t(Plan::norm_sums * rows.pieces)),
        factors(std::size_t(rows.rows + packet_size)) {}
  double& partial_at(int row, std::int64_t piece) { return partial[std::size_t(row * rows.pieces + piece)]; }
};

/// What element i contributes to the sums of the norm. Its gradient has been read before in this step.
template <class Plan, class Real>
DESCENT_HD void squares_at(double (&square)[Plan::norm_sums], buffers<Plan> const& x, std::int64_t i) {
  Real g[1], p[1];
  read_gradient<false>(g, x, i, {1, true});
  read_parameters(p, x, i, {1, true});
  double const of_g = double(g[0]), of_p = double(p[0]);
  bool const is_small = !Plan::has_large || is_at_most(of_g, large_threshold);
  square[0] = is_small ? of_g * of_g : 0;
  if constexpr (Plan::has_large) square[1] = is_small ? 0 : of_g * large_scale * (of_g * large_scale);
  square[Plan::norm_sums - 1] = of_p * of_p;
}

/// The totals of a row of a tensor, from the partial sums: [sum of the norm][piece of all].
template <class Plan>
DESCENT_HD norm_totals totals_of_row(row_pieces const& rows, std::int64_t row, double const* partial,
                                     std::int64_t pieces) {
  std::int64_t const first = rows.piece_of(row), last = rows.piece_of(row + 1);
  return norm_totals_from<Plan>([&](int i) {
    double sum = 0;
    for (std::int64_t piece = first; piece < last; ++piece) sum += partial[i * pieces + piece];
    return sum;
  });
}

}  // namespace descent::detail
