// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// A client's optimizer as its trainer sees it, in C++17: gradients in half, which are elsewhere in each step and
// multiplied by a loss scale; values, moments and masters in tensors of its own; work on the stream that it is given.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <memory>
#include <vector>

struct tensor {
  __half* value;
  float *master, *m, *v;
  std::int64_t count;
};

class adam {
 public:
  virtual ~adam() = default;
  /// gradients: of each tensor, times the loss scale; inverse_scale: where 1 / scale is, in the trainer's memory.
  virtual void step(std::vector<__half*> const& gradients, void* stream) = 0;
};

struct settings { float lr, beta1, beta2, eps, weight_decay; };

/// What the client had: its own loop or kernel.
std::unique_ptr<adam> make_before(settings const&, std::vector<tensor> const&, float const* inverse_scale,
                                  void* stream);
/// The same through descent.
std::unique_ptr<adam> make_after(settings const&, std::vector<tensor> const&, float const* inverse_scale, void* stream);
