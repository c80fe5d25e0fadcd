// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/optimizer.hpp>
#include <descent/rules/sgd.hpp>

#include <vector>

namespace ds = descent;

inline auto make_trainer(std::vector<float>& p, std::vector<float>& g) {
  ds::parameters<float> params;
  params.add("p", p, g);
  return ds::optimizer{params, ds::sgd{.lr = 0.25, .momentum = 0.75, .weight_decay = 0.125}};
}
