// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 2: the five lines of a training loop.
//
// PyTorch's loop is zero_grad, loss, backward, optimizer step, scheduler step. Here the schedule belongs to the
// optimizer, and step() follows it. Write the policy in make_optimizer() and the four calls in train().
//
//     learning rate    ds::learning_rate(ds::cosine{.peak = peak, .steps = steps})
//     calls            opt.zero_grad(), model.loss(), model.backward(), opt.step()
//
// Hint: backward() adds to the gradients. What must they be before it, and what must step() find?
#pragma once

#include <descent/optimizer.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/vary.hpp>

#include <cstdint>

namespace ds = descent;

/// Gradient descent whose rate falls from `peak` to 0 along half a cosine of `steps` steps.
inline auto make_optimizer(ds::parameters<float> const& params, double peak, std::int64_t steps) {
  return ds::optimizer{params, ds::sgd{.lr = peak}};  // add the policy
}

/// Returns the loss of the last batch, before its step.
template <class Optimizer, class Model> double train(Optimizer& opt, Model& model, std::int64_t steps) {
  double loss = 0;
  for (std::int64_t t = 0; t < steps; ++t) {
    // your four lines
  }
  return loss;
}
