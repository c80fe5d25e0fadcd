// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/device_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace descent::detail {

/// Collectives on a few bytes of host memory, over a communicator for device memory. They wait for the stream.
template <class Comm> struct through_device {
  Comm& comm;
  cudaStream_t stream;
  int rank() const { return comm.rank(); }
  int size() const { return comm.size(); }
  void all_gather(std::byte const* from, std::byte* to, std::int64_t n) const {
    if (n == 0) return;
    std::size_t const all = std::size_t(n) * std::size_t(size());
    device_array<std::byte> const in(std::vector<std::byte>(from, from + n), stream), out(all);
    comm.all_gather(static_cast<std::byte const*>(in.get()), out.get(), n, stream);
    comm.wait(stream);
    out.read(to, stream, all);
  }
};
template <class Comm> through_device(Comm&, cudaStream_t) -> through_device<Comm>;

}  // namespace descent::detail
