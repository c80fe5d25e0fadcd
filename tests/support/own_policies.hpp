// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>
#include <descent/core/policy.hpp>

#include <cstdint>

/// Policies that a user could write.
namespace test {

/// Pulls to slow weights with a momentum, not further than `most`, in every k-th update.
struct bounded_pull {
  int k = 2;
  double alpha = 0.5, momentum = 0.5, most = 0.01;

  using policy_kind = descent::kind::lookahead;
  template <class Real> struct kept { Real slow, b; };
  template <class Real> struct terms { Real alpha, momentum, most; };
  DESCENT_HD terms<double> at(std::int64_t t) const { return {t % k == 0 ? alpha : 0, momentum, most}; }
  template <class Real> DESCENT_HD static bool idle(terms<Real> const& k) { return k.alpha == 0; }
  template <class Real> DESCENT_HD static Real after(Real p, kept<Real>& s, terms<Real> const& k) {
    using descent::max, descent::min;
    s.b = k.momentum * s.b + k.alpha * (p - s.slow);
    return s.slow = s.slow + min(max(s.b, -k.most), k.most);
  }
};

/// The mean of the parameters with weights t^power, about.
struct late_mean {
  double power = 2;

  using policy_kind = descent::kind::average;
  template <class Real> struct terms { Real take; };
  DESCENT_HD terms<double> at(std::int64_t t) const { return {(power + 1) / (double(t) + power)}; }
  template <class Real> DESCENT_HD static Real after(Real p, Real e, terms<Real> const& k) {
    return e + k.take * (p - e);
  }
};

}  // namespace test
