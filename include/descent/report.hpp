// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/core/math.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace descent {

/// What the last call of step() did. Reading it from a CUDA optimizer waits for the stream.
struct step_report {
  std::int64_t step = 0;     ///< updates applied so far
  std::int64_t skipped = 0;  ///< updates skipped so far, without any change: a gradient, the loss or a term was not
                             ///< finite, a field was out of its range, or there were no examples
  bool applied = false;      ///< whether the last call changed the parameters
  std::string why;           ///< the reason, if it did not
  double learning_rate = 0;  ///< of group 0, in the last applied update; NaN if the rule has no lr
  double loss_scale = 1;     ///< for the next backward pass
  double grad_norm = 0;      ///< of the true gradients of all groups in the last update, before clipping; the clip
                             ///< policy's norm, or L2; NaN if nothing measures it
  double clip_factor = 1;  ///< of the last applied update; the smallest if groups or tensors are clipped separately
  bool checked = false;  ///< whether a gradient that is not finite skips the step (skip_nonfinite, or implied)

  /// The report as one line, without what is not known, and without a clip factor or loss scale of 1:
  ///
  ///     step 20: applied, lr 0.05, norm 3.2, clip factor 0.31, loss scale 65536, 1 skipped so far
  ///     step 20: not applied, the gradient of 'w' is not finite, loss scale 32768, 2 skipped so far
  std::string text() const {
    std::string line = "step " + std::to_string(step) + (applied ? ": applied" : ": not applied, " + why);
    auto const add = [&](char const* name, double x) { line += name + detail::number(x); };
    if (applied && !is_nan(learning_rate)) add(", lr ", learning_rate);
    if (applied && !is_nan(grad_norm)) add(", norm ", grad_norm);
    if (applied && clip_factor != 1) add(", clip factor ", clip_factor);
    if (loss_scale != 1) add(", loss scale ", loss_scale);
    return line + (skipped ? ", " + std::to_string(skipped) + " skipped so far" : "");
  }
};

/// One tensor's gradient, as the last read-only pass saw it.
struct gradient_state {
  std::string name;  ///< of the parameter
  bool finite;  ///< whether all of its elements are finite
  double norm;  ///< of the gradient in memory, so with the loss scale and the weights of the micro-batches
};

/// The memory that an optimizer owns.
struct memory_report {
  /// One kind of memory.
  struct buffer {
    std::string name;  ///< such as "master" or "state m", with its type
    std::int64_t bytes;  ///< for all parameters together
  };
  std::vector<buffer> buffers;  ///< all that the optimizer owns
  std::int64_t parameters = 0;  ///< elements of all parameters
  std::int64_t bytes = 0;  ///< the sum of all buffers

  /// The mean over all elements; 0 without any.
  double bytes_per_parameter() const { return parameters ? double(bytes) / double(parameters) : 0; }
};

}  // namespace descent
