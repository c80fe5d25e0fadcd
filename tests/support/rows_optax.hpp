// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/rules/adabelief.hpp>
#include <descent/rules/adan.hpp>
#include <descent/rules/ademamix.hpp>
#include <descent/rules/adopt.hpp>
#include <descent/rules/fromage.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/optimistic.hpp>
#include <descent/rules/optimistic_adam.hpp>
#include <descent/rules/signsgd.hpp>
#include <descent/rules/signum.hpp>
#include <descent/rules/yogi.hpp>

#include "row.hpp"

namespace test {

inline std::tuple const optax_rows{
    row{"signsgd", descent::signsgd{.lr = 0.001}},
    row{"signsgd, decay", descent::signsgd{.lr = 0.002, .weight_decay = 0.1}},
    // A beta with few bits, as for Lion: float and double agree where m is exactly 0.
    row{"signum", descent::signum{.lr = 0.001, .beta = 0.875}},
    row{"signum, decay", descent::signum{.lr = 0.002, .beta = 0.75, .weight_decay = 0.1}},
    row{"yogi", descent::yogi{.lr = 0.002, .beta2 = 0.99}},
    row{"yogi, initial, decay",
        descent::yogi{.lr = 0.002, .beta1 = 0.8, .beta2 = 0.95, .eps = 0.01, .initial = 1e-3, .weight_decay = 0.1}},
    row{"adabelief", descent::adabelief{.lr = 0.002, .beta2 = 0.99, .eps = 1e-8}},
    row{"adabelief, eps_root, decay",
        descent::adabelief{
            .lr = 0.002, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .eps_root = 1e-3, .weight_decay = 0.1}},
    row{"adan", descent::adan{.lr = 0.002, .beta1 = 0.9}},
    row{"adan, paper's weight, decay", descent::adan{.lr = 0.002,
                                                     .beta1 = 0.9,
                                                     .beta2 = 0.75,
                                                     .beta3 = 0.95,
                                                     .eps = 1e-3,
                                                     .eps_root = 1e-4,
                                                     .weight_decay = 0.1,
                                                     .paper_weight = true}},
    row{"adopt", descent::adopt{.lr = 0.002, .beta2 = 0.99}},
    row{"adopt, no clip, decay",
        descent::adopt{.lr = 0.002, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1, .clip = false}},
    row{"ademamix", descent::ademamix{.lr = 0.001, .beta3 = 0.999}},
    row{"ademamix, decay",
        descent::ademamix{
            .lr = 0.001, .beta1 = 0.8, .beta2 = 0.95, .beta3 = 0.99, .alpha = 3, .eps = 1e-3, .weight_decay = 0.1}},
    row{"optimistic", descent::optimistic{.lr = 0.01}},
    row{"optimistic, alpha, beta", descent::optimistic{.lr = 0.01, .alpha = 0.75, .beta = 0.4}},
    row{"optimistic_adam", descent::optimistic_adam{.lr = 0.001}},
    row{"optimistic_adam, alpha, beta, no Nesterov",
        descent::optimistic_adam{
            .lr = 0.002, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .alpha = 0.75, .beta = 0.4, .nesterov = false}},
    row{"fromage", descent::fromage{.lr = 0.002}},
    row{"fromage, no least norm", descent::fromage{.lr = 0.005, .min_norm = 0}},
    row{"novograd", descent::novograd{.lr = 0.002}},
    // A decay that the gradient's part, at least 1/8 / ||g||, outweighs; otherwise the first m may nearly cancel.
    row{"novograd, decay",
        descent::novograd{.lr = 0.005, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.01}},
};

template <> inline constexpr double most_ulps<descent::optimistic_adam> = 16;  // Nesterov's m^ near 0, in old

template <> inline constexpr bool moves_by_itself<descent::fromage> = true;  // a tensor shrinks

}  // namespace test
