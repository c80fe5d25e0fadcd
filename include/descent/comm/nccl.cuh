// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/comm/communicator.hpp>
#include <descent/comm/ordered_sum.hpp>
#include <descent/comm/rendezvous.hpp>
#include <descent/detail/agreement.hpp>
#include <descent/detail/device_memory.hpp>
#include <descent/detail/seconds.hpp>
#include <descent/precision.hpp>

#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace descent::comm {

/// Ranks that are processes, each with a device of its own, over NCCL. The device that is current when it is made is
/// the rank's. Collectives are enqueued on the given stream, which may be capturing on all ranks; they are sums, never
/// averages or maxima: ncclAvg rounds 1/size to the type, and a maximum loses NaN.
///
///     auto const at = comm::launch::from_environment();
///     cudaSetDevice(at.local_rank);
///     comm::nccl comm{at.rank, at.size, comm::by_file{"/shared/folder", at.job}, std::chrono::minutes(10)};
///
/// The rendezvous gives every rank the ncclUniqueId of rank 0. The constructor waits for all ranks, at most until the
/// deadline. From then on a thread of the communicator watches it: an error that NCCL reports, or a device
/// that stays in one meeting for longer than the deadline, aborts the communicator, and the next call of any function
/// throws comm_error with the reason. An abort that hangs, too, ends the process with exit code 76 after the grace
/// period. One thread at a time; graphs with its collectives must be destroyed before it, and not launched after a
/// comm_error.
class nccl {
 public:
  static constexpr bool on_device = true;
  static constexpr int abort_hangs = 76;

  template <rendezvous Meet>
  nccl(int rank, int size, Meet&& meet, std::chrono::nanoseconds deadline = std::chrono::minutes(10),
       std::chrono::nanoseconds grace = std::chrono::seconds(5))
      : rank_(rank), size_(size), deadline_(deadline), grace_(grace), progress_(detail::pinned<comm_progress>()) {
    if (size < 1 || rank < 0 || rank >= size)
      throw std::invalid_argument("comm::nccl: rank must be in [0, size), is " + std::to_string(rank) + " of " +
                                  std::to_string(size));
    if (deadline <= std::chrono::nanoseconds(0))
      throw std::invalid_argument("comm::nccl: the deadline must be above 0");
    ncclUniqueId id{};
    if (rank == 0) require(ncclGetUniqueId(&id), "ncclGetUniqueId");
    meet(rank, size, id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    std::unique_lock calls(calls_);
    try {
      settle(calls, ncclCommInitRankConfig(&comm_, size, id, rank, &config), "joining");
    } catch (comm_error const& e) {
      if (!wrong_use_) throw;
      throw comm_error(std::string(e.what()) + "; each rank needs a device of its own, by cudaSetDevice(local_rank) or "
                                               "CUDA_VISIBLE_DEVICES");
    }
    calls.unlock();
    watch_ = std::thread([this] { watch(); });
  }
  nccl(nccl const&) = delete;
  nccl& operator=(nccl const&) = delete;
  ~nccl() {
    {
      std::lock_guard const lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    if (watch_.joinable()) watch_.join();
    if (std::uncaught_exceptions() > exceptions_)
      abort("rank " + std::to_string(rank_) + " ended with an exception");
    if (comm_) try {
        std::unique_lock calls(calls_);
        settle(calls, ncclCommFinalize(comm_), "leaving");
        ncclCommDestroy(comm_);
      } catch (comm_error const& e) {
        std::fprintf(stderr, "descent: %s\n", e.what());
      }
  }

  int rank() const { return rank_; }
  int size() const { return size_; }

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
      for (int r = 0; r < size_; ++r) {
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
  void check() {
    if (static_cast<std::int32_t const volatile&>(progress_->differ)) abort(in_different_calls());
    std::lock_guard const lock(mutex_);
    if (!failure_.empty()) throw comm_error(failure_);
  }
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
  /// Ends all calls of this rank with this reason; other ranks fail when NCCL tells them, or at their deadline.
  void abort(std::string const& why) noexcept {
    std::unique_lock calls(calls_, std::try_to_lock);
    give_up(why);
  }

  /// A number for what ranks meet for: kernels on the stream say that they begin and end one.
  int name_meeting(std::string const& what) {
    std::lock_guard const lock(mutex_);
    meetings_.push_back(what);
    return int(meetings_.size()) - 1;
  }
  comm_progress* marks() const { return progress_.get(); }

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
    if (n == 0) return;
    std::unique_lock calls(calls_);
    ncclComm_t comm;
    {
      std::lock_guard const lock(mutex_);
      if (!failure_.empty()) throw comm_error(failure_);
      ++number_;
      comm = comm_;
    }
    settle(calls, f(comm),
           "collective " + std::to_string(number_) + ", " + name + " of " + std::to_string(n) + " " +
               detail::name_of<T>());
  }

  /// Waits until NCCL has taken a call.
  void settle(std::unique_lock<std::timed_mutex>& calls, ncclResult_t result, std::string const& what) {
    auto const start = std::chrono::steady_clock::now();
    for (int spins = 0; result == ncclInProgress; ++spins) {
      calls.unlock();
      if (spins > 100) std::this_thread::sleep_for(std::chrono::microseconds(50));
      calls.lock();
      std::unique_lock lock(mutex_);
      if (!failure_.empty()) throw comm_error(failure_);
      ncclResult_t const asked = ncclCommGetAsyncError(comm_, &result);
      if (asked != ncclSuccess) result = asked;
      lock.unlock();
      if (result == ncclInProgress && std::chrono::steady_clock::now() - start > deadline_)
        fail("rank " + std::to_string(rank_) + " waited " + detail::seconds_of(deadline_) + " s in " + what +
             " for other ranks");
    }
    wrong_use_ = result == ncclInvalidUsage;
    if (result != ncclSuccess) fail("rank " + std::to_string(rank_) + " in " + what + ": " + reason(result));
  }
  [[noreturn]] void fail(std::string const& why) {
    give_up(why);
    std::lock_guard const lock(mutex_);
    throw comm_error(failure_);
  }

  std::string reason(ncclResult_t result) const {
    char const* detail = ncclGetLastError(comm_);
    return std::string("NCCL says ") + ncclGetErrorString(result) +
           (detail && *detail ? std::string(", ") + detail : "");
  }
  void require(ncclResult_t result, char const* what) const {
    if (result != ncclSuccess) throw comm_error(std::string(what) + ": " + reason(result));
  }
  std::string in_different_calls() const {
    return "rank " + std::to_string(rank_) + " is in meeting " + std::to_string(progress_->begun) +
           detail::another_call;
  }

  /// Until the end: asks NCCL for errors, and looks at how far the device is. No CUDA call, which a capture might forbid.
  void watch() {
    auto const pause = std::min<std::chrono::nanoseconds>(deadline_ / 20, std::chrono::milliseconds(100));
    std::int64_t seen = 0;
    auto since = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, pause, [&] { return ends_; })) {
      if (!comm_) continue;
      ncclResult_t state = ncclSuccess;
      ncclResult_t const asked = ncclCommGetAsyncError(comm_, &state);
      if (asked != ncclSuccess) state = asked;
      auto const volatile& p = *progress_;
      std::int64_t const ended = p.ended, begun = p.begun;
      if (begun == ended || begun != seen) {
        seen = begun;
        since = std::chrono::steady_clock::now();
      }
      auto const where = [&] {
        std::string const meeting = "meeting " + std::to_string(begun) + " for " + meetings_[std::size_t(p.meeting)];
        return "collective " + std::to_string(number_) + (begun != ended ? ", " + meeting : "");
      };
      std::string why;
      bool late = false;
      if (p.differ) why = in_different_calls();
      else if (state != ncclSuccess && state != ncclInProgress)
        why = "rank " + std::to_string(rank_) + " in " + where() + ": " + reason(state);
      else if ((late = std::chrono::steady_clock::now() - since > deadline_))
        why = "rank " + std::to_string(rank_) + " waited " + detail::seconds_of(deadline_) + " s in " + where() +
              " for other ranks";
      if (why.empty()) continue;
      lock.unlock();
      {
        // A call that does not return is given up, too; one that went on meanwhile is not.
        std::unique_lock calls(calls_, std::defer_lock);
        static_cast<void>(calls.try_lock_for(grace_));
        if (!late || p.ended == ended) give_up(why);
      }
      lock.lock();
    }
  }

  /// The first reason stays. With the lock of the calls, where it can be had.
  void give_up(std::string const& why) noexcept {
    ncclComm_t comm;
    {
      std::lock_guard const lock(mutex_);
      if (!failure_.empty() || !comm_) return;
      failure_ = why;
      comm = std::exchange(comm_, nullptr);
    }
    std::mutex mutex;
    std::condition_variable done;
    bool finished = false;
    std::thread helper([&] {
      ncclCommAbort(comm);
      std::lock_guard const lock(mutex);
      finished = true;
      done.notify_all();
    });
    std::unique_lock lock(mutex);
    if (!done.wait_for(lock, grace_, [&] { return finished; })) {
      std::fprintf(stderr, "descent: %s; NCCL's abort does not end\n", why.c_str());
      std::_Exit(abort_hangs);
    }
    lock.unlock();
    helper.join();
  }

  int rank_, size_;
  std::chrono::nanoseconds deadline_, grace_;
  std::unique_ptr<comm_progress, detail::pinned_delete> progress_;
  ncclComm_t comm_ = nullptr;
  std::int64_t number_ = 0;
  bool wrong_use_ = false;
  std::string failure_;
  std::vector<std::string> meetings_{"nothing"};
  std::timed_mutex calls_;  // during NCCL's functions; taken before the other
  std::mutex mutex_;        // for what is above
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread watch_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace descent::comm
