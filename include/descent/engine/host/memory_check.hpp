// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/outside.hpp>

#include <cstddef>
#include <string>
#include <vector>

#if defined(__CUDACC__)
#include <cuda_runtime_api.h>
#endif

namespace descent::detail {

/// Whether this is the address of device memory, which the processor cannot access.
inline bool on_device_only([[maybe_unused]] void const* p) {
#if defined(__CUDACC__)
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, p) == cudaSuccess) return attributes.type == cudaMemoryTypeDevice;
  cudaGetLastError();
#endif
  return false;
}

/// Throws std::invalid_argument unless these elements are in host memory, aligned.
inline void require_host_memory(outside_memory const& m) {
  if (!require_address(m)) return;
  if (on_device_only(m.at)) m.refuse("is not host memory; for device memory use the backend cuda{stream}");
  if (!host_readable(m.at))
    m.refuse("is not host memory: there is none at " + in_hex(m.at) +
             "; for device memory use the backend cuda{stream}");
  if (!host_readable(m.last())) refuse_end(m);
}

/// The same for the values and the caller's gradients of all tensors of a layout, also at other addresses.
template <class Layout> void require_host_tensors(Layout const& where, std::vector<tensor_addresses> const& at) {
  for (std::size_t t = 0; t < at.size(); ++t) {
    auto const& x = where.tensors[t];
    std::string const its = "parameter '" + where.names[t] + "': its ";
    require_host_memory({at[t].value, x.count, x.value_size(), its + "value"});
    require_host_memory({at[t].gradient, x.count, where.callers_gradient(t).size, its + "gradient"});
  }
}
template <class Layout> void require_host_tensors(Layout const& where) {
  require_host_tensors(where, where.addresses());
}

}  // namespace descent::detail
