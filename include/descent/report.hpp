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
  std::int64_t skipped = 0;  ///< updates that were skipped, and changed nothing: a gradient, the loss or a term of the
                             ///< rule or a policy was not finite
  bool applied = false;      ///< whether the last call changed the parameters
  std::string why;           ///< if not, why not
  double learning_rate = 0;  ///< of group 0, in the last applied update; not a number if the rule has no lr
  double loss_scale = 1;     ///< for the next backward pass
  double grad_norm = 0;      ///< of the true gradients in the last update, before clipping, all groups, L2 or the clip
                             ///< policy's; not a number if nothing measures it
  double clip_factor = 1;    ///< of the last applied update; where groups or tensors are clipped each, the smallest
  bool checked = false;      ///< whether gradients that are not finite skip a step: skip_nonfinite or what implies it
};

/// A tensor as the last read-only pass saw it.
struct gradient_state {
  std::string name;
  bool finite;
  double norm;  ///< as memory has it: times the loss scale and the weights of the micro-batches
};

/// What an optimizer owns.
struct memory_report {
  struct buffer {
    std::string name;  ///< such as "master" or "state m", with its type
    std::int64_t bytes;
  };
  std::vector<buffer> buffers;
  std::int64_t parameters = 0;
  std::int64_t bytes = 0;  ///< the sum of all buffers

  double bytes_per_parameter() const { return parameters ? double(bytes) / double(parameters) : 0; }
};

}  // namespace descent
