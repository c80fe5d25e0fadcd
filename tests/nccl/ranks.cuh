// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/comm/nccl.cuh>

#include "gpu/support.cuh"
#include "nccl/launch.hpp"
#include "support/ranks.hpp"

#include <chrono>
#include <cstdlib>

namespace test {

/// The deadline of a meeting: shorter than that of the program, so that the message says who is missing. A device in
/// software needs a longer one.
inline std::chrono::seconds usual_deadline() {
  char const* const seconds = std::getenv("DESCENT_TEST_DEADLINE");
  return std::chrono::seconds(seconds ? std::atoi(seconds) : 60);
}

/// The communicator of all ranks that main.cpp has started.
struct joined : descent::comm::nccl {
  explicit joined(std::chrono::nanoseconds deadline = usual_deadline(),
                  std::chrono::nanoseconds grace = std::chrono::seconds(5))
      : descent::comm::nccl(ranks::rank(), ranks::size(), ranks::hand_out, deadline, grace) {}
};

}  // namespace test
