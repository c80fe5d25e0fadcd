// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "run.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace example::learn {

/// Percentages of the test images after runs that differ in their seed.
struct three_runs {
  std::array<double, 3> each{};
  std::array<int, 3> steps{};

  std::array<std::vector<look>, 3> looks{};

  double low() const { return *std::ranges::min_element(each); }
  double mean() const { return (each[0] + each[1] + each[2]) / 3; }
  double high() const { return *std::ranges::max_element(each); }

  /// The mean accuracy at each look, and the range of the seeds.
  curve over_steps(std::string const& name) const {
    curve c{name, {}};
    for (std::size_t k = 0; k < looks[0].size(); ++k) {
      three_runs const then{.each = {looks[0][k].accuracy, looks[1][k].accuracy, looks[2][k].accuracy}};
      c.points.push_back({double(looks[0][k].step), then.mean()});
      c.bars.push_back({c.points.back().x, then.low(), then.high()});
    }
    return c;
  }
};

/// The runs with s.seed and the two seeds after it.
inline three_runs three_seeds(settings s, auto const& gradient, auto const&... recipe) {
  three_runs r;
  for (std::size_t k = 0; k < 3; ++k, ++s.seed) {
    auto const run = train_with(s, gradient, recipe...);
    r.each[k] = run.accuracy, r.steps[k] = run.steps, r.looks[k] = run.looks;
  }
  return r;
}

}  // namespace example::learn
