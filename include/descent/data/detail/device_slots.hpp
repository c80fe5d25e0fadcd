// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/cuda.hpp>
#include <descent/engine/cuda/device_memory.hpp>
#include <descent/engine/cuda/error.hpp>
#include <descent/engine/cuda/stream.hpp>
#include <descent/data/detail/host_slots.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace descent::detail {

struct device_free {
  void operator()(std::byte* p) const noexcept { cudaFree(p); }
};

/// The memory of a loader's slots on a device. A batch is written to pinned memory, copied on a stream of its own, and
/// read on the user's. For each slot, events order what uses it:
///
///     write     waits on a worker for the last copy
///     copy      waits on the device for the user's work with the last batch
///     read      waits on the device for the copy
///
/// The user's thread waits for none of them, unless it writes itself.
class device_slots {
 public:
  static constexpr bool on_device = true;

  device_slots(std::size_t slots, std::size_t bytes, cuda const& backend)
      : device_(current_device()), stream_(backend.stream), bytes_(bytes), pinned_(new_pinned(slots * bytes)),
        memory_(new_memory(slots * bytes)), copies_(new_stream()), events_(slots) {
    for (auto& e : events_) e = {timing_event(), timing_event(), new_event()};
  }

  std::byte* written(std::size_t slot) const { return pinned_.get() + slot * bytes_; }
  std::byte* read(std::size_t slot) const { return memory_.get() + slot * bytes_; }

  void before_writing(std::size_t slot) {
    device_scope const scope(device_);
    auto& e = events_[slot];
    if (!e.was_copied) return;
    require_cuda(cudaEventSynchronize(e.copy_ends.get()), "cudaEventSynchronize");
    float milliseconds = 0;
    require_cuda(cudaEventElapsedTime(&milliseconds, e.copy_begins.get(), e.copy_ends.get()), "cudaEventElapsedTime");
    copied_.fetch_add(milliseconds / 1000, std::memory_order_relaxed);
    e.was_copied = false;
  }
  void after_writing(std::size_t slot, std::span<used_bytes const> used) {
    device_scope const scope(device_);
    auto& e = events_[slot];
    if (e.was_read) require_cuda(cudaStreamWaitEvent(copies_.get(), e.read.get(), 0), "cudaStreamWaitEvent");
    require_cuda(cudaEventRecord(e.copy_begins.get(), copies_.get()), "cudaEventRecord");
    for (auto const& u : used)
      require_cuda(
          cudaMemcpyAsync(read(slot) + u.begin, written(slot) + u.begin, u.size, cudaMemcpyHostToDevice, copies_.get()),
          "cudaMemcpyAsync");
    require_cuda(cudaEventRecord(e.copy_ends.get(), copies_.get()), "cudaEventRecord");
    e.was_copied = true;
  }
  void before_reading(std::size_t slot) {
    refuse_capture();
    require_cuda(cudaStreamWaitEvent(stream_, events_[slot].copy_ends.get(), 0), "cudaStreamWaitEvent");
  }
  void after_reading(std::size_t slot) {
    refuse_capture();
    require_cuda(cudaEventRecord(events_[slot].read.get(), stream_), "cudaEventRecord");
    events_[slot].was_read = true;
  }
  /// Workers may wait for events also while another thread captures a graph.
  void enter_thread() const {
    require_cuda(cudaSetDevice(device_), "cudaSetDevice");
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    require_cuda(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  }
  double copy_seconds() const { return copied_.load(std::memory_order_relaxed); }

 private:
  struct slot_events {
    owned_event copy_begins, copy_ends, read;
    bool was_copied = false, was_read = false;
  };

  static int current_device() {
    int device = 0;
    require_cuda(cudaGetDevice(&device), "cudaGetDevice");
    return device;
  }
  static std::unique_ptr<std::byte, pinned_delete> new_pinned(std::size_t bytes) {
    void* p = nullptr;
    require_cuda(cudaHostAlloc(&p, bytes, cudaHostAllocDefault), "cudaHostAlloc");
    return std::unique_ptr<std::byte, pinned_delete>(static_cast<std::byte*>(p));
  }
  static std::unique_ptr<std::byte, device_free> new_memory(std::size_t bytes) {
    void* p = nullptr;
    require_cuda(cudaMalloc(&p, bytes), "cudaMalloc");
    return std::unique_ptr<std::byte, device_free>(static_cast<std::byte*>(p));
  }
  static owned_event timing_event() {
    cudaEvent_t e = nullptr;
    require_cuda(cudaEventCreateWithFlags(&e, cudaEventBlockingSync), "cudaEventCreateWithFlags");
    return owned_event(e);
  }
  void refuse_capture() const {
    if (is_capturing(stream_))
      throw std::logic_error("loader: a batch cannot be asked for while the stream is capturing; use resident");
  }

  int device_;
  cudaStream_t stream_;
  std::size_t bytes_;
  std::unique_ptr<std::byte, pinned_delete> pinned_;
  std::unique_ptr<std::byte, device_free> memory_;
  owned_stream copies_;
  std::vector<slot_events> events_;
  std::atomic<double> copied_{0};
};

template <> struct slots_of<cuda> { using type = device_slots; };

}  // namespace descent::detail
