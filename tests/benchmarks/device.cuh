// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "contest.hpp"
#include "device.hpp"
#include "platform.hpp"

#include <algorithm>
#include <memory>
#include <utility>

/// Counters of a simulated CUDA device; null on a real one.
extern "C" {
[[gnu::weak]] void cudasim_reset_counters();
[[gnu::weak]] std::uint64_t cudasim_count(char const* what);
}

namespace bench {

/// Numbers in device memory.
template <class T> class device_arena {
 public:
  explicit device_arena(std::int64_t n) : size_(n) { check(cudaMalloc(&data_, std::size_t(n) * sizeof(T))); }
  ~device_arena() { cudaFree(data_); }
  device_arena(device_arena const&) = delete;
  T* get() const { return data_; }
  std::int64_t size() const { return size_; }

 private:
  T* data_ = nullptr;
  std::int64_t size_;
};

template <class T> std::unique_ptr<device_arena<T>> on_device(std::vector<T> const& host) {
  auto to = std::make_unique<device_arena<T>>(std::int64_t(host.size()));
  check(cudaMemcpyAsync(to->get(), host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice, stream()));
  wait();
  return to;
}

template <class T> T from_device(T const* p) {
  T x;
  check(cudaMemcpyAsync(&x, p, sizeof(T), cudaMemcpyDeviceToHost, stream()));
  wait();
  return x;
}

/// to[..] <- scale * table[number of the element]; blocks with the same y work on one tensor.
template <class T>
__global__ void tile(T* to, problem::tensor const* tensors, float const* table, std::int64_t size, float scale) {
  problem::tensor const t = tensors[blockIdx.y];
  std::int64_t const stride = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < t.count; i += stride)
    to[t.begin + i] = T(table[(t.first + i) % size] * scale);
}

/// Enqueues the same for all tensors.
template <class T> void tile_over(device_arena<T> const& to, std::vector<problem::tensor> const& tensors,
                                  problem::tensor const* there, device_arena<float> const& table, float scale) {
  std::int64_t most = 1, each = 65535;
  for (auto const& t : tensors) most = std::max(most, t.count);
  for (std::int64_t t = 0, all = std::int64_t(tensors.size()); t < all; t += each) {
    dim3 const grid(unsigned(std::min<std::int64_t>((most + 1023) / 1024, 1024)), unsigned(std::min(each, all - t)));
    tile<<<grid, 256, 0, stream()>>>(to.get(), there + t, table.get(), table.size(), scale);
    check(cudaGetLastError());
  }
}

/// Values and gradients of a problem; a gradient in memory is `scale` times the true one.
template <class T, class G = T> struct device_numbers {
  problem const& of;
  float scale;
  std::unique_ptr<device_arena<problem::tensor>> tensors;
  std::unique_ptr<device_arena<float>> gradient_table;
  device_arena<T> values;
  device_arena<G> gradients;

  explicit device_numbers(problem const& p, float gradient_scale = 1)
      : of(p), scale(gradient_scale), tensors(on_device(p.tensors)), gradient_table(on_device(p.gradients)),
        values(p.arena), gradients(p.arena) {
    tile_over(values, of.tensors, tensors->get(), *on_device(p.values), 1);
    refill();
    mark_memory();
  }
  void refill() { tile_over(gradients, of.tensors, tensors->get(), *gradient_table, scale); }
};

/// A contest whose steps are work for the stream: launched directly, or captured once and replayed.
class enqueued : public contest {
 public:
  enqueued(std::unique_ptr<contest> of, bool replays) : of_(std::move(of)) {
    cudaGraph_t recorded;
    check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal));
    of_->step();
    check(cudaStreamEndCapture(stream(), &recorded));
    std::size_t nodes = 0;
    check(cudaGraphGetNodes(recorded, nullptr, &nodes));
    launches_ = int(nodes);
    if (replays) check(cudaGraphInstantiate(&graph_, recorded, 0));
    check(cudaGraphDestroy(recorded));
  }
  ~enqueued() override {
    if (graph_) cudaGraphExecDestroy(graph_);
  }
  void step() override {
    if (graph_) check(cudaGraphLaunch(graph_, stream()));
    else of_->step();
  }
  void refill() override { of_->refill(); }
  double read(char which, std::int64_t tensor, std::int64_t i) const override { return of_->read(which, tensor, i); }
  std::string streams() const override { return of_->streams(); }
  std::int64_t extra_bytes() const override { return of_->extra_bytes(); }
  double step_bytes() const override { return of_->step_bytes(); }

  /// Work that can be captured never waits. A simulated device also counts what the calls of a step do.
  std::optional<step_counts> counts() override {
    if (in_software()) {
      wait();
      cudasim_reset_counters();
      step();
      auto const waited = cudasim_count("synchronisations");
      wait();  // until everything is counted
      auto const launched = graph_ ? cudasim_count("graph_nodes")
                                   : cudasim_count("launches") + cudasim_count("memcpys") + cudasim_count("memsets");
      if (launched != std::uint64_t(launches_) || waited != 0)
        throw std::runtime_error("a captured step has " + std::to_string(launches_) + " nodes; counted are " +
                                 std::to_string(launched) + ", and " + std::to_string(waited) + " synchronisations");
    }
    return step_counts{launches_, 0};
  }

 private:
  std::unique_ptr<contest> of_;
  cudaGraphExec_t graph_ = nullptr;
  int launches_ = 0;
};

}  // namespace bench
