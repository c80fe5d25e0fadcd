// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <descent/host_tbb.hpp>

#include "support/all_rules.hpp"
#include "support/optimizer_of.hpp"
#include "support/problem.hpp"
#include "support/sizes.hpp"

#include <numeric>

#if defined(_OPENMP)
#include <omp.h>
#endif

using namespace test;
namespace ds = descent;

namespace {

template <class System, class Rule> problem<float> run(Rule const& rule) {
  problem<float> p(parallel_sizes);
  auto opt = optimizer_of(p.parameters(), rule, ds::host<System>{});
  for (int t = 1; t <= 3; ++t) {
    p.set_gradients(t);
    opt.step();
  }
  return p;
}

}  // namespace

TEST_CASE("the sizes of these tests suffice for several threads") {
  CHECK(std::accumulate(parallel_sizes.begin(), parallel_sizes.end(), std::size_t{0}) > 32 * 1024);
}

#if defined(_OPENMP)
TEST_CASE("every rule: systems OMP, TBB and CPP and any number of threads give the same bits") {
  int const usual = omp_get_max_threads();
  each_rule([](auto const& row) {
    auto const alone = run<ds::cpp>(row.rule).value;
    for (int threads : {1, 2, 3, 8}) {
      INFO(row.name, ", ", threads, " threads");
      omp_set_num_threads(threads);
      CHECK(same_bits(run<ds::omp>(row.rule).value, alone));
    }
    INFO(row.name);
    CHECK(same_bits(run<ds::tbb>(row.rule).value, alone));
  });
  omp_set_num_threads(usual);
}
#else
TEST_CASE("every rule: systems TBB and CPP give the same bits") {
  each_rule([](auto const& row) {
    INFO(row.name);
    CHECK(same_bits(run<ds::tbb>(row.rule).value, run<ds::cpp>(row.rule).value));
  });
}
#endif
