// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>

namespace example {

/// Consecutive images.
struct run_of_images { int first, count; };

/// The part of each batch that this process handles: all of it or one rank's part, in pieces with a backward pass each.
/// Images are divided into parts() runs; rank r has those from r * pieces. Their sizes differ by at most one.
struct share {
  int rank = 0, ranks = 1, pieces = 1;
  std::function<double(double)> sum = std::identity{};  // over ranks

  int parts() const { return ranks * pieces; }
  run_of_images piece(int images, int k) const { return between(images, rank * pieces + k, rank * pieces + k + 1); }
  /// Piece k as a part of those of this process.
  run_of_images own_piece(int images, int k) const {
    auto const [first, count] = piece(images, k);
    return {first - all_pieces(images).first, count};
  }
  run_of_images all_pieces(int images) const { return between(images, rank * pieces, (rank + 1) * pieces); }

 private:
  run_of_images between(int images, std::int64_t from, std::int64_t to) const {
    int const first = int(from * images / parts());
    return {first, int(to * images / parts()) - first};
  }
};

}  // namespace example
