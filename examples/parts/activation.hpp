// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>

#include <cmath>

namespace example {

enum class activation { identity, sigmoid, relu };

/// f(x)
template <class Real> DESCENT_HD Real value(activation f, Real x) {
  switch (f) {
    case activation::sigmoid: return Real(1) / (Real(1) + std::exp(-x));
    case activation::relu: return x > Real(0) ? x : Real(0);
    default: return x;
  }
}

/// f'(x) in terms of y = f(x), the only value kept from the forward pass.
template <class Real> DESCENT_HD Real slope(activation f, Real y) {
  switch (f) {
    case activation::sigmoid: return y * (Real(1) - y);
    case activation::relu: return y > Real(0) ? Real(1) : Real(0);
    default: return Real(1);
  }
}

}  // namespace example
