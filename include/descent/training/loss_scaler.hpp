// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/detail/host/engine.hpp>
#include <descent/detail/step/control.hpp>
#include <descent/policies/loss_scale.hpp>

#include <cstdint>
#include <stdexcept>

namespace descent {

namespace detail {
/// An iteration of the loop around a shared loss scale, as the host sees it.
struct scale_round {
  std::int64_t number = 0;
  bool stepped = false;
};
}  // namespace detail

struct shared_loss_scale;

/// One loss scale for several optimizers and losses. In an iteration every loss is multiplied by it, every optimizer
/// takes its step, judging its own gradients, and update() ends the iteration: when any of them found a gradient that
/// is not finite the scale backs off, otherwise the iteration counts towards its growth. An iteration in which all
/// optimizers only accumulated counts for nothing.
///
///     loss_scaler scaler{dynamic_loss_scale{}, cuda{stream}};
///     optimizer a{..., shared_loss_scale{scaler}, cuda{stream}}, b{..., shared_loss_scale{scaler}, cuda{stream}};
///     for (...) { ... a.step(); b.step(); scaler.update(); }
///
/// The scale lives in the memory of the backend and must outlive its optimizers. update() only enqueues on the scaler's
/// stream and may be captured with the steps; optimizers on other streams need the caller's events around it.
template <class Policy = dynamic_loss_scale, class Backend = host<>> class loss_scaler {
 public:
  explicit loss_scaler(Policy policy = {}, Backend backend = {}) : policy_(checked(policy)), engine_(policy, backend) {}
  loss_scaler(loss_scaler const&) = delete;
  loss_scaler& operator=(loss_scaler const&) = delete;

  /// Throws std::logic_error when no optimizer took a step since the last update().
  void update() {
    end_round();
    engine_.next(policy_);
  }

  /// The same with a scale of the caller's choice instead; what counts towards the next growth stays. Throws
  /// std::invalid_argument when it is not above 0 and finite in float, and in the policy's range.
  void update(double new_scale) {
    detail::require_scale(new_scale);
    loss_scale_state s = state();
    s.scale = float(new_scale);
    detail::require_scale_state(policy_, s);
    end_round();
    engine_.set({s});
  }

  /// All there is to save, and to put back; on CUDA state() waits for the stream and set_state() is enqueued. Throws
  /// std::invalid_argument on a state in which the policy is never.
  loss_scale_state state() const { return engine_.read().state; }
  void set_state(loss_scale_state const& s) {
    detail::require_scale_state(policy_, s);
    engine_.set({s});
  }

  /// The scale in force; on CUDA waits for the stream.
  double loss_scale() const { return engine_.read().state.scale; }
  /// Pointer to the loss scale in the backend's memory; kernels, also captured ones, may read it.
  float const* loss_scale_pointer() const { return &engine_.shared()->state.scale; }

 private:
  friend struct shared_loss_scale;
  static Policy checked(Policy const& policy) {
    policy.check();
    return policy;
  }

  void end_round() {
    if (!round_.stepped)
      throw std::logic_error("loss scale: update() without a step(); the order is backward, step() of every optimizer, "
                             "then update() once");
    ++round_.number;
    round_.stepped = false;
  }

  Policy policy_;
  mutable typename Backend::template scaler<Policy> engine_;
  mutable detail::scale_round round_;
};

/// The loss scale is that of a loss_scaler.
struct shared_loss_scale {
  descent::shared_scale* shared;
  detail::scale_round* round;

  using policy_kind = kind::loss_scale;
  template <class Policy, class Backend>
  explicit shared_loss_scale(loss_scaler<Policy, Backend> const& scaler)
      : shared(scaler.engine_.shared()), round(&scaler.round_) {}
};

}  // namespace descent
