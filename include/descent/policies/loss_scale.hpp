// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/core/math.hpp>
#include <descent/core/policy.hpp>

#include <cstdint>
#include <limits>
#include <string>

/// Loss scaling (Micikevicius et al. 2018, section 3.2): the loss is multiplied by a scale before the backward pass, so
/// that small gradients survive in half, and the gradients are divided by it. A step whose gradients are not all finite
/// is skipped.
namespace descent {

/// When all overflows are forgiven again: after every clean step, as in apex, or when the scale grows, as in Megatron.
enum class refill { clean_step, growth };

struct loss_scale_state {
  float scale = 1;
  std::int32_t good = 0;   ///< clean steps since the scale last grew or a step was skipped; not of a static scale
  std::int32_t left = 1;   ///< overflows until one lowers the scale; 0: each one does
  std::int32_t stuck = 0;  ///< skips in a row at the smallest scale
};

namespace detail {
/// Throws unless gradients can be multiplied by x and divided by it.
inline void require_scale(char const* name, char const* field, double x) {
  bool const positive = is_finite(x) && x > 0 && is_finite(float(x)) && is_finite(float(1 / double(float(x))));
  require(positive, name, field, "above 0 and finite in float, as its inverse", x);
}
inline void require_scale(double x) { require_scale("loss scale", "the scale", x); }
DESCENT_HD inline void count_stuck(loss_scale_state& s) { s.stuck += s.stuck < 0x7fffffff; }
/// Throws std::invalid_argument on a state in which the policy is never.
template <class Policy> void require_scale_state(Policy const& policy, loss_scale_state const& s) {
  require_scale(s.scale);
  require(s.stuck >= 0, "loss scale", "the count of skips in a row", "at least 0", s.stuck);
  if constexpr (requires { policy.check(s); }) policy.check(s);
}
}  // namespace detail

/// A scale that follows the gradients: times `backoff` after a step with a gradient that is not finite, times `growth`
/// after every `interval` clean steps in a row, and always within [min, max].
///
///     scale <- scale * backoff      after an overflow, but for the first hysteresis - 1 that are forgiven
///     scale <- scale * growth       after `interval` clean steps, if that is finite
///
/// It is torch.amp.GradScaler, bit for bit, where min and max are out of the way; apex's update_scale_hysteresis; and
/// Megatron's DynamicGradScaler with refill::growth.
struct dynamic_loss_scale {
  double init = 65536, growth = 2, backoff = 0.5;
  int interval = 2000;
  double min = 1, max = 16777216;
  int hysteresis = 1;
  descent::refill refill = descent::refill::clean_step;
  int patience = 20;  ///< skips in a row at `min` that mean that the training is stuck

  using policy_kind = kind::loss_scale;

  DESCENT_HD loss_scale_state start() const { return {float(init), 0, hysteresis, 0}; }

  /// After a step, given whether all gradients were finite. Products are in double, then rounded to float.
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

  DESCENT_HD bool is_stuck(loss_scale_state const& s) const { return s.stuck >= patience; }

  void check() const {
    constexpr char const* name = "dynamic_loss_scale";
    constexpr double largest = std::numeric_limits<float>::max();
    detail::require_scale(name, "min", min);
    detail::require(max >= min && max <= largest, name, "max", "at least min and finite in float", max);
    detail::require(init >= min && init <= max, name, "init", "in [min, max]", init);
    detail::require(growth > 1 && is_finite(growth), name, "growth", "above 1 and finite", growth);
    detail::require(backoff > 0 && backoff < 1, name, "backoff", "in (0, 1)", backoff);
    detail::require(interval >= 1, name, "interval", "at least 1", interval);
    detail::require(hysteresis >= 1, name, "hysteresis", "at least 1", hysteresis);
    detail::require(patience >= 1, name, "patience", "at least 1", patience);
  }
  /// Of a state that is put back.
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

/// The same scale for ever.
struct static_loss_scale {
  double scale = 128;
  int patience = 20;  ///< skips in a row that mean that the training is stuck

  using policy_kind = kind::loss_scale;

  DESCENT_HD loss_scale_state start() const { return {float(scale), 0, 1, 0}; }
  DESCENT_HD void next(loss_scale_state& s, bool finite) const {
    if (finite) s.stuck = 0;
    else detail::count_stuck(s);
  }
  DESCENT_HD bool is_stuck(loss_scale_state const& s) const { return s.stuck >= patience; }

  void check() const {
    detail::require_scale("static_loss_scale", "scale", scale);
    detail::require(patience >= 1, "static_loss_scale", "patience", "at least 1", patience);
  }
};

}  // namespace descent
