// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/rules/adadelta.hpp>
#include <descent/rules/adafactor.hpp>
#include <descent/rules/adagrad.hpp>
#include <descent/rules/adamax.hpp>
#include <descent/rules/amsgrad.hpp>
#include <descent/rules/asgd.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/radam.hpp>
#include <descent/rules/rprop.hpp>
#include <descent/rules/sm3.hpp>

#include "row.hpp"

namespace test {

inline std::tuple const torch_rows{
    row{"adagrad", descent::adagrad{.lr = 0.02}},
    row{"adagrad, lr decay, decay, initial",
        descent::adagrad{.lr = 0.05, .lr_decay = 0.01, .eps = 1e-2, .weight_decay = 0.05, .initial = 0.5}},
    row{"adagrad, eps inside", descent::adagrad{.lr = 0.02, .eps = 1e-2, .initial = 0.25, .eps_inside = true}},
    row{"adadelta", descent::adadelta{.lr = 0.5}},
    row{"adadelta, decay", descent::adadelta{.lr = 0.2, .rho = 0.8, .eps = 1e-4, .weight_decay = 0.05}},
    row{"adamax", descent::adamax{.lr = 0.002}},
    row{"adamax, decay", descent::adamax{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-2, .weight_decay = 0.1}},
    row{"nadam", descent::nadam{.lr = 0.002}},
    row{"nadam, decay",
        descent::nadam{
            .lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1, .momentum_decay = 0.02}},
    row{"nadam, decoupled", descent::nadam{.lr = 0.01, .beta2 = 0.99, .weight_decay = 0.1, .decoupled = true}},
    row{"radam", descent::radam{.lr = 0.002}},
    row{"radam, never adapts",
        descent::radam{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.6, .eps = 1e-3, .weight_decay = 0.1}},
    row{"radam, decoupled", descent::radam{.lr = 0.01, .beta2 = 0.95, .weight_decay = 0.1, .decoupled = true}},
    row{"asgd", descent::asgd{.lr = 0.01}},
    row{"asgd, mean, decay", descent::asgd{.lr = 0.05, .lambd = 0.05, .alpha = 0.6, .t0 = 1, .weight_decay = 0.02}},
    row{"rprop", descent::rprop{.lr = 0.01}},
    row{"rprop, narrow",
        descent::rprop{.lr = 0.03125, .eta_minus = 0.75, .eta_plus = 1.5, .min_step = 1e-3, .max_step = 0.03125}},
    row{"amsgrad", descent::amsgrad{.lr = 0.002}},
    row{"amsgrad, decay", descent::amsgrad{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1}},
    row{"amsgrad, decoupled", descent::amsgrad{.lr = 0.01, .beta2 = 0.95, .weight_decay = 0.1, .decoupled = true}},
    row{"heavy ball", descent::heavy_ball{.lr = 0.01}},
    row{"heavy ball, no momentum", descent::heavy_ball{.lr = 0.01, .momentum = 0, .weight_decay = 0.05}},
    row{"heavy ball, nesterov, decay, correction",
        descent::heavy_ball{.lr = 0.01, .momentum = 0.8, .weight_decay = 0.01, .nesterov = true, .correction = true}},
    // Without `matrices`, these are rules for vectors.
    row{"adafactor", descent::adafactor{.lr = 0.01}},
    row{"adafactor, eps added, momentum, decay, not capped", descent::adafactor{.lr = 0.005,
                                                                                .beta2_decay = 0.7,
                                                                                .eps1 = 1e-4,
                                                                                .clip = 0.75,
                                                                                .weight_decay = 0.1,
                                                                                .momentum = 0.75,
                                                                                .eps_added = true,
                                                                                .capped = false}},
    row{"adafactor, not relative", descent::adafactor{.lr = 0.002, .eps1 = 1e-3, .relative = false}},
    row{"sm3", descent::sm3{.lr = 0.02}},
    row{"sm3, beta2, no momentum", descent::sm3{.lr = 0.002, .momentum = 0, .beta2 = 0.9, .eps = 1e-4}},
};

template <> inline constexpr double most_ulps<descent::adafactor> = 8;    // rate u in m near 0
template <> inline constexpr double most_ulps<descent::adadelta> = 8;     // d^2 in u, of g + wd p
template <> inline constexpr double most_ulps<descent::heavy_ball> = 16;  // mu b + step, larger than p, in p near 0

template <> inline constexpr bool lr_in_state<descent::adafactor> = true;   // m is the mean of steps
template <> inline constexpr bool lr_in_state<descent::heavy_ball> = true;  // b is the last step
template <> inline constexpr bool lr_in_state<descent::rprop> = true;       // d starts at lr

template <> inline constexpr bool moves_without_lr<descent::rprop> = true;  // lr is only its first step size

template <> inline constexpr bool same_bits_on_device<descent::adafactor> = false;  // pow in the rate of v

}  // namespace test
