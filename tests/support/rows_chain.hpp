// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/policies/clip.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/asgd.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/yogi.hpp>
#include <descent/transforms/chain.hpp>
#include <descent/transforms/parts.hpp>

#include "row.hpp"

namespace test {

inline std::tuple const chain_rows{
    row{"clip_value, l2, adam", descent::chain{descent::clip_value{0.5}, descent::l2{0.1}, descent::adam{.lr = 0.001}}},
    row{"sign, scale, sgd with momentum", descent::chain{descent::gradient_sign{}, descent::gradient_scale{0.5},
                                                         descent::sgd{.lr = 0.01, .momentum = 0.75}}},
    row{"trace, l1, asgd", descent::chain{descent::gradient_trace{.decay = 0.75, .nesterov = true}, descent::l1{0.0625},
                                          descent::asgd{.lr = 0.01}}},
    row{"ema, l2, lars", descent::chain{descent::gradient_ema{.decay = 0.5}, descent::l2{0.125},
                                        descent::lars{.lr = 0.5, .trust = 0.01}}},
    row{"l2, yogi", descent::chain{descent::l2{0.1}, descent::yogi{.lr = 0.01}}},
    row{"l2, lamb", descent::chain{descent::l2{0.1}, descent::lamb{.lr = 0.01, .beta1 = 0.75, .eps = 1e-3}}},
    row{"scale, dog", descent::chain{descent::gradient_scale{2}, descent::dog{.reps = 1e-3}}},
    row{"clip_value, prodigy",
        descent::chain{descent::clip_value{0.5},
                       descent::prodigy{.lr = 0.5, .beta2 = 0.95, .d0 = 0.004, .d_coef = 0.125}}},
    row{"centralize, l2, sgd", descent::chain{descent::centralize{}, descent::l2{0.1}, descent::sgd{.lr = 0.01}}},
    row{"clip_rms, adamw", descent::chain{descent::clip_rms{0.25}, descent::adamw{.lr = 0.002}}},
    row{"ema, normalize, sgd", descent::chain{descent::gradient_ema{.decay = 0.5, .debias = false},
                                              descent::normalize<>{}, descent::sgd{.lr = 0.05}}},
    row{"normalize the model, nadam",
        descent::chain{descent::normalize<descent::scope::model>{}, descent::nadam{.lr = 0.002}}},
};

template <class... Parts> using rule_of = std::tuple_element_t<sizeof...(Parts) - 1, std::tuple<Parts...>>;
template <class Part, class... Parts> inline constexpr bool among = (std::is_same_v<Part, Parts> || ...);

template <class... Parts> inline constexpr double most_ulps<descent::chain<Parts...>> = 16;
template <class... Parts> inline constexpr bool lr_in_state<descent::chain<Parts...>> = lr_in_state<rule_of<Parts...>>;
template <class... Parts>
inline constexpr bool moves_by_itself<descent::chain<Parts...>> =
    moves_by_itself<rule_of<Parts...>> || among<descent::l2, Parts...> || among<descent::l1, Parts...>;
template <class... Parts>
inline constexpr bool same_bits_on_device<descent::chain<Parts...>> = same_bits_on_device<rule_of<Parts...>>;

}  // namespace test
