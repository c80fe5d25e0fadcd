// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// The README's program, complete: fits the line y = 3 x - 2 to 17 points on a GPU.
#include <cmath>
#include <cstddef>
#include <cstdio>

void forward_and_backward(float const* w, float* dw, cudaStream_t stream);

// snippet: quickstart
#include <descent/descent.cuh>
namespace ds = descent;

void train(float* w, float* dw, std::size_t n, cudaStream_t stream) {  // your memory, your stream
  ds::parameters<float> params;
  params.add("w", w, dw, n);  // once for each tensor

  ds::optimizer opt{params, ds::adamw{.weight_decay = 0.001},
                    ds::learning_rate(ds::warmup<ds::cosine>{.steps = 20, .then = {.peak = 0.05, .steps = 480}}),
                    ds::clip_norm{1.0}, ds::zero_grad{}, ds::cuda{stream}};

  for (int i = 0; i < 500; ++i) {
    forward_and_backward(w, dw, stream);  // yours
    opt.step();                           // enqueues three kernels: no allocation, no copy, no wait
  }
}
// end

__global__ void gradient_of_line(float const* w, float* dw) {
  for (float x = -1; x <= 1; x += 0.125f) {
    float const error = w[0] * x + w[1] - (3 * x - 2);
    dw[0] += 2 * error * x / 17;
    dw[1] += 2 * error / 17;
  }
}

void forward_and_backward(float const* w, float* dw, cudaStream_t stream) {
  gradient_of_line<<<1, 1, 0, stream>>>(w, dw);
}

int main() {
  float *w, *dw, line[2];
  cudaMalloc(&w, sizeof line), cudaMemset(w, 0, sizeof line);
  cudaMalloc(&dw, sizeof line), cudaMemset(dw, 0, sizeof line);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  train(w, dw, 2, stream);
  cudaMemcpy(line, w, sizeof line, cudaMemcpyDeviceToHost);
  std::printf("y = %.3f x %+.3f after 500 steps\n", line[0], line[1]);
  cudaFree(w), cudaFree(dw), cudaStreamDestroy(stream);
  return std::fabs(line[0] - 3) < 1e-2 && std::fabs(line[1] + 2) < 1e-2 ? 0 : 1;
}
