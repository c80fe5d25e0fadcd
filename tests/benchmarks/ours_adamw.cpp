// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "ours.hpp"
#include "settings.hpp"

namespace bench {
namespace {

ds::adamw const rule{.lr = lr, .beta1 = beta1, .beta2 = beta2, .eps = eps, .weight_decay = decay};

recipe const plain("adamw", make<float>(1, 1, rule));
recipe const clipped("adamw_clip", make<float>(1, 1, rule, ds::clip_norm{clip}));
recipe const master("adamw_bf16", make<ds::bfloat16>(1, 1, rule, ds::master<float>{}));

}  // namespace
}  // namespace bench
