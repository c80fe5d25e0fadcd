// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Orthonormal bases and eigenvectors from products, as SOAP computes them.
#include <descent/matrices/host.hpp>
#include <descent/rules/soap.hpp>

#include <doctest/doctest.h>

#include "support/larger.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace ds = descent;
namespace detail = descent::detail;

namespace {

template <class Real> using matrix = std::vector<Real>;

/// The functions of host_work that the tests need, without an optimizer.
template <class Real> struct plain_work {
  static constexpr bool immediate = true;
  std::vector<double> sum_of = std::vector<double>(8);
  double* sums() { return sum_of.data(); }
  template <class F> void each(std::int64_t n, F const& f) const {
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }
  template <class F> void total(std::int64_t n, F const& f, double* to) const {
    *to = 0;
    for (std::int64_t i = 0; i < n; ++i) *to += f(i);
  }
  template <class F> void teams(std::int64_t n, F const& f) const {
    double sum[detail::thread_team::capacity];
    for (std::int64_t b = 0; b < n; ++b) f(detail::thread_team{sum}, b);
  }
  void product(detail::dense<Real> a, detail::dense<Real> b, Real* c) const {
    auto const at = [](detail::dense<Real> const& x, std::int64_t i, std::int64_t j) {
      return x.transposed ? x.data[j * x.columns + i] : x.data[i * x.columns + j];
    };
    for (std::int64_t i = 0; i < a.height(); ++i)
      for (std::int64_t j = 0; j < b.width(); ++j) {
        Real s = 0;
        for (std::int64_t l = 0; l < a.width(); ++l) s += at(a, i, l) * at(b, l, j);
        c[i * b.width() + j] = s;
      }
  }
};

template <class Real> matrix<Real> orthonormal(matrix<Real> x, std::int64_t n, Real const* instead = nullptr) {
  auto const size = std::size_t(detail::panel_rows * n);
  matrix<Real> c(size), y(size);
  detail::orthonormal_rows(plain_work<Real>{}, x.data(), instead, nullptr, n, c.data(), y.data());
  return x;
}

/// The largest element of Q Q' - I.
template <class Real> double error(matrix<Real> const& q, std::size_t n) {
  double worst = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double s = i == j ? -1 : 0;
      for (std::size_t l = 0; l < n; ++l) s += double(q[i * n + l]) * double(q[j * n + l]);
      worst = std::abs(s) <= worst ? worst : std::abs(s);
    }
  return worst;
}
/// The distance of row r of x from the span of the first m rows of q, relative to its length.
template <class Real>
double outside(matrix<Real> const& x, std::size_t r, matrix<Real> const& q, std::size_t m, std::size_t n) {
  std::vector<double> rest(n);
  double length = 0, left = 0;
  for (std::size_t j = 0; j < n; ++j) rest[j] = double(x[r * n + j]), length += rest[j] * rest[j];
  for (std::size_t i = 0; i < m; ++i) {
    double s = 0;
    for (std::size_t j = 0; j < n; ++j) s += double(x[r * n + j]) * double(q[i * n + j]);
    for (std::size_t j = 0; j < n; ++j) rest[j] -= s * double(q[i * n + j]);
  }
  for (double e : rest) left += e * e;
  return length > 0 ? std::sqrt(left / length) : 0;
}

template <class Real> matrix<Real> random(std::size_t n, unsigned seed = 1) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> normal;
  matrix<Real> x(n * n);
  for (Real& e : x) e = Real(normal(bits));
  return x;
}

std::size_t const sizes[] = {1, 2, 33, 100};

}  // namespace

TEST_CASE_TEMPLATE("rows become orthonormal, each in the span of those up to it", Real, float, double) {
  double const digit = std::is_same_v<Real, double> ? 1e-14 : 1e-6;
  for (std::size_t n : sizes) {
    INFO("n = ", n);
    auto const x = random<Real>(n);
    auto const q = orthonormal(x, std::int64_t(n));
    CHECK(error(q, n) <= digit);
    for (std::size_t r = 0; r < n; ++r) CHECK(outside(x, r, q, r + 1, n) <= 10 * digit);
  }
}

TEST_CASE_TEMPLATE("ill-conditioned rows, of very different lengths and nearly parallel", Real, float, double) {
  double const digit = std::is_same_v<Real, double> ? 1e-14 : 1e-6;
  for (std::size_t n : sizes) {
    INFO("n = ", n);
    auto x = random<Real>(n), y = x;
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t j = 0; j < n; ++j) {
        x[r * n + j] *= Real(std::pow(10, -12 * double(r) / double(n)));
        y[r * n + j] = y[j] + Real(r ? 1e-3 : 0) * y[r * n + j];
      }
    for (auto const& rows : {x, y}) {
      auto const q = orthonormal(rows, std::int64_t(n));
      CHECK(error(q, n) <= digit);
      for (std::size_t r = 0; r < n; ++r) CHECK(outside(rows, r, q, r + 1, n) <= 10 * digit);
    }
  }
}

TEST_CASE_TEMPLATE("dependent rows: a complete basis, whatever is missing", Real, float, double) {
  double const digit = std::is_same_v<Real, double> ? 1e-14 : 1e-6;
  for (std::size_t n : sizes) {
    INFO("n = ", n);
    auto const x = random<Real>(n);
    matrix<Real> zero(n * n), same(n * n), half = x, gaps = x;
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t j = 0; j < n; ++j) {
        same[r * n + j] = x[j];
        half[r * n + j] = x[r / 2 * n + j];
        if (r % 3 == 0) gaps[r * n + j] = 0;
      }
    for (auto const& rows : {zero, same, half, gaps}) {
      auto const q = orthonormal(rows, std::int64_t(n));
      CHECK(error(q, n) <= digit);
      for (std::size_t r = 0; r < n; ++r) CHECK(outside(rows, r, q, r + 1, n) <= 10 * digit);
    }
    // Rows without information keep their old values.
    auto const old = orthonormal(random<Real>(n, 2), std::int64_t(n));
    auto rows = old;
    for (std::size_t i = n * (n / 2); i < n * n; ++i) rows[i] = 0;
    auto const q = orthonormal(rows, std::int64_t(n), old.data());
    double worst = 0;
    for (std::size_t i = 0; i < n * n; ++i) worst = test::larger(worst, std::abs(double(q[i]) - double(old[i])));
    CHECK(worst <= digit);
  }
}

TEST_CASE_TEMPLATE("eigenvectors of full and of low rank, with equal eigenvalues", Real, float, double) {
  double const digit = std::is_same_v<Real, double> ? 1e-13 : 1e-5;
  for (std::size_t n : sizes)
    for (std::size_t rank : {n, (n + 1) / 2, std::size_t(0)}) {
      INFO("n = ", n, ", rank ", rank);
      auto const b = random<Real>(n);
      matrix<Real> a(n * n), w(n * n), v(n * n);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          double s = n == rank && i == j ? 1 : 0;
          for (std::size_t l = 0; l < rank; ++l) s += double(b[i * n + l]) * double(b[j * n + l]);
          a[i * n + j] = Real(s);
        }
      plain_work<Real> work;
      Real const solved = 0;
      detail::eigenvectors(work, a.data(), w.data(), v.data(), &solved, std::int64_t(n), work.sums());
      CHECK(error(v, n) <= digit);
      double norm = 0, worst = 0;
      for (Real e : a) norm += double(e) * double(e);
      std::vector<double> va(n * n);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < n; ++k)
          for (std::size_t l = 0; l < n; ++l) va[i * n + l] += double(v[i * n + k]) * double(a[k * n + l]);
      for (std::size_t i = 0; i < n; ++i)  // v a v' is diagonal
        for (std::size_t j = 0; j < n; ++j) {
          double s = 0;
          for (std::size_t l = 0; l < n; ++l) s += va[i * n + l] * double(v[j * n + l]);
          if (i != j) worst = test::larger(worst, std::abs(s));
        }
      CHECK(worst <= detail::rounding<Real>(std::int64_t(n)) * std::sqrt(norm));
      CHECK(work.sums()[1] * work.sums()[2] == 0);  // the last sweep changed nothing
    }
}
