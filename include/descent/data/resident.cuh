// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/cuda.hpp>
#include <descent/data/resident.hpp>
#include <descent/engine/cuda/device_memory.hpp>
#include <descent/engine/cuda/launch.cuh>
#include <descent/engine/cuda/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

/// resident with cuda{stream}: records and batches are in the memory of the device that is current at the construction.
/// next() is one kernel launch. The constructor waits for its copies, and the destructor for the device.
namespace descent::detail {

/// The number of the batch, and how many blocks are done with it.
struct gather_counter {
  std::int64_t batch;
  unsigned done;
};

template <class Word> __device__ void copy_row(std::byte* to, std::byte const* from, std::int64_t bytes, int lane,
                                               int lanes) {
  for (std::int64_t i = lane; i < bytes / std::int64_t(sizeof(Word)); i += lanes)
    reinterpret_cast<Word*>(to)[i] = reinterpret_cast<Word const*>(from)[i];
}

inline constexpr int gather_threads = 256;

/// `Lanes` threads copy a row. The last block to end moves the counter on, when all have read it.
template <int Lanes, class Gathering> __global__ __launch_bounds__(gather_threads) void gather_rows(Gathering g,
                                                                                                    gather_counter* c) {
  __shared__ std::int64_t record[gather_threads / Lanes];
  int const group = int(threadIdx.x) / Lanes, lane = int(threadIdx.x) % Lanes;
  std::int64_t const row = std::int64_t(blockIdx.x) * (gather_threads / Lanes) + group, t = c->batch;
  if (lane == 0 && row < g.mine) {
    record[group] = g.record(t, row);
    g.records[row] = record[group];
  }
  __syncthreads();
  if (row < g.mine)
    for (auto const& f : g.field) {
      std::byte* const to = f.to + row * f.bytes;
      std::byte const* const from = f.from + record[group] * f.bytes;
      if (f.bytes % 16 == 0) copy_row<uint4>(to, from, f.bytes, lane, Lanes);
      else if (f.bytes % 4 == 0) copy_row<unsigned>(to, from, f.bytes, lane, Lanes);
      else copy_row<unsigned char>(to, from, f.bytes, lane, Lanes);
    }
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicAdd(&c->done, 1u) != gridDim.x - 1) return;
  c->done = 0;
  c->batch = t + 1;
}

/// Resident memory on a device.
template <> class resident_memory<cuda> {
 public:
  explicit resident_memory(cuda const& backend) : stream_(backend.stream) {
    require_cuda(cudaGetDevice(&device_), "cudaGetDevice");
    counter_ = reinterpret_cast<gather_counter*>(allocate(sizeof(gather_counter)));
    require_cuda(cudaMemsetAsync(counter_, 0, sizeof(gather_counter), stream_), "cudaMemsetAsync");
  }

  std::byte* allocate(std::size_t bytes) {
    void* p = nullptr;
    require_cuda(cudaMalloc(&p, bytes), "cudaMalloc");
    return keep_.emplace_back(static_cast<std::byte*>(p)).get();
  }
  /// Waits until `from` has been read.
  void write(std::byte* to, std::byte const* from, std::size_t bytes) const {
    require_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
    require_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }
  template <class Gathering> void gather(Gathering const& g) const {
    std::int64_t bytes = 0;
    for (auto const& f : g.field) bytes += f.bytes;
    device_scope const scope(device_);
    if (bytes > 2048) launch(gather_rows<gather_threads, Gathering>, g.mine, gather_threads, stream_, g, counter_);
    else launch(gather_rows<32, Gathering>, (g.mine + 7) / 8, gather_threads, stream_, g, counter_);
  }
  std::int64_t batch() const {
    refuse_capturing(stream_, "resident::position()");
    gather_counter now;
    require_cuda(cudaMemcpyAsync(&now, counter_, sizeof now, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
    require_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    return now.batch;
  }
  void set_batch(std::int64_t t) const {
    refuse_capturing(stream_, "resident::seek()");
    write(reinterpret_cast<std::byte*>(&counter_->batch), reinterpret_cast<std::byte const*>(&t), sizeof t);
  }

 private:
  struct release {
    void operator()(std::byte* p) const noexcept { cudaFree(p); }
  };

  cudaStream_t stream_;
  int device_ = 0;
  std::vector<std::unique_ptr<std::byte, release>> keep_;
  gather_counter* counter_ = nullptr;
};

}  // namespace descent::detail
