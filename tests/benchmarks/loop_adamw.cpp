// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "loop.hpp"
#include "settings.hpp"

#include <cmath>
#include <cstring>

namespace bench {
namespace {

/// The terms that all elements of a step share.
struct terms { float lr, b1, a1, b2, a2, m_unbias, v_unbias, eps, wd, factor; };

terms terms_at(std::int64_t t) {
  return {float(lr), float(beta1), float(1 - beta1), float(beta2), float(1 - beta2),
          float(1 / (1 - std::pow(beta1, double(t)))), float(1 / (1 - std::pow(beta2, double(t)))), float(eps),
          float(decay), 1};
}

/// The same terms, eight copies each, so that the compiler can keep them in registers.
struct wide_terms { __m256 lr, b1, a1, b2, a2, m_unbias, v_unbias, eps, wd, factor; };

BENCH_AVX2 inline wide_terms widen(terms const& k) {
  return {all(k.lr),       all(k.b1),       all(k.a1),  all(k.b2), all(k.a2),
          all(k.m_unbias), all(k.v_unbias), all(k.eps), all(k.wd), all(k.factor)};
}

/// AdamW with exact parameters in float, gradients of type T, and a copy of the parameters in T if T is not float;
/// `Clip` clips the gradients by norm.
template <class T, bool Clip> class adamw : public contest {
  static constexpr bool copies = !std::is_same_v<T, float>;

 public:
  explicit adamw(problem const& p)
      : numbers_(p), master_(copies ? p.arena : 0), m_(p.arena), v_(p.arena),
        partial_(std::size_t(omp_get_max_threads())) {
    if constexpr (copies) fill(master_, p, [&](std::int64_t i) { return float(T(p.value(i))); });
  }

  void step() override {
    terms k = terms_at(++t_);
    if constexpr (Clip) {
      double const norm = std::sqrt(squares());
      if (norm + 1e-6 > clip) k.factor = float(clip / (norm + 1e-6));
    }
    sweep(numbers_.of, [&](std::int64_t begin, std::int64_t end) { range(begin, end, k); });
  }
  std::string streams() const override { return copies ? "pw" : "p"; }
  double read(char stream, std::int64_t tensor, std::int64_t i) const override {
    std::int64_t const at = numbers_.of.tensors[std::size_t(tensor)].begin + i;
    return stream == 'w' ? double(float(numbers_.values[at])) : double(exact()[at]);
  }
  std::int64_t extra_bytes() const override { return master_.bytes() + m_.bytes() + v_.bytes(); }

 private:
  float* exact() const {
    if constexpr (copies) return master_.get();
    else return numbers_.values.get();
  }

  /// Sums of floats over blocks, sums of blocks in double.
  BENCH_AVX2 double squares(std::int64_t begin, std::int64_t end) const {
    T const* const g = numbers_.gradients.get();
    double sum = 0;
    for (std::int64_t i = begin; i < end;) {
      __m256 lanes[4] = {};
      std::int64_t const stop = std::min(i + 4096, end);
      for (; i + 32 <= stop; i += 32)
        for (int j = 0; j < 4; ++j) {
          __m256 const x = load(g + i + 8 * j);
          lanes[j] = _mm256_fmadd_ps(x, x, lanes[j]);
        }
      float of[8];
      _mm256_storeu_ps(of, _mm256_add_ps(_mm256_add_ps(lanes[0], lanes[1]), _mm256_add_ps(lanes[2], lanes[3])));
      for (float const x : of) sum += x;
      for (; i < stop; ++i) sum += double(float(g[i])) * double(float(g[i]));
    }
    return sum;
  }
  double squares() {
#pragma omp parallel
    {
      double sum = 0;
      each_share(numbers_.of, [&](std::int64_t begin, std::int64_t end) { sum += squares(begin, end); });
      partial_[std::size_t(omp_get_thread_num())] = sum;
    }
    double sum = 0;
    for (double const x : partial_) sum += x;
    return sum;
  }

  BENCH_AVX2 void range(std::int64_t begin, std::int64_t end, terms const& one) const {
    wide_terms const k = widen(one);
    std::int64_t i = begin;
    for (; i + 8 <= end; i += 8)
      eight(exact() + i, numbers_.gradients.get() + i, m_.get() + i, v_.get() + i, numbers_.values.get() + i, k);
    std::size_t const rest = std::size_t(end - i);
    if (rest == 0) return;
    float p[8] = {}, m[8] = {}, v[8] = {};
    T g[8] = {}, w[8] = {};
    std::memcpy(p, exact() + i, rest * sizeof(float)), std::memcpy(m, m_.get() + i, rest * sizeof(float));
    std::memcpy(v, v_.get() + i, rest * sizeof(float)), std::memcpy(g, numbers_.gradients.get() + i, rest * sizeof(T));
    eight(p, g, m, v, w, k);
    std::memcpy(exact() + i, p, rest * sizeof(float)), std::memcpy(m_.get() + i, m, rest * sizeof(float));
    std::memcpy(v_.get() + i, v, rest * sizeof(float));
    if constexpr (copies) std::memcpy(numbers_.values.get() + i, w, rest * sizeof(T));
  }

  BENCH_AVX2 static void eight(float* p, T const* g, float* m, float* v, [[maybe_unused]] T* w, wide_terms const& k) {
    __m256 grad = load(g);
    if constexpr (Clip) grad = _mm256_mul_ps(grad, k.factor);
    __m256 x = _mm256_loadu_ps(p);
    __m256 const mi = _mm256_fmadd_ps(k.b1, _mm256_loadu_ps(m), _mm256_mul_ps(k.a1, grad));
    __m256 const vi = _mm256_fmadd_ps(k.b2, _mm256_loadu_ps(v), _mm256_mul_ps(_mm256_mul_ps(k.a2, grad), grad));
    __m256 const root = _mm256_sqrt_ps(_mm256_mul_ps(vi, k.v_unbias));
    __m256 const step = _mm256_div_ps(_mm256_mul_ps(mi, k.m_unbias), _mm256_add_ps(root, k.eps));
    x = _mm256_fnmadd_ps(k.lr, _mm256_fmadd_ps(k.wd, x, step), x);
    _mm256_storeu_ps(p, x);
    _mm256_storeu_ps(m, mi);
    _mm256_storeu_ps(v, vi);
    if constexpr (copies) store(w, x);
  }

  numbers<T> numbers_;
  arena<float> master_, m_, v_;
  std::vector<double> partial_;
  std::int64_t t_ = 0;
};

template <class T> maker made() {
  return [](problem const& p) -> std::unique_ptr<contest> { return std::make_unique<T>(p); };
}
recipe const plain("adamw", made<adamw<float, false>>());
recipe const master("adamw_bf16", made<adamw<ds::bfloat16, false>>());
recipe const clipped("adamw_bf16_clip", made<adamw<ds::bfloat16, true>>());

}  // namespace
}  // namespace bench
