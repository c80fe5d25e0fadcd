// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// The cost of groups and policies: AdamW in float with more and more of each.
#include "ours.hpp"
#include "settings.hpp"

namespace bench {
namespace {

ds::adamw const rule{.lr = lr, .beta1 = beta1, .beta2 = beta2, .eps = eps, .weight_decay = decay};
auto const rate = ds::learning_rate(ds::cosine{.peak = lr, .steps = 1'000'000});

recipe const recipes[] = {
    {"groups_1", make<float>(1, 1, rule)},
    {"groups_10", make<float>(1, 10, rule)},
    {"groups_100", make<float>(1, 100, rule)},
    {"groups_1000", make<float>(1, 1000, rule)},
    {"policies_0", make<float>(1, 1, rule)},
    {"policies_1", make<float>(1, 1, rule, rate)},
    {"policies_2", make<float>(1, 1, rule, rate, ds::clip_norm{clip})},
    {"policies_3", make<float>(1, 1, rule, rate, ds::clip_norm{clip}, ds::static_loss_scale{.scale = 1})},
    {"policies_4",
     make<float>(1, 1, rule, rate, ds::clip_norm{clip}, ds::static_loss_scale{.scale = 1}, ds::ema{.decay = ema})},
    {"policies_5", make<float>(1, 1, rule, rate, ds::clip_norm{clip}, ds::static_loss_scale{.scale = 1},
                               ds::ema{.decay = ema}, ds::zero_grad{})},
};

}  // namespace
}  // namespace bench
