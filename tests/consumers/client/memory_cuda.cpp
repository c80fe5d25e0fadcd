// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "memory.hpp"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(code));
  std::exit(1);
}
static cudaStream_t of(void* stream) { return static_cast<cudaStream_t>(stream); }

void* take(std::size_t bytes) {
  void* p = nullptr;
  check(cudaMalloc(&p, bytes));
  return p;
}
void give_back(void* p) { check(cudaFree(p)); }
void put(void* to, void const* from, std::size_t bytes, void* stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, of(stream)));
}
void get(void* to, void const* from, std::size_t bytes, void* stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, of(stream)));
  check(cudaStreamSynchronize(of(stream)));
}
void* make_stream() {
  cudaStream_t s = nullptr;
  check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  return s;
}
void end_stream(void* stream) { check(cudaStreamDestroy(of(stream))); }
void order(void* ahead, void* behind) {
  cudaEvent_t e = nullptr;
  check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  check(cudaEventRecord(e, of(ahead)));
  check(cudaStreamWaitEvent(of(behind), e, 0));
  check(cudaEventDestroy(e));
}
