// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// matrices.cpp on a CUDA device, with up to so many matrices at once. Makes 20 steps for each line that it reads, waits
// for the device, and prints the seconds of one.
#include "../../examples/parts/arguments.hpp"

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

constexpr char const* help = R"(usage: matrices [BLOCKS [WIDTH [exact|tf32|bf16 [eager|captured [AT_ONCE]]]]]

Makes 20 steps of Muon on the matrices of a transformer for each line that it reads, and prints the seconds of one.

  BLOCKS                default: 12
  WIDTH                 default: 768
  exact, tf32, bf16     the operands of products (default: exact)
  eager, captured       calls or replays of a graph (default: eager)
  AT_ONCE               matrices that are processed together, at most (default: the library's)
  --help                this text
)";

struct settings {
  int blocks = 12, width = 768, at_once = 0;
  std::string precision = "exact";
  bool captured = false;

  explicit settings(std::vector<std::string> const& arguments) {
    using namespace example;
    each_word(arguments, {[&](auto& word) { blocks = integer("BLOCKS", word, 1, 10000); },
                          [&](auto& word) { width = integer("WIDTH", word, 1, 100'000); },
                          [&](auto& word) { precision = one_of("operands", word, {"exact", "tf32", "bf16"}); },
                          [&](auto& word) { captured = one_of("steps", word, {"eager", "captured"}) == "captured"; },
                          [&](auto& word) { at_once = integer("AT_ONCE", word, 1, 16); }});
  }
};

void run(settings const& s, cudaStream_t stream) {
  bench::transformer const of{s.blocks, s.width};
  thrust::device_vector<float> values(of.size(), 0.01f), gradients = of.gradients();
  descent::matrices policy{bench::muon_of(s.precision)};
  if (s.at_once > 0) policy.at_once = s.at_once;
  auto const params =
      of.parameters(thrust::raw_pointer_cast(values.data()), thrust::raw_pointer_cast(gradients.data()));
  descent::optimizer opt{params, descent::adamw{}, policy, descent::cuda{stream}};
  cudaGraphExec_t graph = nullptr;
  if (s.captured) {
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
      if (s.captured) check(cudaGraphLaunch(graph, stream));
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
  return example::exit_code(argc, argv, help, [](std::vector<std::string> const& arguments) {
    settings const s{arguments};
    cudaStream_t stream;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    run(s, stream);
    check(cudaStreamDestroy(stream));
  });
}
