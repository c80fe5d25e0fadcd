// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>
#include <descent/core/policy.hpp>
#include <descent/core/rule.hpp>

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

/// Leaves an element where its update does not agree with the gradient.
struct agreeing {
  using policy_kind = descent::kind::around<agreeing>;
  template <class Real> struct terms {};
  DESCENT_HD terms<double> at(std::int64_t, double) const { return {}; }
  template <class Real> DESCENT_HD static Real around(Real p, Real g, Real next, terms<Real> const&) {
    using descent::select;
    return select((p - next) * g > Real(0), next, p);
  }
};

/// Changes nothing.
struct unchanged {
  using policy_kind = descent::kind::around<unchanged>;
  template <class Real> struct terms {};
  DESCENT_HD terms<double> at(std::int64_t, double) const { return {}; }
  template <class Real> DESCENT_HD static Real around(Real, Real, Real next, terms<Real> const&) { return next; }
};

/// Shortens the update of each tensor whose root mean square is above `most` learning rates.
struct bounded_update {
  double most = 1;

  using policy_kind = descent::kind::around<bounded_update>;
  template <class Real> struct terms { Real factor; };
  template <class Real> struct sums { Real uu, count; };
  static constexpr descent::scope sums_over = descent::scope::tensor;
  DESCENT_HD terms<double> at(std::int64_t, double) const { return {1}; }
  DESCENT_HD terms<double> at(std::int64_t, double lr, sums<double> const& total) const {
    double const rms = total.count > 0 ? descent::sqrt(total.uu / total.count) : 0;
    return {rms > most * lr ? most * lr / rms : 1};
  }
  template <class Real> DESCENT_HD static sums<Real> sum(Real p, Real, Real next, terms<Real> const&) {
    return {(next - p) * (next - p), Real(1)};
  }
  template <class Real> DESCENT_HD static Real around(Real p, Real, Real next, terms<Real> const& k) {
    using descent::select;
    return select(k.factor < Real(1), p + k.factor * (next - p), next);
  }
};

}  // namespace test
