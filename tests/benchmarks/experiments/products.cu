// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Times products of matrices of one shape, as Muon makes them, replayed from a graph: by the type of their operands;
// one after the other, on several streams ("streams") or in one strided call for several ("batches"). Link -lcublas.
// See docs/design/0013.
#include "../../../examples/parts/arguments.hpp"

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace {

template <class Status> void check(Status status, char const* what) {
  if (int(status) == 0) return;
  std::fprintf(stderr, "%s failed: %d\n", what, int(status));
  std::exit(1);
}

constexpr int count = 24, most_streams = 8;
constexpr std::size_t workspace_bytes = 32u << 20;

__global__ void fill(float* x, std::int64_t n, unsigned seed) {
  std::int64_t const stride = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    unsigned h = unsigned(i) * 2654435761u + seed;
    h = (h ^ h >> 15) * 2246822519u;
    x[i] = float((h ^ h >> 13) & 0xffff) / 65536 - 0.5f;
  }
}
__global__ void convert(float const* x, __nv_bfloat16* y, std::int64_t n) {
  std::int64_t const i = (std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * 4;
  for (std::int64_t j = i; j < i + 4 && j < n; ++j) y[j] = __float2bfloat16(x[j]);
}
void convert_on(cudaStream_t stream, float const* x, __nv_bfloat16* y, std::int64_t n) {
  convert<<<unsigned((n / 4 + 255) / 256), 256, 0, stream>>>(x, y, n);
}

template <class T> T* device_array(std::int64_t n) {
  void* p = nullptr;
  check(cudaMalloc(&p, std::size_t(n) * sizeof(T)), "cudaMalloc");
  return static_cast<T*>(p);
}

enum class operands { sgemm, tf32, rounded_to_bf16, bf16, converted };
char const* const names[] = {"sgemm", "tf32", "16bf of floats", "bf16 in, float out", "converted, then bf16"};

constexpr char const* help = R"(usage: products

Times products of matrices of one shape, as Muon makes them, by the type of their operands and the way to launch them.
)";

void run() {
  cublasHandle_t blas;
  check(cublasCreate(&blas), "cublasCreate");
  cudaStream_t streams[most_streams];
  cudaEvent_t fork, joins[most_streams], begin, end;
  char* workspaces[most_streams];
  check(cudaEventCreate(&fork) + cudaEventCreate(&begin) + cudaEventCreate(&end), "cudaEventCreate");
  for (int i = 0; i < most_streams; ++i) {
    check(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check(cudaEventCreateWithFlags(&joins[i], cudaEventDisableTiming), "cudaEventCreateWithFlags");
    workspaces[i] = device_array<char>(workspace_bytes);
  }
  using sizes = std::pair<std::int64_t, std::int64_t>;
  for (auto [n, inner] : {sizes{768, 768}, {768, 3072}, {1024, 4096}, {2048, 2048}, {4096, 4096}, {1600, 6400}}) {
    std::int64_t const each = n * inner, all = each * count;
    float *const a = device_array<float>(all), *const b = device_array<float>(all);
    auto* const c = device_array<float>(n * n * count);
    auto *const short_a = device_array<__nv_bfloat16>(all), *const short_b = device_array<__nv_bfloat16>(all);
    fill<<<1024, 256>>>(a, all, 1), fill<<<1024, 256>>>(b, all, 2);
    convert_on(nullptr, a, short_a, all), convert_on(nullptr, b, short_b, all);
    check(cudaDeviceSynchronize(), "the kernels");
    for (auto how : {operands::sgemm, operands::tf32, operands::rounded_to_bf16, operands::bf16, operands::converted})
      for (int together : {1, 2, 4, 8, -4, -count}) {
        bool const batched = together < 0, is_short = how >= operands::bf16;
        int const size = batched ? -together : 1, used = batched ? 1 : together;
        auto const product = [&](int i, int s) {
          check(cublasSetStream(blas, streams[s]), "cublasSetStream");
          check(cublasSetWorkspace(blas, workspaces[s], workspace_bytes), "cublasSetWorkspace");
          std::int64_t const at = i * each;
          if (how == operands::converted) {
            convert_on(streams[s], a + at, short_a + at, each * size);
            convert_on(streams[s], b + at, short_b + at, each * size);
          }
          void const* const x = is_short ? static_cast<void const*>(short_a + at) : a + at;
          void const* const y = is_short ? static_cast<void const*>(short_b + at) : b + at;
          auto const type = is_short ? CUDA_R_16BF : CUDA_R_32F;
          auto const compute = how == operands::tf32              ? CUBLAS_COMPUTE_32F_FAST_TF32
                               : how == operands::rounded_to_bf16 ? CUBLAS_COMPUTE_32F_FAST_16BF
                                                                  : CUBLAS_COMPUTE_32F;
          float const one = 1, zero = 0;
          int const m = int(n), k = int(inner);
          check(batched ? cublasGemmStridedBatchedEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, m, m, k, &one, x, type, k, each, y,
                                                     type, k, each, &zero, c + i * n * n, CUDA_R_32F, m, n * n, size,
                                                     compute, CUBLAS_GEMM_DEFAULT)
                        : cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, m, m, k, &one, x, type, k, y, type, k, &zero,
                                       c + i * n * n, CUDA_R_32F, m, compute, CUBLAS_GEMM_DEFAULT), "the product");
        };
        cudaGraph_t recorded;
        cudaGraphExec_t graph;
        check(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
        check(cudaEventRecord(fork, streams[0]), "cudaEventRecord");
        for (int s = 1; s < used; ++s) check(cudaStreamWaitEvent(streams[s], fork, 0), "cudaStreamWaitEvent");
        for (int i = 0; i < count; i += size) product(i, i / size % used);
        for (int s = 1; s < used; ++s) {
          check(cudaEventRecord(joins[s], streams[s]), "cudaEventRecord");
          check(cudaStreamWaitEvent(streams[0], joins[s], 0), "cudaStreamWaitEvent");
        }
        check(cudaStreamEndCapture(streams[0], &recorded), "cudaStreamEndCapture");
        check(cudaGraphInstantiate(&graph, recorded, 0), "cudaGraphInstantiate");
        std::vector<float> times;
        for (int turn = 0; turn < 7; ++turn) {
          check(cudaEventRecord(begin, streams[0]), "cudaEventRecord");
          check(cudaGraphLaunch(graph, streams[0]), "cudaGraphLaunch");
          check(cudaEventRecord(end, streams[0]), "cudaEventRecord");
          check(cudaEventSynchronize(end), "cudaEventSynchronize");
          float ms;
          check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
          if (turn > 1) times.push_back(ms);
        }
        std::sort(times.begin(), times.end());
        double const us = double(times[times.size() / 2]) * 1e3 / count;
        std::printf("%4d x %4d x %4d, %-21s %s %2d: %8.2f us each, %6.1f TFLOP/s\n", int(n), int(n), int(inner),
                    names[int(how)], batched ? "batches" : "streams", batched ? size : used, us,
                    2e-6 * double(n * n * inner) / us);
        check(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
        check(cudaGraphDestroy(recorded), "cudaGraphDestroy");
      }
    for (void* p : {static_cast<void*>(a), static_cast<void*>(b), static_cast<void*>(c), static_cast<void*>(short_a),
                    static_cast<void*>(short_b)})
      check(cudaFree(p), "cudaFree");
  }
}

}  // namespace

int main(int argc, char** argv) { return example::exit_code(argc, argv, help, run); }
