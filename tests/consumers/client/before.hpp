// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The client's own optimizer: moments, betas and corrections in float. How a tensor is updated is left to the host's
// loop and the device's kernel.
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

/// update_tensor(x, gradient, inverse_scale, factors, stream) updates each element of a tensor.
template <auto update_tensor> class own : public adam {
 public:
  own(settings const& s, std::vector<tensor> const& tensors, float const* inverse_scale)
      : settings_(s), tensors_(tensors), inverse_scale_(inverse_scale) {}
  void step(std::vector<__half*> const& gradients, void* stream) override {
    factors const k = factors_at(settings_, ++t_);
    for (std::size_t n = 0; n < tensors_.size(); ++n)
      update_tensor(tensors_[n], gradients[n], inverse_scale_, k, stream);
  }

 private:
  settings settings_;
  std::vector<tensor> tensors_;
  float const* inverse_scale_;
  int t_ = 0;
};
