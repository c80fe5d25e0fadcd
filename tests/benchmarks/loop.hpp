// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "contest.hpp"

#include <descent/policies/storage.hpp>

#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <type_traits>

/// Handwritten loops for a processor with AVX2, FMA and F16C: eight elements at a time, one parallel region for all
/// tensors, each thread with an equal share of the elements.
#define BENCH_AVX2 [[gnu::target("avx2,fma,f16c")]]

namespace bench {

namespace ds = descent;

BENCH_AVX2 inline __m256 all(float x) { return _mm256_set1_ps(x); }

template <class T> BENCH_AVX2 inline __m256 load(T const* p) {
  if constexpr (std::is_same_v<T, float>) return _mm256_loadu_ps(p);
  else if constexpr (std::is_same_v<T, ds::half>)
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p)));
  else
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p))), 16));
}

template <class T> BENCH_AVX2 inline void store(T* p, __m256 x) {
  if constexpr (std::is_same_v<T, float>) _mm256_storeu_ps(p, x);
  else if constexpr (std::is_same_v<T, ds::half>)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x, 0));
  else {
    __m256i const bits = _mm256_castps_si256(x);
    __m256i const odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i const up = _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    __m256i const packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(up, up), 8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
  }
}

/// Calls f(begin, end) for the parts of tensors in this thread's share.
template <class F> void each_share(problem const& p, F const& f) {
  std::int64_t const team = omp_get_num_threads(), rank = omp_get_thread_num();
  std::int64_t const share = (p.elements / team + 63) / 64 * 64;
  std::int64_t const from = std::min(rank * share, p.elements);
  std::int64_t const to = rank + 1 == team ? p.elements : std::min(from + share, p.elements);
  auto at = std::upper_bound(p.tensors.begin(), p.tensors.end(), from,
                             [](std::int64_t x, problem::tensor const& t) { return x < t.first; });
  if (at != p.tensors.begin()) --at;
  for (; at != p.tensors.end() && at->first < to; ++at) {
    std::int64_t const begin = std::max(from, at->first), end = std::min(to, at->first + at->count);
    if (begin < end) f(at->begin + begin - at->first, at->begin + end - at->first);
  }
}

/// Calls f(begin, end) for all tensors, in parallel.
template <class F> void sweep(problem const& p, F const& f) {
#pragma omp parallel
  each_share(p, [&](std::int64_t begin, std::int64_t end) { f(begin, end); });
}

}  // namespace bench
