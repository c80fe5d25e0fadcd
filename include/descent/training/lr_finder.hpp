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

/// The learning-rate range test (Smith 2017, section 3.3): train while the rate rises exponentially, and observe where
/// the loss falls fastest and where it diverges.
namespace descent {

/// The settings of find_learning_rate().
///
///     rate_i = lowest (highest / lowest)^(i / (steps - 1))                    i = 0, ..., steps - 1
///     mean_i = smoothing mean_i-1 + (1 - smoothing) loss_i
///     smoothed_i = mean_i / (1 - smoothing^(i+1))
///
/// The sweep ends early if smoothed > best + (diverged - 1) |best|, for a positive loss `diverged` times the best, or
/// if the loss is not finite.
struct lr_sweep {
  /// Rates 0 < lowest < highest; at least 3 steps; smoothing in [0, 1); diverged above 1.
  double lowest = 1e-7, highest = 10;
  int steps = 100;
  double smoothing = 0.9, diverged = 4;

  /// rate_i.
  double rate(int i) const { return lowest * std::pow(highest / lowest, double(i) / double(steps - 1)); }

  void check() const {
    detail::require(lowest > 0, "lr_sweep", "lowest", "above 0", lowest);
    detail::require(highest > lowest && is_finite(highest), "lr_sweep", "highest", "above lowest and finite", highest);
    detail::require(is_finite(highest / lowest), "lr_sweep", "highest", "such that highest / lowest is finite",
                    highest);
    detail::require(steps >= 3, "lr_sweep", "steps", "at least 3", steps);
    detail::require_fraction("lr_sweep", "smoothing", smoothing);
    detail::require(diverged > 1, "lr_sweep", "diverged", "above 1", diverged);
  }
};

/// The loss before the update with this rate.
struct lr_point {
  double rate, loss, smoothed;  ///< rate_i, loss_i and smoothed_i
};

/// The result of a sweep.
struct lr_curve {
  std::vector<lr_point> points;  ///< in the order of the rates
  bool diverged = false;  ///< whether the sweep ended early; the point that ended it is the last one, if finite
  std::int64_t skipped = 0;  ///< updates that were skipped, whose points are meaningless

  /// The point with the lowest smoothed loss.
  lr_point const& minimum() const { return points[lowest()]; }
  /// A tenth of its rate, a cautious choice.
  double tenth_of_minimum() const { return minimum().rate / 10; }

  /// The rate before the minimum at which the smoothed loss falls fastest over the logarithm of the rate, or the first
  /// rate if the second point is the minimum. Throws std::runtime_error if the loss never falls.
  double steepest() const {
    if (lowest() == 1) return points[0].rate;
    std::size_t best = 0;
    double least = 0;
    for (std::size_t i = 1; i < lowest(); ++i)
      if (double const slope = points[i + 1].smoothed - points[i - 1].smoothed; slope < least) least = slope, best = i;
    if (best == 0)
      throw std::runtime_error("lr_curve: the loss never falls over " + std::to_string(points.size()) +
                               " rates; start with a lower rate, or check the sign of the gradient");
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

/// The sweep's access to the internals of an optimizer.
struct lr_sweeper {
  template <class O> static void set_rate(O& opt, double rate) {
    opt.core_.alive().set_control(&control_block::sweep, rate, opt.core_.groups);
  }
  template <class O> static bool waits(O& opt) { return opt.core_.alive().read_control().waiting; }

  /// Throws std::invalid_argument unless the list has the optimizer's tensors, in the same order.
  template <class O, class Parameters> static void require_own(O const& opt, Parameters const& params) {
    auto const& views = params.views();
    auto const refuse = [](std::string const& what) {
      throw std::invalid_argument("find_learning_rate: the parameters must be the optimizer's: " + what);
    };
    if (views.size() != opt.core_.where.tensors.size())
      refuse("it has " + std::to_string(opt.core_.where.tensors.size()) + ", got " + std::to_string(views.size()));
    for (std::size_t t = 0; t < views.size(); ++t) {
      auto const& x = opt.core_.where.tensors[t];
      auto const& v = views[t];
      std::string const number = "number " + std::to_string(t);
      if (v.name != opt.core_.where.names[t])
        refuse(number + " is '" + opt.core_.where.names[t] + "', got '" + v.name + "'");
      if (v.value != x.value || v.gradient != x.gradient || v.count != x.count)
        refuse("'" + v.name + "' has another address or length");
    }
  }

  /// Copies all values and gradients to host memory, and back.
  template <class O> static std::vector<std::byte> save(O& opt) {
    std::vector<std::byte> bytes;
    each_buffer(opt, [&](void*, std::int64_t size) { bytes.resize(bytes.size() + std::size_t(size)); });
    std::size_t at = 0;
    each_buffer(opt, [&](void* memory, std::int64_t size) {
      opt.core_.alive().storage.copy(bytes.data() + at, memory, std::size_t(size));
      at += std::size_t(size);
    });
    opt.core_.alive().read_control();  // waits
    return bytes;
  }
  template <class O> static void restore(O& opt, std::vector<std::byte> const& bytes) {
    std::size_t at = 0;
    each_buffer(opt, [&](void* memory, std::int64_t size) {
      opt.core_.alive().storage.copy(memory, bytes.data() + at, std::size_t(size));
      at += std::size_t(size);
    });
    opt.core_.alive().read_control();
  }

 private:
  template <class O, class F> static void each_buffer(O& opt, F const& f) {
    for (auto const& x : opt.core_.where.tensors)
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

/// Sweeps the learning rate of all groups on a copy of the optimizer and ignores their schedules. `loss(trial)`, or
/// loss(), computes the loss of the next batch and its gradients, scaled by the loss scale of `trial` if there is one,
/// and returns the unscaled loss. On CUDA it must work on the optimizer's stream and wait for it.
///
///     auto const curve = find_learning_rate(opt, params, {.highest = 1}, [&](auto& trial) { ...; return loss; });
///     opt.group(0).lr = curve.steepest();
///
/// Values and gradients are restored bit for bit, also if loss throws. The optimizer does not change: masters, states,
/// averages, t, loss scale, plateau and schedules are those of the copy. The copy needs as much memory again, and the
/// host needs room for values and gradients. With accumulate each point is an update, not a micro-batch. `params` must
/// be the list that the optimizer was made from. Throws std::invalid_argument on another list, std::runtime_error if
/// the first loss is not finite or every update was skipped.
template <class Value, class Gradient, class Rule, class... Ps, class Loss>
lr_curve find_learning_rate(optimizer<Value, Gradient, Rule, Ps...> const& opt,
                            parameters<Value, Gradient> const& params, lr_sweep const& settings, Loss&& loss) {
  using trial_type = optimizer<Value, Gradient, Rule, Ps...>;
  using plan = typename detail::optimizer_traits<Value, Gradient, Rule, Ps...>::plan;
  static_assert(detail::has_lr<Rule>, "find_learning_rate: the rule has no field 'double lr'");
  static_assert(!plan::has_matrices, "find_learning_rate: a rule for matrices is not allowed, it cannot be copied");
  static_assert(!plan::shares_scale,
                "find_learning_rate: a shared loss scale is not allowed, other optimizers would see it change");
  static_assert(std::is_invocable_v<Loss&, trial_type&> || std::is_invocable_v<Loss&>,
                "find_learning_rate: loss must be callable as loss(trial) or loss() and return the loss");
  settings.check();
  using real = typename plan::real;
  detail::require(is_finite(real(settings.highest)), "lr_sweep", "highest",
                  sizeof(real) == 4 ? "in the range of float, the type of the arithmetic" : "finite", settings.highest);
  detail::lr_sweeper::require_own(opt, params);
  trial_type trial = opt.gathered(params);
  auto const before = trial.report();
  auto const saved = detail::lr_sweeper::save(trial);
  lr_curve curve;
  try {
    curve = detail::sweep<detail::has<plan, kind::accumulation>>(trial, settings, loss);
  } catch (...) {
    detail::lr_sweeper::restore(trial, saved);
    throw;
  }
  detail::lr_sweeper::restore(trial, saved);
  auto const after = trial.report();
  curve.skipped = after.skipped - before.skipped;
  if (after.step == before.step && curve.skipped > 0)
    throw std::runtime_error("find_learning_rate: every update was skipped, the last one because " + after.why);
  return curve;
}

}  // namespace descent
