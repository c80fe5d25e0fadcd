// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/matrices/detail/muon_functors.hpp>
#include <descent/matrices/matrices.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace descent {

/// The polynomials a x + b x^3 + c x^5 of Muon's Newton-Schulz iteration: `of[i]` has a, b and c of iteration i, and
/// that of the last, `count - 1`, also serves all after it.
struct newton_schulz {
  std::array<std::array<double, 3>, 10> of = {{{3.4445, -4.7750, 2.0315}}};
  int count = 1;  ///< in [1, 10]

  /// Jordan et al. 2024, for any number of iterations: fast for small singular values, but they end in [0.7, 1.2].
  static constexpr newton_schulz quintic() { return {}; }
  /// Polar Express (Amsel et al. 2025, algorithm 2) for 5 iterations and singular values of at least 1e-3, with a
  /// safety factor of 2 % in each polynomial but the last. The paper also divides by 1.02 ||d||, not by ||d||: that
  /// 1.02 is s, in the first polynomial.
  static constexpr newton_schulz polar_express() {
    constexpr double s = 1 / 1.02;
    return {{{{8.156554524902461 * s, -22.48329292557795 * s * s * s, 15.878769915207462 * s * s * s * s * s},
              {4.042929935166739, -2.808917465908714, 0.5000178451051316},
              {3.8916678022926607, -2.772484153217685, 0.5060648178503393},
              {3.285753657755655, -2.3681294933425376, 0.46449024233003106},
              {2.3465413258596377, -1.7097828382687081, 0.42323551169305323}}},
            5};
  }
  /// CANS (Grishina et al. 2025, by Remez' algorithm) for 5 iterations, with the coefficients of NVIDIA's
  /// Emerging-Optimizers 0.3. Without the safety factor of 1 %, which is not theirs, 1 + 1e-5 would end at 2.6. Only
  /// for exact products: rounding errors of TF32 can take singular values far beyond 1, those of bfloat16 do.
  static constexpr newton_schulz cans() {
    constexpr double s = 1 / 1.01;
    return {{{{8.4703 * s, -25.1081 * s * s * s, 18.6293 * s * s * s * s * s},
              {4.1828, -3.1087, 0.5806},
              {3.9619, -2.9541, 0.5630},
              {3.2866, -2.4647, 0.5074},
              {2.2737, -1.6447, 0.4162}}},
            5};
  }
  /// DeepSeek-V4 (2026, section 2.4) for 10 iterations: eight of the quintic, then two that settle at 1.
  static constexpr newton_schulz deepseek_v4() {
    newton_schulz all{{}, 9};
    for (int i = 0; i < 8; ++i) all.of[std::size_t(i)] = {3.4445, -4.7750, 2.0315};
    all.of[8] = {2, -1.5, 0.5};
    return all;
  }
  /// The same polynomial in each iteration.
  static constexpr newton_schulz all(double a, double b, double c) { return {{{{a, b, c}}}, 1}; }

  std::array<double, 3> const& at(int iteration) const {
    return of[std::size_t(iteration < count ? iteration : count - 1)];
  }
  /// The largest singular value after the iterations if each may be larger by `error` of itself before every one.
  double largest(int iterations, double error) const {
    double most = 1;
    for (int i = 0; i < iterations && most < 1e30; ++i) {
      auto const [a, b, c] = at(i);
      double const end = (1 + error) * most;
      most = 0;
      for (int j = 0; j <= 200; ++j) {
        double const x = end * j / 200, y = a * x + b * x * x * x + c * x * x * x * x * x;
        most = max(most, y < 0 ? -y : y);
      }
    }
    return most;
  }
};

/// Muon: orthogonalized momentum (Jordan et al. 2024). For matrices: `matrices{muon{...}}`. The defaults are those of
/// torch.optim.Muon, but the products are in the type of the arithmetic instead of bfloat16.
/// Link a BLAS with the CBLAS interface on the host, such as OpenBLAS (`-lopenblas`), and cuBLAS (`-lcublas`) on CUDA.
///
///     m <- mu m + (1 - mu) g
///     d <- mu m + (1 - mu) g  with nesterov, else m
///     X <- d / max(||d||, eps)                                       the Frobenius norm
///     X <- a X + b (X X') X + c (X X')^2 X                           ns_steps times: singular values approach 1
///     p <- p - lr (s X + wd p)                                       s: see `adjust`
///
/// With `normalize_rows`, NorMuon (Li et al. 2025, algorithm 1), for each row i, before the last line:
///
///     v_i <- beta2 v_i + (1 - beta2) mean of X_ij^2 over j
///     X_ij <- X_ij / (sqrt(v_i) + eps2)
///     X <- (||X|| before the line above) / (||X|| + eps2) X
///
/// With `adaptive`, as in optax, X <- <d, X> X at last, with X of the iteration in <d, X>: the step is the steepest
/// descent under the spectral norm (Bernstein et al. 2024), and lr is of the size of SGD's.
///
/// `bias_correction` and `eps_added` are as in optax: d is mu m / (1 - mu^(t+1)) + (1 - mu) g / (1 - mu^t), or without
/// nesterov m / (1 - mu^t), and the divisor is ||d|| + eps. optax's decay is also multiplied by lr. `coefficients`,
/// `ns_steps`, `precision`, `normalize_rows` and `adaptive` are read when step() is called, so a captured step keeps
/// them. The latter two need memory, so they cannot be switched on after the construction.
struct muon {
  /// The factor s for a matrix of r rows (outputs) and c columns.
  enum class adjust_by {
    original,         ///< sqrt(max(1, r / c))
    match_rms_adamw,  ///< rms sqrt(max(r, c)): each element moves about as much as with AdamW
    spectral,         ///< sqrt(r / c)
    nothing,          ///< 1
    exact_rms         ///< rms sqrt(r c) / (||X|| + eps2): the elements of s X have this RMS
  };

  /// Learning rate lr; momentum (mu) and beta2 in [0, 1); weight_decay (wd), eps, eps2 and rms, the target of
  /// match_rms_adamw and exact_rms, at least 0; ns_steps in [0, 99]; coefficients a, b and c of each iteration.
  double lr = 1e-3, momentum = 0.95, weight_decay = 0.1, eps = 1e-7, rms = 0.2;
  bool nesterov = true, bias_correction = false, eps_added = false;
  adjust_by adjust = adjust_by::original;
  int ns_steps = 5;
  newton_schulz coefficients = newton_schulz::quintic();
  operands precision = operands::exact;  ///< of products, and of X with bf16; not exact also saves work on the host
  bool normalize_rows = false, adaptive = false;
  double beta2 = 0.95, eps2 = 1e-10;

  template <class Real> struct state { Real m; };
  template <class Real> struct terms {
    Real mu, a, of_m, of_g, eps, eps_added, rate, wd, b2, a2, eps2, length;  // a = 1 - mu, a2 = 1 - b2
  };
  template <class Real> struct inputs { Real d; };
  static constexpr char const* slots[] = {"m"};

  DESCENT_HD terms<double> at(std::int64_t t, shape s) const {
    double const r = double(s.rows), c = double(s.columns), mu = momentum;
    double const m_unbias = bias_correction ? 1 / (1 - power(mu, nesterov ? t + 1 : t)) : 1;
    double const g_unbias = bias_correction ? 1 / (1 - power(mu, t)) : 1;
    double scale = 1;
    if (adjust == adjust_by::original) scale = sqrt(max(1.0, r / c));
    if (adjust == adjust_by::match_rms_adamw) scale = rms * sqrt(max(r, c));
    if (adjust == adjust_by::spectral) scale = sqrt(r / c);
    double const length = adjust == adjust_by::exact_rms ? rms * sqrt(r * c) : 0;
    return {mu, 1 - mu, nesterov ? mu * m_unbias : m_unbias, nesterov ? (1 - mu) * g_unbias : 0, eps,
            double(eps_added), lr * scale, lr * weight_decay, beta2, 1 - beta2, eps2, length};
  }

  template <class Real>
  DESCENT_HD static inputs<Real> direction(Real, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.mu * s.m + k.a * g;
    return {k.of_m * s.m + k.of_g * g};
  }

  std::vector<std::int64_t> memory(shape s) const {
    return normalize_rows ? std::vector{s.rows} : std::vector<std::int64_t>{};
  }
  std::vector<std::int64_t> scratch(shape s) const {
    sides const of(s.rows, s.columns);
    std::vector parts{s.rows * s.columns, of.n * of.n, of.n * of.n};
    if (of.long_and_narrow) parts.insert(parts.end(), {of.n * of.n, of.n * of.n});
    parts.push_back(adaptive ? s.rows * s.columns : 0);
    return parts;
  }

  template <class Work> auto* transform(Work const& w) const {
    using real = typename Work::real;
    real* x = w.input(0);
    sides const of(w.rows, w.columns);
    real* const d = w.scratch(of.long_and_narrow ? 5 : 3);
    if (adaptive) w.each(w.size(), detail::copy_of<real>{d, x});
    w.total(w.size(), detail::square_of<real>{x}, w.sums());
    bool rounds = false;
    if constexpr (Work::rounds_operands && std::is_same_v<real, float>)
      if ((rounds = precision == operands::bf16 && ns_steps > 0)) x = orthogonalize<bfloat16>(w, x, of);
    if (!rounds) x = orthogonalize<real>(w, x, of);
    scale(w, x, d);
    return x;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real d, state<Real>&, terms<Real> const& k) {
    return p - k.wd * p - k.rate * d;
  }

  static constexpr field_range<muon> ranges[] = {{&muon::lr, at_least_0},
                                                 {&muon::momentum, below_1},
                                                 {&muon::weight_decay, at_least_0},
                                                 {&muon::eps, at_least_0},
                                                 {&muon::rms, at_least_0},
                                                 {&muon::ns_steps, interval{0, 99, "in [0, 99]"}},
                                                 {&muon::beta2, below_1},
                                                 {&muon::eps2, at_least_0}};
  void check() const {
    if (adjust != adjust_by::match_rms_adamw && adjust != adjust_by::exact_rms)
      detail::require(rms == muon{}.rms, "muon", "rms", "left alone unless adjust is match_rms_adamw or exact_rms",
                      rms);
    if (!normalize_rows)
      detail::require(beta2 == muon{}.beta2, "muon", "beta2", "left alone without normalize_rows", beta2);
    if (!normalize_rows && adjust != adjust_by::exact_rms)
      detail::require(eps2 == muon{}.eps2, "muon", "eps2", "left alone without normalize_rows and exact_rms", eps2);
    detail::require(coefficients.count >= 1 && coefficients.count <= 10, "muon", "coefficients.count", "in [1, 10]",
                    coefficients.count);
    for (auto const& abc : coefficients.of)
      for (double c : abc) detail::require(is_finite(float(c)), "muon", "coefficients", "finite in float", c);
    if (precision == operands::exact) return;
    double const reached = coefficients.largest(ns_steps, precision == operands::bf16 ? 0x1p-7 : 0x1p-10);
    detail::require(reached < 2, "muon", "the largest singular value that coefficients can reach at this precision",
                    "below 2", reached);
  }

 private:
  /// The shorter side, and whether the longer one is so long that products of n x n matrices cost less.
  struct sides {
    std::int64_t n;
    bool long_and_narrow;
    sides(std::int64_t rows, std::int64_t columns)
        : n(rows < columns ? rows : columns), long_and_narrow(2 * (rows < columns ? columns : rows) > 3 * n) {}
  };

  /// X, and room for the next one: of T, the type of operands, and at last of the arithmetic type.
  template <class T, class Real> struct iterate_of {
    Real *at, *next;
    T* elements() const { return reinterpret_cast<T*>(at); }
  };
  template <class T, class Work, class Real = typename Work::real>
  Real* orthogonalize(Work const& w, Real* x, sides of) const {
    iterate_of<T, Real> X{x, w.scratch(0)};
    if constexpr (!std::is_same_v<T, Real>) std::swap(X.at, X.next);
    w.each(w.size(), detail::divide_by_norm<T, Real, terms<Real>>{X.elements(), x, w.sums(), w.k});
    if (of.long_and_narrow) iterate_gram(w, X, of.n);
    else iterate(w, X, of.n);
    return X.at;
  }

  /// a <- X X', or X' X if X is tall
  template <class Work, class T> static void gram(Work const& w, T* x, T* a) {
    detail::dense<T> const X{x, w.rows, w.columns};
    w.square(w.rows > w.columns ? X.t() : X, a);
  }
  /// X <- B X, or X B if X is tall
  template <class Work, class T, class Real>
  static void apply(Work const& w, detail::dense<T> B, iterate_of<T, Real>& x, bool last) {
    detail::dense<T> const X{x.elements(), w.rows, w.columns};
    auto const to = [&](auto* y) {
      if (w.rows > w.columns) w.product(X, B, y);
      else w.product(B, X, y);
    };
    if (last) to(x.next);
    else to(reinterpret_cast<T*>(x.next));
    std::swap(x.at, x.next);
  }
  /// b <- a1 I + a2 A + a3 A^2
  template <class Work, class T> void polynomial(Work const& w, int i, T* a, T* b, std::int64_t n) const {
    using real = typename Work::real;
    auto const [a1, a2, a3] = coefficients.at(i);
    w.square(detail::dense<T>{a, n, n}, b);
    w.each_element(n, n, detail::add_polynomial<T, real>{b, a, real(a1), real(a2), real(a3)});
  }

  /// X <- B(X X') X in each iteration: 4 n^2 m + 2 n^3 operations for sides n <= m, with the symmetric squares at half
  /// their price on the host 3 n^2 m + n^3.
  template <class Work, class T, class Real>
  void iterate(Work const& w, iterate_of<T, Real>& x, std::int64_t n) const {
    T *const a = reinterpret_cast<T*>(w.scratch(1)), *const b = reinterpret_cast<T*>(w.scratch(2));
    for (int i = 0; i < ns_steps; ++i) {
      gram(w, x.elements(), a);
      polynomial(w, i, a, b, n);
      apply(w, detail::dense<T>{b, n, n}, x, i == ns_steps - 1);
    }
  }

  /// The same with A = X X' carried along, A <- A B^2, and the product Q of the B applied to X only after every third
  /// iteration and at the end: 4 n^2 m operations for three iterations and at most 8 n^3 for each, on the host 3 n^2 m
  /// and about 5 n^3. All n x n matrices are polynomials of A, so their products are symmetric. A small singular value
  /// of X is lost in the rounding errors of A, which grow; those of X do not, so A is then computed from X again. After
  /// five iterations without that, X is off by 0.0002 to 0.005, like products of bfloat16. With such products, even
  /// three are too many: DeepSeek's coefficients then diverge.
  template <class Work, class T, class Real>
  void iterate_gram(Work const& w, iterate_of<T, Real>& x, std::int64_t n) const {
    int const fresh = !std::is_same_v<T, Real> ? 2 : Work::rounds_operands || precision == operands::exact ? 3 : 5;
    auto const room = [&](int i) { return reinterpret_cast<T*>(w.scratch(i)); };
    T *const a = room(1), *b = room(2), *q = room(3), *t = room(4);
    auto const square = [n](T* of) { return detail::dense<T>{of, n, n}; };
    for (int i = 0; i < ns_steps; ++i) {
      bool const first = i % fresh == 0, last = i % fresh == fresh - 1 || i == ns_steps - 1;
      if (first) gram(w, x.elements(), a);
      polynomial(w, i, a, b, n);
      if (!last) {
        w.symmetric_product(square(a), square(b), t);
        w.symmetric_product(square(t), square(b), a);
      }
      if (first) std::swap(q, b);
      else w.symmetric_product(square(b), square(q), t), std::swap(q, t);
      if (last) apply(w, square(q), x, i == ns_steps - 1);
    }
  }

  /// The rows, the length and the dual norm of the direction x; d is what it was made from.
  template <class Work> void scale(Work const& w, typename Work::real* x, typename Work::real const* d) const {
    using real = typename Work::real;
    bool const whole = adjust == adjust_by::exact_rms;
    double *const before = w.sums() + 1, *after = w.sums() + 2, *const dual = w.sums() + 3;
    if (adaptive) w.total(w.size(), detail::elementwise_product<real>{d, x}, dual);
    if (normalize_rows || whole) w.total(w.size(), detail::square_of<real>{x}, before);
    if (normalize_rows) {
      w.each_row(detail::square_of<real>{x}, detail::row_moment<real, terms<real>>{w.memory(0), w.k, w.columns});
      w.each_element(detail::divide_by_row_moment<real, terms<real>>{x, w.memory(0), w.k});
      w.total(w.size(), detail::square_of<real>{x}, after);
    } else {
      after = before;
    }
    if (normalize_rows || whole || adaptive)
      w.each(w.size(), detail::scale_direction<real, terms<real>>{x, before, normalize_rows || whole ? after : nullptr,
                                                                  adaptive ? dual : nullptr, w.k});
  }
};
static_assert(matrix_rule<muon>);

namespace preset::optax {
/// optax.contrib.muon 0.2.8. Its matrices are the transposes of ours.
constexpr descent::muon muon() { return {.weight_decay = 0, .eps = 1e-8, .bias_correction = true, .eps_added = true}; }
}  // namespace preset::optax

}  // namespace descent
