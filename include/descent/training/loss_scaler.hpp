// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/engine/host/engine.hpp>
#include <descent/engine/step/control_block.hpp>
#include <descent/policies/loss_scale.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace descent {

namespace detail {
template <class Policy, class Backend> class scaler_part;

/// The current iteration of a loop with a shared loss scale, as the host sees it.
struct scale_round {
  std::int64_t number = 0;
  bool stepped = false;
};
}  // namespace detail

struct shared_loss_scale;

/// One loss scale for several optimizers and losses. In each iteration, every loss is multiplied by the scale, every
/// optimizer steps and checks its own gradients, and update() ends the iteration: if any optimizer found a non-finite
/// gradient the scale backs off, otherwise the iteration counts towards its growth. An iteration in which all
/// optimizers only accumulated does not count. While micro-batches of any optimizer wait for their update, the scale
/// stays, because stored gradients have one scale; what was found in the meantime counts at the first update() after
/// which none wait. So optimizers with accumulate complete their updates in the same iterations, or the scale of those
/// that overlap never changes.
///
///     loss_scaler scaler{dynamic_loss_scale{}, cuda{stream}};
///     optimizer a{..., shared_loss_scale{scaler}, cuda{stream}}, b{..., shared_loss_scale{scaler}, cuda{stream}};
///     for (...) { ... a.step(); b.step(); scaler.update(); }
///
/// The scale is in the backend's memory; an optimizer with another backend refuses it. The scaler must outlive its
/// optimizers. update() only enqueues on the scaler's stream and may be captured with the steps; for optimizers on
/// other streams the caller must add events around it.
template <class Policy = dynamic_loss_scale, class Backend = host<>> class loss_scaler {
 public:
  explicit loss_scaler(Policy policy = {}, Backend backend = {}) : policy_(checked(policy)), engine_(policy, backend) {}
  loss_scaler(loss_scaler const&) = delete;
  loss_scaler& operator=(loss_scaler const&) = delete;

  /// Throws std::logic_error if no optimizer has stepped since the last update().
  void update() {
    end_round();
    engine_.next(policy_);
  }

  /// The same, but sets the scale to new_scale and keeps the count towards the next growth. Throws
  /// std::invalid_argument unless it is above 0, finite in float and in the policy's range, and std::logic_error while
  /// micro-batches wait.
  void update(double new_scale) {
    detail::require_scale(new_scale);
    loss_scale_state s = at_rest("update(new_scale)");
    s.scale = float(new_scale);
    detail::require_scale_state(policy_, s);
    end_round();
    engine_.set({s});
  }

  /// The complete state, to save and restore. On CUDA both wait for the stream. Throws std::invalid_argument if the
  /// policy cannot be in that state, and std::logic_error while micro-batches wait.
  loss_scale_state state() const { return engine_.read().state; }
  void set_state(loss_scale_state const& s) {
    detail::require_scale_state(policy_, s);
    at_rest("set_state()");
    engine_.set({s});
  }

  /// The current scale. On CUDA waits for the stream.
  double loss_scale() const { return engine_.read().state.scale; }
  /// Pointer to the loss scale in the backend's memory; kernels, also captured ones, may read it.
  float const* loss_scale_pointer() const { return &engine_.shared()->state.scale; }

 private:
  friend struct shared_loss_scale;
  friend class detail::scaler_part<Policy, Backend>;
  static Policy checked(Policy const& policy) {
    descent::check_rule<float>(policy);
    return policy;
  }

  /// The state, if no gradients in memory were made with it.
  loss_scale_state at_rest(char const* call) const {
    shared_scale const s = engine_.read();
    if (s.waiting > 0)
      throw std::logic_error(std::string("loss scale: ") + call + " while micro-batches wait for their update");
    return s.state;
  }
  void end_round() {
    if (!round_.stepped)
      throw std::logic_error("loss scale: update() without a step(); call backward, step() of every optimizer, "
                             "then update() once");
    ++round_.number;
    round_.stepped = false;
  }

  Policy policy_;
  mutable typename Backend::template scaler<Policy> engine_;
  mutable detail::scale_round round_;
};

/// Policy: the loss scale of a loss_scaler.
struct shared_loss_scale {
  /// In the loss_scaler, which must outlive the optimizer.
  descent::shared_scale* shared;
  detail::scale_round* round;
  /// Whether the scaler has no stream: its backend is the host.
  bool on_host;

  using policy_kind = kind::loss_scale;
  template <class Policy, class Backend>
  explicit shared_loss_scale(loss_scaler<Policy, Backend> const& scaler)
      : shared(scaler.engine_.shared()), round(&scaler.round_), on_host(!requires { typename Backend::stream_type; }) {}
};

}  // namespace descent
