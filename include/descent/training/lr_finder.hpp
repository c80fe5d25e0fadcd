// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/optimizer.hpp>

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

/// The learning-rate range test (Smith 2017, section 3.3): train while the rate rises exponentially, and look where the
/// loss falls fastest and where it blows up.
namespace descent {

/// What find_learning_rate() does.
///
///     rate_i = lowest (highest / lowest)^(i / (steps - 1))                    i = 0, ..., steps - 1
///     mean_i = smoothing mean_i-1 + (1 - smoothing) loss_i
///     smoothed_i = mean_i / (1 - smoothing^(i+1))
///
/// It ends early when smoothed > best + (diverged - 1) |best|, which is `diverged` times the best of a positive loss,
/// or when the loss is not finite.
struct lr_sweep {
  double lowest = 1e-7, highest = 10;
  int steps = 100;
  double smoothing = 0.9, diverged = 4;

  double rate(int i) const { return lowest * std::pow(highest / lowest, double(i) / double(steps - 1)); }

  void check() const {
    detail::require(lowest > 0, "lr_sweep", "lowest", "above 0", lowest);
    detail::require(highest > lowest && is_finite(highest), "lr_sweep", "highest", "above lowest and finite",
                    highest);
    detail::require(steps >= 3, "lr_sweep", "steps", "at least 3", steps);
    detail::require_fraction("lr_sweep", "smoothing", smoothing);
    detail::require(diverged > 1, "lr_sweep", "diverged", "above 1", diverged);
  }
};

/// The loss before the update with this rate.
struct lr_point {
  double rate, loss, smoothed;
};

struct lr_curve {
  std::vector<lr_point> points;
  bool diverged = false;  ///< whether it ended early; the point that ended it is the last one, if it was finite
  std::int64_t skipped = 0;  ///< updates that were skipped, and whose rates say nothing

  /// Where the smoothed loss is least.
  lr_point const& minimum() const { return points[lowest()]; }
  /// A tenth of that rate, as a cautious choice.
  double tenth_of_minimum() const { return minimum().rate / 10; }

  /// The rate at which the smoothed loss falls fastest over the logarithm of the rate, before its minimum; the first
  /// one where the second point is the minimum. Throws std::runtime_error when it never falls.
  double steepest() const {
    if (lowest() == 1) return points[0].rate;
    std::size_t best = 0;
    double least = 0;
    for (std::size_t i = 1; i < lowest(); ++i)
      if (double const slope = points[i + 1].smoothed - points[i - 1].smoothed; slope < least) least = slope, best = i;
    if (best == 0)
      throw std::runtime_error("lr_curve: the loss never falls over " + std::to_string(points.size()) +
                               " rates; begin with a lower rate, or look for a gradient of the wrong sign");
    return points[best].rate;
  }

 private:
  std::size_t lowest() const {
    if (points.empty()) throw std::runtime_error("lr_curve: there are no points");
    std::size_t best = 0;
    for (std::size_t i = 1; i < points.size(); ++i)
      if (points[i].smoothed < points[best].smoothed) best = i;
    return best;
  }
};

namespace detail {

/// What the sweep needs of an optimizer beside its face.
struct lr_sweeper {
  template <class O> static void set_rate(O& opt, double rate) {
    opt.alive().set_control(&control_block::sweep, rate, opt.groups_);
  }
  template <class O> static bool waits(O& opt) { return opt.alive().read_control().waiting; }

  /// Throws std::invalid_argument unless the list has the optimizer's tensors, in their order.
  template <class O, class Parameters> static void require_own(O const& opt, Parameters const& params) {
    auto const& views = params.views();
    auto const refuse = [](std::string const& what) {
      throw std::invalid_argument("find_learning_rate: the parameters must be the optimizer's: " + what);
    };
    if (views.size() != opt.where_.tensors.size())
      refuse("it has " + std::to_string(opt.where_.tensors.size()) + ", got " + std::to_string(views.size()));
    for (std::size_t t = 0; t < views.size(); ++t) {
      auto const& x = opt.where_.tensors[t];
      auto const& v = views[t];
      std::string const number = "number " + std::to_string(t);
      if (v.name != opt.where_.names[t])
        refuse(number + " is '" + opt.where_.names[t] + "', got '" + v.name + "'");
      if (v.value != x.value || v.gradient != x.gradient || v.count != x.count)
        refuse("'" + v.name + "' has another address or length");
    }
  }

  /// Copies of all values and gradients in host memory, or back from there.
  template <class O> static std::vector<std::byte> save(O& opt) {
    std::vector<std::byte> bytes;
    each_buffer(opt, [&](void*, std::int64_t size) { bytes.resize(bytes.size() + std::size_t(size)); });
    std::size_t at = 0;
    each_buffer(opt, [&](void* memory, std::int64_t size) {
      opt.alive().copy(bytes.data() + at, memory, std::size_t(size));
      at += std::size_t(size);
    });
    opt.alive().read_control();  // waits
    return bytes;
  }
  template <class O> static void restore(O& opt, std::vector<std::byte> const& bytes) {
    std::size_t at = 0;
    each_buffer(opt, [&](void* memory, std::int64_t size) {
      opt.alive().copy(memory, bytes.data() + at, std::size_t(size));
      at += std::size_t(size);
    });
    opt.alive().read_control();
  }

 private:
  template <class O, class F> static void each_buffer(O& opt, F const& f) {
    for (auto const& x : opt.where_.tensors)
      f(x.value, x.count * x.value_size()), f(x.gradient, x.count * x.gradient_size());
  }
};

template <class Trial, class Loss> double loss_of(Trial& trial, Loss& loss) {
  if constexpr (std::is_invocable_v<Loss&, Trial&>) return double(loss(trial));
  else return double(loss());
}

template <bool Accumulates, class Trial, class Loss> lr_curve sweep(Trial& trial, lr_sweep const& s, Loss& loss) {
  lr_curve curve;
  double mean = 0, best = 0, left = 1;
  for (int i = 0; i < s.steps; ++i) {
    lr_sweeper::set_rate(trial, s.rate(i));
    double sum = 0;
    int calls = 0;
    do {
      sum += loss_of(trial, loss), ++calls;
      trial.step();
    } while (Accumulates && lr_sweeper::waits(trial));
    double const now = sum / calls;
    if (!is_finite(now)) {
      if (i == 0) throw std::runtime_error("find_learning_rate: the first loss is not finite, is " + number(now));
      curve.diverged = true;
      return curve;
    }
    mean = s.smoothing * mean + (1 - s.smoothing) * now;
    left *= s.smoothing;
    double const smoothed = mean / (1 - left);
    curve.points.push_back({s.rate(i), now, smoothed});
    if (i == 0 || smoothed < best) best = smoothed;
    if (smoothed > best + (s.diverged - 1) * std::abs(best)) {
      curve.diverged = true;
      return curve;
    }
  }
  return curve;
}

}  // namespace detail

/// Sweeps the learning rate of all groups, whatever their schedule, over a copy of the optimizer; `loss(trial)` computes
/// the loss of the next batch and its gradients, with the loss scale of `trial` if there is one, and returns the loss
/// without that scale; it takes the copy, or nothing. On CUDA loss works on the optimizer's stream and waits for it.
///
///     auto const curve = find_learning_rate(opt, params, {.highest = 1}, [&](auto& trial) { ...; return loss; });
///     opt.group(0).lr = curve.steepest();
///
/// Values and gradients are put back to the bit, also when loss throws. The optimizer is not touched: masters, states,
/// averages, t, loss scale, plateau and schedules are the copy's. It needs as much memory again, and room for values
/// and gradients on the host. Micro-batches count towards the optimizer's: with accumulate each point is an update.
/// `params` is the list that the optimizer was made from. Throws std::invalid_argument on another list,
/// std::runtime_error when the first loss is not finite or every update was skipped.
template <class Value, class Gradient, class Rule, class... Ps, class Loss>
lr_curve find_learning_rate(optimizer<Value, Gradient, Rule, Ps...> const& opt,
                            parameters<Value, Gradient> const& params, lr_sweep const& settings, Loss&& loss) {
  using trial_type = optimizer<Value, Gradient, Rule, Ps...>;
  using plan = typename detail::chosen<Value, Gradient, Rule, Ps...>::plan;
  static_assert(detail::has_lr<Rule>, "find_learning_rate: the rule has no field 'double lr'");
  static_assert(!plan::has_matrices, "find_learning_rate: not with a rule for matrices, which cannot be copied");
  static_assert(!plan::shares_scale,
                "find_learning_rate: not with a shared loss scale, which other optimizers would see change");
  static_assert(std::is_invocable_v<Loss&, trial_type&> || std::is_invocable_v<Loss&>,
                "find_learning_rate: loss is called as loss(trial) or loss(), and returns the loss");
  settings.check();
  detail::lr_sweeper::require_own(opt, params);
  trial_type trial = opt.gathered(params);
  auto const before = trial.report();
  auto const saved = detail::lr_sweeper::save(trial);
  lr_curve curve;
  try {
    curve = detail::sweep<plan::template given<typename plan::accumulation>>(trial, settings, loss);
  } catch (...) {
    detail::lr_sweeper::restore(trial, saved);
    throw;
  }
  detail::lr_sweeper::restore(trial, saved);
  auto const after = trial.report();
  curve.skipped = after.skipped - before.skipped;
  if (after.step == before.step && curve.skipped > 0)
    throw std::runtime_error("find_learning_rate: every update was skipped; of the last: " + after.why);
  return curve;
}

}  // namespace descent
