// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "before.hpp"

static void update_all(tensor const& x, __half const* gradient, float const* inverse_scale, factors const& k, void*) {
  for (std::int64_t i = 0; i < x.count; ++i) update(x, gradient, i, *inverse_scale, k);
}

std::unique_ptr<adam> make_before(settings const& s, std::vector<tensor> const& tensors, float const* inverse_scale,
                                  void*) {
  return std::make_unique<own<update_all>>(s, tensors, inverse_scale);
}
