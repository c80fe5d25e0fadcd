// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "after.hpp"

std::unique_ptr<adam> make_after(settings const& s, std::vector<tensor> const& tensors, float const* inverse_scale,
                                 void*) {
  return std::make_unique<with_descent<ds::host<>>>(s, tensors, inverse_scale, ds::host<>{});
}
