// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// A program of two .cu files, which both include the library and use optimizers of the same types: see run.sh.
#pragma once

#include <descent/descent.cuh>

/// The value 1 of a storage type, after `steps` steps of AdamW with lr = 0.125 and the gradient 0.5.
template <descent::storage_type T> float value_after(int steps, cudaStream_t stream) {
  T const start[2] = {descent::narrow<T>(1.0f), descent::narrow<T>(0.5f)};
  T* memory;
  if (cudaMalloc(&memory, sizeof start) != cudaSuccess) return 0;
  cudaMemcpyAsync(memory, start, sizeof start, cudaMemcpyHostToDevice, stream);
  {
    descent::parameters<T> params;
    params.add("w", memory, memory + 1, 1);
    descent::optimizer opt{params, descent::adamw{.lr = 0.125, .weight_decay = 0}, descent::master<float>{},
                           descent::clip_norm{1}, descent::cuda{stream}};
    for (int i = 0; i < steps; ++i) opt.step();
  }
  T value;
  cudaMemcpyAsync(&value, memory, sizeof value, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  cudaFree(memory);
  return descent::widen<float>(value);
}

float in_other_file(cudaStream_t stream);
