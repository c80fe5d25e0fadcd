// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 13: make a serial loop parallel.
//
// serial_sgd is somebody's training step on one thread. Replace it in make_trainer() by the library's optimizer, which
// uses all threads (with -fopenmp; on a GPU it takes one more argument, ds::cuda{stream}). The results must have the
// same bits.
//
//     return ds::optimizer{parameters, rule};
//
// Hint: add p and g to a ds::parameters<float>, and choose the settings of ds::sgd that do what the loop does.
#pragma once

#include <descent/optimizer.hpp>
#include <descent/rules/sgd.hpp>

#include <cstddef>
#include <vector>

namespace ds = descent;

struct serial_sgd {
  std::vector<float>& p;
  std::vector<float> const& g;
  std::vector<float> b = std::vector<float>(p.size());

  void step() {
    for (std::size_t i = 0; i < p.size(); ++i) {
      float const decayed = g[i] + 0.125f * p[i];
      b[i] = 0.75f * b[i] + decayed;
      p[i] = p[i] - 0.25f * b[i];
    }
  }
};

inline auto make_trainer(std::vector<float>& p, std::vector<float>& g) {
  // your lines
  return serial_sgd{p, g};
}
