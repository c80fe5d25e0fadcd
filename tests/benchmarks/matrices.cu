// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// usage: matrices [blocks [width [exact|tf32|bf16 [eager|captured [at-once]]]]]
//
// matrices.cpp on a CUDA device, with up to so many matrices at once. Makes 20 steps for each line that it reads, waits
// for the device, and prints the seconds of one.
#include <descent/cuda.cuh>
#include <descent/matrices/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/rules/adamw.hpp>

#include "matrices.hpp"

#include <thrust/device_vector.h>

#include <chrono>

namespace {

constexpr int steps = 20;

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

void run(int argc, char** argv, cudaStream_t stream) {
  bench::transformer const of{argc > 1 ? std::atoi(argv[1]) : 12, argc > 2 ? std::atoi(argv[2]) : 768};
  bool const captured = argc > 4 && argv[4] == std::string("captured");
  if (of.blocks < 1 || of.width < 1) throw std::invalid_argument("blocks and width: at least 1");
  thrust::device_vector<float> values(of.size(), 0.01f), gradients = of.gradients();
  descent::matrices policy{bench::muon_of(argc > 3 ? argv[3] : "exact")};
  if (argc > 5) policy.at_once = std::atoi(argv[5]);
  auto const params =
      of.parameters(thrust::raw_pointer_cast(values.data()), thrust::raw_pointer_cast(gradients.data()));
  descent::optimizer opt{params, descent::adamw{}, policy, descent::cuda{stream}};
  cudaGraphExec_t graph = nullptr;
  if (captured) {
    cudaGraph_t recorded;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    opt.step();
    check(cudaStreamEndCapture(stream, &recorded));
    check(cudaGraphInstantiate(&graph, recorded, 0));
    check(cudaGraphDestroy(recorded));
  }
  while (std::getchar() == '\n') {
    auto const begin = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i)
      if (captured) check(cudaGraphLaunch(graph, stream));
      else opt.step();
    check(cudaStreamSynchronize(stream));
    std::printf("%.9f\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / steps);
    std::fflush(stdout);
  }
  if (graph) check(cudaGraphExecDestroy(graph));
  if (!std::isfinite(float(values[0]))) throw std::runtime_error("the values are not finite");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    cudaStream_t stream;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    run(argc, argv, stream);
    check(cudaStreamDestroy(stream));
    return 0;
  } catch (std::exception const& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
  }
}
