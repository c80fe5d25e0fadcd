// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/schedules/plateau.hpp>

#include <concepts>

namespace descent {

/// Multiplies every learning rate, after its schedule if it has one, by the value of a plateau. The value is part of
/// the control block: optimizer::observe(metric) passes it a metric, and captured steps follow it.
///
///     optimizer opt{params, sgd{.lr = 0.1}, on_plateau{{.factor = 0.1, .patience = 10}}};
///     for (...) { ...; opt.observe(validation_loss); }
///
/// optimizer::plateau() and set_plateau() save and restore its state.
struct on_plateau {
  /// The settings, with initial = 1 and floor at least 0.
  plateau settings{};

  using policy_kind = kind::plateau;
  /// Fails to compile if the rule has no field lr.
  template <class Rule> static constexpr void require_rule() {
    static_assert(requires(Rule r) { { r.lr } -> std::same_as<double&>; },
                  "on_plateau: the rule has no field 'double lr'");
  }
  void check() const {
    settings.check();
    detail::require(settings.initial == 1, "on_plateau", "initial", "1, because it is a factor", settings.initial);
    detail::require(settings.floor >= 0, "on_plateau", "floor", "at least 0", settings.floor);
  }
};

}  // namespace descent
