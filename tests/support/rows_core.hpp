// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>

#include "row.hpp"

namespace test {

inline std::tuple const core_rows{
    row{"sgd", descent::sgd{.lr = 0.01}},
    row{"sgd, momentum, dampening", descent::sgd{.lr = 0.01, .momentum = 0.9, .dampening = 0.3}},
    row{"sgd, nesterov, decay", descent::sgd{.lr = 0.01, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}},
    row{"sgd, momentum, decoupled decay",
        descent::sgd{.lr = 0.01, .momentum = 0.9, .weight_decay = 0.1, .decoupled = true}},
    row{"adam", descent::adam{.lr = 0.002}},
    row{"adam, decay", descent::adam{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-3, .weight_decay = 0.1}},
    row{"adam, eps on raw", descent::adam{.lr = 0.01, .eps = 1e-2, .eps_hat = true}},
    row{"adamw", descent::adamw{.lr = 0.002}},
    row{"adamw, decay", descent::adamw{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1}},
    row{"rmsprop", descent::rmsprop{.lr = 0.002}},
    row{"rmsprop, eps inside", descent::rmsprop{.lr = 0.002, .eps = 1e-3, .eps_inside = true}},
    row{"rmsprop, initial, decoupled decay",
        descent::rmsprop{.lr = 0.002, .weight_decay = 0.1, .initial = 0.5, .decoupled = true}},
    row{"rmsprop, momentum", descent::rmsprop{.lr = 0.001, .alpha = 0.9, .momentum = 0.8}},
    row{"rmsprop, centered, momentum, decay",
        descent::rmsprop{.lr = 0.001, .alpha = 0.95, .weight_decay = 0.01, .momentum = 0.8, .centered = true}},
    // Betas with few bits, so that float and double agree where b1 m + (1 - b1) g is exactly 0: there Lion does not
    // move, and LAMB's ratio is 1 for a tensor of such elements only.
    row{"lion", descent::lion{.lr = 0.001, .beta1 = 0.875, .beta2 = 0.96875}},
    row{"lion, decay", descent::lion{.lr = 0.002, .beta1 = 0.75, .beta2 = 0.9375, .weight_decay = 0.1}},
    row{"lamb", descent::lamb{.lr = 0.002, .beta1 = 0.875}},
    row{"lamb, decay", descent::lamb{.lr = 0.01, .beta1 = 0.75, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1}},
    row{"lamb, limited",
        descent::lamb{.lr = 0.01, .beta1 = 0.875, .weight_decay = 0.1, .max_ratio = 2, .averaging = false}},
    row{"lamb, rate corrected",
        descent::lamb{.lr = 0.01, .beta1 = 0.875, .weight_decay = 0.1, .eps_root = 1e-3, .correct_rate = true}},
    row{"lars", descent::lars{.lr = 0.5, .trust = 0.01}},
    row{"lars, no momentum, decay", descent::lars{.lr = 0.5, .momentum = 0, .weight_decay = 0.1, .trust = 0.01}},
    row{"lars, nesterov, joint norm",
        descent::lars{
            .lr = 0.5, .weight_decay = 0.1, .trust = 0.01, .eps = 1e-3, .nesterov = true, .joint_norm = true}},
    row{"dog", descent::dog{.reps = 1e-3}},
    row{"dog, decay", descent::dog{.lr = 0.5, .reps = 1e-2, .weight_decay = 0.05}},
};

template <> inline constexpr double most_ulps<descent::sgd> = 16;  // g + mu b, or decay p, in p near 0
template <> inline constexpr double most_ulps<descent::adam> = 8;  // g + wd p in m
template <> inline constexpr double most_ulps<descent::lamb> = 8;  // rate u in p near 0
template <>
inline constexpr double most_ulps<descent::lars> = 16;  // mu b + step, larger than p, in p near 0

// Rules with one, two and three members of the state, some stored only if used.
template <> inline constexpr bool in_every_storage<descent::sgd> = true;
template <> inline constexpr bool in_every_storage<descent::adamw> = true;
template <> inline constexpr bool in_every_storage<descent::rmsprop> = true;

}  // namespace test
