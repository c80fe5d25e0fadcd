// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/cuda/controller.cuh>
#include <descent/detail/cuda/device_memory.hpp>
#include <descent/detail/cuda/launch.cuh>
#include <descent/detail/cuda/memory_check.hpp>
#include <descent/detail/step/row_mask.hpp>
#include <descent/detail/step/row_moves.hpp>

#include <vector>

/// The selection of rows on a device, and the copies of state when rows are added or removed.
namespace descent::detail {

inline constexpr int row_threads = 256;
inline std::int64_t row_blocks(std::int64_t count) { return (count + row_threads - 1) / row_threads; }

/// Marks the rows of a list in a mask, one row per thread.
template <class Index>
__global__ void mark_rows(std::uint8_t* mask, std::int64_t rows, Index const* list, std::int64_t count) {
  std::int64_t const i = std::int64_t(blockIdx.x) * row_threads + threadIdx.x;
  if (i < count && list[i] >= 0 && list[i] < rows) mask[list[i]] = 1;
}

/// Finds the first row whose source row does not exist, with one row per thread.
template <int = 0>
__global__ void find_bad_row(std::int64_t const* from, std::int64_t rows, std::int64_t most,
                             unsigned long long* first) {
  std::int64_t const row = std::int64_t(blockIdx.x) * row_threads + threadIdx.x;
  if (row < rows && (from[row] < -1 || from[row] >= most)) atomicMin(first, static_cast<unsigned long long>(row));
}

/// Copies the elements of a tensor's rows from their source rows, one element per thread.
template <class T>
__global__ void gather_elements(T* to, T const* old, std::int64_t const* from, std::int64_t columns,
                                std::int64_t count) {
  std::int64_t const i = std::int64_t(blockIdx.x) * row_threads + threadIdx.x;
  if (i >= count) return;
  std::int64_t const row = i / columns, source = from ? from[row] : row;
  if (source >= 0) to[i] = old[source * columns + i % columns];
}

inline void gather(owned_buffer to, owned_buffer old, std::int64_t const* from, std::int64_t columns,
                   std::int64_t count, cudaStream_t stream) {
  auto const as = [&]<class T>(T) {
    launch(gather_elements<T>, row_blocks(count), row_threads, stream, reinterpret_cast<T*>(to.at),
           reinterpret_cast<T const*>(old.at), from, columns, count);
  };
  if (to.size == 2) as(std::uint16_t{});
  else if (to.size == 4) as(std::uint32_t{});
  else as(std::uint64_t{});
}

/// Throws std::invalid_argument if a source row does not exist. Waits for the stream.
template <class Layout> void require_sources(row_changes<Layout> const& changes, int device, cudaStream_t stream) {
  constexpr unsigned long long none = ~0ull;
  for (std::size_t t = 0; t < changes.moves.size(); ++t) {
    row_move const& move = changes.moves[t];
    if (!move.from) continue;
    std::int64_t const rows = rows_of(changes.now, t), most = rows_of(changes.old, std::size_t(move.old));
    require_device_memory(move.from, rows, device, "rows of '" + changes.now.names[t] + "': the list");
    device_array<unsigned long long> const first{std::array{none}, stream};
    launch(find_bad_row<>, row_blocks(rows), row_threads, stream, move.from, rows, most, first.get());
    unsigned long long row;
    first.read(&row, stream);
    if (row == none) continue;
    std::int64_t from;
    require_cuda(cudaMemcpyAsync(&from, move.from + row, sizeof from, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
    require_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    refuse_row(changes.now.names[t], std::int64_t(row), from, most);
  }
}

struct no_rows {};

/// The selection of rows on a device.
template <class Plan> class cuda_rows {
 public:
  cuda_rows() = default;
  template <class Layout> cuda_rows(Layout const& where, std::size_t groups, cudaStream_t stream)
      : stream_(stream), masks_(where.tensors.size()) {
    std::int64_t rows = 0;
    for (std::size_t t = 0; t < where.tensors.size(); ++t) rows += rows_of(where, t);
    if constexpr (Plan::per_row_step) {
      updates_ = {std::vector<std::int32_t>(std::size_t(rows)), stream};
      rules_ = device_array<typename Plan::rule>(groups);
    }
    rows = 0;
    for (std::size_t t = 0; t < where.tensors.size(); ++t) {
      records_.push_back({nullptr, updates_.get() ? updates_.get() + rows : nullptr, where.columns[t]});
      rows += rows_of(where, t);
    }
    on_device_ = {records_, stream};
  }

  row_record* records() const { return on_device_.get(); }
  typename Plan::rule* rules() const { return rules_.get(); }
  std::int32_t* updates(std::size_t tensor) const { return records_[tensor].updates; }
  owned_buffer buffer(std::size_t tensor) const {
    return {reinterpret_cast<std::byte*>(updates(tensor)), sizeof(std::int32_t)};
  }

  void select(std::size_t tensor, std::uint8_t const* mask) {
    records_[tensor].mask = mask;
    launch(set_value<row_record>, 1, 1, stream_, on_device_.get() + tensor, records_[tensor]);
  }
  /// Whether the mask must still be allocated.
  bool lacks_mask(std::size_t tensor, std::int64_t rows) const { return rows > 0 && !masks_[tensor].get(); }
  template <class Index>
  void select(std::size_t tensor, std::int64_t rows, Index const* list, std::int64_t count) {
    if (rows == 0) return;
    if (!masks_[tensor].get()) masks_[tensor] = device_array<std::uint8_t>(std::size_t(rows));
    std::uint8_t* const mask = masks_[tensor].get();
    require_cuda(cudaMemsetAsync(mask, 0, std::size_t(rows), stream_), "cudaMemsetAsync");
    launch(mark_rows<Index>, row_blocks(count), row_threads, stream_, mask, rows, list, count);
    select(tensor, mask);
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::vector<row_record> records_;
  device_array<row_record> on_device_;
  std::vector<device_array<std::uint8_t>> masks_;  // made from lists
  device_array<std::int32_t> updates_;
  device_array<typename Plan::rule> rules_;
};

}  // namespace descent::detail
