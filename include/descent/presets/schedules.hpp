// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/schedules/combine.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/table.hpp>
#include <descent/schedules/warmup.hpp>

namespace descent::detail {

/// A scale whose boundary is 0 applies from the start. The entry that this leaves unused lies beyond every step.
template <class Pieces, std::size_t N>
constexpr Pieces pieces(Pieces s, double init_value, std::int64_t const (&boundaries)[N], double const (&scales)[N]) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < N; ++i) {
    if (n == 0 && boundaries[i] == 0) init_value *= scales[i];
    else s.at[n] = boundaries[i], s.values[++n] = scales[i];
  }
  for (; n < N; s.values[++n] = 1) s.at[n] = (std::int64_t{1} << 62) + 1 + std::int64_t(n);
  s.values[0] = init_value;
  for (std::size_t i = 0; i < N; ++i) s.values[i + 1] *= s.values[i];
  return s;
}
/// init_value as a fraction of peak_value.
constexpr double part_of_peak(double init_value, double peak_value, char const* name) {
  require(peak_value != 0 || init_value == 0, name, "peak_value", "other than 0, because the warmup is a part of it",
          peak_value);
  return peak_value != 0 ? init_value / peak_value : 0;
}

/// That part of the steps, rounded down.
constexpr std::int64_t part_of_steps(char const* name, char const* field, double part, std::int64_t steps) {
  require_steps(name, "transition_steps", steps, 1);
  require(part >= 0 && part <= 1, name, field, "in [0, 1]", part);
  return std::int64_t(part * double(steps));
}

}  // namespace descent::detail

/// Schedules of other libraries, under their names and with their arguments, where the mapping to our fields is not
/// obvious. docs/schedules.md has a table of all.
namespace descent::preset {

/// torch.optim.lr_scheduler 2.15; `lr` is the optimizer's. With 0 steps, LinearLR and PolynomialLR stay at their start,
/// as in PyTorch; our own schedules are then at their end.
namespace torch {
constexpr descent::piecewise_constant<1> ConstantLR(double lr, double factor = 1. / 3, std::int64_t total_iters = 5) {
  return {.at = {total_iters}, .values = {lr * factor, lr}};
}
constexpr descent::linear LinearLR(double lr, double start_factor = 1. / 3, double end_factor = 1,
                                   std::int64_t total_iters = 5) {
  if (total_iters == 0) end_factor = start_factor;
  return {lr * start_factor, lr * end_factor, total_iters};
}
constexpr descent::polynomial PolynomialLR(double lr, std::int64_t total_iters = 5, double power = 1) {
  return {lr, total_iters == 0 ? lr : 0, power, total_iters};
}
constexpr descent::cosine CosineAnnealingLR(double lr, std::int64_t T_max, double eta_min = 0) {
  return {.peak = lr, .floor = eta_min, .steps = T_max, .after = descent::cosine::swing};
}
}  // namespace torch

/// optax 0.2.8. With 0 steps, a transition stays at its start, as in optax; our own schedules are then at their end.
namespace optax {
constexpr delayed<descent::polynomial> polynomial_schedule(double init_value, double end_value, double power,
                                                           std::int64_t transition_steps,
                                                           std::int64_t transition_begin = 0) {
  if (transition_steps <= 0) end_value = init_value, transition_steps = 1;
  return {transition_begin > 0 ? transition_begin : 0, {init_value, end_value, power, transition_steps}};
}
constexpr delayed<descent::linear> linear_schedule(double init_value, double end_value, std::int64_t transition_steps,
                                                   std::int64_t transition_begin = 0) {
  if (transition_steps <= 0) end_value = init_value, transition_steps = 1;
  return {transition_begin > 0 ? transition_begin : 0, {init_value, end_value, transition_steps}};
}
constexpr delayed<descent::exponential> exponential_decay(
    double init_value, std::int64_t transition_steps, double decay_rate, std::int64_t transition_begin = 0,
    bool staircase = false, double end_value = descent::exponential::none) {
  if (transition_steps <= 0 || decay_rate == 0) return {0, {.initial = init_value}};
  return {transition_begin > 0 ? transition_begin : 0,
          {init_value, decay_rate, transition_steps, staircase, end_value}};
}
constexpr descent::cosine cosine_decay_schedule(double init_value, std::int64_t decay_steps, double alpha = 0,
                                                double exponent = 1) {
  return {init_value, alpha * init_value, decay_steps, exponent};
}

/// From each boundary on, its scale multiplies the value; the scales accumulate.
template <std::size_t N>
constexpr piecewise_constant<N> piecewise_constant_schedule(double init_value, std::int64_t const (&boundaries)[N],
                                                            double const (&scales)[N]) {
  return descent::detail::pieces(piecewise_constant<N>{}, init_value, boundaries, scales);
}
template <std::size_t N>
constexpr piecewise_interpolated<N> piecewise_interpolate_schedule(anneal shape, double init_value,
                                                                   std::int64_t const (&boundaries)[N],
                                                                   double const (&scales)[N]) {
  return descent::detail::pieces(piecewise_interpolated<N>{{}, {}, shape}, init_value, boundaries, scales);
}
constexpr piecewise_interpolated<3> linear_onecycle_schedule(std::int64_t transition_steps, double peak_value,
                                                             double pct_start = 0.3, double pct_final = 0.85,
                                                             double div_factor = 25, double final_div_factor = 1e4) {
  auto const part = [&](char const* field, double pct) {
    return descent::detail::part_of_steps("linear_onecycle_schedule", field, pct, transition_steps);
  };
  return piecewise_interpolate_schedule<3>(
      anneal::linear, peak_value / div_factor,
      {part("pct_start", pct_start), part("pct_final", pct_final), transition_steps},
      {div_factor, 1 / div_factor, 1 / final_div_factor});
}
constexpr piecewise_interpolated<2> cosine_onecycle_schedule(std::int64_t transition_steps, double peak_value,
                                                             double pct_start = 0.3, double div_factor = 25,
                                                             double final_div_factor = 1e4) {
  return piecewise_interpolate_schedule<2>(
      anneal::cosine, peak_value / div_factor,
      {descent::detail::part_of_steps("cosine_onecycle_schedule", "pct_start", pct_start, transition_steps),
       transition_steps},
      {div_factor, 1 / (div_factor * final_div_factor)});
}

/// Rises linearly to peak_value and stays there.
constexpr delayed<descent::linear> warmup_constant_schedule(double init_value, double peak_value,
                                                            std::int64_t warmup_steps) {
  return linear_schedule(init_value, peak_value, warmup_steps);
}
/// decay_steps includes the warmup. Throws std::invalid_argument if peak_value is 0 and init_value is not.
constexpr warmup<descent::cosine> warmup_cosine_decay_schedule(double init_value, double peak_value,
                                                               std::int64_t warmup_steps, std::int64_t decay_steps,
                                                               double end_value = 0, double exponent = 1) {
  descent::detail::require_steps("warmup_cosine_decay_schedule", "warmup_steps", warmup_steps, 0);
  descent::detail::require_steps("warmup_cosine_decay_schedule", "decay_steps", decay_steps, 0);
  return {.steps = warmup_steps,
          .then = {peak_value, peak_value != 0 ? end_value : 0, decay_steps - warmup_steps, exponent},
          .from = descent::detail::part_of_peak(init_value, peak_value, "warmup_cosine_decay_schedule"),
          .first = warmup<descent::cosine>::at_start};
}
constexpr warmup<delayed<descent::exponential>> warmup_exponential_decay_schedule(
    double init_value, double peak_value, std::int64_t warmup_steps, std::int64_t transition_steps, double decay_rate,
    std::int64_t transition_begin = 0, bool staircase = false, double end_value = descent::exponential::none) {
  return {.steps = warmup_steps,
          .then = exponential_decay(peak_value, transition_steps, decay_rate, transition_begin, staircase, end_value),
          .from = descent::detail::part_of_peak(init_value, peak_value, "warmup_exponential_decay_schedule"),
          .first = warmup<delayed<descent::exponential>>::at_start};
}
}  // namespace optax

}  // namespace descent::preset
