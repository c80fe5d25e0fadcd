// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/rules/acprop.hpp>
#include <descent/rules/cocob.hpp>
#include <descent/rules/dadapt_adamw.hpp>
#include <descent/rules/dowg.hpp>
#include <descent/rules/madgrad.hpp>
#include <descent/rules/momo.hpp>
#include <descent/rules/polyak.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/schedule_free_adamw.hpp>
#include <descent/rules/schedule_free_sgd.hpp>

#include "row.hpp"

namespace test {

// Storage tests allow little drift with a 16-bit state. Schedule-free rules therefore get a small lr or a strong decay
// here, since z is a value and loses steps. COCOB gets a large alpha and MADGRAD a small lr, since their sums stop
// growing. Prodigy and D-Adaptation get a large d0, since 16 bits do not hold the v and s of a small one. MoMo, whose
// step size comes from a small difference, gets a small lr and a strong decay.
inline std::tuple const free_rows{
    row{"schedule_free_sgd", descent::schedule_free_sgd{.lr = 0.0002, .beta1 = 0.75}},
    row{"schedule_free_sgd, decay, power 1",
        descent::schedule_free_sgd{.lr = 0.02, .beta1 = 0.9, .weight_decay = 1, .power = 1}},
    row{"schedule_free_adamw", descent::schedule_free_adamw{.lr = 0.0002, .beta1 = 0.75, .beta2 = 0.98}},
    row{"schedule_free_adamw, decay, power 0",
        descent::schedule_free_adamw{
            .lr = 0.01, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.5, .power = 0}},
    row{"dowg", descent::dowg{.reps = 1e-3}},
    row{"dowg, decay", descent::dowg{.lr = 0.5, .reps = 1e-2, .eps = 1e-3, .weight_decay = 0.05}},
    row{"prodigy", descent::prodigy{.lr = 0.5, .beta2 = 0.95, .d0 = 0.004, .d_coef = 0.125}},
    row{"prodigy, decay, warm-up, beta3", descent::prodigy{.lr = 0.5,
                                                           .beta1 = 0.8,
                                                           .beta2 = 0.95,
                                                           .beta3 = 0.9,
                                                           .eps = 1e-3,
                                                           .weight_decay = 0.1,
                                                           .d0 = 0.01,
                                                           .d_coef = 0.5,
                                                           .safeguard_warmup = true}},
    row{"dadapt_adamw", descent::dadapt_adamw{.beta2 = 0.95, .d0 = 0.004}},
    row{"dadapt_adamw, decay",
        descent::dadapt_adamw{.lr = 0.5, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.1, .d0 = 0.01}},
    row{"madgrad", descent::madgrad{.lr = 0.0005}},
    row{"madgrad, no momentum, decay",
        descent::madgrad{.lr = 0.0002, .momentum = 0, .eps = 1e-4, .weight_decay = 0.05}},
    row{"cocob", descent::cocob{.alpha = 450}},
    row{"cocob, decay", descent::cocob{.lr = 0.5, .alpha = 2000, .eps = 0.1, .weight_decay = 0.05}},
    // Without noise, the deviation of the gradient goes to 0 and the step grows without limit. The eps of the first
    // setting, which minimises problems, prevents this.
    row{"acprop, decay",
        descent::acprop{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .eps_root = 1e-6, .weight_decay = 0.1}},
    row{"acprop", descent::acprop{.lr = 0.002, .beta2 = 0.98}},
    // The loss stays constant: the largest rate keeps a tensor of one element from leaping.
    row{"polyak", descent::polyak{.max_lr = 0.05}},
    row{"polyak, f_min, eps, plus",
        descent::polyak{.lr = 0.5, .max_lr = 0.04, .f_min = -0.25, .eps = 1e-3, .plus = true}},
    row{"momo", descent::momo{.lr = 0.02}},
    row{"momo, adapt, bound, decay",
        descent::momo{.lr = 0.002, .beta = 0.75, .lower_bound = -1, .weight_decay = 0.5, .adapt = true}},
};

template <> inline constexpr double most_ulps<descent::schedule_free_sgd> = 8;  // rate g in y near 0
template <> inline constexpr double most_ulps<descent::prodigy> = 8;            // e (m / ... + wd p) in p near 0
template <> inline constexpr double most_ulps<descent::dadapt_adamw> = 16;      // d has the rounding of its sums

template <> inline constexpr double most_ulps<descent::momo> = 16;              // m near 0, and rate m in p near 0

// Their sums contain lr.
template <> inline constexpr bool lr_in_state<descent::schedule_free_sgd> = true;
template <> inline constexpr bool lr_in_state<descent::schedule_free_adamw> = true;
template <> inline constexpr bool lr_in_state<descent::dadapt_adamw> = true;
template <> inline constexpr bool lr_in_state<descent::madgrad> = true;
template <> inline constexpr bool lr_in_state<descent::cocob> = true;

}  // namespace test
