// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "any_optimizer.hpp"

/// In place of on_cuda.cu, where there is no nvcc.
std::unique_ptr<c_api::any_optimizer> c_api::make_on_cuda(recipe const&) {
  throw std::invalid_argument("on_cuda must be 0: this library was built without CUDA");
}
