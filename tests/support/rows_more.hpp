// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/rules/adabound.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/laprop.hpp>
#include <descent/rules/larc.hpp>
#include <descent/rules/layerwise.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/padam.hpp>
#include <descent/rules/qhadam.hpp>
#include <descent/rules/qhm.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/sophia.hpp>
#include <descent/rules/yellowfin.hpp>

#include "row.hpp"

namespace test {

inline std::tuple const more_rows{
    row{"laprop", descent::laprop{.lr = 0.001, .beta2 = 0.98}},
    row{"laprop, decay", descent::laprop{.lr = 0.002, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1}},
    row{"qhm", descent::qhm{.lr = 0.01}},
    row{"qhm, decay", descent::qhm{.lr = 0.02, .nu = 0.4, .beta = 0.9, .weight_decay = 0.05}},
    row{"qhm without momentum", descent::qhm{.lr = 0.01, .nu = 0}},
    row{"qhadam", descent::qhadam{.lr = 0.002}},
    row{"qhadam, nu2, decay",
        descent::qhadam{
            .lr = 0.005, .nu1 = 0.4, .nu2 = 0.8, .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-3, .weight_decay = 0.1}},
    row{"qhadam without moments, decoupled decay",
        descent::qhadam{.lr = 0.001, .nu1 = 0, .nu2 = 0, .eps = 0.1, .weight_decay = 0.1, .decoupled = true}},
    row{"adabound", descent::adabound{.lr = 0.002, .final_lr = 0.01}},
    row{"adabound, at its bounds, decay",
        descent::adabound{.lr = 0.002, .final_lr = 0.01, .gamma = 0.5, .beta1 = 0.8, .weight_decay = 0.1}},
    row{"adabound, amsbound, decoupled decay", descent::adabound{.lr = 0.002,
                                                                 .final_lr = 0.005,
                                                                 .base_lr = 0.001,
                                                                 .gamma = 0.1,
                                                                 .beta2 = 0.98,
                                                                 .eps = 1e-3,
                                                                 .weight_decay = 0.1,
                                                                 .amsbound = true,
                                                                 .decoupled = true}},
    row{"padam", descent::padam{.lr = 0.005}},
    row{"padam without amsgrad, decay",
        descent::padam{
            .lr = 0.005, .partial = 0.125, .beta2 = 0.98, .eps = 1e-3, .weight_decay = 0.1, .amsgrad = false}},
    row{"larc of sgd", descent::larc<descent::sgd>{.rule = {.momentum = 0.9}, .lr = 0.005, .trust = 0.004}},
    row{"larc of sgd, scaling, decay",
        descent::larc<descent::sgd>{.lr = 0.5, .trust = 0.01, .eps = 1e-3, .weight_decay = 0.1, .clip = false}},
    row{"larc of adam, decay", descent::larc<descent::adam>{.rule = {.eps = 1e-3}, .lr = 0.002, .weight_decay = 0.1}},
    // Betas with few bits, as for LAMB.
    row{"layerwise adam, decay",
        descent::layerwise<descent::adam>{
            .rule = {.beta1 = 0.75, .beta2 = 0.95, .eps = 1e-3}, .lr = 0.01, .weight_decay = 0.1}},
    row{"layerwise rmsprop, clamped",
        descent::layerwise<descent::rmsprop>{
            .rule = {.momentum = 0.5, .centered = true}, .lr = 0.002, .min_ratio = 0.1, .max_ratio = 0.5}},
    row{"layerwise nadam, decay",
        descent::layerwise<descent::nadam>{
            .rule = {.beta1 = 0.75, .beta2 = 0.95, .eps = 1e-3}, .lr = 0.01, .weight_decay = 0.1, .trust = 0.5}},
    row{"larc of heavy_ball", descent::larc<descent::heavy_ball>{.lr = 0.005, .trust = 0.004}},
    row{"sophia", descent::sophia{.lr = 0.005, .beta1 = 0.875, .eps = 0.25}},
    row{"sophia, bias correction, decay",
        descent::sophia{
            .lr = 0.005, .gamma = 0.5, .rho = 0.5, .eps = 0.5, .weight_decay = 0.1, .bias_correction = true}},
    row{"yellowfin", descent::yellowfin{.lr = 0.1}},
    row{"yellowfin, decay", descent::yellowfin{.beta = 0.9, .first_lr = 0.01, .eps = 1e-3, .weight_decay = 0.05}},
};

template <> inline constexpr double most_ulps<descent::laprop> = 8;  // a1 u, larger than m, in m near 0
template <> inline constexpr double most_ulps<descent::qhm> = 8;  // (1 - nu) g + nu m in p near 0
template <class Rule> inline constexpr double most_ulps<descent::larc<Rule>> = 8;       // g + mu b in p near 0
template <class Rule> inline constexpr double most_ulps<descent::layerwise<Rule>> = 8;  // rate u, as for LAMB
template <> inline constexpr double most_ulps<descent::yellowfin> = 16;  // mu b + g, larger than p, in p near 0

// With clipping, the gradient that enters the state is scaled by trust ratio / lr.
template <class Rule> inline constexpr bool lr_in_state<descent::larc<Rule>> = true;

// pow
template <> inline constexpr bool same_bits_on_device<descent::padam> = false;
template <> inline constexpr bool same_bits_on_device<descent::layerwise<descent::nadam>> = false;

}  // namespace test
