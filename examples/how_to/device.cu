// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// The tasks of docs/how_to.md that need a GPU, each with what must hold after it.
#include "../parts/arguments.hpp"
#include "../parts/claim.hpp"
#include "../parts/gpu.cuh"
#include "nvtx_tool.hpp"

#include <descent/descent.cuh>
#include <descent/matrices/cuda.cuh>
#include <descent/policies/nvtx.hpp>
#include <descent/rules/muon.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace ds = descent;
using example::check, example::claim, example::close, example::device_array;

/// Counts calls, where the device is a simulator in software.
extern "C" [[gnu::weak]] std::uint64_t cudasim_count(char const* what);

namespace {

std::uint64_t launches() {
  cudaDeviceSynchronize();  // what waits has not been counted
  return cudasim_count ? cudasim_count("launches") : 0;
}

/// dw <- scale (w - 1): the gradient of half the squared distance from 1.
__global__ void backward(ds::half const* w, ds::half* dw, float const* scale) {
  dw[threadIdx.x] = ds::half(*scale * (float(w[threadIdx.x]) - 1));
}

// snippet: own_kernel
/// One problem for each thread, here min (p - goal)^2 / 2 with p >= 0; the state stays in registers.
__global__ void solve(double* p, double const* goal, int problems) {
  int const i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= problems) return;
  ds::adam const rule{.lr = 0.05};
  ds::adam::state<double> s{};
  double x = p[i];
  for (int t = 1; t <= 200; ++t) {
    double const gradient = x - goal[i];
    x = ds::adam::update(x, gradient, s, rule.at(t));
    x = max(x, 0.);
  }
  p[i] = x;
}
// end

void own_kernel(example::gpu const& device) {
  device_array<double> p{std::vector<double>{1, 1}}, goal{std::vector<double>{0.5, -0.5}};
  solve<<<1, 32, 0, device.backend().stream>>>(p.data(), goal.data(), 2);
  auto const found = device.to_host(p);
  claim(close(found[0], 0.5, 0.02) && found[1] == 0, "each thread has solved its problem");
}

void captured(example::gpu const& device) {
  constexpr int size = 8;
  device_array<ds::half> values{size}, gradients{size};
  ds::half* const w = values.data();
  ds::half* const dw = gradients.data();
  cudaStream_t const stream = device.backend().stream;
  auto const rate = ds::warmup<ds::cosine>{.steps = 4, .then = {.peak = 0.2, .steps = 36}};
  ds::parameters<ds::half> params;
  params.add("w", w, dw, size);
  // snippet: captured
  ds::optimizer opt{params, ds::adamw{.weight_decay = 0}, ds::learning_rate(rate), ds::master<float>{},
                    ds::dynamic_loss_scale{}, ds::clip_norm{1}, ds::cuda{stream}};
  cudaGraph_t recorded;
  cudaGraphExec_t graph;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  backward<<<1, size, 0, stream>>>(w, dw, opt.loss_scale_pointer());  // the scale is read on the device
  opt.step();
  cudaStreamEndCapture(stream, &recorded);
  cudaGraphInstantiate(&graph, recorded, 0);
  for (int t = 0; t < 40; ++t) cudaGraphLaunch(graph, stream);  // follows the schedule and the loss scale
  // end
  auto const r = opt.report();
  claim(r.skipped > 0 && r.step + r.skipped == 40, "each replay is a step, and one that overflows is skipped");
  claim(r.learning_rate == rate(r.step - 1) && r.loss_scale < 65536, "the graph follows schedule and scale");
  claim(close(float(device.to_host(values)[0]), 1, 0.1), "the run converges");
  claim(r.clip_factor <= 1 && r.grad_norm > 0, "the graph clips");
  check(cudaGraphExecDestroy(graph));
  check(cudaGraphDestroy(recorded));
}

void rate_of_the_host(example::gpu const& device) {
  device_array<float> values{8};
  device_array<float> gradients{std::vector<float>(8, 1.f)};
  float* const w = values.data();
  float* const dw = gradients.data();
  cudaStream_t const stream = device.backend().stream;
  ds::parameters<float> params;
  params.add("w", w, dw, 8);
  ds::optimizer opt{params, ds::sgd{}, ds::cuda{stream}};
  cudaGraph_t recorded;
  cudaGraphExec_t graph;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  opt.step();
  cudaStreamEndCapture(stream, &recorded);
  cudaGraphInstantiate(&graph, recorded, 0);
  double const rate_of_my_loop = 0.25;
  // snippet: rate_of_the_host
  opt.group(0).lr = rate_of_my_loop;
  opt.commit_groups();  // enqueues the change
  cudaGraphLaunch(graph, stream);
  // end
  claim(close(device.to_host(values)[0], -0.25, 1e-6), "the graph uses the rate");
  auto const before = launches();
  opt.group(0).lr = 0.5;
  opt.commit_groups();
  claim(!cudasim_count || launches() - before == 1, "the change is one launch");
  check(cudaGraphExecDestroy(graph));
  check(cudaGraphDestroy(recorded));
}

void slow_step(example::gpu const& device) {
  constexpr std::int64_t n = 4096;
  device_array<float> values{n}, gradients{n};
  float* const w = values.data();
  float* const dw = gradients.data();
  cudaStream_t const stream = device.backend().stream;
  ds::parameters<float> params;
  params.add("w", w, dw, n);
  ds::optimizer opt{params, ds::adamw{}, ds::cuda{stream}};
  device_array<char> from{28 * n / 2}, to{28 * n / 2};
  // snippet: slow_step
  auto const seconds = [&](auto const& work) {
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    for (int i = 0; i < 110; ++i) {
      if (i == 10) cudaEventRecord(begin, stream);  // the first ten warm up
      work();
    }
    cudaEventRecord(end, stream);
    cudaEventSynchronize(end);
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, begin, end);
    cudaEventDestroy(begin), cudaEventDestroy(end);
    return double(milliseconds) / 1000 / 100;
  };
  // end
  // snippet: rate_of_a_copy
  double const moved = opt.bytes_per_parameter() * double(n);
  double const step = seconds([&] { opt.step(); });
  double const copy = seconds([&] {  // reads half of `moved` and writes half
    cudaMemcpyAsync(to.data(), from.data(), std::size_t(moved / 2), cudaMemcpyDeviceToDevice, stream);
  });
  std::printf("%.3g GB/s, %.0f %% of a copy\n", moved / step / 1e9, 100 * copy / step);
  // end
  claim(moved == 28 * n && step > 0 && copy > 0, "a step of AdamW in float moves 28 bytes per parameter");
  claim(opt.report().step == 110, "the steps are real");
}

void many_tensors(example::gpu const& device) {
  constexpr int count = 1000, size = 4;
  device_array<float> values{count * size};
  device_array<float> gradients{std::vector<float>(count * size, 1.f)};
  float* const w = values.data();
  float* const dw = gradients.data();
  cudaStream_t const stream = device.backend().stream;
  example::nvtx_tool::take();
  // snippet: many_tensors
  ds::parameters<float> params;
  for (int i = 0; i < 1000; ++i) params.add("tensor" + std::to_string(i), w + i * size, dw + i * size, size);
  ds::optimizer opt{params, ds::adamw{.lr = 0.1}, ds::clip_norm{1}, ds::nvtx_ranges{}, ds::cuda{stream}};
  // end
  auto const before = launches();
  opt.step();
  claim(!cudasim_count || launches() - before == 3, "a step of any number of tensors has three launches");
  claim(example::nvtx_tool::take() ==
            std::vector<std::string>{"descent: step", "  descent: measure", "  descent: update"},
        "a profiler gets the parts that are enqueued");
  claim(close(opt.report().grad_norm, std::sqrt(4000.), 1e-6) && close(device.to_host(values).back(), -0.1, 1e-5),
        "all tensors are updated");
}

void matrices(example::gpu const& device) {
  std::vector<float> of_W(16 * 8);
  for (std::size_t i = 0; i < of_W.size(); ++i) of_W[i] = float(i % 7) - 3;
  device_array<float> W{of_W.size()}, dW{of_W}, b{8}, db{std::vector<float>(8, 1.f)};
  cudaStream_t const stream = device.backend().stream;
  ds::parameters<float> params;
  params.add("W", W.data(), dW.data(), ds::shape{16, 8});
  params.add("b", b.data(), db.data(), 8);
  // snippet: matrices
  ds::optimizer opt{params, ds::adamw{.lr = 1e-3}, ds::matrices{ds::muon{.lr = 0.02}}, ds::cuda{stream}};
  opt.step();
  // end
  double squares = 0;
  for (float const x : device.to_host(W)) squares += double(x) * double(x);
  claim(close(device.to_host(b)[0], -1e-3, 1e-3) && std::sqrt(squares) > 0.02, "one step updates both");
}

}  // namespace

int main() {
  return example::exit_code([] {
    example::nvtx_tool::attach();
    example::gpu const device;
    for (auto const task : {captured, rate_of_the_host, slow_step, many_tensors, matrices, own_kernel}) task(device);
  });
}
