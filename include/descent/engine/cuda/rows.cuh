// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/controller.cuh>
#include <descent/engine/cuda/device_memory.hpp>
#include <descent/engine/cuda/launch.cuh>
#include <descent/engine/cuda/stream.hpp>
#include <descent/engine/step/row_mask.hpp>
#include <descent/engine/step/row_moves.hpp>

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
  if (to.size == 1) as(std::uint8_t{});
  else if (to.size == 2) as(std::uint16_t{});
  else if (to.size == 4) as(std::uint32_t{});
  else as(std::uint64_t{});
}

inline constexpr unsigned long long no_bad_row = ~0ull;

/// Enqueues the search for the first row of each tensor whose source row does not exist, by its number in the old list.
/// Returns whether there is anything to search.
template <class Layout>
bool enqueue_source_checks(row_changes<Layout> const& changes, unsigned long long* first, std::size_t tensors,
                           int device, cudaStream_t stream) {
  bool any = false;
  for (std::size_t t = 0; t < changes.moves.size(); ++t) {
    row_move const& move = changes.moves[t];
    if (!move.from) continue;
    std::int64_t const rows = rows_of(changes.now, t), most = rows_of(changes.old, std::size_t(move.old));
    require_device_memory({move.from, rows, sizeof *move.from, "rows of '" + changes.now.names[t] + "': the list"},
                          device);
    if (!any) require_cuda(cudaMemsetAsync(first, 0xff, tensors * sizeof *first, stream), "cudaMemsetAsync");
    any = true;
    launch(find_bad_row<>, row_blocks(rows), row_threads, stream, move.from, rows, most, first + move.old);
  }
  return any;
}
template <class Layout>
void refuse_bad_rows(row_changes<Layout> const& changes, std::vector<unsigned long long> const& first,
                     cudaStream_t stream) {
  for (std::size_t t = 0; t < changes.moves.size(); ++t) {
    row_move const& move = changes.moves[t];
    if (!move.from || first[std::size_t(move.old)] == no_bad_row) continue;
    auto const row = std::int64_t(first[std::size_t(move.old)]);
    std::int64_t from;
    require_cuda(cudaMemcpyAsync(&from, move.from + row, sizeof from, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
    require_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    refuse_row(changes.now.names[t], row, from, rows_of(changes.old, std::size_t(move.old)));
  }
}

struct no_rows {};

/// The selection of rows on a device.
template <class Plan> class cuda_rows {
 public:
  template <class Layout> void add_to(device_arena& arena, Layout const& where, std::size_t groups) {
    masks_.resize(where.tensors.size());
    std::int64_t rows = 0;
    for (std::size_t t = 0; t < where.tensors.size(); ++t) {
      records_.push_back({nullptr, nullptr, where.columns[t]});
      first_rows_.push_back(rows);
      rows += rows_of(where, t);
    }
    arena.add_copy(on_device_, records_);
    if constexpr (Plan::keeps_selection) arena.add_zeros(waiting_, std::size_t(rows));
    if constexpr (Plan::per_row_step) {
      arena.add_zeros(updates_, std::size_t(rows));
      arena.add(rules_, groups);
    }
  }
  void start(int device, device_source const& source, cudaStream_t const& stream) {
    device_ = device;
    source_ = source;
    stream_ = &stream;
    if (!updates_ && !waiting_) return;
    for (std::size_t t = 0; t < records_.size(); ++t) {
      if (updates_) records_[t].updates = updates_ + first_rows_[t];
      if (waiting_) records_[t].waiting = waiting_ + first_rows_[t];
    }
    require_cuda(cudaMemcpyAsync(on_device_, records_.data(), records_.size() * sizeof(row_record),
                                 cudaMemcpyHostToDevice, stream),
                 "cudaMemcpyAsync");
  }

  row_record* records() const { return on_device_; }
  typename Plan::rule* rules() const { return rules_; }
  std::int32_t* updates(std::size_t tensor) const { return records_[tensor].updates; }
  owned_buffer buffer(std::size_t tensor) const {
    return {reinterpret_cast<std::byte*>(updates(tensor)), sizeof(std::int32_t)};
  }

  owned_buffer waiting(std::size_t tensor) const {
    return {reinterpret_cast<std::byte*>(records_[tensor].waiting), sizeof(std::uint8_t)};
  }

  /// Calls f for each mask that is the caller's.
  template <class Layout, class F> void each_mask(Layout const& where, F const& f) const {
    for (std::size_t t = 0; t < records_.size(); ++t)
      if (records_[t].mask && records_[t].mask != masks_[t].get()) f(mask_of(where, t, records_[t].mask));
  }
  void select(std::size_t tensor, std::int64_t, std::uint8_t const* mask) {
    records_[tensor].mask = mask;
    launch(set_value<row_record>, 1, 1, *stream_, on_device_ + tensor, records_[tensor]);
  }
  template <class Index>
  void select(std::size_t tensor, std::int64_t rows, Index const* list, std::int64_t count) {
    if (rows == 0) return;
    bool const first = !masks_[tensor].get();
    if (first) refuse_allocating(*stream_, "select_rows() by a list");
    if (first) masks_[tensor] = device_array<std::uint8_t>(std::size_t(rows), source_);
    std::uint8_t* const mask = masks_[tensor].get();
    require_cuda(cudaMemsetAsync(mask, 0, std::size_t(rows), *stream_), "cudaMemsetAsync");
    launch(mark_rows<Index>, row_blocks(count), row_threads, *stream_, mask, rows, list, count);
    select(tensor, rows, mask);
  }

 private:
  int device_ = 0;
  cudaStream_t const* stream_ = nullptr;
  device_source source_;
  std::vector<row_record> records_;
  std::vector<std::int64_t> first_rows_;  // of each tensor
  std::vector<device_array<std::uint8_t>> masks_;  // made from lists
  row_record* on_device_ = nullptr;
  std::int32_t* updates_ = nullptr;
  std::uint8_t* waiting_ = nullptr;  // rows that micro-batches have selected
  typename Plan::rule* rules_ = nullptr;
};

}  // namespace descent::detail
