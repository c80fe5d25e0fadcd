// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/core/math.hpp>
#include <descent/core/policy.hpp>
#include <descent/core/range.hpp>

#include <cstdint>
#include <limits>
#include <string>

/// Loss scaling (Micikevicius et al. 2018, section 3.2): the loss is multiplied by a scale before the backward pass, so
/// that small gradients survive in half, and the gradients are divided by the scale. A step is skipped if any gradient
/// is not finite.
namespace descent {

/// When the count of tolerated overflows is reset: after every clean step, as in apex, or at growth, as in Megatron.
enum class refill { clean_step, growth };

/// The state of a loss scale. It may be copied, saved and restored.
struct loss_scale_state {
  float scale = 1;         ///< the factor of the next loss
  std::int32_t good = 0;   ///< clean steps since the scale last grew or a step was skipped; dynamic scales only
  std::int32_t left = 1;   ///< overflows until one lowers the scale; at 0 each one does
  std::int32_t stuck = 0;  ///< skipped steps in a row at the smallest scale
};

namespace detail {
/// Throws unless gradients can be both multiplied and divided by x.
inline void require_scale(char const* name, char const* field, double x) {
  bool const positive = is_finite(x) && x > 0 && is_finite(float(x)) && is_finite(float(1 / double(float(x))));
  require(positive, name, field, "above 0 and, like its inverse, finite in float", x);
}
inline void require_scale(double x) { require_scale("loss scale", "the scale", x); }
DESCENT_HD inline void count_stuck(loss_scale_state& s) { s.stuck += s.stuck < 0x7fffffff; }
/// Throws std::invalid_argument if the policy can never have this state.
template <class Policy> void require_scale_state(Policy const& policy, loss_scale_state const& s) {
  require_scale(s.scale);
  require(s.stuck >= 0, "loss scale", "the count of skips in a row", "at least 0", s.stuck);
  if constexpr (requires { policy.check(s); }) policy.check(s);
}
}  // namespace detail

/// A scale that adapts to the gradients: times `backoff` after a step with a gradient that is not finite, times
/// `growth` after every `interval` clean steps in a row, and always within [min, max].
///
///     scale <- scale * backoff      after an overflow, except the first hysteresis - 1, which are tolerated
///     scale <- scale * growth       after `interval` clean steps, if the result is finite
///
/// It equals torch.amp.GradScaler bit for bit if min and max are never reached. It also equals apex's
/// update_scale_hysteresis and, with refill::growth, Megatron's DynamicGradScaler.
struct dynamic_loss_scale {
  double init = 65536, growth = 2, backoff = 0.5;  ///< the first scale; factors, above 1 and in (0, 1)
  int interval = 2000;                             ///< clean steps in a row before the scale grows
  double min = 1, max = 16777216;                  ///< limits of the scale
  int hysteresis = 1;                              ///< overflows until one lowers the scale
  descent::refill refill = descent::refill::clean_step;  ///< when hysteresis is reset
  int patience = 20;  ///< skipped steps in a row at `min` after which the training counts as stuck

  using policy_kind = kind::loss_scale;

  DESCENT_HD loss_scale_state start() const { return {float(init), 0, hysteresis, 0}; }

  /// Updates the state after a step, given whether all gradients were finite. Products are in double, rounded to float.
  DESCENT_HD void next(loss_scale_state& s, bool finite) const {
    float const lowest = float(min), highest = float(max);
    if (!finite) {
      s.good = 0;
      if (s.scale <= lowest) detail::count_stuck(s);
      if (s.left > 0) --s.left;
      if (s.left == 0 && s.scale > lowest) s.scale = descent::max(float(double(s.scale) * backoff), lowest);
      return;
    }
    s.stuck = 0;
    s.good += s.good < interval;
    bool const grows = s.good >= interval;
    if (grows) {
      float const grown = float(double(s.scale) * growth);
      if (is_finite(grown) && s.scale < highest) s.scale = descent::min(grown, highest);
      s.good = 0;
    }
    if (grows || refill == descent::refill::clean_step) s.left = hysteresis;
  }

  /// Whether `patience` steps in a row were skipped.
  DESCENT_HD bool is_stuck(loss_scale_state const& s) const { return s.stuck >= patience; }

  static constexpr field_range<dynamic_loss_scale> ranges[] = {{&dynamic_loss_scale::growth, above_1},
                                                               {&dynamic_loss_scale::backoff, inside_0_1},
                                                               {&dynamic_loss_scale::interval, from_1},
                                                               {&dynamic_loss_scale::hysteresis, from_1},
                                                               {&dynamic_loss_scale::patience, from_1}};
  void check() const {
    constexpr char const* name = "dynamic_loss_scale";
    constexpr double largest = std::numeric_limits<float>::max();
    detail::require_scale(name, "min", min);
    detail::require(max >= min && max <= largest, name, "max", "at least min and finite in float", max);
    detail::require(init >= min && init <= max, name, "init", "in [min, max]", init);
  }
  /// Checks a state that is to be restored.
  void check(loss_scale_state const& s) const {
    auto const within = [](auto x, auto low, auto high, char const* field) {
      std::string const range = "in [" + detail::number(low) + ", " + detail::number(high) + "]";
      detail::require(x >= low && x <= high, "loss scale", field, range.c_str(), x);
    };
    within(s.scale, float(min), float(max), "the scale");
    within(s.good, 0, interval, "the count of clean steps");
    within(s.left, 0, hysteresis, "the count of overflows left");
  }
};

/// A scale that never changes.
struct static_loss_scale {
  double scale = 128;  ///< above 0 and, like its inverse, finite in float
  int patience = 20;   ///< skipped steps in a row after which the training counts as stuck

  using policy_kind = kind::loss_scale;

  DESCENT_HD loss_scale_state start() const { return {float(scale), 0, 1, 0}; }
  /// Counts the steps that are skipped in a row.
  DESCENT_HD void next(loss_scale_state& s, bool finite) const {
    if (finite) s.stuck = 0;
    else detail::count_stuck(s);
  }
  /// Whether `patience` steps in a row were skipped.
  DESCENT_HD bool is_stuck(loss_scale_state const& s) const { return s.stuck >= patience; }

  static constexpr field_range<static_loss_scale> ranges[] = {{&static_loss_scale::patience, from_1}};
  void check() const { detail::require_scale("static_loss_scale", "scale", scale); }
};

}  // namespace descent
