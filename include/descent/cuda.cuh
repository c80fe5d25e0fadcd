// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/cuda_check.hpp>
#include <descent/detail/device_memory.hpp>
#include <descent/detail/kernels.cuh>
#include <descent/policy.hpp>

#include <array>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace descent {

namespace detail {

/// The launches of the calling thread: every kernel of the library passes through here.
inline thread_local std::int64_t launches = 0;

template <class... Parameters>
void launch(void (*kernel)(Parameters...), std::int64_t blocks, int threads, cudaStream_t stream,
            std::type_identity_t<Parameters> const&... arguments) {
  if (blocks == 0) return;
  ++launches;
  // Not kernel<<<...>>>, whose error is cudaGetLastError(): that may be one which the caller left there.
  void* pointers[] = {const_cast<void*>(static_cast<void const*>(&arguments))...};
  require_cuda(cudaLaunchKernel(kernel, dim3(unsigned(blocks)), dim3(unsigned(threads)), pointers, 0, stream),
               "kernel launch");
}

template <class Plan> class cuda_engine;

}  // namespace detail

/// Values, gradients and states in the memory of the device that is current when the optimizer is made; all work goes to
/// `stream`, which the caller keeps alive, and none to the default stream. step() and zero_grad() only enqueue and may be
/// captured into a graph, which then follows its schedules. A change of a group that is pending at the capture becomes part
/// of the graph; otherwise a replay uses the groups as the last eager step had them. One thread at a time. Spell it with
/// its namespace: `using descent::cuda;` would collide with the toolkit's own ::cuda.
struct cuda {
  cudaStream_t stream;

  using policy_kind = kind::backend;
  template <class Plan> using engine = detail::cuda_engine<Plan>;
};

namespace detail {

template <class Plan> class cuda_engine {
  using rule = typename Plan::rule;
  using entry = group_entry<rule>;
  using tensors = layout<typename Plan::value, typename Plan::gradient>;

 public:
  cuda_engine(tensors const& where, std::vector<entry> const& groups, typename Plan::policies const& policies,
              std::array<bool, Plan::slots> const& used, cuda const& backend)
      : stream_(backend.stream), policies_(policies) {
    require_cuda(cudaGetDevice(&device_), "cudaGetDevice");
    require_code(control_step<Plan>, device_);
    for (std::size_t t = 0; t < where.tensors.size(); ++t) {
      auto const& x = where.tensors[t];
      require_device_memory(x.value, x.count, device_, "value", where.names[t]);
      require_device_memory(x.gradient, x.count, device_, "gradient", where.names[t]);
    }
    allocate(where, groups, used);
    launch(each_packet<start_packets<Plan>>, view_.chunk_count, packet_threads, stream_, start_packets<Plan>{view_});
    if constexpr (Plan::sums) set_groups(groups);
    require_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  void step(std::vector<entry> const&) {
    device_scope const scope(device_);
    if constexpr (Plan::norm_first) {
      launch(measure_chunks<Plan, measure::norm>, view_.chunk_count, chunk_threads, stream_, view_);
      launch(decide_step<Plan>, 1, total_threads, stream_, view_, policies_);
      launch(measure_chunks<Plan, measure::sums>, view_.chunk_count, chunk_threads, stream_, view_);
      launch(find_step_terms<Plan>, 1, total_threads, stream_, view_, policies_);
    } else {
      if constexpr (Plan::measures)
        launch(measure_chunks<Plan, Plan::sums ? measure::norm_and_sums : measure::norm>, view_.chunk_count,
               chunk_threads, stream_, view_);
      launch(control_step<Plan>, 1, total_threads, stream_, view_, policies_);
    }
    launch(each_packet<update_packets<Plan>>, view_.chunk_count, packet_threads, stream_, update_packets<Plan>{view_});
  }

  /// Enqueues the groups as kernel parameters: no copy, and in order with the steps around it. False when that was
  /// captured, so that the device does not have them yet.
  bool set_groups(std::vector<entry> const& groups) {
    device_scope const scope(device_);
    for (std::size_t first = 0; first < groups.size();) {
      group_batch<rule> batch{int(first), 0, {}};
      while (batch.count < batch.capacity && first < groups.size()) batch.entry[batch.count++] = groups[first++];
      launch(set_step_groups<Plan>, 1, total_threads, stream_, view_, policies_, batch);
    }
    return !capturing();
  }

  void zero_gradients() {
    device_scope const scope(device_);
    launch(each_packet<zero_packets<Plan>>, view_.chunk_count, packet_threads, stream_, zero_packets<Plan>{view_});
  }

  control_block read_control() const {
    device_scope const scope(device_);
    if (capturing())
      throw std::logic_error("report() waits for the stream, which is capturing: call it after the graph has run");
    require_cuda(cudaMemcpyAsync(report_.get(), control_.get(), sizeof(control_block), cudaMemcpyDeviceToHost, stream_),
                 "cudaMemcpyAsync");
    require_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    return *report_;
  }

  void* master() const { return master_.get(); }
  void* slot(std::size_t i) const { return slot_[i].get(); }
  std::string name() const { return "CUDA device " + std::to_string(device_); }

 private:
  bool capturing() const {
    cudaStreamCaptureStatus status;
    require_cuda(cudaStreamIsCapturing(stream_, &status), "cudaStreamIsCapturing");
    return status != cudaStreamCaptureStatusNone;
  }

  static constexpr int rows = (Plan::measures ? 1 : 0) + int(Plan::sum_count);

  void allocate(tensors const& where, std::vector<entry> const& groups, std::array<bool, Plan::slots> const& used) {
    std::size_t const units = Plan::sums_per_tensor ? where.tensors.size() : groups.size();
    auto const arena = std::size_t(where.arena), chunks = std::size_t(where.chunks());
    tensors_ = {where.tensors, stream_};
    tensor_of_chunk_ = {where.tensor_of_chunk, stream_};
    groups_ = {groups, stream_};
    control_ = {std::array{control_block{}}, stream_};
    units_ = device_array<unit<rule, typename Plan::real>>(units);
    partial_ = device_array<double>(rows * chunks);
    if constexpr (Plan::sums) {
      pending_ = device_array<unit<rule, typename Plan::real>>(groups.size());
      memories_ = {std::vector<memory_of<rule>>(units), stream_};
    }
    if constexpr (Plan::sums_per_tensor) totals_ = device_array<double>(Plan::sum_count * units);
    if constexpr (Plan::has_master) master_ = device_array<typename Plan::exact>(arena);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((slot_[I] = device_array<std::byte>(used[I] ? arena * sizeof(typename Plan::template slot<I>) : 0)), ...);
    }(typename Plan::every_slot{});
    report_ = pinned<control_block>();

    view_ = {tensors_.get(), tensor_of_chunk_.get(), where.chunks(), std::int32_t(where.tensors.size()),
             std::int32_t(groups.size()), master_.get(), {}, control_.get(), groups_.get(), units_.get(),
             pending_.get(), memories_.get(), partial_.get(), totals_.get()};
    for (std::size_t i = 0; i < Plan::slots; ++i) view_.slot[i] = slot_[i].get();
  }

  cudaStream_t stream_;
  int device_ = 0;
  typename Plan::policies policies_;
  device_array<tensor_record<typename Plan::value, typename Plan::gradient>> tensors_;
  device_array<std::int32_t> tensor_of_chunk_;
  device_array<entry> groups_;
  device_array<control_block> control_;
  device_array<unit<rule, typename Plan::real>> units_, pending_;
  device_array<memory_of<rule>> memories_;
  device_array<double> partial_, totals_;
  device_array<typename Plan::exact> master_;
  std::array<device_array<std::byte>, Plan::slots> slot_;
  std::unique_ptr<control_block, pinned_delete> report_;
  device_view<Plan> view_{};
};

}  // namespace detail
}  // namespace descent
