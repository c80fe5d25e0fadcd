// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/packet_io.hpp>
#include <descent/engine/step/plan.hpp>

#include <cstdint>

// g++ warns of each array whose bound is an int.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"

/// Where a packet's data is.
namespace descent::detail {

/// From the number of a tensor's element on this rank to that in the whole model, by which random numbers are drawn.
template <bool Splits> struct model_place { static constexpr std::int64_t shift = 0; };
template <> struct model_place<true> { std::int64_t shift = 0; };

/// Buffers of one tensor that only some policies need.
template <class Plan, bool = Plan::has_extras> struct extra_buffers {};
template <class Plan> struct extra_buffers<Plan, true> : model_place<Plan::splits> {
  std::uint16_t* remainder;
  typename Plan::real* average;
  typename Plan::slow* slow;
  typename Plan::real* outer;
  std::int64_t arena;  // number of the first element among all of this rank

  /// The pointer to buffer I of owned_index, if it is one of these.
  template <std::size_t I> DESCENT_HD auto& at() {
    using index = owned_index<Plan>;
    if constexpr (I == index::remainder) return remainder;
    else if constexpr (I == index::average) return average;
    else if constexpr (I == index::slow) return slow;
    else return outer;
  }
  /// The buffers of a tensor that starts at `at` in them; its first element is number `first` among all.
  template <class Typed> DESCENT_HD extra_buffers<Typed> from(std::int64_t at, std::int64_t first) const {
    return {*this, remainder + at, average + at, slow + at, outer + at, arena + first};
  }
  /// The number of element i in the model: a multiple of packet_size more than i.
  DESCENT_HD std::int64_t element(std::int64_t i) const { return arena + this->shift + i; }
};

/// What ranks have sent, if the step adds it when it first reads it.
template <class Plan, bool = Plan::adds_when_read> struct sent_parts {};
template <class Plan> struct sent_parts<Plan, true> {
  typename Plan::gradient_sum::wire const* first;  // of rank 0
  std::int64_t stride;                        // from one rank's part to the next
  int ranks;
};

/// i / n for i in [0, 2^48] and n above 1, without a division; inverse is inverse_of_count(n).
DESCENT_HD inline std::int64_t quotient(std::int64_t i, std::int64_t n, std::uint64_t inverse) {
  __extension__ using wide = unsigned __int128;
  auto const q = std::int64_t(wide(i) * inverse >> 64);  // too large by at most 1
  return q - (q * n > i);
}
/// 2^64 / n, rounded up.
inline std::uint64_t inverse_of_count(std::int64_t n) { return n > 1 ? ~std::uint64_t(0) / std::uint64_t(n) + 1 : 0; }

/// The gradient factors of rows that are clipped separately.
template <class Plan, bool = Plan::clips_rows> struct row_factors {};
template <class Plan> struct row_factors<Plan, true> {
  typename Plan::real const* of = nullptr;  // of the tensor's rows; null if it is one unit
  std::int64_t columns = 1;
  std::uint64_t inverse = 0;  // of the columns
  std::int64_t first = 0;     // number of the buffers' first element in the tensor

  /// Multiplies each element of a packet by its row's factor. The factors are followed by a packet of padding.
  template <class Real, int M> DESCENT_HD void multiply(Real (&g)[M], std::int64_t i) const {
    constexpr int size = M * lanes<Real>;
    std::int64_t const row = columns > 1 ? quotient(first + i, columns, inverse) : first + i,
                       rest = (row + 1) * columns - (first + i);
    auto const* factor = of + row;
    if (rest >= size) {
      Real const one(*factor);
      for (int j = 0; j < M; ++j) g[j] = g[j] * one;
    } else {
      int left = int(rest);
      for (int j = 0; j < size; ++j, --left) {
        if (left == 0) ++factor, left = columns < size ? int(columns) : size;
        lane_at(g, j) = lane_at(g, j) * *factor;
      }
    }
  }
};

/// The buffers of one tensor. A member of the state that is not stored is null.
template <class Plan> struct buffers {
  typename Plan::value* value;
  typename Plan::gradient* gradient;
  typename Plan::master_or_value* master;
  void* slot[Plan::slots + 1];
  extra_buffers<Plan> extra;
  sent_parts<Plan> sent = {};
  row_factors<Plan> rows = {};

  template <std::size_t I> DESCENT_HD auto* slot_at() const {
    return static_cast<typename Plan::template slot<I>*>(slot[I]);
  }
};

}  // namespace descent::detail

#pragma GCC diagnostic pop
