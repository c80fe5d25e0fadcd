// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// The README's example on a GPU: fits a line to points.
// snippet: quickstart
#include <descent/descent.cuh>

#include <cmath>
#include <cstdio>

namespace ds = descent;

__global__ void backward(float const* w, float* dw) {  // your forward and backward: y = 3 x - 2
  for (float x = -1; x <= 1; x += 0.125f) {
    float const error = w[0] * x + w[1] - (3 * x - 2);
    dw[0] += 2 * error * x / 17;
    dw[1] += 2 * error / 17;
  }
}

int main() {
  float *w, *dw, line[2];  // your values and your gradients, in your memory
  cudaMalloc(&w, sizeof line), cudaMemset(w, 0, sizeof line);
  cudaMalloc(&dw, sizeof line), cudaMemset(dw, 0, sizeof line);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  {
    ds::parameters<float> params;
    params.add("line", w, dw, 2);
    ds::optimizer opt{params, ds::adamw{.lr = 0.05, .weight_decay = 0}, ds::clip_norm{1.0}, ds::zero_grad{},
                      ds::cuda{stream}};

    for (int i = 0; i < 500; ++i) {
      backward<<<1, 1, 0, stream>>>(w, dw);
      opt.step();  // only enqueues: no allocation, no copy, no wait
    }
    cudaMemcpy(line, w, sizeof line, cudaMemcpyDeviceToHost);
    std::printf("y = %.3f x %+.3f after %lld steps\n", line[0], line[1], static_cast<long long>(opt.report().step));
  }
  cudaFree(w), cudaFree(dw), cudaStreamDestroy(stream);
  return std::fabs(line[0] - 3) < 1e-2 && std::fabs(line[1] + 2) < 1e-2 ? 0 : 1;
}
// end
