// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/threads.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_at.hpp>
#include <descent/ranks/model_parallel.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/rules/dadapt_adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/dowg.hpp>
#include <descent/rules/fromage.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/larc.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/layerwise.hpp>
#include <descent/rules/momo.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/polyak.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/yellowfin.hpp>

#include <doctest/doctest.h>
#include "support/ranks.hpp"

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

/// Every rule with sums over elements does on a grid of ranks, of which each column has a part of the model and each
/// row a part of the gradients, what it does in one process, to the bit. One step is skipped on all.

namespace ds = descent;
using ranks::equal_share, ranks::model, ranks::share;

namespace {

constexpr int batches = 7;  // of a step, divided among the rows

template <class Rule, class... Ps> void same_on_grids(Rule const& rule, Ps... policies) {
  struct result {
    std::vector<model<float>> models;  // by row, then column
    std::vector<std::string> said;
  };
  auto const train = [&](int rows, int columns) {
    result all{std::vector<model<float>>(std::size_t(rows * columns), model<float>()),
               std::vector<std::string>(std::size_t(rows * columns))};
    ranks::on_grid(rows, columns, [&](auto& in_row, auto& in_column) {
      int const row = in_column.rank(), column = in_row.rank();
      int const first = batches * row / rows, last = batches * (row + 1) / rows;
      auto const number = std::size_t(row * columns + column);
      auto& m = all.models[number];
      ds::optimizer opt{share(m, column, columns), rule, policies..., ds::clip_norm{0.5},
                        ds::sharded{in_column, ds::ordered_sum{}}, ds::model_parallel{in_row}};
      for (int t = 0; t < 4; ++t) {
        m.set(t, first, last);
        if (t == 2 && row == 0) m.gradient[3][5] = std::numeric_limits<float>::infinity();
        opt.step(last - first);
        auto const r = opt.report();
        all.said[number] += std::to_string(r.grad_norm) + " " + std::to_string(r.step) + " ";
      }
    });
    return all;
  };
  auto const want = train(1, 1);
  auto const holds = [&](int rows, int columns) {
    INFO(rows, " x ", columns);
    auto const got = train(rows, columns);
    for (int r = 0; r < rows * columns; ++r) {
      CHECK(equal_share(got.models[std::size_t(r)], want.models[0], r % columns, columns));
      CHECK(got.said[std::size_t(r)] == want.said[0]);
    }
  };
  for (int ranks : {2, 3, 4, 7}) holds(ranks, 1), holds(1, ranks);
  holds(2, 3), holds(3, 2);
}

}  // namespace

TEST_CASE("trap 52: rules with sums of each tensor have the same bits on any grid of ranks") {
  same_on_grids(ds::fromage{});
  same_on_grids(ds::lamb{.lr = 0.01});
  same_on_grids(ds::larc<ds::sgd>{.lr = 0.01});
  same_on_grids(ds::lars{.lr = 0.01});
  same_on_grids(ds::layerwise<ds::sgd>{.lr = 0.01});
  same_on_grids(ds::novograd{});
}

TEST_CASE("trap 52: rules with sums over the model have the same bits on any grid of ranks") {
  same_on_grids(ds::dadapt_adamw{.d0 = 1e-3});
  same_on_grids(ds::dog{});
  same_on_grids(ds::dowg{});
  same_on_grids(ds::prodigy{.d0 = 1e-3});
  same_on_grids(ds::yellowfin{});
  float const loss = 0.5f;
  same_on_grids(ds::momo{}, ds::loss_at{&loss});
  same_on_grids(ds::polyak{}, ds::loss_at{&loss});
}
