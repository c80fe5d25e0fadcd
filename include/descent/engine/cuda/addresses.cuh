// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/launch.cuh>
#include <descent/engine/step/layout.hpp>

#include <cstddef>
#include <vector>

/// New addresses for tensors in device memory.
namespace descent::detail {

/// As many addresses as fit into a kernel's parameters, from tensor `first` on.
struct address_batch {
  static constexpr int capacity = 128;
  int first, count;
  tensor_addresses of[capacity];
};

/// Without `gradients`, the records hold addresses of sums over ranks, which stay.
template <class Record>
__global__ __launch_bounds__(address_batch::capacity) void set_addresses(Record* tensors, bool gradients,
                                                                         address_batch batch) {
  int const i = int(threadIdx.x);
  if (i >= batch.count) return;
  Record& x = tensors[batch.first + i];
  tensor_addresses const& to = batch.of[i];
  x.value = static_cast<decltype(x.value)>(to.value);
  x.aligned = gradients ? to.aligned : to.value_aligned;
  if (gradients) x.gradient = static_cast<decltype(x.gradient)>(to.gradient);
}

template <class Record>
void enqueue_addresses(Record* tensors, bool gradients, std::vector<tensor_addresses> const& addresses,
                       cudaStream_t stream) {
  for (std::size_t first = 0; first < addresses.size(); first += address_batch::capacity) {
    address_batch batch{int(first), 0, {}};
    for (std::size_t i = first; i < addresses.size() && batch.count < address_batch::capacity; ++i)
      batch.of[batch.count++] = addresses[i];
    launch(set_addresses<Record>, 1, address_batch::capacity, stream, tensors, gradients, batch);
  }
}

}  // namespace descent::detail
