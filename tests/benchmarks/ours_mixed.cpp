// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "ours.hpp"
#include "settings.hpp"

namespace bench {
namespace {

ds::adamw const rule{.lr = lr, .beta1 = beta1, .beta2 = beta2, .eps = eps, .weight_decay = decay};

recipe const clipped("adamw_bf16_clip", make<ds::bfloat16>(1, 1, rule, ds::master<float>{}, ds::clip_norm{clip}));
recipe const whole("adamw_half_o2",
                   make<ds::half>(loss_scale, 1, rule, ds::master<float>{}, ds::dynamic_loss_scale{.init = loss_scale},
                                  ds::clip_norm{clip}, ds::ema{.decay = ema}, ds::zero_grad{}));
recipe const random("adamw_bf16_sr",
                    make<ds::bfloat16>(1, 1, rule, ds::states<ds::bfloat16>{}, ds::stochastic_rounding{}));

}  // namespace
}  // namespace bench
