// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "run.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

/// Runs that differ in their seed.
namespace example::learn {

/// What run(seed) returns for each of the e.seeds seeds from e.seed on.
auto with_seeds(experiment const& e, auto const& run) {
  std::vector<decltype(run(e.seed))> all;
  for (std::uint64_t k = 0; k < e.seeds; ++k) all.push_back(run(e.seed + k));
  return all;
}

struct spread { double low, mean, high; };

inline spread spread_of(std::vector<double> const& values) {
  auto const [low, high] = std::ranges::minmax(values);
  return {low, std::accumulate(values.begin(), values.end(), 0.) / double(values.size()), high};
}

/// Adds the mean as a point, and the range as a bar.
inline void add(curve& c, double x, spread const& y) {
  c.points.push_back({x, y.mean});
  c.bars.push_back({x, y.low, y.high});
}

/// The mean of curves over the same x, the range of the seeds, and the marks of all.
inline curve mean_of(std::vector<curve> const& runs) {
  curve mean{runs.at(0).name, {}};
  for (std::size_t i = 0; i < runs[0].points.size(); ++i) {
    std::vector<double> y;
    for (auto const& run : runs) y.push_back(run.points[i].y);
    add(mean, runs[0].points[i].x, spread_of(y));
  }
  for (auto const& run : runs) mean.marks.insert(mean.marks.end(), run.marks.begin(), run.marks.end());
  return mean;
}

/// The accuracy at each look.
inline curve accuracy_of(std::string name, std::vector<look> const& looks) {
  curve c{std::move(name), {}};
  for (auto const& then : looks) c.points.push_back({double(then.step), then.accuracy});
  return c;
}

}  // namespace example::learn
