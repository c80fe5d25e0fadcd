// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/comm/nccl.cuh>

#include "gpu/support.cuh"
#include "nccl/launch.hpp"
#include "support/ranks.hpp"

#include <chrono>

namespace test {

/// The communicator of all ranks that main.cpp has started.
struct joined : descent::comm::nccl {
  explicit joined(std::chrono::nanoseconds deadline = std::chrono::seconds(60),
                  std::chrono::nanoseconds grace = std::chrono::seconds(5))
      : descent::comm::nccl(ranks::rank(), ranks::size(), ranks::hand_out, deadline, grace) {}
};

}  // namespace test
