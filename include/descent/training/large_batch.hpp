// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/core/schedule.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/training/batch_noise.hpp>
#include <descent/training/ghost_batch.hpp>

#include <cmath>
#include <cstdint>

/// Training with large batches: what to change if the batch is k times as large. The batch is what one update averages
/// over: micro-batch times ranks times accumulated micro-batches.
namespace descent {

namespace detail {
/// k, the ratio of the two batches.
constexpr double times_the_batch(char const* name, double batch, double base_batch) {
  require(batch > 0 && batch < __builtin_inf(), name, "batch", "above 0 and finite", batch);
  require(base_batch > 0 && base_batch < __builtin_inf(), name, "base_batch", "above 0 and finite", base_batch);
  return batch / base_batch;
}
constexpr void require_micro(char const* name, std::int64_t micro, std::int64_t ranks) {
  constexpr std::int64_t most = 2147483647;
  require(micro >= 1 && micro <= most, name, "micro", "in [1, 2^31)", micro);
  require(ranks >= 1 && ranks <= most, name, "ranks", "in [1, 2^31)", ranks);
}
}  // namespace detail

/// The batch of one update, in examples. Throws std::invalid_argument if it exceeds 2^62 or a factor is not in range.
constexpr std::int64_t whole_batch(std::int64_t micro, std::int64_t ranks = 1, std::int64_t accumulated = 1) {
  detail::require_micro("whole_batch", micro, ranks);
  detail::require(accumulated >= 1, "whole_batch", "accumulated", "at least 1", accumulated);
  detail::require(accumulated <= (std::int64_t{1} << 62) / (micro * ranks), "whole_batch", "accumulated",
                  "so that the batch is at most 2^62", accumulated);
  return micro * ranks * accumulated;
}

/// Linear scaling (Goyal et al. 2017, section 2.1). Keeps the noise of SGD, lr / batch:   lr' = lr batch / base
constexpr double linear_scaled(double lr, double batch, double base_batch) {
  return lr * detail::times_the_batch("linear_scaled", batch, base_batch);
}

/// Square-root scaling (Krizhevsky 2014, section 5; Hoffer et al. 2017, section 4). Keeps the covariance of an update:
/// lr' = lr sqrt(batch / base)
inline double sqrt_scaled(double lr, double batch, double base_batch) {
  return lr * std::sqrt(detail::times_the_batch("sqrt_scaled", batch, base_batch));
}

/// Gradual warm-up (Goyal et al. 2017, section 2.2): rises linearly in `steps` steps from then(0) / k, the rate of the
/// small batch, to then(0), the scaled rate. `then` counts steps from the start of training, like the paper's epochs.
///
///     s(t) = then(0) (1 / k + (1 - 1 / k) t / steps)     for t < steps
///     s(t) = then(t)                                     afterwards
template <schedule Then> struct gradual_warmup {
  /// k is above 0, steps at least 0.
  double k = 1;
  std::int64_t steps = 0;
  Then then{};

  DESCENT_HD double operator()(std::int64_t t) const {
    return t < steps ? then(0) * (1 / k + (1 - 1 / k) * (double(t) / double(steps))) : then(t);
  }
  /// See has_length.
  std::int64_t length() const requires has_length<Then> { return detail::longer(steps, then.length()); }
  void check() const {
    detail::require(k > 0 && is_finite(k), "gradual_warmup", "k", "above 0 and finite", k);
    detail::require_steps("gradual_warmup", "steps", steps, 0);
    if constexpr (requires { then.check(); }) then.check();
  }
};

/// LEGW, linear-epoch gradual warm-up (You et al. 2019, section 3): for k times the batch, the rate times sqrt(k) and k
/// times the warm-up epochs, which is the same number of updates.
struct legw {
  double lr, warmup_epochs;  ///< of the batch that they are for

  /// Scales both from one batch to another, in examples.
  legw for_batch(double batch, double base_batch) const {
    double const k = detail::times_the_batch("legw", batch, base_batch);
    return {lr * std::sqrt(k), warmup_epochs * k};
  }
};

/// The number of updates in `epochs` epochs over `samples` examples. The last batch of an epoch may be smaller.
inline std::int64_t updates_in(double epochs, std::int64_t samples, std::int64_t batch) {
  detail::require_nonnegative("updates_in", "epochs", epochs);
  detail::require(samples > 0, "updates_in", "samples", "above 0", samples);
  detail::require(batch > 0, "updates_in", "batch", "above 0", batch);
  double const updates = epochs * double(samples / batch + (samples % batch != 0));
  detail::require(updates <= 0x1p62, "updates_in", "the number of updates", "at most 2^62", updates);
  return std::llround(updates);
}

/// Training longer (Hoffer et al. 2017, section 5): the number of epochs in which k times the batch makes the same
/// number of updates. A schedule that counts updates then needs no change.
constexpr double epochs_of_equal_updates(double epochs, double batch, double base_batch) {
  return epochs * detail::times_the_batch("epochs_of_equal_updates", batch, base_batch);
}

/// Converts a schedule of the batch to micro-batches for accumulate_by: n(t) = batch(t) / (micro ranks), rounded, below
/// 2^31. `batch` may be any schedule; step{256, 5, 1000} multiplies it by five every 1000 updates.
template <schedule Batch> struct micro_batches {
  Batch batch{};
  std::int64_t micro = 1, ranks = 1;  ///< examples in a micro-batch, and ranks, both in [1, 2^31)

  DESCENT_HD double operator()(std::int64_t t) const {
    return double(detail::whole_micro_batches(batch(t) / double(micro * ranks)));
  }
  void check() const {
    detail::require_micro("micro_batches", micro, ranks);
    if constexpr (requires { batch.check(); }) batch.check();
  }
};
template <class Batch> micro_batches(Batch, std::int64_t, std::int64_t = 1) -> micro_batches<Batch>;

/// Growing the batch instead of decaying the rate (Smith et al. 2018, section 2). The noise of SGD is about
/// lr N / batch for N samples. If `rate` would fall by a factor, the batch grows by it instead, up to `largest`; only
/// then does the rate fall. Up to step `begin`, the end of a warm-up, the batch is `batch` and the rate is rate(t).
///
///     B(t) = batch                                                      for t <= begin
///     B(t) = batch rate(begin) / rate(t), in [batch, largest]           afterwards, in whole micro-batches
///     lr(t) = rate(t) B(t) / batch                                      so that lr / B is rate / batch
///
/// `grow_batch(growth)` returns both policies. Updates with a grown batch use more data. `rate` counts updates, so its
/// milestones no longer fall at the same epochs as with the small batch.
template <schedule Rate> struct batch_growth {
  Rate rate{};
  double batch = 1, largest = 1;
  std::int64_t micro = 1, ranks = 1, begin = 0;  ///< as in micro_batches; begin is at least 0

  DESCENT_HD double operator()(std::int64_t t) const {
    if (t <= begin) return batch;
    double const wanted = batch * rate(begin) / rate(t);
    return wanted < batch ? batch : wanted < largest ? wanted : largest;
  }

  void check() const {
    detail::require_micro("batch_growth", micro, ranks);
    detail::require_least("batch_growth", "batch", "micro times ranks", double(micro * ranks), batch);
    detail::require_least("batch_growth", "largest", "batch", batch, largest);
    detail::require_finite("batch_growth", "largest", largest);
    detail::require_steps("batch_growth", "begin", begin, 0);
    detail::require_positive("batch_growth", "the rate at step begin", rate(begin));
    if constexpr (requires { rate.check(); }) rate.check();
  }
};

/// The micro-batches n(t) of `growth`.
template <class Rate> constexpr micro_batches<batch_growth<Rate>> accumulated(batch_growth<Rate> const& growth) {
  return {growth, growth.micro, growth.ranks};
}

/// The rate lr(t) of `growth`.
template <schedule Rate> struct remaining_rate {
  batch_growth<Rate> growth;

  DESCENT_HD double operator()(std::int64_t t) const {
    double const n = micro_batches<batch_growth<Rate>>{growth, growth.micro, growth.ranks}(t);
    return growth.rate(t) * (n * double(growth.micro * growth.ranks) / growth.batch);
  }
  void check() const { growth.check(); }
};
template <class Rate> remaining_rate(batch_growth<Rate>) -> remaining_rate<Rate>;

/// The policies accumulate_by and learning_rate for a growing batch.
template <class Rate> constexpr auto grow_batch(batch_growth<Rate> const& growth) {
  return together(accumulate_by{accumulated(growth)}, learning_rate(remaining_rate{growth}));
}

}  // namespace descent
