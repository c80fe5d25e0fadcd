// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "recipe.hpp"

/// In place of on_cuda.cu, where there is no nvcc.
c_api::made c_api::make_on_cuda(recipe const&) {
  throw std::invalid_argument("on_cuda must be 0: this library was built without CUDA");
}
