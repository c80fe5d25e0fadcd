// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/process_options.hpp>
#include <descent/data/detail/process_memory.hpp>
#include <descent/data/detail/process_nursery.hpp>
#include <descent/core/detail/seconds.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

/// The side of the process that owns the workers.
namespace descent::detail {

/// How a process ended, by its status of waitpid().
inline std::string end_of_process(int status) {
  if (WIFEXITED(status)) return "ended with status " + std::to_string(WEXITSTATUS(status));
  int const s = WTERMSIG(status);
  char const* const name = s == SIGKILL   ? " (Killed)"
                           : s == SIGSEGV ? " (Segmentation fault)"
                           : s == SIGABRT ? " (Aborted)"
                           : s == SIGBUS  ? " (Bus error)"
                           : s == SIGFPE  ? " (Floating point exception)"
                           : s == SIGILL  ? " (Illegal instruction)"
                           : s == SIGSYS  ? " (Bad system call)"
                                          : "";  // strsignal() is not for threads
  return "was killed by signal " + std::to_string(s) + name;
}

/// Both ends of a connection between processes.
class socket_pair {
 public:
  socket_pair() {
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_) != 0)
      throw std::runtime_error("in_processes: a socket cannot be opened: " + std::generic_category().message(errno));
  }
  socket_pair(socket_pair const&) = delete;
  socket_pair& operator=(socket_pair const&) = delete;
  ~socket_pair() { close(0), close(1); }

  int operator[](int end) const { return ends_[end]; }
  void close(int end) {
    if (ends_[end] >= 0) ::close(ends_[end]);
    ends_[end] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
};

/// Processes that read records, one record at a time each. Threads may call read() at the same time.
class process_pool {
 public:
  /// Starts the processes. Throws std::runtime_error if there is not enough memory, or if one cannot be started.
  process_pool(processes const& of, std::size_t record_bytes, process_read read)
      : owner_(::getpid()), deadline_(of.deadline), count_(of.count), memory_(of.count, record_bytes),
        living_(of.count), late_(std::size_t(of.count)) {
    free_.reserve(std::size_t(of.count));
    for (int w = of.count; w-- > 0;) free_.push_back(w);
    nursery children(memory_, of, std::move(read));
    std::fflush(stdout);  // or each process would have a copy of what is not written yet
    nursery_ = children.start(sockets_[1], sockets_[0]);
    std::int32_t error = nursery_ < 0 ? errno : 0;
    sockets_.close(1);
    if (error == 0) error = started();
    if (error == 0) return;
    if (nursery_ > 0) end();
    throw std::runtime_error("in_processes: " + std::to_string(of.count) + (of.count == 1 ? " process" : " processes") +
                             " cannot be started: " + std::generic_category().message(error));
  }
  ~process_pool() { stop(); }
  bool is_of_this_process() const { return ::getpid() == owner_; }

  /// Lets a process read record i, and calls take(bytes) with where the record is. Waits for a process that is free.
  template <class Take> void read(std::int64_t i, record_random& random, Take const& take) {
    if (!is_of_this_process())
      throw source_ended("in_processes: process " + std::to_string(::getpid()) +
                         " cannot read: the processes belong to process " + std::to_string(owner_));
    for (;;) {
      lease const mine(*this);
      process_slot& slot = memory_.slot(mine.worker);
      slot.record = i;
      slot.random = random;
      ++slot.number;
      std::uint32_t state = turn::idle;
      if (!slot.state.compare_exchange_strong(state, turn::asked)) continue;  // it ended before it was asked
      wake(slot.state);
      bool late = false;
      if (answer(slot, mine.worker, late) == turn::died) {
        late_[std::size_t(mine.worker)] = late;
        throw_death(mine.worker, i, late);
      }
      if (slot.threw && slot.ended) throw source_ended(slot.said());
      if (slot.threw) throw std::runtime_error(slot.said());
      take(memory_.record(mine.worker));
      random = slot.random;
      ++reads_;
      return;
    }
  }

  process_report report() const {
    process_report r{reads_, memory_.notes().died, memory_.notes().replaced};
    std::lock_guard const lock(mutex_);
    if (broken_) r.died += living_;  // the system has killed them
    return r;
  }

  /// Ends all processes. Threads in read() throw.
  void stop() {
    std::lock_guard const one(stopping_);
    if (stopped_) return;
    {
      std::lock_guard const lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    for (int w = 0; w < count_; ++w) wake(memory_.slot(w).state);
    end();
  }

 private:
  /// A worker of this thread.
  struct lease {
    process_pool& of;
    int worker;
    explicit lease(process_pool& p) : of(p), worker(p.take_free()) {}
    lease(lease const&) = delete;
    lease& operator=(lease const&) = delete;
    ~lease() { of.give_back(worker); }
  };

  int take_free() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || broken_ || !free_.empty() || living_ == 0; });
    if (stopped_ || broken_) {
      lock.unlock();
      throw_end();
    }
    if (living_ == 0) {
      auto const& last = memory_.notes().workers[std::size_t(last_)];
      std::string text =
          "in_processes: no process is left; the last, " + name_of(last_) + ", " +
          (late_[std::size_t(last_)] ? "was killed because it took longer than " + seconds_of(deadline_) + " s to read"
                                     : end_of_process(last.status));
      if (last.error != 0) text += ", and could not be replaced: " + std::generic_category().message(last.error);
      throw source_ended(text);
    }
    int const w = free_.back();
    free_.pop_back();
    return w;
  }
  void give_back(int w) {
    bool const gone = memory_.slot(w).state.fetch_and(turn::gone) & turn::gone;
    {
      std::lock_guard const lock(mutex_);
      if (gone) --living_, last_ = w;
      else free_.push_back(w);  // has the capacity
    }
    if (gone) changed_.notify_all();
    else changed_.notify_one();
  }

  /// Waits for the end of a question. It wakes up now and then to see whether there is still somebody who will tell it.
  std::uint32_t answer(process_slot& slot, int w, bool& late) {
    using namespace std::chrono_literals;
    bool const timed = deadline_.count() > 0;
    auto const until = deadline_clock::now() + cut_wait(deadline_);
    for (;;) {
      std::chrono::nanoseconds wait = 100ms;
      if (timed) {
        auto const left = until - deadline_clock::now();
        if (left > 0ns) wait = std::min<std::chrono::nanoseconds>(wait, left);
        else {
          late = true;
          kill_order const order{w, slot.number};
          ::send(sockets_[0], &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);  // again, if it is not heard
        }
      }
      timespec const limit{time_t(wait / 1s), long((wait % 1s).count())};
      bool const in_time = wait_for_change(slot.state, turn::asked, &limit);
      bool const nobody = stopped_ || (!in_time && nursery_ended());
      std::uint32_t const state = slot.state.load() & ~turn::gone;
      if (state != turn::asked) return state;
      if (nobody) throw_end();
    }
  }
  bool nursery_ended() const {
    siginfo_t about;
    about.si_pid = 0;
    if (::waitid(P_PID, id_t(nursery_), &about, WEXITED | WNOHANG | WNOWAIT) != 0) return errno != EINTR;
    return about.si_pid != 0;
  }
  [[noreturn]] void throw_end() {
    if (stopped_) throw source_ended("in_processes: the processes have been stopped");
    {
      std::lock_guard const lock(mutex_);
      broken_ = true;
    }
    changed_.notify_all();
    throw source_ended("in_processes: process " + std::to_string(nursery_) + ", which starts the others, has ended");
  }
  std::string name_of(int w) const {
    return "worker " + std::to_string(w) + " (process " +
           std::to_string(memory_.notes().workers[std::size_t(w)].process) + ")";
  }
  [[noreturn]] void throw_death(int w, std::int64_t i, bool late) const {
    auto const& notes = memory_.notes().workers[std::size_t(w)];
    int const status = notes.status, by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    late = late && by == SIGKILL;
    std::string const text =
        "in_processes: " + name_of(w) +
        (late ? " was killed because it took longer than " + seconds_of(deadline_) + " s to read record "
              : " " + end_of_process(status) + " while it read record ") +
        std::to_string(i);
    throw worker_died(text, w, notes.process, i, by, WIFEXITED(status) ? WEXITSTATUS(status) : 0, late);
  }

  /// What the nursery says when all workers run: an error number, or 0.
  std::int32_t started() const {
    std::int32_t error = 0;
    for (;;) {
      pollfd on{sockets_[0], POLLIN, 0};
      if (::poll(&on, 1, 100) > 0 && ::recv(sockets_[0], &error, sizeof error, MSG_DONTWAIT) == sizeof error)
        return error;
      if (nursery_ended()) return ECHILD;
    }
  }
  /// The nursery kills all workers when the socket is shut down. If it cannot, the system kills them when it is killed.
  void end() {
    ::shutdown(sockets_[0], SHUT_RDWR);  // not only closed: another process may have inherited it
    auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (;;) {
      pid_t const got = ::waitpid(nursery_, nullptr, WNOHANG);
      if (got > 0 || (got < 0 && errno != EINTR)) return;
      if (std::chrono::steady_clock::now() > until) break;
      ::poll(nullptr, 0, 1);
    }
    kill_process(nursery_);
    while (::waitpid(nursery_, nullptr, 0) < 0 && errno == EINTR) {}
  }

  pid_t owner_, nursery_ = -1;
  std::chrono::nanoseconds deadline_;
  int count_;
  process_memory memory_;
  socket_pair sockets_;  // of the owner and the nursery
  std::atomic<std::int64_t> reads_{0};
  std::atomic<bool> stopped_{false};
  std::mutex stopping_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<int> free_;
  int living_, last_ = 0;
  std::vector<char> late_;  // whether a worker was killed at the deadline; of the thread that has it
  bool broken_ = false;
};

}  // namespace descent::detail
