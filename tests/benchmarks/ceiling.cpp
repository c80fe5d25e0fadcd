// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// Memory bandwidth, as contests on a problem whose elements are bytes: as many as the optimizer of a case uses.
#include "contest.hpp"

#include <immintrin.h>
#include <omp.h>

#include <algorithm>

namespace bench {
namespace {

enum class pattern { copy, copy_past_cache, triad, triad_past_cache, scale, read };

/// Arrays of float whose bytes together are the problem's elements.
template <pattern P> class ceiling : public contest {
  static constexpr bool past_cache = P == pattern::copy_past_cache || P == pattern::triad_past_cache;
  static constexpr bool triad = P == pattern::triad || P == pattern::triad_past_cache;
  static constexpr int arrays = P == pattern::scale || P == pattern::read ? 1 : triad ? 3 : 2;

 public:
  explicit ceiling(problem const& p)
      : n_(std::max<std::int64_t>(p.elements / 4 / arrays / 16, 1) * 16), a_(n_), b_(arrays > 1 ? n_ : 16),
        c_(arrays > 2 ? n_ : 16) {}

  void step() override {
#pragma omp parallel
    {
      std::int64_t const team = omp_get_num_threads(), rank = omp_get_thread_num(), parts = n_ / 16;
      range(parts * rank / team * 16, parts * (rank + 1) / team * 16);
    }
  }
  double read(char, std::int64_t, std::int64_t) const override { return 0; }
  double step_bytes() const override { return double(n_) * 4 * (P == pattern::scale ? 2 : arrays); }

 private:
  [[gnu::target("avx2,fma")]] static void put(float* to, __m256 x) {
    if constexpr (past_cache) _mm256_stream_ps(to, x);
    else _mm256_store_ps(to, x);
  }
  [[gnu::target("avx2,fma")]] void range(std::int64_t begin, std::int64_t end) {
    float* const a = a_.get();
    float const *const b = b_.get(), *const c = c_.get();
    __m256 const s = _mm256_set1_ps(0.999f);
    __m256 sum[2] = {};
    for (std::int64_t k = begin; k < end; k += 16)
      for (int h = 0; h < 2; ++h) {
        std::int64_t const i = k + 8 * h;
        if constexpr (P == pattern::read) sum[h] = _mm256_add_ps(sum[h], _mm256_load_ps(a + i));
        else if constexpr (P == pattern::scale) put(a + i, _mm256_mul_ps(s, _mm256_load_ps(a + i)));
        else if constexpr (triad) put(a + i, _mm256_fmadd_ps(s, _mm256_load_ps(c + i), _mm256_load_ps(b + i)));
        else put(a + i, _mm256_load_ps(b + i));
      }
    if constexpr (past_cache) _mm_sfence();
    if constexpr (P == pattern::read)
      if (_mm256_cvtss_f32(_mm256_add_ps(sum[0], sum[1])) == 1) a[0] = 1;
  }

  std::int64_t n_;
  arena<float> a_, b_, c_;
};

template <pattern P> maker made() {
  return [](problem const& p) -> std::unique_ptr<contest> { return std::make_unique<ceiling<P>>(p); };
}
recipe const copy("copy", made<pattern::copy>());
recipe const copy_past("copy_past_cache", made<pattern::copy_past_cache>());
recipe const triad_("triad", made<pattern::triad>());
recipe const triad_past("triad_past_cache", made<pattern::triad_past_cache>());
recipe const scale("scale", made<pattern::scale>());
recipe const read_("read", made<pattern::read>());

}  // namespace
}  // namespace bench
