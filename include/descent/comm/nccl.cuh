// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/comm/rendezvous.hpp>
#include <descent/core/communicator.hpp>
#include <descent/core/precision.hpp>
#include <descent/detail/net/guarded_nccl.cuh>
#include <descent/detail/ranks/ordered_sum.hpp>

#include <nccl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>

namespace descent::comm {

/// Ranks that are processes, each with a device of its own, over NCCL. The device that is current when it is made is
/// the rank's. Collectives are enqueued on the given stream, which may be capturing on all ranks; they are sums, never
/// averages or maxima: ncclAvg rounds 1/size to the type, and a maximum loses NaN.
///
///     auto const at = comm::launch::from_environment();
///     cudaSetDevice(at.local_rank);
///     comm::nccl comm{at.rank, at.size, comm::by_file{"/shared/folder", at.job}, std::chrono::minutes(10)};
///
/// The rendezvous gives every rank the ncclUniqueId of rank 0, and where rank 0 listens. The constructor waits for all
/// ranks, at most until the deadline. A thread of the communicator watches it: an error that NCCL reports, or a device
/// that stays in one meeting for longer than the deadline, aborts the communicator, and the next call of any function
/// throws comm_error with the reason. An abort that hangs, too, ends the process with exit code 76 after the grace
/// period. One thread at a time; graphs with its collectives must be destroyed before it, and not launched after a
/// comm_error.
///
/// These threads have a line to that of rank 0, over TCP and beside NCCL, so that every rank says which one is gone,
/// late or silent, and what one says at its end reaches the others at once. It costs a socket on each rank, on rank 0
/// one for each of them (ulimit -n), and about 100 bytes a second, ten times as many while ranks get on. Where no
/// address of rank 0 answers within 5 s, all goes on without, and messages do not know which rank it was. A random
/// number keeps other jobs out; nothing is encrypted, so use it on trusted networks only.
class nccl {
 public:
  static constexpr bool on_device = true;
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
    call<T>("all_reduce", n, [&](ncclComm_t comm) {
      return ncclAllReduce(to, to, std::size_t(n), type<T>(), ncclSum, comm, stream);
    });
  }
  template <class T> void reduce_scatter(T const* from, T* to, std::int64_t n, cudaStream_t stream) {
    call<T>("reduce_scatter", n, [&](ncclComm_t comm) {
      return ncclReduceScatter(from, to, std::size_t(n), type<T>(), ncclSum, comm, stream);
    });
  }
  template <class T> void all_gather(T const* from, T* to, std::int64_t n, cudaStream_t stream) {
    call<T>("all_gather", n, [&](ncclComm_t comm) {
      return ncclAllGather(from, to, std::size_t(n), type<T>(), comm, stream);
    });
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
    call<T>("broadcast", n, [&](ncclComm_t comm) {
      return ncclBroadcast(data, data, std::size_t(n), type<T>(), root, comm, stream);
    });
  }

  /// Throws comm_error once the communicator has failed.
  void check() { guard_.check(); }
  /// Waits for the stream. Throws comm_error where the communicator fails meanwhile.
  void wait(cudaStream_t stream) {
    for (int spins = 0;; ++spins) {
      cudaError_t const state = cudaStreamQuery(stream);
      if (state == cudaSuccess) return check();
      if (state != cudaErrorNotReady) detail::require_cuda(state, "cudaStreamQuery");
      cudaGetLastError();  // not ready: not an error for whoever asks next
      check();
      if (spins > 1000) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  /// Ends all calls of all ranks with this reason. An exception that leaves the scope of the communicator does so
  /// without its text; catch it inside, and abort(e.what()).
  void abort(std::string const& why) noexcept { guard_.abort(why); }

  /// A number for what ranks meet for: kernels on the stream say that they begin and end one.
  int name_meeting(std::string const& what) { return guard_.name_meeting(what); }
  comm_progress* marks() const { return guard_.marks(); }

 private:
  template <class T> static constexpr ncclDataType_t type() {
    if constexpr (std::is_same_v<T, float>) return ncclFloat32;
    else if constexpr (std::is_same_v<T, double>) return ncclFloat64;
    else if constexpr (std::is_same_v<T, half>) return ncclFloat16;
    else if constexpr (std::is_same_v<T, bfloat16>) return ncclBfloat16;
    else {
      static_assert(std::is_same_v<T, std::byte>, "communicators carry storage types and bytes");
      return ncclUint8;
    }
  }

  template <class T, class Call> void call(char const* name, std::int64_t n, Call const& f) {
    if (n != 0) guard_.call(std::string(name) + " of " + std::to_string(n) + " " + detail::name_of<T>(), f);
  }

  detail::guarded_nccl guard_;
};

}  // namespace descent::comm
