// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "loop.hpp"
#include "settings.hpp"

#include <cmath>

namespace bench {
namespace {

class sgd : public contest {
 public:
  explicit sgd(problem const& p) : numbers_(p) {}
  void step() override {
    sweep(numbers_.of, [&](std::int64_t begin, std::int64_t end) { range(begin, end); });
  }
  double read(char, std::int64_t tensor, std::int64_t i) const override {
    return numbers_.values[numbers_.of.tensors[std::size_t(tensor)].begin + i];
  }

 private:
  BENCH_AVX2 void range(std::int64_t begin, std::int64_t end) const {
    float* const p = numbers_.values.get();
    float const* const g = numbers_.gradients.get();
    __m256 const rate = _mm256_set1_ps(float(lr));
    std::int64_t i = begin;
    for (; i + 8 <= end; i += 8)
      _mm256_storeu_ps(p + i, _mm256_fnmadd_ps(rate, _mm256_loadu_ps(g + i), _mm256_loadu_ps(p + i)));
    for (; i < end; ++i) p[i] -= float(lr) * g[i];
  }
  numbers<float> numbers_;
};

class heavy : public contest {
 public:
  explicit heavy(problem const& p) : numbers_(p), buffer_(p.arena) {}
  void step() override {
    sweep(numbers_.of, [&](std::int64_t begin, std::int64_t end) { range(begin, end); });
  }
  double read(char, std::int64_t tensor, std::int64_t i) const override {
    return numbers_.values[numbers_.of.tensors[std::size_t(tensor)].begin + i];
  }
  std::int64_t extra_bytes() const override { return buffer_.bytes(); }

 private:
  BENCH_AVX2 void range(std::int64_t begin, std::int64_t end) const {
    float* const p = numbers_.values.get();
    float* const b = buffer_.get();
    float const* const g = numbers_.gradients.get();
    __m256 const rate = _mm256_set1_ps(float(lr)), mu = _mm256_set1_ps(float(momentum));
    std::int64_t i = begin;
    for (; i + 8 <= end; i += 8) {
      __m256 const x = _mm256_fmadd_ps(mu, _mm256_loadu_ps(b + i), _mm256_loadu_ps(g + i));
      _mm256_storeu_ps(b + i, x);
      _mm256_storeu_ps(p + i, _mm256_fnmadd_ps(rate, x, _mm256_loadu_ps(p + i)));
    }
    for (; i < end; ++i) b[i] = float(momentum) * b[i] + g[i], p[i] -= float(lr) * b[i];
  }
  numbers<float> numbers_;
  arena<float> buffer_;
};

template <class T> maker made() {
  return [](problem const& p) -> std::unique_ptr<contest> { return std::make_unique<T>(p); };
}
recipe const a("sgd", made<sgd>());
recipe const b("momentum", made<heavy>());

}  // namespace
}  // namespace bench
