// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>
#include <descent/core/policy.hpp>
#include <descent/core/range.hpp>

#include <cstdint>

namespace descent {

/// Cautious weight decay (Chen et al. 2025, arXiv 2510.12402) around any rule: decoupled decay of the elements that the
/// update moves towards zero already.
///
///     u = p - next                                what the rule, or the policy before, takes from p
///     next <- next - lr wd p                      where u p > 0, or u p >= 0 with `at_zero`
///
/// lr is that of the group in this update; a rule without lr has no decay. u includes the rule's own weight decay, so
/// switch that off. The product's sign counts, also where u p underflows.
struct cautious_decay {
  double weight_decay = 1e-2;  ///< wd, at least 0; the default is that of adamw
  bool at_zero = false;        ///< also decays elements that the update leaves, u = 0, as the paper's formula does

  using policy_kind = kind::around<cautious_decay>;
  template <class Real> struct terms { Real decay, decay_at_zero; };
  DESCENT_HD terms<double> at(std::int64_t, double lr) const {
    return {lr * weight_decay, at_zero ? lr * weight_decay : 0};
  }
  /// The parameter, from what the rule made of it.
  template <class Real> DESCENT_HD static Real around(Real p, Real, Real next, terms<Real> const& k) {
    Real const u = p - next, up = sign(u) * p;
    return next - select(up > Real(0), k.decay, select(up < Real(0), Real(0), k.decay_at_zero)) * p;
  }
  static constexpr field_range<cautious_decay> ranges[] = {{&cautious_decay::weight_decay, at_least_0}};
};

}  // namespace descent
