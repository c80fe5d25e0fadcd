// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <optional>
#include <vector>

/// A training step with everything that can happen in it, written from the formulas, element by element in double. It
/// shares no code with the library.
namespace plain {

/// A reference number and a bound on the difference of arithmetic with unit roundoff `unit`: Wilkinson's running error
/// analysis. Every operation adds unit |result| to the errors of its operands.
struct num {
  double x = 0, e = 0;

  static inline double unit = 0x1p-53, tiny = 0;  // roundoff of the arithmetic, and its smallest subnormal number
  static num made(double x, double e) { return {x, e + unit * std::abs(x) + tiny}; }
};
inline num rounded(double x) { return num::made(x, 0); }  // a number given in double
inline num operator+(num a, num b) { return num::made(a.x + b.x, a.e + b.e); }
inline num operator-(num a, num b) { return num::made(a.x - b.x, a.e + b.e); }
inline num operator*(num a, num b) {
  return num::made(a.x * b.x, std::abs(a.x) * b.e + std::abs(b.x) * a.e + a.e * b.e);
}
inline num operator/(num a, num b) {
  double const q = a.x / b.x, smallest = std::abs(b.x) - b.e;
  return num::made(q, smallest > 0 ? (a.e + std::abs(q) * b.e) / smallest : std::numeric_limits<double>::infinity());
}
inline num root(num a) {
  double const r = std::sqrt(a.x);
  return num::made(r, a.x > a.e ? a.e / r : std::sqrt(2 * a.e));
}
/// Any of -1, 0 and 1 if the error may have changed it.
inline num sign(num a) {
  double const s = a.x > 0 ? 1 : a.x < 0 ? -1 : 0;
  return {s, std::abs(a.x) <= a.e && a.e > num::tiny * 16 ? 2.0 : 0.0};
}

struct schedule {
  enum { constant, linear, cosine, staircase } kind = constant;
  double from = 0, to = 0;
  std::int64_t steps = 1, warm = 0;

  double operator()(std::int64_t t) const {
    if (t < warm) return after(0) * double(t + 1) / double(warm);
    return after(t - warm);
  }
  double after(std::int64_t t) const {
    double const part = std::min(1.0, double(t) / double(steps));
    if (kind == linear) return (1 - part) * from + part * to;
    if (kind == cosine) return to + (from - to) * std::pow(std::cos(part * std::numbers::pi / 2), 2);
    if (kind == staircase) return from * std::pow(to, double(t / steps));
    return from;
  }
};

enum class method { sgd, adamw, lion, lamb, lars };

/// The hyperparameters of a group; each method reads its own.
struct hyper {
  double lr = 0.01, beta1 = 0.9, beta2 = 0.99, eps = 1e-8, decay = 0, momentum = 0, dampening = 0, trust = 0.01;
  bool nesterov = false, joint = false;
};

struct loss_scale {
  bool dynamic = false;
  float scale = 1;
  double growth = 2, backoff = 0.5;
  int interval = 1;
  float min = 1, max = 1;
  int hysteresis = 1;
  bool refill_by_growth = false;
  int clean = 0, credit = 1;

  void judge(bool finite) {
    if (!dynamic) return;
    if (!finite) {
      clean = 0;
      if (--credit <= 0) scale = std::max(min, float(scale * backoff));
      return;
    }
    bool const due = ++clean == interval;
    if (due) clean = 0, scale = std::min(max, float(scale * growth));
    if (due || !refill_by_growth) credit = hysteresis;
  }
};

enum class norm { l1, l2, inf };
enum class over { model, group, tensor };
struct clip {
  norm of = norm::l2;
  over what = over::model;
  double max = 1, eps = 0;
  bool adaptive = false;  // max is relative to the norm of the parameters, which is at least eps
};
struct average {
  bool equal = false;  // the mean over the updates start, start + every, ...; otherwise exponential
  double decay = 0;
  bool corrected = false;
  std::int64_t start = 0, every = 1;
};
struct lookahead {
  int k = 1;
  double alpha = 1;
};
struct noise {
  double eta = 0, gamma = 0;
  std::function<double(std::int64_t t, std::size_t element)> normal;  // by the number of the element among all
};

struct settings {
  method rule = method::sgd;
  std::vector<hyper> groups;
  std::vector<char> frozen;
  std::optional<schedule> lr, decay;
  std::optional<plain::loss_scale> scale;
  std::optional<plain::clip> clipped;
  std::optional<double> clip_value;
  std::optional<plain::noise> noise;
  std::optional<int> accumulate;
  std::optional<plain::average> average;
  std::optional<plain::lookahead> lookahead;
  std::optional<double> bound;  // the largest RMS of a tensor's update, in learning rates
  bool finiteness = false, zero = false, shared = false;
};

/// A tensor: the exact parameters, the rule's state, and what policies keep.
struct tensor {
  std::size_t group = 0, first = 0;  // its group, and the number of its first element among all
  std::vector<num> p, m, v, average, slow;
};

enum class outcome { waiting, skipped, applied };

class machine {
 public:
  settings set;
  std::vector<tensor> tensors;

  // the contents of a report
  std::int64_t step = 0, skipped = 0;
  double learning_rate = 0, grad_norm = 0, clip_factor = 1;
  int batches = 0;
  bool unscaled = false;

  bool measures() const {
    return set.finiteness || set.clipped || set.scale || set.rule == method::lamb || set.rule == method::lars;
  }
  bool completes(bool flush) const { return !set.accumulate || (flush ? batches > 0 : batches + 1 >= *set.accumulate); }

  /// One call with the gradients in memory. The caller first puts the stored numbers into p, m, v, slow and average.
  outcome call(std::vector<std::vector<double>> const& memory, double weight, bool flush) {
    if (!completes(flush)) {
      if (!flush) ++batches, weights_ += weight;
      return outcome::waiting;
    }
    double const divisor = divide_by(weight, flush);
    batches = 0;
    weights_ = 0;
    unscaled = false;
    if (measures()) grad_norm = norm_of(memory, divisor, [](tensor const&) { return true; });
    bool const good = !measures() || std::isfinite(grad_norm);
    if (!good) ++skipped;
    if (good) update(memory, divisor);
    if (set.scale && !set.shared) set.scale->judge(good);
    return good ? outcome::applied : outcome::skipped;
  }

  /// The divisor of the gradients in memory.
  double divide_by(double weight, bool flush) const {
    double const weights = set.accumulate ? weights_ + (flush ? 0 : weight) : 1;
    return weights * (set.scale && !unscaled ? double(set.scale->scale) : 1);
  }

  template <class Wanted>
  double norm_of(std::vector<std::vector<double>> const& memory, double divisor, Wanted const& wanted) const {
    norm const of = set.clipped ? set.clipped->of : norm::l2;
    double sum = 0;
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      if (set.frozen[tensors[k].group] || !wanted(tensors[k])) continue;
      for (double in_memory : memory[k]) {
        double const g = std::abs(in_memory / divisor);
        if (of == norm::l1) sum += g;
        else if (of == norm::l2) sum += g * g;
        else if (!(g <= sum)) sum = std::isnan(sum) ? sum : g;
      }
    }
    return of == norm::l2 ? std::sqrt(sum) : sum;
  }

 private:
  double weights_ = 0;

  void update(std::vector<std::vector<double>> const& memory, double divisor) {
    std::int64_t const t = ++step;
    auto const rules = scheduled(t - 1);
    learning_rate = rules[0].lr;
    std::vector<double> factor;
    for (tensor const& x : tensors) factor.push_back(clip_of(memory, divisor, x));
    clip_factor = factor.empty() ? 1 : *std::min_element(factor.begin(), factor.end());
    if (set.clipped && set.clipped->what == over::model)
      clip_factor = clip_by(norm_of(memory, divisor, [](tensor const&) { return true; }), 0);

    double elements = 0;
    for (tensor const& x : tensors) elements += double(x.p.size());
    double const factor_error = set.clipped ? 0x1p-53 * elements : 0;  // of a sum in another order
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      tensor& x = tensors[k];
      if (set.frozen[x.group]) continue;
      std::vector<num> g;
      for (std::size_t i = 0; i < x.p.size(); ++i)
        g.push_back(seen(memory[k][i], {factor[k] / divisor, factor_error * factor[k] / divisor}, t, x.first + i));
      auto const before = x.p;
      apply(rules[x.group], x, g, t);
      if (set.bound) shorten(before, x.p, rounded(*set.bound * rules[x.group].lr));
      if (set.lookahead && t % set.lookahead->k == 0)
        for (std::size_t i = 0; i < x.p.size(); ++i)
          x.p[i] = x.slow[i] = x.slow[i] + rounded(set.lookahead->alpha) * (x.p[i] - x.slow[i]);
    }
  }

 public:
  /// The average after update t, of the parameters as they were stored. False if it does not change.
  bool average_of(num& e, double stored, std::int64_t t) const {
    plain::average const& a = *set.average;
    if (t <= a.start) return e = {stored, 0}, true;
    if (a.equal) {
      std::int64_t const n = (t - a.start) / a.every;  // in the mean before this one
      if ((t - a.start) % a.every != 0) return false;
      e = rounded(double(n) / double(n + 1)) * e + rounded(1 / double(n + 1)) * num{stored, 0};
      return true;
    }
    double const all = a.corrected ? 1 - std::pow(a.decay, double(t - a.start)) : 1, fresh = (1 - a.decay) / all;
    double const error = double(t) * 0x1p-53 / all * fresh;
    e = num::made(1 - fresh, error) * e + num::made(fresh, error) * num{stored, 0};
    return true;
  }

 private:
  std::vector<hyper> scheduled(std::int64_t applied) const {
    auto rules = set.groups;
    for (hyper& h : rules) {
      if (set.lr) h.lr = (*set.lr)(applied);
      if (set.decay) h.decay = (*set.decay)(applied);
    }
    return rules;
  }

  double clip_by(double norm, double parameter_norm) const {
    plain::clip const& c = *set.clipped;
    if (c.adaptive) return std::min(1.0, c.max * std::max(parameter_norm, c.eps) / norm);
    return norm + c.eps > c.max ? c.max / (norm + c.eps) : 1;
  }
  double clip_of(std::vector<std::vector<double>> const& memory, double divisor, tensor const& x) const {
    if (!set.clipped || set.frozen[x.group]) return 1;
    double squares = 0;
    for (num p : x.p) squares += p.x * p.x;
    return clip_by(norm_of(memory, divisor,
                           [&](tensor const& other) {
                             return set.clipped->what == over::model || &other == &x ||
                                    (set.clipped->what == over::group && other.group == x.group);
                           }),
                   std::sqrt(squares));
  }

  /// The gradient that the rule sees.
  num seen(double in_memory, num factor, std::int64_t t, std::size_t element) const {
    num g = num::made(factor.x, factor.e) * num{in_memory, 0};
    if (set.clip_value) {
      double const c = *set.clip_value;
      if (g.x > c) g = num{c, g.e}, g.e += num::unit * c;
      else if (g.x < -c) g = num{-c, g.e}, g.e += num::unit * c;
    }
    if (set.noise) {
      double const deviation = std::sqrt(set.noise->eta / std::pow(double(t), set.noise->gamma));
      g = g + rounded(float(deviation)) * num{set.noise->normal(t, element), 0};  // as wide as the normals
    }
    return g;
  }

  static void shorten(std::vector<num> const& from, std::vector<num>& to, num most) {
    num uu;
    for (std::size_t i = 0; i < to.size(); ++i) add(uu, (to[i] - from[i]) * (to[i] - from[i]));
    num const rms = root(uu / num{double(std::max<std::size_t>(to.size(), 1)), 0});
    if (!(rms.x + rms.e > most.x)) return;
    num factor = most / rms;
    factor.x = std::min(factor.x, 1.0);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[i] + factor * (to[i] - from[i]);
  }

  void apply(hyper const& h, tensor& x, std::vector<num> const& g, std::int64_t t) const {
    double const in_double = set.lr || set.decay ? 1e-14 : 0;  // a schedule may be computed in another order
    num const one = {1, 0}, mu = rounded(h.momentum);
    num const lr = num::made(h.lr, in_double * h.lr), decay = num::made(h.decay, in_double * h.decay);
    num const b1 = rounded(h.beta1), a1 = rounded(1 - h.beta1), b2 = rounded(h.beta2), a2 = rounded(1 - h.beta2);
    num const whole1 = whole(h.beta1, t), whole2 = whole(h.beta2, t);
    auto const adam = [&](std::size_t i) {  // after the moments of element i
      return x.m[i] * (one / whole1) / (root(x.v[i] * (one / whole2)) + rounded(h.eps)) + decay * x.p[i];
    };
    auto const moments = [&](std::size_t i) {
      x.m[i] = b1 * x.m[i] + a1 * g[i];
      x.v[i] = b2 * x.v[i] + a2 * g[i] * g[i];
    };
    switch (set.rule) {
      case method::sgd:
        for (std::size_t i = 0; i < g.size(); ++i) {
          num const d = g[i] + decay * x.p[i];
          if (h.momentum == 0) {
            x.p[i] = x.p[i] - lr * d;
            x.m[i] = d;  // kept if another group has momentum
            continue;
          }
          x.m[i] = t == 1 ? mu * x.m[i] + d : mu * x.m[i] + rounded(1 - h.dampening) * d;
          x.p[i] = x.p[i] - lr * (h.nesterov ? d + mu * x.m[i] : x.m[i]);
        }
        break;
      case method::adamw:
        for (std::size_t i = 0; i < g.size(); ++i) {
          moments(i);
          x.p[i] = x.p[i] - lr * adam(i);
        }
        break;
      case method::lion:
        for (std::size_t i = 0; i < g.size(); ++i) {
          num const direction = sign(b1 * x.m[i] + a1 * g[i]);
          x.m[i] = b2 * x.m[i] + a2 * g[i];
          x.p[i] = x.p[i] - lr * (direction + decay * x.p[i]);
        }
        break;
      case method::lamb: {
        num pp, uu;
        std::vector<num> u;
        for (std::size_t i = 0; i < g.size(); ++i) {
          moments(i);
          u.push_back(adam(i));
          add(pp, x.p[i] * x.p[i]);
          add(uu, u[i] * u[i]);
        }
        num const rate = pp.x > 0 && uu.x > 0 ? lr * (root(pp) / root(uu)) : lr;
        for (std::size_t i = 0; i < g.size(); ++i) x.p[i] = x.p[i] - rate * u[i];
        break;
      }
      case method::lars: {
        num pp, gg;
        for (std::size_t i = 0; i < g.size(); ++i) {
          num const d = h.joint ? g[i] + decay * x.p[i] : g[i];
          add(pp, x.p[i] * x.p[i]);
          add(gg, d * d);
        }
        num const below = root(gg) + rounded(h.joint ? 0 : h.decay) * root(pp) + rounded(h.eps);
        num const rate = pp.x > 0 && gg.x > 0 ? lr * rounded(h.trust) * root(pp) / below : lr;
        for (std::size_t i = 0; i < g.size(); ++i) {
          num const s = rate * (g[i] + decay * x.p[i]);
          x.m[i] = mu * x.m[i] + s;
          x.p[i] = x.p[i] - (h.nesterov ? mu * x.m[i] + s : x.m[i]);
        }
        break;
      }
    }
  }

  static num whole(double beta, std::int64_t t) {  // 1 - beta^t, whose error in double may be large relative to it
    return num::made(1 - std::pow(beta, double(t)), double(t) * 0x1p-53);
  }
  static void add(num& sum, num one) {  // sums are in double, in any order
    sum.x += one.x;
    sum.e += one.e + 0x1p-53 * sum.x;
  }
};

}  // namespace plain
