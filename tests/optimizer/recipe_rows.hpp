// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/training/loss_scaler.hpp>

#include "recipes.hpp"

#include <tuple>

/// The types of the random recipes. Any two policies meet in a row, each is absent from a row that has the other, and
/// every policy meets every rule, except some norms of clipping. Four lists, for four units.
namespace recipes {

using enum ds::norm;
using enum ds::scope;

using rows_a = std::tuple<
    combo<half, half, ds::adamw, lr_schedule, ds::master<bfloat16>, ds::states<float>, ds::skip_nonfinite,
          ds::clip<l1, group>, ds::accumulate, ds::gradient_noise, ds::stochastic_rounding, ds::ema,
          test::bounded_update>,
    combo<half, float, ds::adamw, decay_schedule<ds::adamw>, ds::master<double>, ds::dynamic_loss_scale,
          ds::clip_adaptive, ds::clip_value, ds::accumulate, ds::gradient_noise, ds::lookahead, ds::ema,
          test::bounded_update>,
    combo<double, float, ds::lion, ds::states<bfloat16>, ds::dynamic_loss_scale, ds::skip_nonfinite,
          ds::clip<l2, group>, ds::clip_value, ds::stochastic_rounding, ds::swa>,
    combo<half, bfloat16, ds::lamb, ds::master<bfloat16>, ds::shared_loss_scale, ds::skip_nonfinite,
          ds::clip<inf, model>, ds::lookahead, ds::ema, ds::zero_grad>,
    combo<double, float, ds::lion, lr_schedule, ds::skip_nonfinite, ds::clip_value, ds::gradient_noise, ds::swa>,
    combo<half, half, ds::lars, lr_schedule, ds::master<bfloat16>, ds::states<bfloat16>, ds::dynamic_loss_scale,
          ds::clip_norm, ds::clip_value, ds::gradient_noise, ds::stochastic_rounding, ds::lookahead, ds::zero_grad>,
    combo<double, double, ds::lamb, lr_schedule, decay_schedule<ds::lamb>, ds::states<bfloat16>, ds::dynamic_loss_scale,
          ds::skip_nonfinite, ds::clip<l1, tensor>, ds::accumulate, ds::gradient_noise, ds::stochastic_rounding,
          ds::ema>,
    combo<half, half, ds::sgd, decay_schedule<ds::sgd>, ds::master<float>, ds::states<half>, ds::shared_loss_scale,
          ds::skip_nonfinite, ds::clip_norm, ds::stochastic_rounding, test::bounded_update>,
    combo<double, float, ds::lars, decay_schedule<ds::lars>, ds::states<float>, ds::static_loss_scale,
          ds::clip_adaptive, ds::clip_value, ds::gradient_noise, ds::lookahead>,
    combo<double, float, ds::sgd, lr_schedule, ds::states<half>, ds::shared_loss_scale, ds::clip<l2, tensor>,
          ds::accumulate, ds::gradient_noise, ds::stochastic_rounding, ds::ema, ds::zero_grad, test::bounded_update>,
    combo<half, bfloat16, ds::lion, decay_schedule<ds::lion>, ds::master<bfloat16>, ds::states<float>,
          ds::clip<l1, model>, ds::accumulate, ds::gradient_noise, ds::stochastic_rounding, ds::lookahead, ds::ema,
          test::bounded_update>,
    combo<half, bfloat16, ds::lars, ds::states<float>, ds::static_loss_scale, ds::clip<inf, model>, ds::ema>,
    combo<half, float, ds::lamb, decay_schedule<ds::lamb>, ds::master<bfloat16>, ds::states<bfloat16>,
          ds::shared_loss_scale, ds::clip<inf, tensor>, ds::clip_value, ds::accumulate, ds::gradient_noise,
          ds::stochastic_rounding, ds::lookahead>,
    combo<float, float, ds::lars, decay_schedule<ds::lars>, ds::states<half>, ds::dynamic_loss_scale,
          ds::clip<inf, group>, ds::clip_value, ds::gradient_noise, ds::lookahead, ds::ema>,
    combo<float, bfloat16, ds::lamb, ds::master<double>, ds::static_loss_scale, ds::skip_nonfinite,
          ds::clip<l2, tensor>, ds::lookahead, ds::swa>,
    combo<half, float, ds::lion, lr_schedule, decay_schedule<ds::lion>, ds::master<bfloat16>, ds::shared_loss_scale,
          ds::skip_nonfinite, ds::clip<inf, group>, ds::gradient_noise, ds::zero_grad>>;

using rows_b = std::tuple<
    combo<float, bfloat16, ds::lamb, ds::master<double>, ds::states<float>, ds::clip_norm, ds::clip_value,
          ds::lookahead, ds::swa, ds::zero_grad>,
    combo<half, bfloat16, ds::lion, ds::master<float>, ds::states<bfloat16>, ds::shared_loss_scale, ds::skip_nonfinite,
          ds::clip_adaptive, ds::lookahead, ds::swa, ds::zero_grad>,
    combo<float, float, ds::adamw, lr_schedule, ds::master<double>, ds::states<bfloat16>, ds::static_loss_scale,
          ds::skip_nonfinite, ds::clip<inf, group>, ds::accumulate, ds::stochastic_rounding, ds::zero_grad,
          test::bounded_update>,
    combo<bfloat16, bfloat16, ds::lars, lr_schedule, decay_schedule<ds::lars>, ds::master<double>, ds::states<half>,
          ds::shared_loss_scale, ds::clip<l1, group>, ds::accumulate, ds::lookahead, ds::swa>,
    combo<bfloat16, bfloat16, ds::lion, lr_schedule, ds::master_remainder, ds::states<bfloat16>, ds::static_loss_scale,
          ds::clip<l1, model>, ds::accumulate, ds::lookahead, ds::ema, ds::zero_grad>,
    combo<half, bfloat16, ds::sgd, decay_schedule<ds::sgd>, ds::master<bfloat16>, ds::states<bfloat16>,
          ds::shared_loss_scale, ds::skip_nonfinite, ds::clip<l2, tensor>, ds::accumulate, ds::stochastic_rounding>,
    combo<half, bfloat16, ds::lars, decay_schedule<ds::lars>, ds::master<double>, ds::states<bfloat16>,
          ds::dynamic_loss_scale, ds::clip<l1, model>, ds::accumulate, ds::stochastic_rounding, ds::lookahead,
          ds::zero_grad>,
    combo<float, float, ds::sgd, lr_schedule, decay_schedule<ds::sgd>, ds::master<double>, ds::states<half>,
          ds::static_loss_scale, ds::clip<inf, model>>,
    combo<bfloat16, float, ds::adamw, lr_schedule, ds::master_remainder, ds::states<half>, ds::dynamic_loss_scale,
          ds::clip<inf, tensor>, ds::ema, ds::zero_grad, test::bounded_update>,
    combo<bfloat16, bfloat16, ds::lamb, lr_schedule, decay_schedule<ds::lamb>, ds::master_remainder,
          ds::static_loss_scale, ds::skip_nonfinite, ds::clip_norm, ds::accumulate, ds::gradient_noise, ds::lookahead,
          ds::zero_grad>,
    combo<half, float, ds::sgd, ds::master<bfloat16>, ds::states<float>, ds::static_loss_scale, ds::skip_nonfinite,
          ds::clip_value, ds::gradient_noise, ds::stochastic_rounding, ds::swa, ds::zero_grad>,
    combo<half, half, ds::lion, decay_schedule<ds::lion>, ds::master<double>, ds::static_loss_scale,
          ds::clip<l2, group>, ds::clip_value, ds::lookahead, ds::swa, ds::zero_grad>,
    combo<half, half, ds::lamb, decay_schedule<ds::lamb>, ds::static_loss_scale, ds::clip_norm, ds::clip_value,
          ds::gradient_noise, ds::ema, ds::zero_grad>,
    combo<double, double, ds::adamw, lr_schedule, ds::states<bfloat16>, ds::static_loss_scale, ds::skip_nonfinite,
          ds::clip<l1, group>, ds::clip_value, ds::accumulate, ds::gradient_noise, ds::swa>,
    combo<float, bfloat16, ds::lion, decay_schedule<ds::lion>, ds::master<float>, ds::states<bfloat16>,
          ds::shared_loss_scale, ds::clip_value, ds::accumulate, ds::gradient_noise, ds::lookahead, ds::ema>>;

using rows_c = std::tuple<
    combo<half, half, ds::lion, lr_schedule, ds::master<bfloat16>, ds::states<bfloat16>, ds::static_loss_scale,
          ds::skip_nonfinite, ds::clip_adaptive, ds::accumulate, ds::gradient_noise, ds::lookahead>,
    combo<bfloat16, bfloat16, ds::adamw, lr_schedule, decay_schedule<ds::adamw>, ds::master_remainder,
          ds::static_loss_scale, ds::skip_nonfinite, ds::clip<l2, group>, ds::gradient_noise, ds::lookahead, ds::ema,
          test::bounded_update>,
    combo<double, double, ds::sgd, ds::states<half>, ds::skip_nonfinite, ds::clip_adaptive, ds::accumulate,
          ds::gradient_noise, ds::lookahead, ds::ema, ds::zero_grad>,
    combo<bfloat16, bfloat16, ds::sgd, lr_schedule, ds::master<double>, ds::states<bfloat16>, ds::dynamic_loss_scale,
          ds::skip_nonfinite, ds::clip<l1, tensor>, ds::accumulate, ds::gradient_noise, ds::lookahead, ds::ema,
          test::bounded_update>,
    combo<half, bfloat16, ds::lamb, lr_schedule, ds::master<float>, ds::states<half>, ds::static_loss_scale,
          ds::clip<l1, model>, ds::accumulate, ds::gradient_noise, ds::stochastic_rounding, ds::swa>,
    combo<double, double, ds::adamw, lr_schedule, decay_schedule<ds::adamw>, ds::shared_loss_scale, ds::skip_nonfinite,
          ds::clip<l1, model>, ds::clip_value, ds::lookahead, ds::zero_grad>,
    combo<bfloat16, float, ds::lamb, ds::master<double>, ds::states<float>, ds::static_loss_scale,
          ds::clip<inf, tensor>, ds::clip_value, ds::accumulate, ds::gradient_noise, ds::lookahead>,
    combo<half, float, ds::lamb, ds::states<bfloat16>, ds::clip<inf, model>, ds::stochastic_rounding, ds::zero_grad>,
    combo<float, bfloat16, ds::lion, lr_schedule, ds::states<half>, ds::dynamic_loss_scale, ds::skip_nonfinite,
          ds::stochastic_rounding, ds::zero_grad>,
    combo<bfloat16, float, ds::lars, lr_schedule, ds::master_remainder, ds::states<bfloat16>, ds::shared_loss_scale,
          ds::skip_nonfinite, ds::clip_adaptive, ds::accumulate, ds::stochastic_rounding, ds::swa, ds::zero_grad>,
    combo<half, bfloat16, ds::lamb, decay_schedule<ds::lamb>, ds::master<double>, ds::states<half>,
          ds::static_loss_scale, ds::gradient_noise, ds::lookahead, ds::zero_grad>,
    combo<bfloat16, float, ds::lion, lr_schedule, decay_schedule<ds::lion>, ds::master_remainder, ds::states<float>,
          ds::static_loss_scale, ds::skip_nonfinite, ds::clip<inf, model>, ds::gradient_noise>,
    combo<bfloat16, float, ds::adamw, ds::master<float>, ds::states<float>, ds::clip<l1, tensor>, ds::clip_value,
          ds::lookahead, ds::swa, ds::zero_grad>,
    combo<float, float, ds::lamb, decay_schedule<ds::lamb>, ds::master<float>, ds::states<float>, ds::shared_loss_scale,
          ds::clip<l2, group>, ds::lookahead>,
    combo<half, float, ds::lion, lr_schedule, ds::master<bfloat16>, ds::states<half>, ds::skip_nonfinite,
          ds::clip<l2, group>, ds::accumulate, ds::gradient_noise, ds::stochastic_rounding, ds::swa>>;

using rows_d = std::tuple<
    combo<float, float, ds::lion, ds::master<float>, ds::skip_nonfinite, ds::clip<inf, group>, ds::swa>,
    combo<bfloat16, bfloat16, ds::lion, lr_schedule, ds::master<float>, ds::states<float>, ds::dynamic_loss_scale,
          ds::clip<l2, tensor>, ds::lookahead, ds::zero_grad>,
    combo<bfloat16, float, ds::lamb, ds::master_remainder, ds::static_loss_scale, ds::clip<l1, tensor>, ds::zero_grad>,
    combo<bfloat16, bfloat16, ds::sgd, lr_schedule, decay_schedule<ds::sgd>, ds::states<float>, ds::dynamic_loss_scale,
          ds::clip<inf, model>, ds::clip_value, ds::accumulate, ds::gradient_noise, ds::stochastic_rounding, ds::swa,
          ds::zero_grad, test::bounded_update>,
    combo<half, half, ds::lars, lr_schedule, ds::master<float>, ds::states<half>, ds::static_loss_scale,
          ds::skip_nonfinite, ds::clip<inf, tensor>, ds::stochastic_rounding, ds::swa, ds::zero_grad>,
    combo<half, bfloat16, ds::lamb, ds::master<bfloat16>, ds::states<half>, ds::shared_loss_scale, ds::clip<l1, tensor>,
          ds::gradient_noise, ds::lookahead, ds::swa>,
    combo<bfloat16, float, ds::lars, decay_schedule<ds::lars>, ds::master_remainder, ds::states<bfloat16>,
          ds::shared_loss_scale, ds::clip<inf, group>, ds::clip_value, ds::accumulate, ds::stochastic_rounding,
          ds::ema>,
    combo<bfloat16, bfloat16, ds::sgd, decay_schedule<ds::sgd>, ds::master_remainder, ds::states<bfloat16>,
          ds::skip_nonfinite, ds::clip<l2, tensor>, ds::clip_value, ds::lookahead>,
    combo<bfloat16, float, ds::adamw, lr_schedule, decay_schedule<ds::adamw>, ds::master_remainder, ds::states<half>,
          ds::static_loss_scale, ds::skip_nonfinite, ds::accumulate, ds::gradient_noise, ds::stochastic_rounding,
          ds::lookahead, ds::zero_grad>,
    combo<bfloat16, float, ds::lars, ds::skip_nonfinite, ds::clip<inf, tensor>, ds::accumulate, ds::stochastic_rounding,
          ds::lookahead, ds::swa>,
    combo<float, bfloat16, ds::lars, decay_schedule<ds::lars>, ds::master<float>, ds::states<bfloat16>,
          ds::dynamic_loss_scale, ds::clip<inf, model>, ds::clip_value, ds::stochastic_rounding, ds::ema>,
    combo<bfloat16, float, ds::adamw, lr_schedule, decay_schedule<ds::adamw>, ds::master_remainder,
          ds::states<bfloat16>, ds::static_loss_scale, ds::clip<l1, group>, ds::clip_value, ds::gradient_noise,
          ds::swa>,
    combo<double, double, ds::sgd, decay_schedule<ds::sgd>, ds::states<float>, ds::shared_loss_scale,
          ds::skip_nonfinite, ds::clip<inf, group>, ds::clip_value, ds::zero_grad>,
    combo<bfloat16, bfloat16, ds::sgd, lr_schedule, decay_schedule<ds::sgd>, ds::master<double>, ds::static_loss_scale,
          ds::skip_nonfinite, ds::clip_norm, ds::accumulate, ds::gradient_noise, ds::ema>,
    combo<half, float, ds::lars, decay_schedule<ds::lars>, ds::master<float>, ds::dynamic_loss_scale,
          ds::clip<l1, group>, ds::clip_value, ds::zero_grad>>;

template <class... Lists> using joined = decltype(std::tuple_cat(std::declval<Lists>()...));
using all_rows = joined<rows_a, rows_b, rows_c, rows_d>;

/// Tries a quarter of the rows; checks that every event occurred often enough.
template <class Rows> void try_quarter(Rows rows, int recipes_each, std::uint64_t seed) {
  tally const sum = try_all(rows, recipes_each, seed);
  MESSAGE(sum.applied, " updates, ", sum.skipped, " skipped, ", sum.waited, " waited, worst ", sum.worst);
  CHECK(sum.recipes >= 500);
  CHECK(sum.applied >= 2000);
  CHECK(sum.skipped >= 200);
  CHECK(sum.waited >= 500);
  CHECK(sum.flushed >= 30);
  CHECK(sum.clipped >= 500);
  CHECK(sum.swapped >= 100);
  CHECK(sum.unscaled >= 30);
  CHECK(sum.reloaded >= 50);
  CHECK(sum.frozen >= 100);
}

}  // namespace recipes
