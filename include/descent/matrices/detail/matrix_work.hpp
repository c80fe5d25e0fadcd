// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/host/engine.hpp>
#include <descent/matrices/detail/groups.hpp>
#include <descent/matrices/detail/thread_team.hpp>
#include <descent/core/detail/summation_order.hpp>
#include <descent/matrices/matrices.hpp>

#include <cblas.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

/// What a matrix rule's transform does on the host, with products by the BLAS that the program links.
namespace descent::detail {

/// The operations for the transform of a matrix rule, on the host. Functors get the indices of elements and may be
/// called concurrently. Sums are in double and in a fixed order, the same on host and device.
template <class Plan, class System> class host_work {
 public:
  using real = typename Plan::real;
  using terms = typename Plan::matrix_rule::template terms<real>;
  template <std::size_t I> using state = typename matrix_plan<Plan>::template slot<I>;  // the type that stores it
  static constexpr bool immediate = true;         // sums can be read immediately
  static constexpr bool rounds_operands = false;  // of products, if the rule asks for that

  std::int64_t rows, columns, updates;
  real *memory_begin, *scratch_begin;
  std::vector<std::int64_t> const &memory_parts, &scratch_parts;
  terms const* k;
  double *sum_begin, *partials;
  bool always = false;

  std::int64_t size() const { return rows * columns; }
  real* input(int c) const { return scratch_begin + scratch_parts[std::size_t(c)]; }
  real* scratch(int i) const { return input(input_count<Plan> + i); }
  real* memory(int i) const { return memory_begin + memory_parts[std::size_t(i)]; }
  /// Memory for the sums of total().
  double* sums() const { return sum_begin; }
  /// Whether work for every n-th update, starting with the first, is due. Always true in a captured step on a device.
  bool due(std::int64_t n) const { return always || (updates - 1) % n == 0; }

  /// Calls f(i) for i in [0, n).
  template <class F> void each(std::int64_t n, F const& f) const {
    auto const chunk = [&](std::int64_t c) {
      for (std::int64_t i = c * chunk_size; i < n && i < (c + 1) * chunk_size; ++i) f(i);
    };
    over(n, chunks_of(n), chunk);
  }

  /// to <- sum of f(i) over [0, n), in double
  template <class F> void total(std::int64_t n, F const& f, double* to) const {
    auto const chunk = [&](std::int64_t c) {
      std::int64_t const begin = c * chunk_size, left = n - begin;
      auto const value = [&](std::int64_t i) { return f(begin + i); };
      partials[c] = add_strided<chunk_threads>(value, left < chunk_size ? left : chunk_size);
    };
    over(n, chunks_of(n), chunk);
    *to = add_strided<total_threads>([&](std::int64_t c) { return partials[c]; }, chunks_of(n));
  }

  /// Calls f(i c + j, i, j) for all rows i and columns j of this matrix or of one of r rows and c columns.
  template <class F> void each_element(F const& f) const { each_element(rows, columns, f); }
  template <class F> void each_element(std::int64_t r, std::int64_t c, F const& f) const {
    auto const row = [&](std::int64_t i) {
      for (std::int64_t j = 0; j < c; ++j) f(i * c + j, i, j);
    };
    over(r * c, r, row);
  }

  /// Calls store(i, x) for each row i; x is the sum, or the largest, of f(i columns + j, i, j). The same over columns.
  template <bool Largest = false, class F, class Store> void each_row(F const& f, Store const& store) const {
    auto const row = [&](std::int64_t i) {
      store(i, add_strided<chunk_threads, Largest>([&](std::int64_t j) { return f(i * columns + j, i, j); }, columns));
    };
    over(size(), rows, row);
  }
  template <bool Largest = false, class F, class Store> void each_column(F const& f, Store const& store) const {
    std::int64_t const segments = (rows + segment_rows - 1) / segment_rows;
    auto const segment = [&](std::int64_t s) {
      double* sum = partials + s * columns;
      for (std::int64_t j = 0; j < columns; ++j) sum[j] = 0;
      for (std::int64_t i = s * segment_rows; i < rows && i < (s + 1) * segment_rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) sum[j] = combine<Largest>{}(sum[j], f(i * columns + j, i, j));
    };
    over(size(), segments, segment);
    for (std::int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (std::int64_t s = 0; s < segments; ++s) sum = combine<Largest>{}(sum, partials[s * columns + j]);
      store(j, sum);
    }
  }

  /// Calls f(thread_team, b) for b in [0, n).
  template <class F> void teams(std::int64_t n, F const& f) const {
    auto const one = [&](std::int64_t b) {
      double sum[thread_team::capacity];
      f(thread_team{sum}, b);
    };
    over(size(), n, one);
  }

  // Products are computed in tiles of c whose sizes do not depend on the number of threads, each by one thread if the
  // BLAS lets it: their bits do not depend on it either.

  /// c <- a a'. c must not overlap a. Half of the operations of a product.
  void square(dense<real> a, real* c) const {
    std::int64_t const n = a.height();
    auto const rows_of_c = [&](std::int64_t tile) {
      std::int64_t const i = tile * tile_rows, m = std::min(tile_rows, n - i);
      if (i > 0) multiply(m, i, a, i, a.t(), 0, c + i * n, n);
      square_of_rows(a, i, m, c + i * n + i, n);
    };
    tiles(n * n, count_of(n, tile_rows), rows_of_c);
    mirror(c, n);
  }
  /// c <- a b where a and b are n x n and a b is symmetric. c must not overlap a or b. Half of the operations, too.
  void symmetric_product(dense<real> a, dense<real> b, real* c) const {
    std::int64_t const n = a.height();
    auto const rows_of_c = [&](std::int64_t tile) {
      std::int64_t const i = tile * symmetric_rows, m = std::min(symmetric_rows, n - i);
      multiply(m, i + m, a, i, b, 0, c + i * n, n);
    };
    tiles(n * n, count_of(n, symmetric_rows), rows_of_c);
    mirror(c, n);
  }
  /// c <- a b. c must not overlap a or b.
  void product(dense<real> a, dense<real> b, real* c) const {
    std::int64_t const height = a.height(), width = b.width(), across = count_of(width, tile_columns);
    auto const tile_of_c = [&](std::int64_t tile) {
      std::int64_t const i = tile / across * tile_rows, j = tile % across * tile_columns;
      multiply(std::min(tile_rows, height - i), std::min(tile_columns, width - j), a, i, b, j, c + i * width + j,
               width);
    };
    tiles(height * width, count_of(height, tile_rows) * across, tile_of_c);
  }

 private:
  static constexpr std::int64_t mirrored = 32, symmetric_rows = 128, tile_rows = 384, tile_columns = 1024;

  static std::int64_t count_of(std::int64_t n, std::int64_t each) { return (n + each - 1) / each; }
  static void tiles(std::int64_t elements, std::int64_t n, loop_body f) {
    if (one_blas_thread::possible()) over(elements, n, f);
    else cpp::each(n, f);
  }
  static CBLAS_TRANSPOSE form(dense<real> x) { return x.transposed ? CblasTrans : CblasNoTrans; }
  /// Where row i, or column j, of a matrix begins.
  static real const* row(dense<real> x, std::int64_t i) { return x.data + (x.transposed ? i : i * x.columns); }
  static real const* column(dense<real> x, std::int64_t j) { return row(x.t(), j); }

  /// The product of m rows of a, from row i on, and n columns of b, from column j on, to rows of c that are `stride`
  /// apart.
  static void multiply(std::int64_t m, std::int64_t n, dense<real> a, std::int64_t i, dense<real> b, std::int64_t j,
                       real* c, std::int64_t stride) {
    int const inner = int(a.width());
    if constexpr (std::is_same_v<real, double>)
      cblas_dgemm(CblasRowMajor, form(a), form(b), int(m), int(n), inner, 1, row(a, i), int(a.columns), column(b, j),
                  int(b.columns), 0, c, int(stride));
    else
      cblas_sgemm(CblasRowMajor, form(a), form(b), int(m), int(n), inner, 1, row(a, i), int(a.columns), column(b, j),
                  int(b.columns), 0, c, int(stride));
  }
  /// The part below the diagonal of the product of m rows of a, from row i on, and their transpose.
  static void square_of_rows(dense<real> a, std::int64_t i, std::int64_t m, real* c, std::int64_t stride) {
    int const inner = int(a.width());
    if constexpr (std::is_same_v<real, double>)
      cblas_dsyrk(CblasRowMajor, CblasLower, form(a), int(m), inner, 1, row(a, i), int(a.columns), 0, c, int(stride));
    else
      cblas_ssyrk(CblasRowMajor, CblasLower, form(a), int(m), inner, 1, row(a, i), int(a.columns), 0, c, int(stride));
  }

  /// Copies what is below the diagonal of an n x n matrix to above it.
  void mirror(real* c, std::int64_t n) const {
    auto const rows_of_squares = [&](std::int64_t upper) {
      for (std::int64_t first = upper * mirrored; first < n; first += mirrored)
        for (std::int64_t i = upper * mirrored; i < n && i < (upper + 1) * mirrored; ++i)
          for (std::int64_t j = first > i ? first : i + 1; j < n && j < first + mirrored; ++j)
            c[i * n + j] = c[j * n + i];
    };
    over(n * n, count_of(n, mirrored), rows_of_squares);
  }

  template <class F> static void over(std::int64_t elements, std::int64_t n, F const& f) {
    each_of<System>(elements, n, f, matrix_worth);
  }
};

}  // namespace descent::detail
