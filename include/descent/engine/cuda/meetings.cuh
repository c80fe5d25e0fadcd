// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/control_block.hpp>
#include <descent/engine/step/plan.hpp>

#include <cstdint>
#include <stdexcept>

namespace descent::detail {

/// In which calls of step() ranks meet. The host must know it, so it counts micro-batches as the device does.
template <class Plan> class meetings {
 public:
  /// Counts a call. Returns whether ranks meet in it; if agree_every asks for it, calls agree() first.
  template <class Agree>
  bool count([[maybe_unused]] typename Plan::policies const& policies, [[maybe_unused]] step_call const& call,
             [[maybe_unused]] bool capturing, [[maybe_unused]] Agree const& agree) {
    if constexpr (agrees)
      if (capturing)
        throw std::logic_error("step(): agree_every{} waits for the stream, which is capturing: call agree() between "
                               "replays instead");
    bool complete = true;
    if constexpr (has<Plan, kind::accumulation>) {
      if (capturing != captures_) {
        if (batches_ != 0)
          throw std::logic_error("step(): with ranks a capture begins with the first micro-batch of an update and "
                                 "ends with the last");
        captures_ = capturing;
      }
      complete = call.flush || sends(policies);
    }
    if constexpr (agrees)
      if (complete && ++updates_ % get<kind::parallel>(policies).updates_between == 0) agree();
    if constexpr (has<Plan, kind::accumulation>) batches_ = complete ? 0 : batches_ + 1;
    return complete;
  }
  /// Whether the next micro-batch sends gradients.
  bool sends([[maybe_unused]] typename Plan::policies const& policies) const {
    if constexpr ((Plan::parallel || Plan::splits) && has<Plan, kind::accumulation>)
      return batches_ + 1 >= micro_batches<Plan>(policies, 0);
    else return true;
  }
  bool batches_wait() const { return batches_ != 0; }

 private:
  static constexpr bool agrees = requires { requires Plan::parallel_policy::agrees; };
  bool captures_ = false;  // whether the waiting micro-batches were captured
  std::int64_t batches_ = 0;
  std::int64_t updates_ = 0;  // for agree_every
};

}  // namespace descent::detail
