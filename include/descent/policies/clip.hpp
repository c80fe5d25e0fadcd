// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>
#include <descent/core/policy.hpp>
#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

#include <cstdint>

/// Clipping. g is the true gradient, averaged and without the loss scale, so the result does not depend on the scale.
/// Norms are measured over all groups that are not frozen, in one read-only pass before any parameter changes.
namespace descent {

/// Skips the step if any gradient is not finite: values, masters, states and the step count do not change. Also
/// measures the gradient norm for report(). Every policy and rule that needs the read-only pass implies this one.
struct skip_nonfinite { using policy_kind = kind::finiteness; };

/// The sum of |g|, the Euclidean norm, or the largest |g|.
enum class norm { l1, l2, inf };

/// The eps that PyTorch adds to the norm in clip_grad_norm_.
inline constexpr double torch_eps = 1e-6;

/// Clips the norm of all gradients, or of each group or tensor separately (Pascanu et al. 2013, algorithm 1).
///
///     g <- g max / (||g|| + eps)   where ||g|| + eps > max
template <norm Norm = norm::l2, scope Over = scope::model> struct clip {
  double max = 1, eps = 0;  ///< the largest norm, above 0; eps as in the formula

  using policy_kind = kind::clip;
  /// The norm, its scope, and the factor of g.
  static constexpr char const* called = "clip_norm";  ///< in messages
  static constexpr norm of = Norm;
  static constexpr scope over = Over;
  DESCENT_HD double factor(double norm) const { return norm + eps > max ? max / (norm + eps) : 1; }
  static constexpr field_range<clip> ranges[] = {{&clip::max, above_0_or_infinite}, {&clip::eps, at_least_0}};
};

/// The usual one: the L2 norm of all gradients, with eps = 0.
using clip_norm = clip<>;

/// Adaptive gradient clipping (Brock et al. 2021, eq. 3) by units. A unit is a row of a parameter whose shape has
/// several columns, or any other parameter as a whole. Norms are Euclidean. The read-only pass reads elements of rows
/// twice, the second time from the cache.
///
///     g <- g c max(||p||, eps) / ||g||   where ||g|| > c max(||p||, eps)
struct clip_adaptive {
  double c = 0.01, eps = 1e-3;  ///< both above 0

  using policy_kind = kind::clip;
  /// The norm, its scope, and the factor of g in a unit with these norms.
  static constexpr norm of = norm::l2;
  static constexpr scope over = scope::tensor;
  DESCENT_HD double factor(double norm, double parameter_norm) const {
    double const most = c * max(parameter_norm, eps);
    return norm > most ? most / norm : 1;
  }
  static constexpr field_range<clip_adaptive> ranges[] = {{&clip_adaptive::c, above_0_or_infinite},
                                                          {&clip_adaptive::eps, above_0_or_infinite}};
};

/// Clips every element, after the norm: g <- min(max(g, -c), c). In a chain it is a transform and clips at its place.
struct clip_value {
  double c = 1;  ///< the largest |g|, above 0

  using policy_kind = kind::clip_value;
  template <class Real> struct terms { Real c; };
  DESCENT_HD static constexpr bool unbounded(std::size_t) { return true; }
  DESCENT_HD terms<double> at(std::int64_t) const { return {c}; }
  template <class Real> DESCENT_HD static Real apply(Real, Real g, terms<Real> const& k) {
    return select(g > k.c, k.c, select(g < -k.c, -k.c, g));
  }
  static constexpr field_range<clip_value> ranges[] = {{&clip_value::c, above_0_or_infinite}};
};

}  // namespace descent
