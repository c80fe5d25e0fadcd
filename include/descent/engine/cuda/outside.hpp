// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/error.hpp>
#include <descent/engine/step/outside.hpp>

#include <string>

namespace descent::detail {

inline cudaPointerAttributes attributes_of(void const* p) {
  cudaPointerAttributes a{};
  require_cuda(cudaPointerGetAttributes(&a, p), "cudaPointerGetAttributes");
  return a;
}
inline bool host_may_read(void const* p) { return attributes_of(p).type != cudaMemoryTypeDevice; }

[[noreturn]] inline void refuse_nothing(outside_memory const& m) {
  m.refuse("is not memory: there is none at " + in_hex(m.at) + ", or it was freed");
}

/// Throws std::invalid_argument unless kernels on this device can access these elements, aligned.
inline void require_device_memory(outside_memory const& m, int device) {
  if (!require_address(m)) return;
  std::string const here = std::to_string(device);
  cudaPointerAttributes const a = attributes_of(m.at);
  if (a.type == cudaMemoryTypeDevice && a.device != device)
    m.refuse("is on device " + std::to_string(a.device) + ", but the optimizer is on device " + here);
  if (a.type == cudaMemoryTypeUnregistered) {
    if (!host_readable(m.at)) refuse_nothing(m);
    int pageable = 0;
    require_cuda(cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, device), "cudaDeviceGetAttribute");
    if (!pageable)
      m.refuse("is host memory, which device " + here + " cannot reach; for host memory use the backend host{}");
    if (!host_readable(m.last())) refuse_end(m);
  } else if (attributes_of(m.last()).type != a.type) {
    refuse_end(m);
  }
}

/// Throws std::invalid_argument unless copies of the runtime can read these bytes, on the host or on a device.
inline void require_copyable(outside_memory const& m) {
  if (!require_address(m)) return;
  if (auto const type = attributes_of(m.at).type; type != cudaMemoryTypeUnregistered) {
    if (attributes_of(m.last()).type != type) refuse_end(m);
  } else {
    if (!host_readable(m.at)) refuse_nothing(m);
    if (!host_readable(m.last())) refuse_end(m);
  }
}

}  // namespace descent::detail
