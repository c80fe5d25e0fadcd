// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/schedules/plateau.hpp>

#include <concepts>

namespace descent {

/// Every learning rate, after its schedule if it has one, is multiplied by the value of a plateau, which lies in the
/// control block: optimizer::observe(metric) shows it a metric, and captured steps follow.
///
///     optimizer opt{params, sgd{.lr = 0.1}, on_plateau{{.factor = 0.1, .patience = 10}}};
///     for (...) { ...; opt.observe(validation_loss); }
///
/// optimizer::plateau() and set_plateau() save and restore its state.
struct on_plateau {
  plateau settings{};

  using policy_kind = kind::plateau;
  template <class Rule> static constexpr void require_rule() {
    static_assert(requires(Rule r) { { r.lr } -> std::same_as<double&>; },
                  "on_plateau: the rule has no field 'double lr'");
  }
  void check() const {
    settings.check();
    detail::require(settings.initial == 1, "on_plateau", "initial", "left at 1, for it is a factor", settings.initial);
    detail::require(settings.floor >= 0, "on_plateau", "floor", "at least 0", settings.floor);
  }
};

}  // namespace descent
