// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/host/engine.hpp>
#include <descent/detail/matrix/groups.hpp>
#include <descent/detail/rule/thread_team.hpp>
#include <descent/detail/util/summation_order.hpp>
#include <descent/policies/matrices.hpp>

#include <cblas.h>

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

  /// c <- a a'. c must not overlap a. Half of the operations of a product.
  void square(dense<real> a, real* c) const {
    auto const form = a.transposed ? CblasTrans : CblasNoTrans;
    int const n = int(a.height()), inner = int(a.width());
    if constexpr (std::is_same_v<real, double>)
      cblas_dsyrk(CblasRowMajor, CblasLower, form, n, inner, 1, a.data, int(a.columns), 0, c, n);
    else cblas_ssyrk(CblasRowMajor, CblasLower, form, n, inner, 1, a.data, int(a.columns), 0, c, n);
    mirror(c, a.height());
  }
  /// c <- a b where a and b are n x n and not transposed, and a b is symmetric. Half of the operations of a product.
  void symmetric_product(dense<real> a, dense<real> b, real* c) const {
    constexpr std::int64_t rows_at_once = 128;
    std::int64_t const n = a.rows;
    for (std::int64_t i = 0; i < n; i += rows_at_once) {
      std::int64_t const below = i + rows_at_once < n ? i + rows_at_once : n;
      multiply({a.data + i * n, below - i, n}, b, below, c + i * n, n);
    }
    mirror(c, n);
  }

  /// c <- a b. c must not overlap a or b.
  void product(dense<real> a, dense<real> b, real* c) const { multiply(a, b, b.width(), c, b.width()); }

 private:
  static constexpr std::int64_t tile = 32;

  /// The first columns of a b, to rows of c that are `stride` apart.
  static void multiply(dense<real> a, dense<real> b, std::int64_t columns, real* c, std::int64_t stride) {
    auto const form = [](dense<real> x) { return x.transposed ? CblasTrans : CblasNoTrans; };
    int const m = int(a.height()), n = int(columns), inner = int(a.width());
    if constexpr (std::is_same_v<real, double>)
      cblas_dgemm(CblasRowMajor, form(a), form(b), m, n, inner, 1, a.data, int(a.columns), b.data, int(b.columns), 0, c,
                  int(stride));
    else
      cblas_sgemm(CblasRowMajor, form(a), form(b), m, n, inner, 1, a.data, int(a.columns), b.data, int(b.columns), 0, c,
                  int(stride));
  }

  /// Copies what is below the diagonal of an n x n matrix to above it.
  void mirror(real* c, std::int64_t n) const {
    auto const rows_of_tiles = [&](std::int64_t upper) {
      for (std::int64_t first = upper * tile; first < n; first += tile)
        for (std::int64_t i = upper * tile; i < n && i < (upper + 1) * tile; ++i)
          for (std::int64_t j = first > i ? first : i + 1; j < n && j < first + tile; ++j) c[i * n + j] = c[j * n + i];
    };
    over(n * n, (n + tile - 1) / tile, rows_of_tiles);
  }

  template <class F> static void over(std::int64_t elements, std::int64_t n, F const& f) {
    each_of<System>(elements, n, f, matrix_worth);
  }
};

}  // namespace descent::detail
