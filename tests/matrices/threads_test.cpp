// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/matrices/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/muon.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>
#if defined(_OPENMP)
#include <omp.h>

namespace ds = descent;

TEST_CASE("any number of threads gives the same bits; threads that take a matrix each have their own scratch memory") {
  std::vector<ds::shape> shapes{{7, 1}};
  for (int k = 0; k < 12; ++k) shapes.push_back({150 + k % 3, 130});
  int const team = omp_get_max_threads();
  openblas_set_num_threads(2);
  std::int64_t scratch = 0;
  auto const values = [&](int threads, int at_once = 8) {
    omp_set_num_threads(threads);
    std::vector<std::vector<float>> value, gradient;
    ds::parameters<float> params;
    for (auto const& s : shapes) {
      value.emplace_back(std::size_t(s.rows * s.columns), 1.0f), gradient.push_back(value.back());
      params.add("w" + std::to_string(value.size()), value.back().data(), gradient.back().data(), s,
                 ds::group{int(value.size() % 2)});
    }
    ds::matrices rule{ds::muon{}};
    rule.at_once = at_once;
    ds::optimizer opt{params, ds::adamw{}, rule};
    for (auto const& b : opt.memory().buffers)
      if (b.name == "matrices: scratch (float)") scratch = b.bytes;
    for (int t = 0; t < 3; ++t) {
      if (t == 1) opt.freeze(1);
      for (std::size_t k = 0; k < gradient.size(); ++k)
        for (std::size_t i = 0; i < gradient[k].size(); ++i)
          gradient[k][i] = float((i * i * 37 + i * 11 + std::size_t(t) * 101 * (i + 1) + k * 59) % 127) - 63;
      opt.step();
    }
    return value;
  };
  auto const want = values(1);
  std::int64_t const of_one = scratch;
  for (int const threads : {2, 3, 5}) {
    CAPTURE(threads);
    CHECK(values(threads) == want);
    CHECK(scratch == threads * of_one);
  }
  CHECK(values(7) == want);  // seven would wait long for the last matrices
  CHECK(scratch == of_one);
  CHECK(values(5, 4) == want);
  CHECK(scratch == of_one);
  CHECK(openblas_get_num_threads() == 2);
  omp_set_num_threads(team);
}
#endif
