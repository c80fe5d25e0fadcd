// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/control_block.hpp>
#include <descent/engine/step/double_sums.hpp>
#include <descent/engine/step/layout.hpp>
#include <descent/engine/step/packet.hpp>
#include <descent/core/detail/summation_order.hpp>

#include <cstdint>
#include <utility>
#include <vector>

/// Rows that are clipped separately: their norms, summed by pieces that end where a row or a chunk ends.
namespace descent::detail {

/// The least common multiple of n and of the size of a chunk, a power of two.
inline std::int64_t multiple_of_chunks(std::int64_t n) {
  std::int64_t const power = n & -n;  // the largest one that divides n
  return n / (power < chunk_size ? power : chunk_size) * chunk_size;
}

/// The rows of one tensor and their pieces, numbered across all tensors.
struct row_pieces {
  std::int64_t columns = 1, first_row = 0, first_piece = 0;
  std::int64_t period = 1;    // in elements; at its multiples a row and a chunk begin together
  std::uint64_t inverse = 0;  // inverse_of_count(columns)
  std::int64_t rows = 0;      // on this rank
  bool units = false;         // whether each row is a unit, not the tensor
  std::int32_t first_part = 0, parts = 0;  // if several ranks have columns of it: their pieces in all_row_pieces::parts

  row_pieces() = default;
  row_pieces(std::int64_t count, std::int64_t of_row, std::int64_t row, std::int64_t piece)
      : columns(of_row), first_row(row), first_piece(piece), period(multiple_of_chunks(of_row)),
        inverse(inverse_of_count(of_row)), rows(count / of_row), units(of_row > 1) {}

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

/// The rows and pieces of all tensors. With model_parallel{}, pieces of rows that ranks share come first.
struct all_row_pieces {
  std::vector<row_pieces> of;  // of each tensor of the model; without rows if it is not on this rank
  std::vector<row_pieces> parts;  // of the tensors whose columns are on several ranks, in the order of the ranks
  std::int64_t rows = 0, pieces = 0, shared = 0;  // numbers of rows here, of pieces, and of those that ranks add up

  template <class Where> explicit all_row_pieces(Where const& where) {
    for (std::size_t t = 0; t < where.tensors.size(); ++t) of.push_back(next(where.tensors[t].count, where.columns[t]));
  }
  template <class Where, class Model> all_row_pieces(Where const& where, Model const& model) {
    for (auto const& cut : model.cuts) {
      row_pieces x;
      x.units = model.whole.columns[of.size()] > 1;
      if (cut.columns.size() > 1) {
        x.units = true, x.first_part = std::int32_t(parts.size()), x.parts = std::int32_t(cut.columns.size());
        for (std::int64_t const columns : cut.columns) {
          row_pieces& part = parts.emplace_back(cut.rows * columns, columns, 0, pieces);
          part.units = true, part.first_part = x.first_part, part.parts = x.parts;
          pieces = part.piece_of(cut.rows);
        }
      }
      of.push_back(x);
    }
    shared = pieces;
    for (std::size_t t = 0; t < where.tensors.size(); ++t) {
      row_pieces& x = of[model.number[t]];
      if (x.parts > 0) {
        x = parts[std::size_t(x.first_part) + model.part[t]];
        x.first_row = rows, rows += x.rows;
      } else {
        x = next(where.tensors[t].count, where.columns[t]);
      }
    }
  }

 private:
  row_pieces next(std::int64_t count, std::int64_t columns) {
    row_pieces const x(count, columns, rows, pieces);
    if (x.units) pieces = x.piece_of(x.rows), rows += x.rows;
    return x;
  }
};

/// The host's buffers for them: the partial sums of norms by piece, and the factors with a packet of padding.
template <class Plan, bool = Plan::clips_rows> struct host_row_clip {
  template <class Rows> explicit host_row_clip(Rows const&) {}
};
template <class Plan> struct host_row_clip<Plan, true> {
  all_row_pieces rows;
  std::vector<double> partial;  // [piece][sum]
  std::vector<typename Plan::real> factors;

  explicit host_row_clip(all_row_pieces all)
      : rows(std::move(all)), partial(std::size_t(Plan::norm_sums * rows.pieces)),
        factors(std::size_t(rows.rows + packet_size)) {}
  double& partial_at(int sum, std::int64_t piece) { return partial[std::size_t(piece * Plan::norm_sums + sum)]; }
};

/// What element i contributes to the sums of the norm. Its gradient has been read before in this step.
template <class Plan, class Real>
DESCENT_HD void squares_at(double (&square)[Plan::norm_sums], buffers<Plan> const& x, std::int64_t i) {
  Real g[1], p[1];
  read_gradient<false>(g, x, i, {1, true});
  read_master(p, x, i, {1, true});
  double const of_g = double(g[0]), of_p = double(p[0]);
  bool const is_small = !Plan::has_large || is_at_most(of_g, large_threshold);
  square[0] = is_small ? of_g * of_g : 0;
  if constexpr (Plan::has_large) square[1] = is_small ? 0 : of_g * large_scale * (of_g * large_scale);
  square[Plan::norm_sums - 1] = of_p * of_p;
}

/// The totals of a row of a tensor, from the partial sums: [piece of all][sum of the norm].
template <class Plan>
DESCENT_HD norm_totals totals_of_row(row_pieces const& rows, [[maybe_unused]] row_pieces const* parts, std::int64_t row,
                                     double const* partial) {
  return norm_totals_from<Plan>([&](int i) {
    double sum = 0;
    auto const add = [&](row_pieces const& of) {
      std::int64_t const last = of.piece_of(row + 1);
      for (std::int64_t piece = of.piece_of(row); piece < last; ++piece) sum += partial[piece * Plan::norm_sums + i];
    };
    if constexpr (Plan::splits)
      for (int k = 0; k < rows.parts; ++k) add(parts[rows.first_part + k]);
    if (!Plan::splits || rows.parts == 0) add(rows);
    return sum;
  });
}

}  // namespace descent::detail
