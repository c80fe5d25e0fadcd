// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

/// The kernels of a step in plans of many kinds; all of them must compile. guard.py reads here which updates spill:
/// those with elements of half and of float, and one in double. No unit has the kernels of sam,
/// gradient_ahead, L-BFGS, ESGD, lists of rows and of what ranks stage.
///
///     spills: update_packets  mixed<half, float>, adamw                  stack 24
///     spills: update_packets  zero_grad, accumulate>                     stack 56
///     spills: measure_chunks  plan<float, float, lamb>                   stack 32
#include <descent/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/rows.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/schedule_free_adamw.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/schedules/warmup.hpp>
#include <descent/training/loss_scaler.hpp>

namespace ds = descent;
namespace detail = descent::detail;

template <class Plan>
void reach(detail::device_view<Plan> const& v, detail::control_view<Plan> const& w) {
  auto const go = [](auto kernel, auto const&... arguments) { detail::launch(kernel, 1, 1, nullptr, arguments...); };
  auto const all = [&]<class Body>(Body body) {
    go(detail::each_packet<detail::all_packets<Plan, Body>>, detail::all_packets<Plan, Body>{v, body});
  };
  go(detail::each_packet<detail::start_packets<Plan>>, detail::start_packets<Plan>{v});
  all(detail::zero_all{});
  if constexpr (Plan::has_master || Plan::has_remainder) all(detail::reload_all{});
  if constexpr (Plan::averages) {
    using body = detail::swap_in_packets<Plan, detail::swap_target::average>;
    go(detail::each_packet<body>, body{v});
    all(detail::restore_all{});
  }
  if constexpr (ds::detail::has<Plan, ds::kind::loss_scale>) {
    using body = detail::scaled_packets<Plan, detail::unscale_body>;
    go(detail::each_packet<body>, body{v, nullptr, {}});
  }
  go(detail::each_packet<detail::update_packets<Plan>>, detail::update_packets<Plan>{v});
  if constexpr (Plan::per_row_step) go(detail::count_updates<Plan>, v);
  go(detail::set_step_groups<Plan>, v, w, detail::group_batch<typename Plan::rule>{});
  if constexpr (Plan::norm_first) {
    go(detail::measure_chunks<Plan, detail::measure::norm>, v, w, descent::step_call{});
    go(detail::decide_step<Plan>, v, w, descent::step_call{});
    go(detail::measure_chunks<Plan, detail::measure::sums>, v, w, descent::step_call{});
    go(detail::find_all_terms<Plan>, v, w);
  } else {
    constexpr auto what = Plan::sums ? detail::measure::norm_and_sums : detail::measure::norm;
    if constexpr (Plan::measures) go(detail::measure_chunks<Plan, what>, v, w, descent::step_call{});
    go(detail::control_step<Plan>, v, w, descent::step_call{});
  }
}

#define REACH(...)                                                             \
  template void reach(detail::device_view<detail::plan<__VA_ARGS__>> const& v, \
                      detail::control_view<detail::plan<__VA_ARGS__>> const& w);
using schedule = ds::warmup<ds::cosine>;
using rate = decltype(ds::learning_rate(schedule{}));

REACH(float, float, ds::sgd)
REACH(ds::half, ds::half, ds::sgd, ds::skip_nonfinite, ds::states<ds::half>)
REACH(float, float, ds::adam, ds::clip_norm, rate)
REACH(ds::half, ds::half, ds::schedule_free_adamw, ds::master<float>)
REACH(ds::half, float, ds::adam, ds::states<ds::half, ds::bfloat16>)
REACH(float, float, ds::adam, ds::masked_rows<>, ds::clip_norm)
REACH(ds::bfloat16, float, ds::adam, ds::masked_rows<ds::row_step::own>, ds::stochastic_rounding, rate)
REACH(float, ds::bfloat16, ds::adamw, ds::clip_norm, ds::master<double>)
REACH(double, double, ds::adamw, ds::skip_nonfinite)
REACH(ds::bfloat16, ds::half, ds::lion, ds::skip_nonfinite, ds::states<ds::bfloat16>)
REACH(ds::half, ds::half, ds::rmsprop, ds::clip_norm, ds::master<float>)
REACH(ds::half, ds::half, ds::lars, ds::master<float>, rate)
REACH(float, float, ds::lars, ds::clip_norm)
REACH(ds::bfloat16, ds::bfloat16, ds::lamb, ds::clip_norm, ds::master<float>, ds::states<ds::bfloat16>)
REACH(float, float, ds::lamb)
REACH(float, float, ds::dog)
REACH(ds::half, ds::half, ds::dog, ds::clip_norm, ds::master<float>, ds::states<ds::half>)

// the whole step
REACH(ds::half, ds::half, ds::adamw, ds::master<float>, ds::dynamic_loss_scale, ds::clip_norm, ds::ema, ds::zero_grad,
      rate)
REACH(ds::bfloat16, ds::bfloat16, ds::adamw, ds::stochastic_rounding, ds::states<ds::bfloat16>, ds::clip_norm)
REACH(ds::half, ds::half, ds::lion, ds::stochastic_rounding, ds::states<ds::half>, ds::static_loss_scale,
      ds::accumulate)
REACH(ds::bfloat16, float, ds::sgd, ds::master_remainder, ds::swa, ds::lookahead)
REACH(float, float, ds::adamw, ds::clip_value, ds::gradient_noise, ds::clip<ds::norm::l1>)
REACH(double, double, ds::adam, ds::clip<ds::norm::inf, ds::scope::group>, ds::zero_grad, ds::accumulate)
REACH(double, double, ds::adam, ds::clip_norm, ds::lookahead, ds::shared_loss_scale)
REACH(float, ds::half, ds::adamw, ds::clip_adaptive, ds::dynamic_loss_scale)
REACH(ds::bfloat16, ds::bfloat16, ds::lamb, ds::clip_adaptive, ds::master_remainder, ds::gradient_noise,
      ds::dynamic_loss_scale)
REACH(float, float, ds::lars, ds::clip<ds::norm::l2, ds::scope::group>, ds::clip_value, ds::accumulate)
REACH(ds::half, ds::half, ds::dog, ds::dynamic_loss_scale, ds::master<float>, ds::zero_grad)
using two = ds::mixed<ds::half, float>;
REACH(two, two, ds::adamw, ds::master<float>, ds::dynamic_loss_scale, ds::clip_norm, ds::ema, ds::zero_grad)
REACH(two, two, ds::lamb, ds::clip_norm, ds::stochastic_rounding)
