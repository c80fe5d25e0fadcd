// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/policy.hpp>

#include <stdexcept>

namespace descent {

/// Where the loss of the batch lies, in the backend's memory, for rules that look at it: as the loss function gives it,
/// without the loss scale. Each update reads it once, in the same stream; captured graphs read what is there at replay.
/// A step whose loss is not finite is skipped, as one whose gradients are not: means of the loss would never forget it.
struct loss_at {
  float const* where = nullptr;

  using policy_kind = kind::loss;
  void check() const {
    if (!where) throw std::invalid_argument("loss_at: the pointer must not be null");
  }
};

}  // namespace descent
