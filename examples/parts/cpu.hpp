// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "matrix.hpp"

#include <descent/descent.hpp>

#include <cblas.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace example {

/// What the network needs of a device, on the host. OpenBLAS computes the matrix products, in double for double and in
/// float for every other type. Plain loops do the rest, which takes little time in comparison.
class cpu {
 public:
  template <class T> using array = std::vector<T>;
  template <class Value>
  using real = std::conditional_t<std::is_same_v<Value, double>, double, float>;

  /// One BLAS thread: with more, the order of sums would depend on the number of threads.
  cpu() { openblas_set_num_threads(1); }

  auto backend() const { return descent::host{}; }

  /// Calls f(i) for every i in [0, n), in any order.
  template <class F> void each(std::int64_t n, F f) const {
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }

  /// c = alpha a b
  template <class A, class B, class C>
  void multiply(double alpha, matrix<A> a, matrix<B> b, matrix<C> c) {
    using number = real<C>;
    number const* const a_data = widen<number>(a, scratch_a_);
    number const* const b_data = widen<number>(b, scratch_b_);
    auto const size = std::size_t(c.rows) * c.columns;
    if constexpr (std::is_same_v<C, number>) {
      gemm(number(alpha), a, a_data, b, b_data, c, c.data);
    } else {
      scratch_c_.resize(size);
      gemm(number(alpha), a, a_data, b, b_data, c, scratch_c_.data());
      convert(scratch_c_.data(), c.data, size);
    }
  }

  template <class T> std::vector<T> const& to_host(std::vector<T> const& data) const { return data; }
  template <class T> void to_device(std::vector<T> const& from, std::vector<T>& to) const { to = from; }
  template <class T> void set_zero(std::vector<T>& data) const { std::fill(data.begin(), data.end(), T{}); }

  /// Sums the time between starts and stops.
  class stopwatch {
    using clock = std::chrono::steady_clock;

   public:
    explicit stopwatch(cpu&) {}
    void start() { start_ = clock::now(); }
    void stop() { total_ += clock::now() - start_; }
    double take_seconds() { return std::chrono::duration<double>(std::exchange(total_, {})).count(); }

   private:
    clock::time_point start_;
    clock::duration total_{};
  };

 private:
  template <class From, class To> void convert(From const* from, To* to, std::size_t n) const {
    each(std::int64_t(n), [=](std::int64_t i) { to[i] = To(from[i]); });
  }

  template <class Number, class T> Number const* widen(matrix<T> m, std::vector<float>& scratch) {
    if constexpr (std::is_same_v<std::remove_const_t<T>, Number>) {
      return m.data;
    } else {
      std::size_t const size = std::size_t(m.rows) * m.columns;
      scratch.resize(size);
      convert(m.data, scratch.data(), size);
      return scratch.data();
    }
  }

  template <class A, class B, class C>
  static void gemm(float alpha, A const& a, float const* a_data, B const& b, float const* b_data, C const& c,
                   float* c_data) {
    cblas_sgemm(CblasRowMajor, form(a), form(b), c.rows, c.columns, a.width(), alpha, a_data, a.columns, b_data,
                b.columns, 0, c_data, c.columns);
  }
  template <class A, class B, class C>
  static void gemm(double alpha, A const& a, double const* a_data, B const& b, double const* b_data, C const& c,
                   double* c_data) {
    cblas_dgemm(CblasRowMajor, form(a), form(b), c.rows, c.columns, a.width(), alpha, a_data, a.columns, b_data,
                b.columns, 0, c_data, c.columns);
  }

  template <class T> static CBLAS_TRANSPOSE form(matrix<T> const& m) {
    return m.transposed ? CblasTrans : CblasNoTrans;
  }

  std::vector<float> scratch_a_, scratch_b_, scratch_c_;
};

}  // namespace example
