// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace descent {

/// What the last call of step() did. Reading it from a CUDA optimizer waits for its stream.
struct step_report {
  std::int64_t step = 0;     ///< updates applied so far
  std::int64_t skipped = 0;  ///< calls that changed nothing
  bool applied = false;      ///< whether the last call changed the parameters
  std::string why;           ///< if not, why not
  double learning_rate = 0;  ///< of group 0, in the last applied update; not a number if the rule has no lr
  double grad_norm = 0;      ///< global L2 norm of the last call, before clipping; not a number if nothing measures it
  double clip_factor = 1;    ///< what the last applied update multiplied every gradient by
};

/// What an optimizer owns.
struct memory_report {
  struct buffer {
    std::string name;  ///< "master" or "state m", with its type
    std::int64_t bytes;
  };
  std::vector<buffer> buffers;
  std::int64_t parameters = 0;
  std::int64_t bytes = 0;  ///< the sum of all buffers

  double bytes_per_parameter() const { return parameters ? double(bytes) / double(parameters) : 0; }
};

}  // namespace descent
