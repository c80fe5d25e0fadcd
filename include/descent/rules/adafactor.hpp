// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/matrices/matrices.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace descent {

struct factored_adafactor;

/// Adafactor (Shazeer & Stern 2018). `matrices{adafactor{...}}` keeps one number per row and column (algorithm 4, see
/// factored_adafactor). As the optimizer's rule it keeps v for each element, for vectors (algorithm 5). The defaults
/// are those of torch.optim.Adafactor, with eps1 for float. v decays at the rate t^-beta2_decay.
///
///     v <- v + t^-decay (g^2 - v)
///     u <- g / sqrt(max(v, eps1^2))
///     u <- u / max(1, rms(u) / clip)
///     a <- max(eps2, rms(p)) min(lr, 1 / sqrt(t))                    rms over the tensor
///     p <- p - lr wd p - a u
///
/// optax's options: `eps_added` uses g^2 + eps1 and no floors; `capped` = false uses lr itself; `decay_by_lr` = false
/// decays by wd alone; `momentum` replaces a u by m <- mu m + (1 - mu) a u. `relative` = false drops rms(p) from a.
struct adafactor {
  /// Learning rate lr; beta2_decay, the exponent of v's decay rate; eps1 and eps2, the floors of sqrt(v) and rms(p);
  /// weight_decay (wd): all at least 0. clip, the limit of rms(u), above 0, or infinity for none; momentum (mu) in
  /// [0, 1). Elements whose v is 0 do not move, whatever eps1.
  double lr = 1e-2, beta2_decay = 0.8, eps1 = 0x1p-23, eps2 = 1e-3, clip = 1, weight_decay = 0, momentum = 0;
  bool eps_added = false, capped = true, relative = true, decay_by_lr = true;

  /// The rule for matrices.
  using for_matrices = factored_adafactor;

  template <class Real> struct state { Real v, m; };
  template <class Real> struct terms { Real a2, added, floor, rate, wd, mu, a1; };  // a1 = 1 - mu
  template <class Real> struct sums { Real n, pp, uu; };
  static constexpr char const* slots[] = {"v", "m"};
  static constexpr scope sums_over = scope::tensor;

  bool uses(std::size_t slot) const { return slot == 0 || momentum != 0; }

  /// lr or, with `capped`, min(lr, 1 / sqrt(t)).
  DESCENT_HD double step_size(std::int64_t t) const { return capped ? min(lr, 1 / sqrt(double(t))) : lr; }
  DESCENT_HD terms<double> at(std::int64_t t) const {
    return {pow(double(t), -beta2_decay), eps_added ? eps1 : 0, eps_added ? 0 : eps1 * eps1, step_size(t),
            decay_by_lr ? lr * weight_decay : weight_decay, momentum, 1 - momentum};
  }

  template <class Real> DESCENT_HD static Real direction(Real g, state<Real>& s, terms<Real> const& k) {
    s.v = select(is_finite(s.v), s.v + k.a2 * (g * g + k.added - s.v), s.v);
    Real const d = sqrt(select(s.v > k.floor, s.v, k.floor));
    return select(d > 0, g / d, Real(0));
  }
  template <class Real> DESCENT_HD static sums<Real> sum(Real p, Real g, state<Real> s, terms<Real> const& k) {
    Real const u = direction(g, s, k);
    return {Real(1), p * p, u * u};
  }
  DESCENT_HD terms<double> at(std::int64_t t, sums<double> const& total) const {
    terms<double> k = at(t);
    if (relative) k.rate *= max(eps2, sqrt(total.pp / total.n));
    k.rate /= max(1.0, sqrt(total.uu / total.n) / clip);
    return k;
  }
  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.mu * s.m + k.a1 * (k.rate * direction(g, s, k));
    return p - k.wd * p - s.m;
  }

  static constexpr field_range<adafactor> ranges[] = {{&adafactor::lr, at_least_0},
                                                      {&adafactor::beta2_decay, at_least_0},
                                                      {&adafactor::eps1, at_least_0},
                                                      {&adafactor::eps2, at_least_0},
                                                      {&adafactor::clip, above_0_or_infinite},
                                                      {&adafactor::weight_decay, at_least_0},
                                                      {&adafactor::momentum, below_1}};
};
static_assert(update_rule<adafactor> && has_sums<adafactor>);

namespace detail {

/// g^2, plus the eps of `eps_added`.
template <class Real, class Terms> struct adafactor_square {
  Real const* g;
  Terms const* k;
  DESCENT_HD double operator()(std::int64_t i, std::int64_t, std::int64_t) const {
    return double(g[i]) * double(g[i]) + double(k->added);
  }
};
/// mean <- mean + a2 (sum / n - mean), with sum / n limited to the largest finite number
template <class Real, class Terms> struct adafactor_mean {
  Real* mean;
  Terms const* k;
  double n;
  DESCENT_HD void operator()(std::int64_t i, double sum) const {
    mean[i] = mean[i] + k->a2 * (Real(min(sum / n, double(largest<Real>))) - mean[i]);
  }
};
/// g <- u = g / sqrt(v), where v = row mean * column mean / overall mean
template <class Real, class Terms> struct adafactor_direction {
  Real *g, *row, *column;
  double const* rows_total;
  Terms const* k;
  std::int64_t rows;
  DESCENT_HD void operator()(std::int64_t i, std::int64_t r, std::int64_t c) const {
    Real mean = Real(*rows_total / double(rows));
    if (k->floor != 0 && !(mean > k->eps1)) mean = k->eps1;
    Real const v = row[r] / mean * column[c];  // row[r] * column[c] may underflow or overflow
    Real const d = sqrt(v > k->floor ? v : k->floor);
    g[i] = d > 0 ? g[i] / d : Real(0);
  }
};
template <class Real> struct element_of {
  Real const* x;
  DESCENT_HD double operator()(std::int64_t i) const { return double(x[i]); }
};
/// u <- rate max(eps2, rms(p)) u / max(1, rms(u) / clip)
template <class Real, class Terms> struct adafactor_scale {
  Real* u;
  double const *uu, *pp;
  Terms const* k;
  double n;
  DESCENT_HD void operator()(std::int64_t i) const {
    double rate = double(k->rate);
    if (k->relative != 0) rate *= max(double(k->eps2), sqrt(*pp / n));
    double const rms = sqrt(*uu / n), limit = double(k->clip);
    u[i] = Real(rms > limit ? rate / (rms / limit) : rate) * u[i];
  }
};

}  // namespace detail

/// Adafactor for matrices, with the means r_i over rows and c_j over columns in place of v:
///
///     r_i <- r_i + t^-decay (mean_j(g_ij^2) - r_i),  and c_j in the same way
///     v_ij = r_i c_j / max(mean(r), eps1)
struct factored_adafactor : adafactor {
  template <class Real> struct state { Real m; };
  template <class Real> struct terms { Real a2, added, floor, eps1, eps2, clip, relative, rate, wd, mu, a1; };
  template <class Real> struct inputs { Real g, p; };
  static constexpr char const* slots[] = {"m"};

  bool uses(std::size_t) const { return momentum != 0; }
  static constexpr bool after(std::size_t) { return true; }
  DESCENT_HD static constexpr bool unbounded(std::size_t term) { return term == 5; }  // clip, switched off

  DESCENT_HD terms<double> at(std::int64_t t, shape) const {
    auto const k = adafactor::at(t);
    return {k.a2, k.added, k.floor, eps1, eps2, clip, double(relative), k.rate, k.wd, k.mu, k.a1};
  }

  template <class Real>
  DESCENT_HD static inputs<Real> direction(Real p, Real g, state<Real>&, terms<Real> const&) {
    return {g, p};
  }

  /// One operation for each element: there are no products.
  static double cost(shape s) { return double(s.rows) * double(s.columns); }
  static std::vector<std::int64_t> memory(shape s) { return {s.rows, s.columns}; }
  static std::vector<std::int64_t> scratch(shape) { return {}; }

  template <class Work> auto* transform(Work const& w) const {
    using real = typename Work::real;
    using work_terms = typename Work::terms;
    real *g = w.input(0), *p = w.input(1), *row = w.memory(0), *column = w.memory(1);
    detail::adafactor_square<real, work_terms> const square{g, w.k};
    w.each_row(square, detail::adafactor_mean<real, work_terms>{row, w.k, double(w.columns)});
    w.each_column(square, detail::adafactor_mean<real, work_terms>{column, w.k, double(w.rows)});
    w.total(w.rows, detail::element_of<real>{row}, w.sums());
    w.each_element(detail::adafactor_direction<real, work_terms>{g, row, column, w.sums(), w.k, w.rows});
    w.total(w.size(), detail::square_of<real>{g}, w.sums() + 1);
    w.total(w.size(), detail::square_of<real>{p}, w.sums() + 2);
    w.each(w.size(), detail::adafactor_scale<real, work_terms>{g, w.sums() + 1, w.sums() + 2, w.k,
                                                               double(w.rows) * double(w.columns)});
    return g;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real u, state<Real>& s, terms<Real> const& k) {
    s.m = k.mu * s.m + k.a1 * u;
    return p - k.wd * p - s.m;
  }
};
static_assert(matrix_rule<factored_adafactor>);

namespace preset::optax {
/// optax.adafactor 0.2.8. optax has no default learning rate; this one is ours.
constexpr descent::adafactor adafactor() {
  return {.eps1 = 1e-30, .eps_added = true, .capped = false, .decay_by_lr = false};
}
}  // namespace preset::optax

}  // namespace descent
