// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Schedules have the same bits on host and device, except where they use a library's pow or log.
#include <descent/schedules/choose.hpp>
#include <descent/schedules/combine.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/cycles.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/schedules/table.hpp>
#include <descent/schedules/warmup.hpp>
#include <descent/training/large_batch.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace ds = descent;

namespace {

#if defined(DESCENT_CONTRACTED)
constexpr bool contracted = true;
#else
constexpr bool contracted = false;
#endif

constexpr std::int64_t far = std::int64_t{1} << 40;
constexpr std::size_t rows = 40;  // steps 0, 1, ...; then distant ones
DESCENT_HD std::int64_t step_of(std::size_t row) {
  return row < 36 ? std::int64_t(row) : row == 36 ? far - 1 : row == 37 ? far : row == 38 ? far + 1 : far << 22;
}

struct by_epoch {
  DESCENT_HD double operator()(double epoch) const { return 0.3 / (1 + epoch); }
};
using choice = ds::any_of<ds::constant, ds::linear, ds::cosine>;
using table = ds::table_schedule<4>;

/// Schedules whose constructors run on the host; a kernel gets copies.
struct given {
  choice chosen[3] = {ds::constant{0.3}, ds::linear{0.3, 0.05, 13}, ds::cosine{0.3, 0.05, 13}};
  table lines{{2, 0.3}, {9, 0.1}, {20, 0.7}};
  table stairs{{{2, 0.3}, {9, 0.1}, {20, 0.7}}, ds::between_knots::constant};
};

/// Calls f(schedule, whether it uses only exactly rounded operations) for one after the other.
DESCENT_CALLS template <class F> DESCENT_HD void each(given const& other, F& f) {
  using w = ds::warmup<ds::constant>;
  f(ds::constant{0.3}, true);
  f(ds::linear{0.3, 0.05, 13}, true);
  f(ds::polynomial{0.3, 0.05, 3, 13}, true);
  f(ds::polynomial{0.3, 0.05, 1.7, 13}, false);
  f(ds::cosine{0.3, 0.05, 13}, true);
  f(ds::cosine{0.3, 0.05, 7, 1, ds::cosine::swing}, true);
  f(ds::cosine{0.3, 0.05, 13, 2.5}, false);
  f(ds::cosine{0.3, 0.05, far + 9}, true);
  f(ds::cosine_restarts{0.3, 0.05, 7, 1, 0.9}, true);
  f(ds::cosine_restarts{0.3, 0.05, 3, 2, 0.9}, true);
  f(ds::step{0.3, 0.7, 4}, true);
  f(ds::multi_step<3>{0.3, 0.7, {4, 9, 9}}, true);
  f(ds::exponential{0.3, 0.9}, true);
  f(ds::exponential{0.3, 0.9, 7, true}, true);
  f(ds::exponential{0.3, 0.9, 7, false, 0.1}, false);
  f(ds::interval_decay{0.3, 0.7, 3, 5, 20}, true);
  f(ds::inverse_time{0.3, 0.7, 3}, true);
  f(ds::inverse_sqrt{0.3, 7}, true);
  f(ds::noam{1, 512, 7}, true);
  f(ds::one_cycle{.peak = 0.3, .steps = 31}, true);
  f(ds::one_cycle{.peak = 0.3, .steps = 31, .shape = ds::anneal::linear, .three_phases = true}, true);
  f(ds::one_cycle_momentum{.steps = 31}, true);
  f(ds::cyclic{0.1, 0.3, 3, 5}, true);
  f(ds::cyclic{0.1, 0.3, 3, 5, ds::cycles::triangular2}, true);
  f(ds::cyclic_momentum{0.8, 0.9, 3, 5, ds::cycles::exp_range, 0.97}, true);
  f(ds::cyclical_decay{0.3, 4, 2, 7}, true);
  f(ds::piecewise_constant<2>{{5, 9}, {0.3, 0.2, 0.1}}, true);
  f(ds::piecewise_interpolated<2>{{5, 9}, {0.3, 0.2, 0.1}, ds::anneal::cosine}, true);
  f(ds::table<3>{{0.3, 0.2, 0.1}}, true);
  f(ds::warmup<ds::cosine>{5, {0.3, 0.05, 20}}, true);
  f(w{9, {0.3}, w::cosine, 0.1}, true);
  f(w{9, {0.3}, w::exponential, 0.1}, false);
  f(w{9, {0.3}, w::logarithmic}, false);
  f(ds::wsd{0.3, 0.05, 4, 6, 20}, true);
  f(ds::wsd{0.3, 0.05, 4, 6, 20, ds::wsd::cosine}, true);
  f(ds::wsd{0.3, 0.05, 4, 6, 20, ds::wsd::exponential}, false);
  f(ds::swa_rate<ds::step>{{0.3, 0.9, 2}, 8, 0.05, 6}, true);
  f(ds::scaled<ds::clamped<ds::delayed<ds::per_epoch<ds::step>>>>{0.7, {0.1, 0.2, {3, {{0.3, 0.9, 1}, 4}}}}, true);
  f(ds::join{{5, 15}, ds::linear{0.1, 0.3, 5}, ds::constant{0.3}, ds::cosine{0.3, 0, 9}}, true);
  f(ds::chained{ds::cosine{0.3, 0.1, 20}, ds::step{1, 0.7, 4}}, true);
  for (choice const& c : other.chosen) f(c, true), f(ds::warmup<choice>{5, c}, true);
  f(other.lines, true);
  f(other.stairs, true);
  f(ds::join{{7}, ds::constant{0.3}, other.lines}, true);
  f(ds::fractional_epochs<by_epoch>{{}, 7}, true);
  f(ds::gradual_warmup<ds::step>{8, 5, {0.3, 0.7, 4}}, true);
  ds::batch_growth<ds::warmup<ds::step>> const growth{
      .rate = {5, {0.3, 0.7, 4}}, .batch = 64, .largest = 500, .micro = 4, .ranks = 2, .begin = 5};
  f(growth, true);
  f(ds::micro_batches<ds::batch_growth<ds::warmup<ds::step>>>{growth, 4, 2}, true);
  f(ds::remaining_rate<ds::warmup<ds::step>>{growth}, true);
  f(ds::inverse_time{0.3, 0.7, 3, true}, true);
  f(ds::warmup<ds::inverse_time>{9, {0.3, 0.7, 3, true}, ds::warmup<ds::inverse_time>::cosine, 2}, true);
  f(w{9, {0.3}, w::linear, 0.1, w::at_start}, true);
  f(w{9, {0.3}, w::cosine, 0.1, w::at_start}, true);
  f(w{9, {0.3}, w::exponential, 0.1, w::at_start}, false);
  f(ds::wsd{0.3, 0.05, 4, 6, 20, ds::wsd::linear}, true);
  f(ds::swa_rate<ds::step>{{0.3, 0.9, 2}, 8, 0.05, 6, ds::anneal::linear}, true);
  f(ds::swa_rate<ds::step>{{0.3, 0.9, 2}, 8, 0.05, 0}, true);
  f(ds::exponential{0.3, 1.1, 1, false, 2}, true);
  f(ds::exponential{0.3, 1 - 0x1p-40}, true);
  f(ds::step{0.3, 1 - 0x1p-40, 3}, true);
  f(ds::cyclic{0.1, 0.3, 3, 5, ds::cycles::exp_range, 1 - 0x1p-40}, true);
  f(ds::piecewise_interpolated<2>{{5, 9}, {0.3, 0.2, 0.1}}, true);
}

struct evaluate {
  double* out;
  std::size_t row, column = 0;
  template <class S> DESCENT_HD void operator()(S const& s, bool) { out[column++ * rows + row] = s(step_of(row)); }
};
struct judge {
  std::vector<double> const& device;
  std::size_t column = 0, same = 0;
  template <class S> void operator()(S const& s, bool exact) {
    for (std::size_t row = 0; row < rows; ++row) {
      double const host = s(step_of(row)), there = device[column * rows + row];
      CAPTURE(column);
      CAPTURE(step_of(row));
      if (exact && !contracted) CHECK(std::bit_cast<std::uint64_t>(host) == std::bit_cast<std::uint64_t>(there));
      else CHECK(std::fabs(host - there) <= (contracted ? 8 : 2) * 0x1p-52 * std::fabs(host));
      same += host == there;
    }
    ++column;
  }
};
struct count {
  std::size_t n = 0;
  template <class S> DESCENT_HD void operator()(S const&, bool) { ++n; }
};

__global__ void all_schedules(given other, double* out) {
  evaluate e{out, threadIdx.x};
  each(other, e);
}
__global__ void powers(double const* factors, double* out) {
  out[threadIdx.x] = ds::precise_power(factors[threadIdx.x], (std::int64_t{1} << 40) / (threadIdx.x + 1) + 3);
}
__global__ void watch(ds::plateau p, double const* metrics, int n, ds::plateau_state* out) {
  auto s = p.start();
  for (int i = 0; i < n; ++i) p.next(s, metrics[i]);
  *out = s;
}

/// Memory that host and device share.
template <class T> struct managed {
  T* data;
  explicit managed(std::size_t n) { REQUIRE(cudaMallocManaged(&data, n * sizeof(T)) == cudaSuccess); }
  ~managed() { cudaFree(data); }
  managed(managed const&) = delete;
};

}  // namespace

TEST_CASE("schedules have the same bits on host and device, with pow and log within 2 ulp") {
  given const other;
  count all;
  each(other, all);
  managed<double> out(rows * all.n);
  all_schedules<<<1, rows>>>(other, out.data);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  std::vector<double> const values(out.data, out.data + rows * all.n);
  judge j{values};
  each(other, j);
  MESSAGE(j.same << " of " << rows * all.n << " values are the same bits");
  CHECK(j.column == all.n);
}

TEST_CASE("powers of schedules have the same bits on host and device, contracted or not") {
  managed<double> factors(50), out(50);
  for (int i = 0; i < 50; ++i) factors.data[i] = 1 + (i % 2 ? 0.3 : -0.7) * std::ldexp(1., -i);
  powers<<<1, 50>>>(factors.data, out.data);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < 50; ++i) {
    CAPTURE(i);
    double const host = ds::precise_power(factors.data[i], (std::int64_t{1} << 40) / (i + 1) + 3);
    CHECK(std::bit_cast<std::uint64_t>(host) == std::bit_cast<std::uint64_t>(out.data[i]));
  }
}

TEST_CASE("a plateau has the same state on host and device after 100 metrics") {
  ds::plateau const p{.initial = 0.3, .factor = 0.5, .patience = 2, .cooldown = 1, .every = 2, .relative = 1e-2};
  managed<double> metrics(100);
  managed<ds::plateau_state> out(1);
  for (int i = 0; i < 100; ++i)
    metrics.data[i] = i % 29 == 17 ? std::nan("") : 3.0 / (1 + i % 37) + 0.01 * (i * 37 % 11);
  auto s = p.start();
  for (int i = 0; i < 100; ++i) p.next(s, metrics.data[i]);
  watch<<<1, 1>>>(p, metrics.data, 100, out.data);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(s.value < 0.3);
  CHECK(out.data->value == s.value);
  CHECK(out.data->best == s.best);
  CHECK(out.data->bad == s.bad);
  CHECK(out.data->cooldown == s.cooldown);
}
