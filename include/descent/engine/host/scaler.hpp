// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/control_block.hpp>

namespace descent::detail {

/// A loss scale in host memory.
template <class Policy> class host_scaler {
 public:
  template <class Backend> host_scaler(Policy const& policy, Backend const&) : scale_{policy.start()} {}
  void next(Policy const& policy) { update_shared(scale_, policy); }
  void set(shared_scale const& s) { scale_ = s; }
  shared_scale* shared() { return &scale_; }
  shared_scale read() const { return scale_; }

 private:
  shared_scale scale_;
};

}  // namespace descent::detail
