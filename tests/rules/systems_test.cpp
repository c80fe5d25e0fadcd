// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <descent/backends/tbb.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>

#include "support/computing.hpp"
#include "support/all_rules.hpp"
#include "support/optimizer_of.hpp"
#include "support/problem.hpp"
#include "support/sizes.hpp"

#include <cfenv>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

using namespace test;
namespace ds = descent;

namespace {

template <class Rule, class... Backend> problem<float> run(Rule const& rule, Backend... backend) {
  problem<float> p(parallel_sizes);
  auto opt = optimizer_of(p.parameters(), rule, backend...);
  for (int t = 1; t <= 3; ++t) {
    p.set_gradients(t);
    opt.step();
  }
  return p;
}

#if defined(_OPENMP)
/// omp that never falls back to one thread.
void in_team(std::int64_t n, ds::detail::loop_body f) { ds::omp::in_team(n, f); }
#endif

/// Sets the loop of any_system until the end of the block.
struct looping {
  explicit looping(void (*loop)(std::int64_t, ds::detail::loop_body)) { any_system::loop = loop; }
  ~looping() { any_system::loop = ds::default_system::each; }
};

/// Rules that are also tested with omp itself and Thrust's systems: one without sums and one with sums.
template <class Rule>
inline constexpr bool on_every_system = std::is_same_v<Rule, ds::adamw> || std::is_same_v<Rule, ds::lamb>;

}  // namespace

TEST_CASE("the sizes of these tests suffice for several threads") {
  CHECK(std::accumulate(parallel_sizes.begin(), parallel_sizes.end(), std::size_t{0}) >=
        std::size_t(ds::detail::fork_worth));
}

TEST_CASE("an exception in an iteration leaves the loop, on every system") {
  auto const check = []<class System>(System) {
    auto const body = [](std::int64_t i) {
      if (i == 700) throw 1;
    };
    CHECK_THROWS_AS(ds::detail::each_of<System>(ds::detail::fork_worth, 1000, body), int);
  };
  check(ds::cpp{}), check(ds::tbb{}), check(ds::thrust_cpp{});
#if defined(_OPENMP)
  looping const on(in_team);
  check(ds::thrust_omp{}), check(any_system{});
#endif
}

#if defined(__x86_64__) || defined(__aarch64__)
namespace {

/// How this thread computes, found by computing.
int mode_here() {
  float const volatile one = 1, tiny = 0x1p-30f, most_of_an_ulp = 0x1.8p-24f, small = 0x1p-110f;
  float const volatile denormal = small * tiny;
  return (one + tiny > 1 ? 1 : 0) + (-one - tiny < -1 ? 2 : 0) + (one + most_of_an_ulp > 1 ? 4 : 0) +
         (denormal == 0 ? 8 : 0);
}

}  // namespace

TEST_CASE("the threads of every system compute in the caller's floating-point mode, and have their own afterwards") {
  auto const check = [&]<class System>(System) {
    auto const modes = [&](bool through_library) {
      std::vector<int> all(1000);
      auto const body = [&](std::int64_t i) { all[std::size_t(i)] = mode_here(); };
      if (through_library) ds::detail::each_of<System>(ds::detail::fork_worth, 1000, body);
      else System::each(1000, ds::detail::loop_body(body));
      return all;
    };
    modes(false);  // starts threads
    for (int rounding : test::roundings)
      for (bool flushes : {false, true}) {
        CAPTURE(rounding);
        CAPTURE(flushes);
        test::computing const as(rounding, flushes);
        CHECK(modes(true) == std::vector<int>(1000, mode_here()));
      }
    CHECK(modes(false) == std::vector<int>(1000, mode_here()));
  };
  check(ds::cpp{}), check(ds::tbb{}), check(ds::thrust_cpp{});
#if defined(_OPENMP)
  looping const on(in_team);
  check(ds::thrust_omp{}), check(any_system{});
#endif
}

TEST_CASE("a rule gives the same bits on every system in any floating-point mode") {
  each_rule([&]<class Rule>(row<Rule> const& row) {
    if constexpr (std::is_same_v<Rule, ds::lamb>) {
      auto const alone = [&] {
        looping const on(ds::cpp::each);
        return run(row.rule).value;
      };
      auto const usual = alone();
      for (int rounding : {FE_UPWARD, FE_TOWARDZERO}) {
        test::computing const as(rounding, true);
        auto const want = alone();
        CHECK(!same_bits(want, usual));
        CHECK(same_bits(run(row.rule, ds::on(thrust::tbb::par)).value, want));
#if defined(_OPENMP)
        looping const on(in_team);
        CHECK(same_bits(run(row.rule).value, want));
#endif
      }
    }
  });
}
#endif

TEST_CASE("every rule: systems and any number of threads give the same bits") {
#if defined(_OPENMP)
  int const usual = omp_get_max_threads();
#endif
  each_rule([&]<class Rule>(row<Rule> const& row) {
    auto const alone = [&] {
      looping const on(ds::cpp::each);
      return run(row.rule).value;
    }();
    INFO(row.name);
#if defined(_OPENMP)
    for (int threads : {1, 2, 3, 8}) {
      INFO(threads, " threads");
      omp_set_num_threads(threads);
      looping const on(in_team);
      CHECK(same_bits(run(row.rule).value, alone));
    }
#endif
    if constexpr (on_every_system<Rule>) {
      CHECK(same_bits(run(row.rule).value, alone));
      CHECK(same_bits(run(row.rule, ds::on(thrust::tbb::par)).value, alone));
      CHECK(same_bits(run(row.rule, ds::on(thrust::cpp::par)).value, alone));
#if defined(_OPENMP)
      CHECK(same_bits(run(row.rule, ds::on(thrust::omp::par)).value, alone));
#endif
    }
  });
#if defined(_OPENMP)
  omp_set_num_threads(usual);
#endif
}
