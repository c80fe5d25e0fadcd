// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/rules/adagrad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>

/// Rules as other frameworks have them, under their names there and with their defaults: what differs from ours is
/// here and nowhere else. Fields may be changed afterwards.
namespace descent::preset {

/// torch.optim 2.15. All other rules that it has are ours by default.
namespace torch {
constexpr descent::sgd SGD() { return {}; }
constexpr descent::adam Adam() { return {}; }
constexpr descent::adamw AdamW() { return {}; }
constexpr descent::rmsprop RMSprop() { return {}; }
constexpr descent::adagrad Adagrad() { return {}; }
constexpr descent::adam SparseAdam() { return {.eps_on_raw = true}; }  // but for its choice of rows
}  // namespace torch

/// NVIDIA apex. FusedLAMB also clips the norm of all gradients to 1 first: clip_norm{1}.
namespace apex {
constexpr descent::adamw FusedAdam() { return {.weight_decay = 0}; }  // its adam_w_mode is on by default
constexpr descent::lamb FusedLAMB() { return {.weight_decay = 0.01, .always = false}; }
constexpr descent::sgd FusedSGD() { return {}; }
constexpr descent::adagrad FusedAdagrad() { return {}; }
}  // namespace apex

/// optax 0.2.8; the learning rates are ours, for it has none.
namespace optax {
constexpr descent::adamw adamw() { return {.weight_decay = 1e-4}; }
constexpr descent::adagrad adagrad() { return {.eps = 1e-7, .initial = 0.1, .eps_inside = true}; }
constexpr descent::rmsprop rmsprop() { return {.alpha = 0.9, .eps_inside = true}; }  // without its momentum
constexpr descent::lion lion() { return {.weight_decay = 1e-3}; }
constexpr descent::lars lars() { return {.joint_norm = true}; }
constexpr descent::lamb lamb() { return {}; }
}  // namespace optax

/// ensmallen 2. It sums gradients over the batch and divides lr by its size, which means another lr for rules that do
/// not depend on the scale of the gradient.
namespace ensmallen {
constexpr descent::adam Adam() { return {.eps_on_raw = true}; }
constexpr descent::rmsprop RMSProp() { return {}; }
}  // namespace ensmallen

/// llm.c's train_gpt2.
namespace llmc {
constexpr descent::adamw AdamW() { return {.lr = 3e-4, .beta2 = 0.95, .weight_decay = 0}; }
}  // namespace llmc

}  // namespace descent::preset
