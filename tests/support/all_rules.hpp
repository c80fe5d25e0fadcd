// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/descent.hpp>

#include <string>
#include <tuple>
#include <type_traits>

/// Every rule of the library with settings that reach each of its branches. A row here is all that
/// a new rule needs to be tried by every test of laws, storage, sizes and systems.
namespace test {

template <class Rule> struct row {
  std::string name;
  Rule rule;
};

inline std::tuple const all_rules{
    row{"sgd", descent::sgd{.lr = 0.01}},
    row{"sgd, momentum, dampening", descent::sgd{.lr = 0.01, .momentum = 0.9, .dampening = 0.3}},
    row{"sgd, nesterov, decay",
        descent::sgd{.lr = 0.01, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}},
    row{"adam", descent::adam{.lr = 0.002}},
    row{"adam, decay",
        descent::adam{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-3, .weight_decay = 0.1}},
    row{"adamw", descent::adamw{.lr = 0.002}},
    row{"adamw, decay",
        descent::adamw{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1}},
    row{"rmsprop", descent::rmsprop{.lr = 0.002}},
    row{"rmsprop, momentum", descent::rmsprop{.lr = 0.001, .alpha = 0.9, .momentum = 0.8}},
    row{"rmsprop, centered, momentum, decay",
        descent::rmsprop{
            .lr = 0.001, .alpha = 0.95, .weight_decay = 0.01, .momentum = 0.8, .centered = true}},
    // Betas of few bits, so that float and double agree where b1 m + (1 - b1) g is exactly 0: then
    // Lion does not move, and LAMB's ratio is 1 for a tensor that is all such.
    row{"lion", descent::lion{.lr = 0.001, .beta1 = 0.875, .beta2 = 0.96875}},
    row{"lion, decay",
        descent::lion{.lr = 0.002, .beta1 = 0.75, .beta2 = 0.9375, .weight_decay = 0.1}},
    row{"lamb", descent::lamb{.lr = 0.002, .beta1 = 0.875}},
    row{"lamb, decay",
        descent::lamb{.lr = 0.01, .beta1 = 0.75, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1}},
    row{"lars", descent::lars{.lr = 0.5, .trust = 0.01}},
    row{"lars, no momentum, decay",
        descent::lars{.lr = 0.5, .momentum = 0, .weight_decay = 0.1, .trust = 0.01}},
    row{"lars, nesterov, joint norm", descent::lars{.lr = 0.5,
                                                    .weight_decay = 0.1,
                                                    .trust = 0.01,
                                                    .eps = 1e-3,
                                                    .nesterov = true,
                                                    .joint_norm = true}},
    row{"dog", descent::dog{.reps = 1e-3}},
    row{"dog, decay", descent::dog{.lr = 0.5, .reps = 1e-2, .weight_decay = 0.05}},
};

/// Calls f(row) for every setting of every rule.
template <class F> void each_rule(F f) {
  std::apply([&](auto const&... rows) { (f(rows), ...); }, all_rules);
}

/// Calls f(row) for every setting of one rule.
template <class Rule, class F> void each_setting(F f) {
  each_rule([&](auto const& r) {
    if constexpr (std::is_same_v<decltype(r), row<Rule> const&>) f(r);
  });
}

/// How far one step may be from the rounded step in double, in ulp of the larger of the number
/// before and after. More than 4 where a sum of larger terms may nearly vanish, so that their
/// rounding shows in a small number.
template <class Rule> inline constexpr double most_ulps = 4;
template <> inline constexpr double most_ulps<descent::sgd> = 8;   // g + mu b in p near 0
template <> inline constexpr double most_ulps<descent::adam> = 8;  // g + wd p in m
template <> inline constexpr double most_ulps<descent::lamb> = 8;  // rate u in p near 0
template <>
inline constexpr double most_ulps<descent::lars> = 16;  // mu b + step, larger than p, in p near 0

/// Element i depends on its tensor only through the rule's terms.
template <class Rule> inline constexpr bool elementwise = !descent::has_sums<Rule>;

/// Tensors depend on each other.
template <class Rule>
inline constexpr bool modelwide = [] {
  if constexpr (descent::has_sums<Rule>) return Rule::sums_over == descent::scope::model;
  else return false;
}();

}  // namespace test
