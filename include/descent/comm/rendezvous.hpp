// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/comm/by_file.hpp>
#include <descent/comm/by_tcp.hpp>
#include <descent/core/communicator.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace descent {

/// Gives rank 0's value, such as an ncclUniqueId, to all ranks before they have a communicator. Every rank calls
/// meet(rank, size, value) with a trivially copyable value. The call returns with the value set, or throws comm_error
/// at a deadline. Models: comm::by_file, comm::by_tcp, comm::by_ranks, or your own.
template <class Meet>
concept rendezvous =
    requires(Meet& meet, int rank, int size, std::array<std::byte, 128>& value) { meet(rank, size, value); };

}  // namespace descent

namespace descent::comm {

/// A rendezvous over an existing communicator in host memory, such as comm::mpi.
template <class Comm> struct by_ranks {
  static_assert(communicator<Comm> && !Comm::on_device, "by_ranks{comm} takes a communicator in host memory");
  /// Must outlive the rendezvous.
  Comm* comm;
  explicit by_ranks(Comm& c) : comm(&c) {}

  template <class T> void operator()(int rank, int size, T& value) const {
    static_assert(std::is_trivially_copyable_v<T>, "by_ranks: the value must be trivially copyable");
    if (rank != comm->rank() || size != comm->size())
      throw std::invalid_argument("by_ranks: rank and size must be the communicator's, " +
                                  std::to_string(comm->rank()) + " of " + std::to_string(comm->size()) + ", are " +
                                  std::to_string(rank) + " of " + std::to_string(size));
    comm->broadcast(std::as_writable_bytes(std::span(&value, 1)).data(), std::int64_t(sizeof(T)), 0);
  }
};
template <class Comm> by_ranks(Comm&) -> by_ranks<Comm>;

}  // namespace descent::comm
