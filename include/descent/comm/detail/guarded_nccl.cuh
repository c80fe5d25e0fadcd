// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/communicator.hpp>
#include <descent/engine/cuda/device_memory.hpp>
#include <descent/comm/detail/heartbeats.hpp>
#include <descent/core/detail/seconds.hpp>
#include <descent/ranks/detail/described_calls.hpp>

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
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace descent::detail {

/// An NCCL communicator with a watcher thread that aborts it after an error, a lost or late rank, or its deadline.
class guarded_nccl {
 public:
  static constexpr int abort_hangs = 76;

  guarded_nccl(int rank, int size, std::chrono::nanoseconds deadline, std::chrono::nanoseconds grace)
      : rank_(rank), size_(size), deadline_(deadline), grace_(grace), progress_(pinned<comm_progress>()),
        beats_(rank, std::max(size, 1), deadline) {}
  /// Waits for all ranks.
  template <class Meet> void start(Meet& meet) {
    first_words all{};
    if (rank_ == 0) require(ncclGetUniqueId(&all.id), "ncclGetUniqueId");
    if (rank_ == 0 && size_ > 1) all.beats = beats_.listen();
    meet(rank_, size_, all);
    if (rank_ != 0) beats_.expect_line();
    watch_ = std::jthread([this, beats = all.beats](std::stop_token stop) {
      if (rank_ != 0)
        beats_.reach_rank_0(beats, time_limit(std::min<std::chrono::nanoseconds>(deadline_, reach_limit)),
                            [&] { return stop.stop_requested(); });
      watch(stop);
    });
    join(all.id);
  }
  guarded_nccl(guarded_nccl const&) = delete;
  guarded_nccl& operator=(guarded_nccl const&) = delete;
  ~guarded_nccl() {
    if (std::uncaught_exceptions() > exceptions_) abort(me() + " ended with an exception");
    try {
      leave();
    } catch (comm_error const& e) {
      std::fprintf(stderr, "descent: %s\n", e.what());
    }
    beats_.leave();
  }

  int rank() const { return rank_; }
  int size() const { return size_; }
  comm_progress* marks() const { return progress_.get(); }
  int name_meeting(std::string const& what) {
    std::lock_guard const lock(mutex_);
    std::size_t const known = std::size_t(std::find(meetings_.begin(), meetings_.end(), what) - meetings_.begin());
    if (known == meetings_.size()) meetings_.push_back(what);
    return int(known);
  }

  void describe(std::weak_ptr<described_calls const> calls) { described_.add(std::move(calls)); }

  /// Runs the next collective, f(communicator), under this name. If it fails while it is being enqueued, the next call
  /// throws, not this one: the data may have arrived, and the kernels that the caller enqueues after it detect that.
  template <class Call> void call(std::string const& name, Call const& f) {
    std::unique_lock calls(calls_);
    ncclComm_t comm;
    {
      std::lock_guard const lock(mutex_);
      if (!failure_.empty()) throw comm_error(failure_);
      ++number_;
      comm = comm_;
    }
    try {
      settle(calls, f(comm), "collective " + std::to_string(number_) + ", " + name);
    } catch (comm_error const&) {}
  }
  /// Throws comm_error if the communicator has failed.
  void check() {
    if (seen(progress_->differ)) end_by([&] { return what_differs(); });
    std::lock_guard const lock(mutex_);
    if (!failure_.empty()) throw comm_error(failure_);
  }
  void abort(std::string const& why) noexcept { end_by([&] { return beats_.fail(why), why; }); }

 private:
  using clock = deadline_clock;
  static constexpr std::chrono::seconds reach_limit{5};       // for the connection to rank 0
  static constexpr std::chrono::milliseconds first_pause{5};  // while ranks are connecting
  static constexpr std::chrono::milliseconds rest{500};  // a device that stands still this long makes no progress
  /// What rank 0 gives to all ranks in the rendezvous.
  struct first_words {
    ncclUniqueId id;
    endpoint beats;
  };
  /// What the watcher has observed.
  struct watcher_state {
    ncclResult_t state = ncclSuccess;
    std::string reason;
    rank_position at;
    std::string doing;  // and for how long
    clock::time_point since = now();
    bool late = false;
  };

  static clock::time_point now() { return clock::now(); }
  /// Reads what the device has written. An acquire load, so that earlier writes of the device are visible too.
  template <class T> static T seen(T const& x) { return __atomic_load_n(&x, __ATOMIC_ACQUIRE); }
  std::string me() const { return "rank " + std::to_string(rank_); }
  bool failed() {
    std::lock_guard const lock(mutex_);
    return !failure_.empty();
  }

  void join(ncclUniqueId const& id) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    std::unique_lock calls(calls_);
    ncclComm_t comm = nullptr;
    ncclResult_t const result = ncclCommInitRankConfig(&comm, size_, id, rank_, &config);
    {
      std::lock_guard const lock(mutex_);
      if (failure_.empty()) comm_ = std::exchange(comm, nullptr);
    }
    if (comm) end(comm, now() + grace_);
    settle(calls, result, "joining");
    std::lock_guard const lock(mutex_);
    joining_ = false;
  }
  void leave() {
    std::unique_lock calls(calls_);
    ncclComm_t comm;
    {
      std::lock_guard const lock(mutex_);
      comm = comm_;
    }
    if (!comm) return;
    settle(calls, ncclCommFinalize(comm), "leaving");
    {
      std::lock_guard const lock(mutex_);
      comm = std::exchange(comm_, nullptr);
    }
    if (comm) ncclCommDestroy(comm);
  }

  /// Waits until NCCL has accepted a call.
  void settle(std::unique_lock<std::timed_mutex>& calls, ncclResult_t result, std::string const& what) {
    auto const start = now();
    {
      std::lock_guard const lock(mutex_);
      calling_ = what;
      called_ = start;
    }
    for (int spins = 0; result == ncclInProgress; ++spins) {
      calls.unlock();
      if (spins > 100) std::this_thread::sleep_for(std::chrono::microseconds(50));
      calls.lock();
      std::unique_lock lock(mutex_);
      if (!failure_.empty()) throw comm_error(failure_);
      ncclResult_t const asked = ncclCommGetAsyncError(comm_, &result);
      if (asked != ncclSuccess) result = asked;
      lock.unlock();
      if (result == ncclInProgress && now() - start > deadline_)
        fail(calls, [&] { return ask(heartbeat::late, waited(deadline_) + what); });
    }
    std::unique_lock lock(mutex_);
    if (result == ncclSuccess) return calling_.clear();
    std::string const why = reason(result);
    lock.unlock();
    fail(calls, [&] { return explain(result, waited(now() - start) + what, "in " + what, why); });
  }
  /// Finds out without the lock which rank is the cause.
  template <class Why> [[noreturn]] void fail(std::unique_lock<std::timed_mutex>& calls, Why const& find) {
    auto const until = now() + grace_;
    calls.unlock();
    std::string const why = find();
    await_device(until);
    calls.lock();
    give_up(why, until);
    std::lock_guard const lock(mutex_);
    throw comm_error(failure_);
  }
  std::string ask(heartbeat::kinds kind, std::string const& doing, std::string const& more = "",
                  std::vector<std::string> const& facts = {}) {
    return beats_.ask(kind, doing, more, std::min<std::chrono::nanoseconds>(grace_ / 2, std::chrono::seconds(1)),
                      facts);
  }
  /// The message for an NCCL error, caused by other ranks or by this one.
  std::string explain(ncclResult_t result, std::string const& doing, std::string const& where, std::string const& why) {
    if (result == ncclRemoteError || result == ncclSystemError || result == ncclInternalError)
      return ask(heartbeat::hurt, doing, ": " + why);
    return beats_.fail(me() + " " + where + ": " + why), me() + " " + where + ": " + why;
  }
  static std::string waited(std::chrono::nanoseconds d) {
    return "waited " + seconds_of(std::chrono::round<std::chrono::milliseconds>(d)) + " s in ";
  }
  std::string reason(ncclResult_t result) const {
    char const* detail = ncclGetLastError(comm_);
    return std::string("NCCL reports ") + ncclGetErrorString(result) +
           (detail && *detail ? std::string(", ") + detail : "") +
           (joining_ && result == ncclInvalidUsage ? "; give each rank a device of its own, by "
                                                     "cudaSetDevice(local_rank) or CUDA_VISIBLE_DEVICES"
                                                   : "");
  }
  void require(ncclResult_t result, char const* what) const {
    if (result != ncclSuccess) throw comm_error(std::string(what) + ": " + reason(result));
  }
  /// The message if the device has met ranks in different calls.
  std::string what_differs() {
    auto const facts = described_.facts_in(*progress_.get());
    return ask(heartbeat::differs, "is in " + facts[0], another_call, facts);
  }
  /// Fails all calls for the reason that find() returns and tells the other ranks.
  template <class Find> void end_by(Find const& find) noexcept {
    if (failed()) return;
    auto const until = now() + grace_;
    std::string const why = find();
    await_device(until);
    std::unique_lock calls(calls_, std::try_to_lock);
    give_up(why, until);
  }

  /// The watcher thread: polls NCCL for errors and the device for progress, and exchanges messages with the other
  /// ranks. Makes no CUDA call, because a capture might forbid it.
  void watch(std::stop_token stop) {
    auto const pause = std::min<std::chrono::nanoseconds>(deadline_ / 20, std::chrono::milliseconds(100));
    std::unique_lock lock(mutex_);
    for (watcher_state s; !stop.stop_requested();) {
      observe(s);
      bool const over = !failure_.empty();
      lock.unlock();
      beats_.set(s.at);
      beats_.tick();
      if (!over) act(s);
      auto const next = beats_.expects_ranks() ? std::min<std::chrono::nanoseconds>(pause, first_pause) : pause;
      lock.lock();
      changed_.wait_for(lock, stop, next, [] { return false; });
    }
  }
  /// Called with the lock held.
  void observe(watcher_state& s) {
    s.state = ncclSuccess;
    if (comm_) {
      ncclResult_t const asked = ncclCommGetAsyncError(comm_, &s.state);
      if (asked != ncclSuccess) s.state = asked;
    }
    s.reason = s.state == ncclSuccess || s.state == ncclInProgress ? "" : reason(s.state);
    std::int64_t const ended = seen(progress_->ended), begun = seen(progress_->begun);
    bool const meets = begun != ended;
    if (!meets || begun != s.at.begun) s.since = now();
    s.late = now() - s.since > deadline_;
    std::string where = calling_;
    if (where.empty()) where = number_ ? "collective " + std::to_string(number_) : "no collective yet";
    if (begun) where += (meets ? ", meeting " : ", after meeting ") + std::to_string(begun);
    if (meets) where += " (" + meetings_[std::size_t(seen(progress_->meeting))] + ")";
    auto const since = calling_.empty() ? s.since : std::min(s.since, called_);
    s.doing = (meets || !calling_.empty() ? waited(s.late ? deadline_ : now() - since) : "in ") + where;
    s.at = {number_, begun, ended, where};
  }
  void act(watcher_state const& s) {
    auto const until = now() + grace_;
    std::string why;
    bool forgivable = false;
    if (seen(progress_->differ)) why = what_differs();
    else if (!beats_.verdict().empty()) why = beats_.verdict_for(s.doing);
    else if (!s.reason.empty()) why = explain(s.state, s.doing, "in " + s.at.where, s.reason);
    else if (s.late) why = ask(heartbeat::late, s.doing), forgivable = beats_.verdict().empty();
    if (why.empty()) return;
    await_device(until);
    // Gives up also if a call does not return, but not if the device has ended the meeting meanwhile.
    std::unique_lock calls(calls_, std::defer_lock);
    static_cast<void>(calls.try_lock_for(grace_ / 4));
    if (!forgivable || seen(progress_->ended) == s.at.ended) give_up(why, until);
  }

  /// Lets a device that makes progress finish a meeting that the other ranks may have finished, so that values agree.
  void await_device(clock::time_point until) {
    std::int64_t begun = -1, ended = -1;
    for (auto since = now(); now() < until - grace_ / 2; std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
      std::int64_t const b = std::exchange(begun, seen(progress_->begun));
      std::int64_t const e = std::exchange(ended, seen(progress_->ended));
      if (b != begun || e != ended) since = now();
      if (begun == ended || now() - since > rest) return;
      beats_.tick();
    }
  }

  /// Keeps the first reason. Called with the lock of the calls if it could be taken.
  void give_up(std::string const& why, clock::time_point until) noexcept {
    ncclComm_t comm;
    {
      std::lock_guard const lock(mutex_);
      if (!failure_.empty()) return;
      failure_ = why;
      comm = std::exchange(comm_, nullptr);
    }
    if (comm) end(comm, until);
  }
  void end(ncclComm_t comm, clock::time_point until) noexcept {
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
    if (!done.wait_for(lock, until - now(), [&] { return finished; })) {
      std::fprintf(stderr, "descent: %s; ncclCommAbort does not return\n", failure_.c_str());
      std::_Exit(abort_hangs);
    }
    lock.unlock();
    helper.join();
  }

  int rank_, size_;
  std::chrono::nanoseconds deadline_, grace_;
  sole_handle<comm_progress*, pinned_delete> progress_;
  ncclComm_t comm_ = nullptr;
  std::int64_t number_ = 0;
  std::string failure_, calling_ = "joining";
  clock::time_point called_ = now();
  bool joining_ = true;
  std::vector<std::string> meetings_{"nothing"};
  described_optimizers described_;
  heartbeats beats_;
  std::timed_mutex calls_;  // held during calls of NCCL; taken before mutex_
  std::mutex mutex_;  // for the members above except beats_
  std::condition_variable_any changed_;
  int exceptions_ = std::uncaught_exceptions();
  std::jthread watch_;
};

}  // namespace descent::detail
