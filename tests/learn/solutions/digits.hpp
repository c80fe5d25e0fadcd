// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/descent.hpp>

namespace ds = descent;

inline auto make_optimizer(ds::parameters<float> const& params) {
  return ds::optimizer{params, ds::sgd{.lr = 0.4, .momentum = 0.9, .nesterov = true}};
}
