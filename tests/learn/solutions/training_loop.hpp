// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/optimizer.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/vary.hpp>

#include <cstdint>

namespace ds = descent;

/// Gradient descent whose rate falls from `peak` to 0 along half a cosine of `steps` steps.
inline auto make_optimizer(ds::parameters<float> const& params, double peak, std::int64_t steps) {
  return ds::optimizer{params, ds::sgd{.lr = peak}, ds::learning_rate(ds::cosine{.peak = peak, .steps = steps})};
}

/// Returns the loss of the last batch, before its step.
template <class Optimizer, class Model> double train(Optimizer& opt, Model& model, std::int64_t steps) {
  double loss = 0;
  for (std::int64_t t = 0; t < steps; ++t) {
    opt.zero_grad();
    loss = model.loss();
    model.backward();
    opt.step();
  }
  return loss;
}
