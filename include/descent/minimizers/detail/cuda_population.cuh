// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/minimizers/detail/device_layout.cuh>
#include <descent/minimizers/detail/population.hpp>
#include <descent/core/detail/summation_order.hpp>

/// The slots of population.hpp in device memory. All work goes to the backend's stream.
namespace descent::detail {

/// Applies body to every packet of every tensor.
template <class Value, class Record, class Body>
__global__ __launch_bounds__(chunk_threads) void on_packets(Record const* tensors, std::int32_t const* tensor_of_chunk,
                                                            Body body) {
  auto const& t = tensors[tensor_of_chunk[blockIdx.x]];
  auto const [begin, size] = span_of(std::int64_t(blockIdx.x), t);
  for (int i = int(threadIdx.x * packet_size); i < size; i += chunk_threads * int(packet_size)) {
    int const left = size - i;
    on_packet<Value>(t, begin + i, left < int(packet_size) ? left : int(packet_size), body);
  }
}

template <class Value, class Gradient> class population<Value, Gradient, cuda> {
  using record = typename device_layout<Value, Gradient>::record;

 public:
  population(parameters<Value, Gradient> const& params, int slots, cuda const& backend)
      : where_(params, backend.stream) {
    require_code(on_packets<Value, record, load_packet<Value>>, where_.device);
    memory_ = device_array<std::byte>(std::size_t(slots * view().bytes_of_slot()));
    parents_ = device_array<int>(std::size_t(slots));
  }

  std::int64_t elements() const { return where_.elements; }
  std::int64_t bytes_of_slot() const { return view().bytes_of_slot(); }
  void save(int slot) const { enqueue(save_packet<Value>{view(), slot}); }
  void load(int slot) const { enqueue(load_packet<Value>{view(), slot}); }
  void recombine(int slot, std::vector<int> const& parents, double deviation, std::uint64_t seed, std::int64_t step) {
    device_scope const scope(where_.device);
    require_cuda(cudaMemcpyAsync(parents_.get(), parents.data(), parents.size() * sizeof(int), cudaMemcpyHostToDevice,
                                 where_.stream),
                 "cudaMemcpyAsync");
    // cudaMemcpyAsync may return before pageable memory is copied.
    require_cuda(cudaStreamSynchronize(where_.stream), "cudaStreamSynchronize");
    using body = recombine_packet<Value>;
    enqueue(body{view(), slot, int(parents.size()), parents_.get(), typename body::real(deviation), seed, step});
  }

 private:
  snapshot_view<Value> view() const { return {memory_.get(), where_.arena}; }

  template <class Body> void enqueue(Body const& body) const {
    where_.each_chunk(on_packets<Value, record, Body>, body);
  }

  device_layout<Value, Gradient> where_;
  device_array<std::byte> memory_;
  device_array<int> parents_;
};

}  // namespace descent::detail
