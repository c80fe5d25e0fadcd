// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/comm/rendezvous.hpp>
#include <descent/core/communicator.hpp>
#include <descent/core/precision.hpp>
#include <descent/comm/detail/guarded_nccl.cuh>
#include <descent/ranks/detail/ordered_sum.hpp>
#include <descent/ranks/model_parallel.cuh>
#include <descent/ranks/parallel.cuh>

#include <nccl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>

namespace descent::comm {

/// A communicator over NCCL: each rank is a process with its own device, the current one at construction.
/// Collectives are enqueued on the given stream, which may be capturing on all ranks. Reductions are always sums, never
/// averages or maxima: ncclAvg rounds 1/size to the type, and a maximum loses NaN.
///
///     auto const at = comm::launch::from_environment();
///     cudaSetDevice(at.local_rank);
///     comm::nccl comm{at.rank, at.size, comm::by_file{"/shared/folder", at.job}, std::chrono::minutes(10)};
///
/// The rendezvous gives every rank the ncclUniqueId of rank 0 and the address where rank 0 listens. The constructor
/// waits for all ranks, up to the deadline. A watcher thread aborts the communicator if NCCL reports an error or if the
/// device stays in one meeting (an exchange with the other ranks) for longer than the deadline; the next call of any
/// function then throws comm_error with the reason. If the abort hangs as well, the process ends with exit code 76
/// after the grace period. For one thread at a time. Graphs that contain its collectives must be destroyed before it
/// and must not be launched after a comm_error.
///
/// The watcher threads are connected to that of rank 0 over TCP, besides NCCL, so that every rank can name the rank
/// that is gone, late or silent and learns at once why another one ended. This costs a socket on each rank, on rank 0
/// one for each other rank (ulimit -n), and about 100 bytes per second, ten times as many while ranks make progress. If
/// no address of rank 0 answers within 5 s, training continues without it, and messages cannot name the rank.
/// A random number keeps other jobs out, but nothing is encrypted: use trusted networks only.
class nccl {
 public:
  static constexpr bool on_device = true;
  /// The exit code if the abort hangs.
  static constexpr int abort_hangs = detail::guarded_nccl::abort_hangs;

  template <rendezvous Meet>
  nccl(int rank, int size, Meet&& meet, std::chrono::nanoseconds deadline = std::chrono::minutes(10),
       std::chrono::nanoseconds grace = std::chrono::seconds(5))
      : guard_(rank, size, detail::checked_wait("comm::nccl", "deadline", deadline),
               detail::checked_wait("comm::nccl", "grace period", grace)) {
    if (size < 1 || rank < 0 || rank >= size)
      throw std::invalid_argument("comm::nccl: rank must be in [0, size), is " + std::to_string(rank) + " of " +
                                  std::to_string(size));
    guard_.start(meet);
  }

  int rank() const { return guard_.rank(); }
  int size() const { return guard_.size(); }

  template <class T> void all_reduce(T* to, std::int64_t n, cudaStream_t stream) {
    call<T>("all_reduce", n,
            [&](ncclComm_t comm) { return ncclAllReduce(to, to, std::size_t(n), type<T>(), ncclSum, comm, stream); });
  }
  template <class T> void reduce_scatter(T const* from, T* to, std::int64_t n, cudaStream_t stream) {
    call<T>("reduce_scatter", n, [&](ncclComm_t comm) {
      return ncclReduceScatter(from, to, std::size_t(n), type<T>(), ncclSum, comm, stream);
    });
  }
  template <class T> void all_gather(T const* from, T* to, std::int64_t n, cudaStream_t stream) {
    call<T>("all_gather", n,
            [&](ncclComm_t comm) { return ncclAllGather(from, to, std::size_t(n), type<T>(), comm, stream); });
  }
  template <class T> void all_to_all(T const* from, T* to, std::int64_t n, cudaStream_t stream) {
    call<T>("all_to_all", n, [&](ncclComm_t comm) {
      ncclGroupStart();
      ncclResult_t result = ncclSuccess;
      auto const keep = [&](ncclResult_t r) {
        if (r != ncclSuccess && r != ncclInProgress) result = r;
      };
      for (int r = 0; r < size(); ++r) {
        keep(ncclSend(from + r * n, std::size_t(n), type<T>(), r, comm, stream));
        keep(ncclRecv(to + r * n, std::size_t(n), type<T>(), r, comm, stream));
      }
      ncclResult_t const end = ncclGroupEnd();
      return result != ncclSuccess ? result : end;
    });
  }
  template <class T> void broadcast(T* data, std::int64_t n, int root, cudaStream_t stream) {
    call<T>("broadcast", n,
            [&](ncclComm_t comm) { return ncclBroadcast(data, data, std::size_t(n), type<T>(), root, comm, stream); });
  }

  /// Throws comm_error if the communicator has failed.
  void check() { guard_.check(); }
  /// Waits for the stream. Throws comm_error if the communicator fails meanwhile.
  void wait(cudaStream_t stream) {
    for (int spins = 0;; ++spins) {
      cudaError_t const state = cudaStreamQuery(stream);
      if (state == cudaSuccess) return check();
      if (state != cudaErrorNotReady) detail::require_cuda(state, "cudaStreamQuery");
      cudaGetLastError();  // clears cudaErrorNotReady, so that no later check reports it
      check();
      if (spins > 1000) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  /// Fails all calls of all ranks with this reason. An exception that leaves the communicator's scope does the same but
  /// without its text; to send the text, catch it inside and call abort(e.what()).
  void abort(std::string const& why) noexcept { guard_.abort(why); }

  /// Registers a purpose of meetings and returns its number. Kernels on the stream mark the begin and end of a meeting.
  int name_meeting(std::string const& what) { return guard_.name_meeting(what); }
  comm_progress* marks() const { return guard_.marks(); }
  /// What an optimizer compares with those of other ranks, for the message if it differs. Not owned.
  void describe(std::weak_ptr<detail::described_calls const> calls) { guard_.describe(std::move(calls)); }

 private:
  template <class T> static constexpr ncclDataType_t type() {
    if constexpr (std::is_same_v<T, float>) return ncclFloat32;
    else if constexpr (std::is_same_v<T, double>) return ncclFloat64;
    else if constexpr (std::is_same_v<T, half>) return ncclFloat16;
    else if constexpr (std::is_same_v<T, bfloat16>) return ncclBfloat16;
    else {
      static_assert(std::is_same_v<T, std::byte>, "communicators transfer storage types and std::byte");
      return ncclUint8;
    }
  }

  template <class T, class Call> void call(char const* name, std::int64_t n, Call const& f) {
    if (n != 0) guard_.call(std::string(name) + " of " + std::to_string(n) + " " + detail::name_of<T>(), f);
  }

  detail::guarded_nccl guard_;
};

}  // namespace descent::comm
