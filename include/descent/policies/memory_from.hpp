// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>

#include <stdexcept>

namespace descent {

/// Takes the optimizer's memory from the caller's resource, which must outlive the optimizer.
///
/// With cuda{} a resource has two members. They get the backend's stream, with the optimizer's device current. Either
///
///     void* allocate(std::size_t bytes, cudaStream_t stream);            // 256-byte aligned device memory, or throws
///     void deallocate(void* p, std::size_t bytes, cudaStream_t stream);  // does not throw
///
/// or those of cuda::mr::resource, as CCCL from 3.1 on and RMM from 26 on have them:
///
///     void* allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment);
///     void deallocate(cuda::stream_ref stream, void* p, std::size_t bytes, std::size_t alignment);
///
/// The memory may be stream-ordered, as that of cudaMallocAsync and RMM: the optimizer's work on other streams is
/// ordered before deallocate(), and the stream must live as long as the optimizer. The constructor calls allocate()
/// once for all that it needs. swap_average(), move_ahead(), gradient_norm() and select_rows() with a list may need
/// more at their first call. Pinned host memory, cuBLAS's and NCCL's own memory do not come from the resource.
///
/// With host{} a resource is a std::pmr::memory_resource, or has the same two members; the alignment is 128:
///
///     void* allocate(std::size_t bytes, std::size_t alignment);
///     void deallocate(void* p, std::size_t bytes, std::size_t alignment);
///
/// It is called once for each buffer of masters, states, averages, saved values and matrix rules. Control data, and
/// buffers of an exchange between ranks, do not come from it.
///
/// Memory that is not aligned, or out of the backend's reach, is given back, and std::invalid_argument is thrown.
template <class Resource> struct memory_from {
  /// Not null.
  Resource* where = nullptr;

  using policy_kind = kind::memory;
  void check() const {
    if (!where) throw std::invalid_argument("memory_from: the pointer must not be null");
  }
};
template <class Resource> memory_from(Resource*) -> memory_from<Resource>;

}  // namespace descent
