// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// Memory bandwidth of the device, as contests on a problem whose elements are bytes: as many as the optimizer of a case
// uses. All contests of a case share one arena.
#include "device.cuh"

namespace bench {
namespace {

enum class how { plain, streaming, engine };

/// A copy and a triad write to arrays that they do not read; four reads and three writes, as in AdamW, are in place.
constexpr int arrays(int reads, int writes) { return reads == 4 ? 4 : reads + writes; }

constexpr int threads = 256, at_once = 4;
constexpr float never = 12345;  // no number of the table

template <bool Streaming> __device__ float4 get(float4 const* p) {
  if constexpr (Streaming) return __ldcs(p);
  else return *p;
}
template <bool Streaming> __device__ void put(float4* p, float4 x) {
  if constexpr (Streaming) __stcs(p, x);
  else *p = x;
}
__device__ float4 triad(float4 b, float4 c) {
  float const s = 0.999f;
  return {b.x + s * c.x, b.y + s * c.y, b.z + s * c.z, b.w + s * c.w};
}

/// Arrays of n are consecutive, written ones first; a thread has several accesses in flight at once.
template <int Reads, int Writes, int First, bool Streaming>
__global__ void __launch_bounds__(threads) pass(float4* all, std::int64_t n) {
  std::int64_t const begin = std::int64_t(blockIdx.x) * (threads * at_once) + threadIdx.x;
  float4 of[Reads][at_once] = {};
#pragma unroll
  for (int a = 0; a < Reads; ++a)
#pragma unroll
    for (int k = 0; k < at_once; ++k)
      if (begin + k * threads < n) of[a][k] = get<Streaming>(all + (First + a) * n + begin + k * threads);
#pragma unroll
  for (int k = 0; k < at_once; ++k) {
    std::int64_t const i = begin + k * threads;
    if (i >= n) continue;
    if constexpr (Reads == 4) {  // random numbers stay random
      for (int a = 0; a < 3; ++a) put<Streaming>(all + a * n + i, of[(a + 1) % 3][k]);
      if (of[3][k].x == never) all[i] = of[3][k];
    } else if constexpr (Reads == 2) {
      put<Streaming>(all + i, triad(of[0][k], of[1][k]));
    } else if constexpr (Writes == 1) {
      put<Streaming>(all + i, of[0][k]);
    } else if (of[0][k].x == never) {
      all[i] = of[0][k];
    }
  }
}

/// Random numbers for a problem whose elements are bytes.
struct random_bytes {
  device_arena<float> numbers;

  explicit random_bytes(problem const& p) : numbers(std::max<std::int64_t>(p.elements / 64, 4) * 16) {
    std::vector<problem::tensor> const whole{{0, numbers.size(), 0}};
    auto const there = on_device(whole);
    auto const table = on_device(p.values);
    tile_over(numbers, whole, there->get(), *table, 1);
    wait();
  }
  static std::shared_ptr<random_bytes> shared(problem const& p) {
    static std::weak_ptr<random_bytes> last;
    auto now = last.lock();
    if (!now) last = now = std::make_shared<random_bytes>(p);
    return now;
  }
};

template <int Reads, int Writes, how How> class ceiling : public contest {
 public:
  explicit ceiling(problem const& p)
      : bytes_(random_bytes::shared(p)),
        n_(std::max<std::int64_t>(bytes_->numbers.size() / 4 / arrays(Reads, Writes), 1)) {}

  void step() override {
    auto* const all = reinterpret_cast<float4*>(bytes_->numbers.get());
    if constexpr (How == how::engine) {
      check(cudaMemcpyAsync(all, all + n_, std::size_t(n_) * sizeof(float4), cudaMemcpyDeviceToDevice, stream()));
    } else {
      std::int64_t const each = threads * at_once;
      pass<Reads, Writes, arrays(Reads, Writes) - Reads, How == how::streaming>
          <<<unsigned((n_ + each - 1) / each), threads, 0, stream()>>>(all, n_);
      check(cudaGetLastError());
    }
  }
  double read(char, std::int64_t, std::int64_t) const override { return 0; }
  double step_bytes() const override { return double(n_) * sizeof(float4) * (Reads + Writes); }

 private:
  std::shared_ptr<random_bytes> bytes_;
  std::int64_t n_;
};

template <int Reads, int Writes, how How> maker made() {
  return [](problem const& p) -> std::unique_ptr<contest> { return std::make_unique<ceiling<Reads, Writes, How>>(p); };
}
recipe const recipes[] = {
    {"copy", made<1, 1, how::plain>()},
    {"copy_streaming", made<1, 1, how::streaming>()},
    {"copy_engine", made<1, 1, how::engine>()},
    {"triad", made<2, 1, how::plain>()},
    {"triad_streaming", made<2, 1, how::streaming>()},
    {"read", made<1, 0, how::plain>()},
    {"four_three", made<4, 3, how::plain>()},
    {"four_three_streaming", made<4, 3, how::streaming>()},
};

}  // namespace
}  // namespace bench
