// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/rules/adamw.hpp>

#include <cstdint>

/// One step of descent::adamw on arrays and a step count that belong to someone else. A rule is a struct of plain
/// functions, so it needs no optimizer around it.
namespace adamw_step {

using descent::adamw;

/// A parameter p with its gradient g and its moments m and v, n elements each.
struct tensor {
  float* p;
  float const* g;
  float *m, *v;
  std::int64_t n;
};

/// The terms of update t in float. To use another rule, name its terms here and its state below.
DESCENT_HD inline adamw::terms<float> terms_of(adamw rule, float lr, std::int64_t t) {
  rule.lr = double(lr);
  adamw::terms<double> const k = rule.at(t);
  return {float(k.lr), float(k.b1), float(k.a1), float(k.b2), float(k.a2),
          float(k.m_unbias), float(k.v_unbias), float(k.eps), float(k.wd)};
}

/// Whether a step with this rate and count is one. What comes with a call is checked where it lies.
DESCENT_HD inline bool is_step(float lr, std::int32_t count) { return descent::is_finite(lr) && lr >= 0 && count >= 0; }
/// The count after a step. It stays at the largest number, like optax's.
DESCENT_HD inline std::int32_t counted(std::int32_t count) { return count < 0x7fffffff ? count + 1 : count; }

DESCENT_HD inline void update(tensor const& x, std::int64_t i, adamw::terms<float> const& k) {
  adamw::state<float> s{x.m[i], x.v[i]};
  x.p[i] = adamw::update(x.p[i], x.g[i], s, k);
  x.m[i] = s.m, x.v[i] = s.v;
}

}  // namespace adamw_step
