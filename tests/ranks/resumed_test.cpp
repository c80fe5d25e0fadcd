// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/threads.hpp>
#include <descent/io/checkpoint.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/clip.hpp>
#include <descent/ranks/model_parallel.hpp>
#include <descent/ranks/parallel.hpp>

#include <doctest/doctest.h>
#include "support/optimizer_of.hpp"
#include "support/ranks.hpp"
#include "support/structures.hpp"
#include "support/temporary_folder.hpp"

#include <cstddef>
#include <string>
#include <vector>

/// On a grid of ranks that have parts of the model and of the batch, a rule of each structure resumes from what it has
/// saved with the bits of a run that was not interrupted, which are those of one process. Clipping by tensor gives each
/// tensor a memory of its own.

namespace ds = descent;

namespace {

std::vector<std::size_t> const sizes{7, 1, 0, 4100, 5, 64};
constexpr int batches = 6, half = 3;  // of a step; steps before a run is saved

/// Clipping of each tensor cannot come before sums over the model that depend on the rule's memory.
template <class Rule>
constexpr ds::scope clipped =
    ds::has_sums_of_memory<Rule> && test::modelwide<Rule> ? ds::scope::model : ds::scope::tensor;

struct result {
  std::vector<ranks::model<float>> models;  // by row, then column
  std::vector<std::string> said;
};

/// Trains on a grid. On the way each rank saves in memory and in a file, from which two others go on.
template <class Rule> result trained(Rule const& rule, int rows, int columns) {
  auto const ranks = std::size_t(rows * columns);
  result all{std::vector(ranks, ranks::model<float>(0, sizes)), std::vector<std::string>(ranks)};
  test::temporary_folder const folder;
  ranks::on_grid(rows, columns, [&](auto& in_row, auto& in_column) {
    int const row = in_column.rank(), column = in_row.rank();
    int const first = batches * row / rows, last = batches * (row + 1) / rows;
    auto const number = std::size_t(row * columns + column);
    auto const made = [&](ranks::model<float>& of) {
      return test::optimizer_of(ranks::share(of, column, columns), rule, ds::clip<ds::norm::l2, clipped<Rule>>{0.5},
                                ds::sharded{in_column, ds::ordered_sum{}}, ds::model_parallel{in_row}, ds::host<>{});
    };
    auto const train = [&](auto& opt, ranks::model<float>& of, int from) {
      std::string said;
      for (int t = from; t < from + half; ++t) {
        of.set(t, first, last);
        opt.step(last - first);
        auto const r = opt.report();
        said += std::to_string(r.step) + " " + std::to_string(r.grad_norm) + " " + std::to_string(r.clip_factor) + " " +
                r.why;
      }
      return said;
    };
    ranks::model<float>& m = all.models[number];
    auto opt = made(m);
    all.said[number] = train(opt, m, 0);
    ranks::model<float> of_memory = m, of_file(1, sizes);
    auto from_memory = made(of_memory), from_file = made(of_file);
    ranks::load(from_memory, ranks::saved(opt));
    std::string const path = folder / ("stage" + std::to_string(column));
    ds::save_file(path, opt);
    ds::load_file(path, from_file);
    std::string const said = train(opt, m, half);
    CHECK(train(from_memory, of_memory, half) == said);
    CHECK(train(from_file, of_file, half) == said);
    CHECK(ranks::equal_share(of_memory, m, column, columns));
    CHECK(ranks::equal_share(of_file, m, column, columns));
    all.said[number] += said;
  });
  return all;
}

}  // namespace

TEST_CASE("a rule of each structure resumes from what ranks of any grid have saved, in memory and in files") {
  test::each_structure([](auto const& row) {
    INFO(row.name);
    auto const want = trained(row.rule, 1, 1);
    for (int rows : {1, 2}) {
      int const columns = 4 - rows;
      INFO(rows, " x ", columns);
      auto const got = trained(row.rule, rows, columns);
      for (int r = 0; r < rows * columns; ++r) {
        CHECK(ranks::equal_share(got.models[std::size_t(r)], want.models[0], r % columns, columns));
        CHECK(got.said[std::size_t(r)] == want.said[0]);
      }
    }
  });
}
