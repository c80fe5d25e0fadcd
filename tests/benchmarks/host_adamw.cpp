// AdamW on the host against a hand-written AVX2 loop under OpenMP, interleaved in one run: medians and their ratio.
// Cases: float; bfloat16 gradients; bfloat16 and half values and gradients with a float master; a read-only pass before
// the update; 1000 tensors of 1024 against one tensor.
// usage: host_adamw [millions of parameters, 64] [repetitions, 9]
#include <descent/descent.hpp>

#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ds = descent;

template <class T> struct buffer {
  explicit buffer(std::size_t n) : data(static_cast<T*>(std::aligned_alloc(4096, (n * sizeof(T) + 4095) / 4096 * 4096))) {
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < n; ++i) data[i] = T(float(int(i * 37 % 257) - 128) / 65536.f);
  }
  buffer(buffer const&) = delete;
  ~buffer() { std::free(data); }
  T* data;
};

struct hand_terms { float lr, b1, a1, b2, a2, m_unbias, v_unbias, eps, wd; };

template <class T> [[gnu::target("avx2,fma,f16c")]] inline __m256 load(T const* p) {
  if constexpr (std::is_same_v<T, float>) return _mm256_loadu_ps(p);
  else if constexpr (std::is_same_v<T, ds::half>)
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p)));
  else
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p))), 16));
}
template <class T> [[gnu::target("avx2,fma,f16c")]] inline void store(T* p, __m256 x) {
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

template <class T>
[[gnu::target("avx2,fma,f16c")]] void hand_range(float* p, T const* g, float* m, float* v, T* w, std::size_t begin,
                                                 std::size_t end, hand_terms const& k) {
  __m256 const lr = _mm256_set1_ps(k.lr), b1 = _mm256_set1_ps(k.b1), a1 = _mm256_set1_ps(k.a1);
  __m256 const b2 = _mm256_set1_ps(k.b2), a2 = _mm256_set1_ps(k.a2), mu = _mm256_set1_ps(k.m_unbias);
  __m256 const vu = _mm256_set1_ps(k.v_unbias), eps = _mm256_set1_ps(k.eps), wd = _mm256_set1_ps(k.wd);
  for (std::size_t i = begin; i < end; i += 8) {
    __m256 const grad = load(g + i);
    __m256 x = _mm256_loadu_ps(p + i);
    __m256 const mi = _mm256_fmadd_ps(b1, _mm256_loadu_ps(m + i), _mm256_mul_ps(a1, grad));
    __m256 const vi = _mm256_fmadd_ps(b2, _mm256_loadu_ps(v + i), _mm256_mul_ps(_mm256_mul_ps(a2, grad), grad));
    __m256 const step = _mm256_div_ps(_mm256_mul_ps(mi, mu), _mm256_add_ps(_mm256_sqrt_ps(_mm256_mul_ps(vi, vu)), eps));
    x = _mm256_fnmadd_ps(lr, _mm256_fmadd_ps(wd, x, step), x);
    _mm256_storeu_ps(p + i, x);
    _mm256_storeu_ps(m + i, mi);
    _mm256_storeu_ps(v + i, vi);
    if (w) store(w + i, x);
  }
}

template <class T> void hand(float* p, T const* g, float* m, float* v, T* w, std::size_t n, hand_terms const& k) {
#pragma omp parallel
  {
    std::size_t const team = std::size_t(omp_get_num_threads()), rank = std::size_t(omp_get_thread_num());
    std::size_t const share = n / 8 / team * 8, begin = rank * share, end = rank + 1 == team ? n : begin + share;
    hand_range(p, g, m, v, w, begin, end, k);
  }
}

double seconds(std::function<void()> const& f) {
  auto const start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void compare(char const* name, double bytes, int repetitions, std::function<void()> const& ours,
             std::function<void()> const& other) {
  std::vector<double> a, b;
  ours(), other();
  for (int r = 0; r < repetitions; ++r) a.push_back(seconds(ours)), b.push_back(seconds(other));
  auto const median = [](std::vector<double>& x) {
    std::sort(x.begin(), x.end());
    return x[x.size() / 2];
  };
  double const ma = median(a), mb = median(b);
  std::printf("%-44s %6.1f GB/s (%.1f to %.1f)   reference %6.1f GB/s   ratio %.2f\n", name, bytes / ma * 1e-9,
              bytes / a.back() * 1e-9, bytes / a.front() * 1e-9, bytes / mb * 1e-9, mb / ma);
}

hand_terms const terms{1e-3f, 0.9f, 0.1f, 0.999f, 1e-3f, 1.5f, 1.7f, 1e-8f, 1e-2f};

template <class T, class G, class... Policies>
void large(char const* name, std::size_t n, int repetitions, Policies... policies) {
  buffer<T> w(n);
  buffer<G> g(n), w2(std::is_same_v<T, float> ? 8 : n);
  buffer<float> p2(n), m2(n), v2(n);
  for (std::size_t i = 0; i < n; ++i) v2.data[i] *= v2.data[i];
  ds::parameters<T, G> params;
  params.add("w", w.data, g.data, n);
  ds::optimizer opt{params, ds::adamw{}, policies...};
  G* const copy = std::is_same_v<T, float> ? nullptr : w2.data;
  compare(name, double(n) * double(opt.bytes_per_parameter()), repetitions, [&] { opt.step(); },
          [&] { hand(p2.data, g.data, m2.data, v2.data, copy, n, terms); });
}

void many(std::size_t tensors, std::size_t size, int repetitions) {
  std::size_t const n = tensors * size;
  buffer<float> w(n), g(n), w2(n), g2(n);
  ds::parameters<float> split, whole;
  for (std::size_t t = 0; t < tensors; ++t) split.add("w" + std::to_string(t), w.data + t * size, g.data + t * size, size);
  whole.add("w", w2.data, g2.data, n);
  ds::optimizer a{split, ds::adamw{}}, b{whole, ds::adamw{}};
  compare("1000 tensors of 1024 against one tensor", 28.0 * double(n), repetitions * 50, [&] { a.step(); },
          [&] { b.step(); });
}

int main(int argc, char** argv) {
  std::size_t const n = std::size_t(argc > 1 ? std::atof(argv[1]) * 1048576 : 64 * 1048576.0) / 8 * 8;
  int const repetitions = argc > 2 ? std::atoi(argv[2]) : 9;
  std::printf("%zu parameters, %d threads\n", n, omp_get_max_threads());
  large<float, float>("AdamW float", n, repetitions);
  large<float, ds::bfloat16>("AdamW float, bfloat16 gradients", n, repetitions);
  large<ds::bfloat16, ds::bfloat16>("AdamW bfloat16, float master", n, repetitions, ds::master<float>{});
  large<ds::half, ds::half>("AdamW half, float master", n, repetitions, ds::master<float>{});
  large<float, float>("AdamW float, clip_norm (reference: no clip)", n, repetitions, ds::clip_norm{1e9});
  many(1000, 1024, repetitions);
}
