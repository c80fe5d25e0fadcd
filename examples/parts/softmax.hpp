// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "dense.hpp"

#include <descent/core/math.hpp>
#include <descent/presets/amp.hpp>

#include <cmath>
#include <cstdint>

namespace example {

/// Cross entropy of the softmax of a row z and its label, with its gradient and running totals:
///
///     loss = -log s[label]      s[k] = exp z[k] / sum_j exp z[j]      dz[k] = s[k] - [k == label]
///
/// dz is multiplied by `weight` and, if there is one, by the loss scale before it is rounded. Each index is a row. Each
/// row has its own totals, which are added up in order once per epoch.
template <class Real> struct softmax_cross_entropy {
  Real const* z;
  Real* dz;
  std::uint8_t const* labels;
  int classes;
  double* loss;
  std::int64_t* correct;
  float weight = 1;
  float const* scale = nullptr;

  DESCENT_HD void operator()(std::int64_t row) const {
    using wide = descent::amp::compute_t<descent::amp::op::log_softmax, Real>;  // float for 16-bit types
    Real const* const x = z + row * classes;
    int const label = labels[row];

    int best = 0;
    for (int k = 1; k < classes; ++k)
      if (wide(x[k]) > wide(x[best])) best = k;
    wide const largest = wide(x[best]);  // subtracted so that exp cannot overflow

    wide sum = 0;
    for (int k = 0; k < classes; ++k) sum += std::exp(wide(x[k]) - largest);
    wide const factor = wide(weight) * (scale ? wide(*scale) : wide(1));
    for (int k = 0; k < classes; ++k)
      dz[row * classes + k] = Real((std::exp(wide(x[k]) - largest) / sum - wide(k == label)) * factor);

    loss[row] += std::log(sum) - (wide(x[label]) - largest);
    correct[row] += best == label;
  }
};

}  // namespace example
