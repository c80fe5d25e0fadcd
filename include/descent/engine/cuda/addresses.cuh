// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/launch.cuh>
#include <descent/engine/cuda/outside.hpp>
#include <descent/engine/step/layout.hpp>

#include <cstddef>
#include <string>
#include <vector>

/// Addresses of tensors in device memory: their check, and new ones.
namespace descent::detail {

/// Checks the values and the caller's gradients of all tensors of a layout, also at other addresses.
template <class Layout>
void require_device_tensors(Layout const& where, std::vector<tensor_addresses> const& at, int device) {
  for (std::size_t t = 0; t < at.size(); ++t) {
    auto const& x = where.tensors[t];
    std::string const its = "parameter '" + where.names[t] + "': its ";
    require_device_memory({at[t].value, x.count, x.value_size(), its + "value"}, device);
    require_device_memory({at[t].gradient, x.count, where.callers_gradient(t).size, its + "gradient"}, device);
  }
}
template <class Layout> void require_device_tensors(Layout const& where, int device) {
  require_device_tensors(where, where.addresses(), device);
}

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
