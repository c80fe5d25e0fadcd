// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// A kernel of your own and what replaces it: docs/porting.md. Both train the same parameters, in memory from a pool.
#include "parts/arguments.hpp"
#include "parts/claim.hpp"

#include <descent/descent.cuh>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <new>
#include <utility>
#include <vector>

namespace ds = descent;

// snippet: kernel
__global__ void adam(float* w, float const* dw, float* m, float* v, int n, float lr, float c1, float c2) {
  int const i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  m[i] = 0.9f * m[i] + 0.1f * dw[i];
  v[i] = 0.999f * v[i] + 0.001f * dw[i] * dw[i];
  w[i] -= lr * (m[i] / c1) / (sqrtf(v[i] / c2) + 1e-8f);
}
// end

/// dw <- w - 1: the gradient of half the squared distance from 1.
__global__ void backward(float const* w, float* dw, int n) {
  int const i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) dw[i] = w[i] - 1;
}

void check(cudaError_t status) { example::claim(status == cudaSuccess, cudaGetErrorString(status)); }

// snippet: pool
/// Device memory from which arrays are taken, and nothing goes back.
struct pool {
  std::byte* next;  // aligned to 256 bytes
  std::size_t left;

  void* allocate(std::size_t bytes, cudaStream_t) {
    bytes = (bytes + 255) / 256 * 256;
    if (bytes > left) throw std::bad_alloc();
    left -= bytes;
    return std::exchange(next, next + bytes);
  }
  void deallocate(void*, std::size_t, cudaStream_t) {}
};
// end

constexpr int n = 1000, blocks = 4, threads = 256, steps = 100;

float* zeros(pool& memory, cudaStream_t stream) {
  void* const p = memory.allocate(n * sizeof(float), stream);
  check(cudaMemsetAsync(p, 0, n * sizeof(float), stream));
  return static_cast<float*>(p);
}

std::vector<float> to_host(float const* w, cudaStream_t stream) {
  std::vector<float> values(n);
  check(cudaMemcpyAsync(values.data(), w, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
  check(cudaStreamSynchronize(stream));
  return values;
}

std::vector<float> before(pool& memory, cudaStream_t stream) {
  float *w = zeros(memory, stream), *dw = zeros(memory, stream);
  float const lr = 0.01f;
  // snippet: before
  float *m = zeros(memory, stream), *v = zeros(memory, stream);  // n floats of the pool
  for (int t = 1; t <= steps; ++t) {
    backward<<<blocks, threads, 0, stream>>>(w, dw, n);
    float const c1 = 1 - std::pow(0.9f, float(t)), c2 = 1 - std::pow(0.999f, float(t));
    adam<<<blocks, threads, 0, stream>>>(w, dw, m, v, n, lr, c1, c2);
  }
  // end
  return to_host(w, stream);
}

std::vector<float> after(pool& memory, cudaStream_t stream) {
  float *w = zeros(memory, stream), *dw = zeros(memory, stream);
  double const lr = 0.01;
  // snippet: after
  ds::parameters<float> params;
  params.add("w", w, dw, n);
  ds::optimizer opt{params, ds::adam{.lr = lr}, ds::memory_from{&memory}, ds::cuda{stream}};
  for (int t = 1; t <= steps; ++t) {
    backward<<<blocks, threads, 0, stream>>>(w, dw, n);
    opt.step();
  }
  // end
  return to_host(w, stream);
}

int main() {
  return example::exit_code([] {
    cudaStream_t stream;
    check(cudaStreamCreate(&stream));
    void* bytes = nullptr;
    std::size_t const size = std::size_t{1} << 20;
    check(cudaMalloc(&bytes, size));
    pool memory{static_cast<std::byte*>(bytes), size};
    auto const of_kernel = before(memory, stream), of_library = after(memory, stream);
    float most = 0;
    for (int i = 0; i < n; ++i) most = std::max(most, std::abs(of_kernel[std::size_t(i)] - of_library[std::size_t(i)]));
    std::printf("after %d steps the parameters differ by at most %.2g\n", steps, double(most));
    example::claim(of_kernel[0] > 0.5f && most < 1e-5f, "both make the same steps");
    check(cudaFree(bytes));
    check(cudaStreamDestroy(stream));
  });
}
