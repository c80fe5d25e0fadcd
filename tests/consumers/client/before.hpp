// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The client's update of one element: moments in float, betas in float, powers of the betas as running products.
#pragma once

#include "adam.hpp"

#include <cmath>

#if defined(__CUDACC__)
#define CLIENT_CALLS __host__ __device__
#else
#define CLIENT_CALLS
#endif

struct factors { float lr, beta1, beta2, correction1, correction2, eps, weight_decay; };

inline factors factors_at(settings const& s, int t) {
  return {s.lr,  s.beta1,       s.beta2, 1.0f - std::pow(s.beta1, float(t)), 1.0f - std::pow(s.beta2, float(t)),
          s.eps, s.weight_decay};
}

CLIENT_CALLS inline void update(tensor const& x, __half const* gradient, std::int64_t i, float inverse_scale,
                                factors const& k) {
  float const g = __half2float(gradient[i]) * inverse_scale;
  float const m = x.m[i] = g + k.beta1 * (x.m[i] - g);
  float const v = x.v[i] = g * g + k.beta2 * (x.v[i] - g * g);
  float const m_hat = m / k.correction1, v_hat = v / k.correction2;
  x.master[i] -= k.lr * (m_hat / (sqrtf(v_hat) + k.eps) + k.weight_decay * x.master[i]);
  x.value[i] = __float2half_rn(x.master[i]);
}
