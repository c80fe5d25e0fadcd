// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

/// The hyperparameters of every contestant; each has a visible effect in a few steps. torch_peer.py has them, too.
namespace bench {

inline constexpr double lr = 1e-3, momentum = 0.9, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0.1;
inline constexpr double lion_lr = 1e-4, lion_beta2 = 0.99;
inline constexpr double lars_lr = 0.1, lars_trust = 1e-2;
inline constexpr double clip = 1, ema = 0.99;
inline constexpr float loss_scale = 1024;

}  // namespace bench
