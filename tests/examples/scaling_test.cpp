// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "../../examples/parts/grid.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace example::projection;

namespace {

cluster const c;

double milliseconds(cost const& x) { return 1e3 * x.total(); }

}  // namespace

// Worked out on paper from the same formulas, to two or three digits; trees with 3.4 us in the node.
TEST_CASE("projection: all-reduce, by hand") {
  struct row { double bytes; std::vector<int> n; std::vector<double> ring, tree; };
  std::vector<row> const table{
      {0.248e9, {8, 64, 512, 1024, 4096}, {1.25, 1.9, 6.2, 11.0, 40}, {0, 1.6, 1.7, 1.7, 1.8}},
      {3e9, {8, 64, 512, 1024, 4096}, {14.6, 17.0, 21.4, 26.3, 55}, {0, 18.2, 18.3, 18.4, 18.4}},
      {14e9, {8, 64, 512, 1024, 4096}, {68, 77, 82, 87, 116}, {0, 85, 85, 85, 85}}};
  for (row const& r : table)
    for (std::size_t k = 0; k < r.n.size(); ++k) {
      CAPTURE(r.bytes);
      CAPTURE(r.n[k]);
      CHECK(milliseconds(ring_all_reduce(c, r.n[k], r.bytes)) == doctest::Approx(r.ring[k]).epsilon(0.02));
      if (r.tree[k] > 0)
        CHECK(milliseconds(tree_all_reduce(c, r.n[k], r.bytes)) == doctest::Approx(r.tree[k]).epsilon(0.04));
    }
  CHECK(1e3 * ring_all_reduce(c, 64, 1).latency == doctest::Approx(0.58).epsilon(0.01));
  CHECK(1e3 * ring_all_reduce(c, 1024, 1).latency == doctest::Approx(9.6).epsilon(0.01));
  CHECK(1e3 * ring_all_reduce(c, 4096, 1).latency == doctest::Approx(39).epsilon(0.01));
  cluster on_paper;
  on_paper.tree_link = on_paper.ring_link;
  CHECK(1e3 * tree_all_reduce(on_paper, 64, 1).latency == doctest::Approx(0.13).epsilon(0.02));
  CHECK(1e3 * tree_all_reduce(on_paper, 1024, 1).latency == doctest::Approx(0.24).epsilon(0.02));
  CHECK(1e3 * tree_all_reduce(on_paper, 4096, 1).latency == doctest::Approx(0.30).epsilon(0.02));
}

TEST_CASE("projection: a reduce-scatter and an all-gather are an all-reduce by ring") {
  for (int n : {1, 2, 8, 16, 4096}) {
    CHECK(2 * ring(c, n, 1e9).total() == doctest::Approx(ring_all_reduce(c, n, 1e9).total()));
    if (n <= 8) CHECK(ring(c, n, 1e9).latency == doctest::Approx((n - 1) * 3.4e-6));
  }
}

TEST_CASE("projection: one GPU sends nothing, and a step is the sum of its terms") {
  model const m{.parameters = 1e9};
  for (way w : {way::ring, way::tree, way::sharded}) {
    auto const s = step_of(c, m, 1, w);
    CHECK(s.wire + s.latency + s.tiny == 0);
    CHECK(s.total() == doctest::Approx(6e9 * 8192 / (0.4 * 989e12) + 28e9 / (0.9 * 3.35e12)));
    CHECK(efficiency(c, m, 1, w) == 1);
  }
  auto const ring8 = step_of(c, m, 8, way::ring), sharded8 = step_of(c, m, 8, way::sharded);
  CHECK(ring8.total() - sharded8.total() == doctest::Approx(m.update() * 7 / 8 - tiny(c, 8)));
}

TEST_CASE("projection: buckets hide behind the backward pass what it has time for") {
  model m{.parameters = 1e9};
  double const at_the_end = step_of(c, m, 512, way::tree).total();
  m.buckets = 10;
  auto const hidden = step_of(c, m, 512, way::tree);
  CHECK(hidden.wire == doctest::Approx(tree_all_reduce(c, 512, 2e8).wire));  // the last one
  CHECK(hidden.total() < at_the_end);
  m.tokens = 1;  // nothing to hide the exchange behind
  CHECK(step_of(c, m, 512, way::tree).wire == doctest::Approx(tree_all_reduce(c, 512, 2e9).wire).epsilon(0.01));
}

TEST_CASE("projection: a grid without a cut is data parallelism, and its terms by hand") {
  layers const l{80, 8192};
  model const m{.parameters = 70e9};
  for (int n : {1, 8, 64, 4096}) {
    CHECK(step_of(c, m, l, {1, 1, n}, false).total() == doctest::Approx(step_of(c, m, n, replicated(c, m, n)).total()));
    CHECK(step_of(c, m, l, {1, 1, n}, true).total() == doctest::Approx(step_of(c, m, n, way::sharded).total()));
  }
  // 64 micro-batches, 10 layers, 4 all-reduces of 33.6 MB each: 93 us on the wire and two steps of 3.4 us
  auto const s = step_of(c, m, l, {2, 8, 4}, false);
  CHECK(1e3 * s.tensor == doctest::Approx(64 * 10 * 4 * 0.1).epsilon(0.01));
  CHECK(s.idle == doctest::Approx((s.compute + s.tensor + s.sends) * 7 / 64));
  CHECK(s.memory == doctest::Approx(70e9 * 16 / 16));
  CHECK(step_of(c, m, l, {2, 8, 4}, true).memory == doctest::Approx(70e9 * (4 + 3) / 16));
  grid const g = fastest(c, m, l, 512, 80e9, 8, true);
  CHECK(g.gpus() == 512);
  CHECK(step_of(c, m, l, g, true).memory <= 80e9);
  CHECK(fastest(c, m, l, 8, 80e9, 8, false).data == 0);  // 1120 GB do not fit into 640
}
