// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/rules/adabelief.hpp>
#include <descent/rules/adabound.hpp>
#include <descent/rules/adadelta.hpp>
#include <descent/rules/adagrad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamax.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/ademamix.hpp>
#include <descent/rules/amsgrad.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/layerwise.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/optimistic_adam.hpp>
#include <descent/rules/qhm.hpp>
#include <descent/rules/radam.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/sophia.hpp>
#include <descent/rules/yogi.hpp>
#include <descent/transforms/chain.hpp>
#include <descent/transforms/parts.hpp>

#include <limits>

/// The rules of other frameworks, under their names there and with their defaults. All differences from our defaults
/// are here. Fields may be changed afterwards.
namespace descent::preset {

/// torch.optim 2.15. Its other rules have our defaults.
namespace torch {
constexpr descent::sgd SGD() { return {}; }
constexpr descent::adam Adam() { return {}; }
constexpr descent::adamw AdamW() { return {}; }
constexpr descent::rmsprop RMSprop() { return {}; }
constexpr descent::adagrad Adagrad() { return {}; }
constexpr descent::adam SparseAdam() { return {.eps_hat = true}; }  // except its choice of rows
}  // namespace torch

/// NVIDIA apex. FusedLAMB first clips the norm of all gradients to 1: add clip_norm{1}.
namespace apex {
constexpr descent::adamw FusedAdam() { return {.weight_decay = 0}; }  // its adam_w_mode is on by default
constexpr descent::lamb FusedLAMB() { return {.weight_decay = 0.01, .always = false}; }
constexpr descent::sgd FusedSGD() { return {}; }          // its wd_after_momentum is decoupled
constexpr descent::adagrad FusedAdagrad() { return {}; }  // its adagrad_w_mode is decoupled
/// It stores the norm; our v is its square. `reg_inside_moment` is raw_moment = false. There is no infinity norm.
constexpr descent::novograd FusedNovoGrad() {
  return {.lr = 1e-3, .beta2 = 0.999, .eps = 1e-8, .averaging = true, .bias_correction = true, .raw_moment = true};
}
}  // namespace apex

/// optax 0.2.8. It has no default learning rates, so they are ours.
namespace optax {
constexpr descent::adamw adamw() { return {.weight_decay = 1e-4}; }
constexpr descent::adagrad adagrad() { return {.eps = 1e-7, .initial = 0.1, .eps_inside = true}; }
constexpr descent::adamax adamaxw() { return {.weight_decay = 1e-4, .decoupled = true}; }
constexpr descent::rmsprop rmsprop() { return {.alpha = 0.9, .eps_inside = true, .lr_inside = true}; }
constexpr descent::lion lion() { return {.weight_decay = 1e-3}; }
constexpr descent::lars lars() { return {.joint_norm = true}; }
constexpr descent::lamb lamb() { return {}; }
constexpr descent::amsgrad amsgrad() { return {.corrected_max = true}; }
constexpr descent::nadam nadam() { return {.momentum_decay = std::numeric_limits<double>::infinity()}; }
constexpr descent::radam radam() { return {.eps_hat = false}; }
/// optax blends its estimate of h after updates 1, 11, 21, ...
constexpr descent::sophia sophia() {
  return {.beta1 = 0.965, .eps = 1e-8, .weight_decay = 1e-4, .bias_correction = true};
}
}  // namespace optax

/// timm.
namespace timm {
constexpr descent::sgd SGDW() { return {.decoupled = true}; }
/// TensorFlow's version. Its weight_decay is L2 unless decoupled.
constexpr descent::rmsprop RMSpropTF() {
  return {.alpha = 0.9, .eps = 1e-10, .initial = 1, .eps_inside = true, .lr_inside = true};
}
}  // namespace timm

/// ensmallen 2. It sums gradients over the batch and divides lr by the batch size. Rules that do not depend on the
/// scale of the gradient therefore need another lr.
namespace ensmallen {
constexpr descent::adam Adam() { return {.eps_hat = true}; }
constexpr descent::rmsprop RMSProp() { return {}; }
constexpr descent::adagrad AdaGrad() { return {.eps = 1e-8}; }
constexpr descent::adadelta AdaDelta() { return {.rho = 0.95}; }
constexpr descent::adamax AdaMax() { return {.lr = 1e-3, .eps_outside = true}; }
constexpr descent::nadam Nadam() { return {.lr = 1e-3, .beta2 = 0.99, .eps_hat = true}; }
constexpr descent::yogi Yogi() { return {.lr = 1e-3, .eps = 1e-8, .initial = 0, .bias_correction = false}; }
constexpr descent::adabelief AdaBelief() { return {.eps = 1e-12, .eps_root = 1e-12}; }
constexpr descent::heavy_ball MomentumSGD() { return {.momentum = 0.5}; }
constexpr descent::heavy_ball NesterovMomentumSGD() { return {.momentum = 0.5, .nesterov = true}; }
constexpr descent::qhm QHSGD() { return {.lr = 1e-2}; }
constexpr descent::amsgrad AMSGrad() { return {.eps_hat = true}; }
constexpr descent::adabound AdaBound() { return {}; }
constexpr descent::adabound AMSBound() { return {.amsbound = true}; }
constexpr descent::optimistic_adam OptimisticAdam() { return {.nesterov = false, .full_first_step = true}; }
}  // namespace ensmallen

/// llm.c's train_gpt2.
namespace llmc {
constexpr descent::adamw AdamW() { return {.lr = 3e-4, .beta2 = 0.95, .weight_decay = 0}; }
}  // namespace llmc

/// TransformerEngine.
namespace transformer_engine {
constexpr descent::adamw FusedAdam() { return {.weight_decay = 0}; }
constexpr descent::sgd FusedSGD() { return {}; }
}  // namespace transformer_engine

/// DeepSpeed 0.19.
namespace deepspeed {
constexpr descent::adamw FusedAdam() { return {.weight_decay = 0}; }
constexpr descent::adamw CPUAdam() { return {.weight_decay = 0}; }
constexpr descent::adagrad CPUAdagrad() { return {}; }
/// Versions after 0.19.6 correct the moments instead: correct_rate = false.
constexpr descent::lamb FusedLamb() { return {.eps = 1e-8, .min_ratio = 0.01, .max_ratio = 10, .correct_rate = true}; }
constexpr descent::lion FusedLion() { return {.lr = 1e-3, .beta2 = 0.999, .at_zero = -1}; }  // moves up at sign 0
}  // namespace deepspeed

/// bitsandbytes, with 32-bit states. Its Adam is AdamW: the decay is decoupled and comes after the step.
namespace bitsandbytes {
constexpr descent::adamw Adam() { return {.weight_decay = 0, .decay_after = true}; }
constexpr descent::adamw AdamW() { return {.decay_after = true}; }
constexpr descent::sgd SGD() { return {.momentum = 0.9}; }  // requires a momentum; ignores dampening and nesterov
constexpr descent::adagrad Adagrad() { return {}; }
constexpr descent::rmsprop RMSprop() { return {}; }
constexpr descent::lion Lion() { return {}; }
constexpr descent::ademamix AdEMAMix() { return {.weight_decay = 1e-2}; }
/// They cap the norm of the step at lr max_unorm ||p||; trust is max_unorm. If p is 0, their cap is 0 and ours is off.
/// For the decay of LARS put an l2 in front. LAMB's, which comes after the step and outside the cap, is not available.
constexpr descent::layerwise<descent::sgd> LARS() { return {.rule = {.momentum = 0.9}, .trust = 0.02, .max_ratio = 1}; }
constexpr descent::layerwise<descent::adam> LAMB() { return {.max_ratio = 1}; }
}  // namespace bitsandbytes

/// MLX. Adam and AdamW correct bias only on request.
namespace mlx {
constexpr descent::adam Adam() { return {.bias_correction = false}; }
constexpr descent::adamw AdamW() { return {.bias_correction = false}; }
constexpr descent::adamax Adamax() { return {.eps_outside = true, .bias_correction = false}; }
constexpr descent::adagrad Adagrad() { return {.eps = 1e-8}; }
constexpr descent::rmsprop RMSprop() { return {}; }
constexpr descent::adadelta AdaDelta() { return {}; }
constexpr descent::lion Lion() { return {}; }
}  // namespace mlx

/// flashlight. The decay of Adam is multiplied by lr; that of the four rules after it is not.
namespace flashlight {
constexpr descent::sgd SGD() { return {}; }
/// Its velocity is rescaled when lr changes.
constexpr descent::heavy_ball NAG() {
  return {.momentum = 0.99, .nesterov = true, .correction = true, .decoupled = true};
}
constexpr descent::adamw Adam() { return {.weight_decay = 0, .eps_hat = true}; }
constexpr descent::amsgrad AMSgrad() { return {.decoupled = true, .decay_by_lr = false, .bias_correction = false}; }
constexpr descent::adadelta Adadelta() { return {.eps = 1e-8, .decoupled = true, .decay_by_lr = false}; }
constexpr descent::adagrad Adagrad() { return {.lr = 1, .eps = 1e-8, .decoupled = true, .decay_by_lr = false}; }
constexpr descent::rmsprop RMSProp() { return {.decoupled = true, .decay_by_lr = false}; }  // use_first is centered
}  // namespace flashlight

/// dlib.
namespace dlib {
constexpr descent::heavy_ball sgd() { return {.weight_decay = 5e-4}; }
constexpr descent::adam adam() { return {.weight_decay = 5e-4, .eps_hat = true}; }
}  // namespace dlib

/// tiny-cuda-nn, for matrices; it does not decay other parameters. DecoupledAdam is Adam with its relative decay, which
/// is 0 by default, and still with its L2 decay. AdaBound is its Adam with adabound. It counts updates per element; all
/// elements have the same count unless it skips some.
namespace tcnn {
constexpr descent::sgd SGD() { return {.weight_decay = 1e-8}; }
constexpr descent::adam Adam() { return {.weight_decay = 1e-8, .eps_hat = true}; }
constexpr chain<l2, adamw> DecoupledAdam() {
  return {l2{1e-8}, adamw{.weight_decay = 0, .eps_hat = true, .decay_corrected = true}};
}
constexpr descent::adabound AdaBound() { return {.weight_decay = 1e-8}; }
constexpr descent::novograd Novograd() {
  return {.lr = 1e-3, .beta2 = 0.999, .eps = 1e-8, .averaging = true, .decoupled = true, .undampened_first_step = true};
}
}  // namespace tcnn

}  // namespace descent::preset
