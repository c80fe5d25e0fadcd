// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/minimizers/detail/host_vector_space.hpp>
#include <descent/minimizers/detail/line_search.hpp>
#include <descent/core/detail/containers.hpp>
#include <descent/parameters.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace descent {

/// How the length of a step along its direction is found: it is lr; halved from lr until the loss falls enough
/// (Armijo); by cubic interpolation until the slope is also small enough (strong Wolfe).
enum class line_search { none, backtracking, strong_wolfe };

/// The settings of L-BFGS. With line_search::none or strong_wolfe it matches torch.optim.LBFGS, where by default the
/// history is 100 and the search is none.
struct lbfgs {
  double lr = 1;     ///< the first length that is tried, above 0
  int history = 10;  ///< pairs of s and y that are kept
  int max_iterations = 20, max_evaluations = 25;  ///< per call; a search may take one evaluation more, as in PyTorch
  double tolerance_gradient = 1e-7;               ///< stops if no |g| of an element is larger
  double tolerance_change = 1e-9;                 ///< stops if the loss or every element changes by less
  line_search search = line_search::strong_wolfe;  ///< how a length is found
  double decrease = 1e-4, curvature = 0.9;        ///< c1 and c2 of the search
  int max_search = 25;                            ///< evaluations in one search

  void check() const {
    constexpr char const* name = "lbfgs";
    detail::require(lr > 0 && is_finite(lr), name, "lr", "finite and above 0", lr);
    detail::require(history >= 1, name, "history", "at least 1", history);
    detail::require(max_iterations >= 1, name, "max_iterations", "at least 1", max_iterations);
    detail::require(max_evaluations >= 1, name, "max_evaluations", "at least 1", max_evaluations);
    detail::require_nonnegative(name, "tolerance_gradient", tolerance_gradient);
    detail::require_nonnegative(name, "tolerance_change", tolerance_change);
    detail::require(decrease > 0 && decrease < curvature, name, "decrease", "above 0 and below curvature", decrease);
    detail::require(curvature < 1, name, "curvature", "below 1", curvature);
    detail::require(max_search >= 1, name, "max_search", "at least 1", max_search);
  }
};

/// Why a minimization stopped.
enum class lbfgs_stop { gradient, change, slope, iterations, evaluations, callback, not_finite };

namespace detail {
inline char const* name_of(lbfgs_stop why) {
  switch (why) {
    case lbfgs_stop::gradient: return "the gradient is smaller than tolerance_gradient";
    case lbfgs_stop::change: return "the loss or the parameters changed by less than tolerance_change";
    case lbfgs_stop::slope: return "the direction does not descend by more than tolerance_change";
    case lbfgs_stop::iterations: return "max_iterations was reached";
    case lbfgs_stop::evaluations: return "max_evaluations was reached";
    case lbfgs_stop::callback: return "the callback requested it";
    default: return "the loss or the gradient is not finite";
  }
}
}  // namespace detail

/// The result of one call of minimize(), or so far.
struct lbfgs_result {
  lbfgs_stop why;       ///< why it stopped
  double loss;          ///< at the current parameters, if it was evaluated there
  double gradient_max;  ///< the largest |g| of an element at that point
  int iterations, evaluations;  ///< of this call
  /// `why` as text.
  std::string reason() const { return detail::name_of(why); }
};

/// L-BFGS in the memory of the parameters (Liu & Nocedal 1989; Nocedal & Wright 2006, algorithms 7.4 and 7.5).
///
///     q <- g;       from the newest pair back:  a_i <- <s_i, q> / <y_i, s_i>,   q <- q - a_i y_i
///     r <- h q;     from the oldest pair on:    b   <- <y_i, r> / <y_i, s_i>,   r <- r + (a_i - b) s_i
///     d <- -r;  p <- p + t d;  s <- t d;  y <- g(p) - g         kept where <y, s> > 1e-10;  h <- <y, s> / <y, y>
///
/// The first step has d = -g and t = lr min(1, 1 / ||g||_1). With many 16-bit parameters choose a larger lr, or
/// rounding removes that step. Parameters, pairs and directions are kept in float, or in double if the values are
/// double: 2 history + 5 vectors. Dot products are in double and deterministic. On CUDA each of them waits for the
/// stream.
template <class Value, class Gradient, class Backend> class lbfgs_optimizer {
  static_assert(!detail::types<Value>::several, "lbfgs: all parameters must have one type");
  using vector_space = detail::vector_space<Value, Gradient, Backend>;
  using vector = detail::self_movable<typename vector_space::vector>;
  struct pair {
    vector s, y;
    double ys;
  };

 public:
  /// Throws std::invalid_argument like optimizer.
  explicit lbfgs_optimizer(parameters<Value, Gradient> const& params, lbfgs settings = {}, Backend backend = {})
      : set_((settings.check(), settings)), space_(params, backend), x_(space_.zeros()), d_(space_.zeros()),
        g_(space_.zeros()), last_g_(space_.zeros()), best_g_(space_.zeros()) {}

  /// Iterates until there is a reason to stop. evaluate() computes the gradients at the current values and returns the
  /// loss; progress(result), called after each iteration, may return false to stop. Pairs are kept between calls.
  /// During a search, a non-finite loss counts as too high. A non-finite loss at the start, or a non-finite gradient
  /// anywhere, ends the call and leaves the parameters where it was found. If one of the functions throws, the values
  /// become those at the end of the last complete iteration, from which another call continues.
  template <class Evaluate, class Progress> lbfgs_result minimize(Evaluate&& evaluate, Progress&& progress) {
    space_.load_values(x_);
    try {
      return iterate(evaluate, progress);
    } catch (...) {
      space_.store_values(x_);
      throw;
    }
  }
  template <class Evaluate> lbfgs_result minimize(Evaluate&& evaluate) {
    return minimize(std::forward<Evaluate>(evaluate), [](lbfgs_result const&) { return true; });
  }

 private:
  /// Iterates from the values, which are x_.
  template <class Evaluate, class Progress> lbfgs_result iterate(Evaluate& evaluate, Progress& progress) {
    int evaluations = 0;
    auto const loss_here = [&] {
      double const loss = double(evaluate());
      space_.load_gradients(g_);
      ++evaluations;
      return loss;
    };
    double loss = loss_here(), largest = space_.abs_max(g_);
    auto const result = [&](lbfgs_stop why, int n) { return lbfgs_result{why, loss, largest, n, evaluations}; };
    auto const finite = [&] { return is_finite(loss) && is_finite(largest); };
    if (!finite()) return result(lbfgs_stop::not_finite, 0);
    if (largest <= set_.tolerance_gradient) return result(lbfgs_stop::gradient, 0);

    for (int n = 1;; ++n) {
      find_direction();
      double const slope = space_.dot(g_, d_), last_loss = loss;
      t_ = 0;
      if (slope > -set_.tolerance_change) return result(lbfgs_stop::slope, n - 1);
      double const first = started_ ? set_.lr : set_.lr * std::min(1.0, 1 / space_.abs_sum(g_));
      space_.combine(1, g_, 0, last_g_);
      auto const along = [&](double t) {
        space_.store_values(x_, t, d_);
        double const f = loss_here();
        return detail::line_point{t, f, space_.dot(g_, d_)};
      };
      auto const found = search({0, loss, slope}, first, set_.max_evaluations - evaluations, along);
      started_ = true;
      t_ = found.t;
      loss = found.f;
      space_.combine(t_, d_, 1, x_);
      largest = space_.abs_max(g_);
      if (!finite()) return result(lbfgs_stop::not_finite, n);
      if (!progress(result(lbfgs_stop::iterations, n))) return result(lbfgs_stop::callback, n);
      if (n == set_.max_iterations) return result(lbfgs_stop::iterations, n);
      if (evaluations >= set_.max_evaluations) return result(lbfgs_stop::evaluations, n);
      if (largest <= set_.tolerance_gradient) return result(lbfgs_stop::gradient, n);
      bool const still = t_ * space_.abs_max(d_) <= set_.tolerance_change;
      if (still || std::abs(loss - last_loss) < set_.tolerance_change) return result(lbfgs_stop::change, n);
    }
  }

  /// Adds the pair of the last step, then finds d by the two-loop recursion.
  void find_direction() {
    if (t_ != 0) add_pair();
    space_.combine(-1, g_, 0, d_);
    std::vector<double> a(pairs_.size());
    for (std::size_t i = pairs_.size(); i-- > 0;) {
      a[i] = space_.dot(pairs_[i].s, d_) / pairs_[i].ys;
      space_.combine(-a[i], pairs_[i].y, 1, d_);
    }
    space_.combine(0, g_, h_, d_);
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      double const b = space_.dot(pairs_[i].y, d_) / pairs_[i].ys;
      space_.combine(a[i] - b, pairs_[i].s, 1, d_);
    }
  }

  void add_pair() {
    pair now = std::exchange(spare_, {});
    if (now.s.size() == 0) now = {space_.zeros(), space_.zeros(), 0};
    space_.combine(t_, d_, 0, now.s);
    space_.combine(1, g_, 0, now.y);
    space_.combine(-1, last_g_, 1, now.y);
    now.ys = space_.dot(now.y, now.s);
    if (now.ys <= 1e-10) return void(spare_ = std::move(now));
    h_ = now.ys / space_.dot(now.y, now.y);
    if (pairs_.size() == std::size_t(set_.history)) {
      spare_ = std::move(pairs_.front());
      pairs_.erase(pairs_.begin());
    }
    pairs_.push_back(std::move(now));
  }

  /// The point on the line that the search returns. The values and g_ are then those at this point.
  template <class Along>
  detail::line_point search(detail::line_point const& start, double first, int left, Along const& along) {
    if (set_.search == line_search::none) return along(first);
    space_.combine(1, g_, 0, best_g_);
    auto const keep = [&] { space_.combine(1, g_, 0, best_g_); };
    detail::line_rules const rules{set_.decrease, set_.curvature, set_.tolerance_change / space_.abs_max(d_),
                                   std::min(set_.max_search, left)};
    auto const found = set_.search == line_search::backtracking
                           ? detail::search_backtracking(rules, start, first, along, keep)
                           : detail::search_strong_wolfe(rules, start, first, along, keep);
    std::swap(g_, best_g_);
    space_.store_values(x_, found.t, d_);
    return found;
  }

  lbfgs set_;
  detail::self_movable<vector_space> space_;
  vector x_, d_, g_, last_g_, best_g_;
  detail::self_movable<std::vector<pair>> pairs_;
  pair spare_;
  double h_ = 1, t_ = 0;
  bool started_ = false;
};

template <class Value, class Gradient>
lbfgs_optimizer(parameters<Value, Gradient> const&) -> lbfgs_optimizer<Value, Gradient, host<>>;
template <class Value, class Gradient>
lbfgs_optimizer(parameters<Value, Gradient> const&, lbfgs) -> lbfgs_optimizer<Value, Gradient, host<>>;
template <class Value, class Gradient, class Backend>
lbfgs_optimizer(parameters<Value, Gradient> const&, lbfgs, Backend) -> lbfgs_optimizer<Value, Gradient, Backend>;

}  // namespace descent
