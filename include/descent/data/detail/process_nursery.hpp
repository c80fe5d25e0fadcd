// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/process_options.hpp>
#include <descent/data/detail/process_memory.hpp>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

/// The processes below the one that owns a pool: the nursery, and the workers that it starts.
namespace descent::detail {

/// Asks the nursery to kill a worker that still has this question.
struct kill_order {
  std::int64_t worker;
  std::uint64_t number;
};

/// Reads record i into this memory.
using process_read = std::function<void(std::byte* out, std::int64_t i, record_random& random)>;

/// kill() takes 0 and negative numbers for many processes, so nothing but a process is ever passed to it.
inline void kill_process(pid_t process) {
  if (process > 1) ::kill(process, SIGKILL);
}

/// A worker: answers questions until it is killed.
[[noreturn]] inline void work_in_process(process_slot& slot, std::byte* out, process_read const& read) noexcept {
  for (;;) {
    std::uint32_t state;
    while ((state = slot.state.load(std::memory_order_acquire)) != turn::asked)
      wait_for_change(slot.state, state, nullptr);
    slot.threw = slot.ended = false;
    try {
      read(out, slot.record, slot.random);
    } catch (source_ended const& e) {
      slot.ended = true;
      slot.say(e.what());
    } catch (std::exception const& e) {
      slot.say(e.what());
    } catch (...) { slot.say("an exception other than std::exception"); }
    slot.state.store(turn::done, std::memory_order_release);
    wake(slot.state);
  }
}

/// Starts workers, notes how they end, and starts others in their place, so that only a process with one thread forks.
/// It ends with all workers when the owner closes the socket or is gone. The owner may have threads when it forks the
/// nursery, so the nursery itself allocates nothing and takes no lock.
class nursery {
 public:
  nursery(process_memory const& memory, processes const& of, process_read read)
      : memory_(memory), replace_(of.replace), read_(std::move(read)), workers_(std::size_t(of.count), 0) {}

  /// Forks it, with all signals blocked. Returns its process id, or -1. `owners_end` is closed in it.
  pid_t start(int socket, int owners_end) {
    sigset_t all;
    ::sigfillset(&all);
    owner_ = ::getpid();
    socket_ = socket;
    ::pthread_sigmask(SIG_SETMASK, &all, &mask_);
    pid_t const process = ::fork();
    if (process == 0) {
      ::close(owners_end);
      run();
    }
    int const error = errno;
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    errno = error;
    return process;
  }

 private:
  [[noreturn]] void run() noexcept {
    me_ = ::getpid();
    ::signal(SIGCHLD, SIG_DFL);  // if the owner ignores it, nobody tells how a process ended
    sigset_t children;
    ::sigemptyset(&children);
    ::sigaddset(&children, SIGCHLD);
    ended_ = ::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    std::int32_t error = ended_ < 0 ? errno : 0;
    for (std::size_t w = 0; w < workers_.size() && error == 0; ++w) error = start_worker(w);
    ::send(socket_, &error, sizeof error, MSG_NOSIGNAL);
    while (error == 0) {
      pollfd on[2] = {{socket_, POLLIN, 0}, {ended_, POLLIN, 0}};
      ::poll(on, 2, 1000);
      if (::getppid() != owner_) break;  // even if another process has inherited the owner's end of the socket
      if (on[0].revents != 0 && !obey()) break;
      signalfd_siginfo dropped;
      while (::read(ended_, &dropped, sizeof dropped) > 0) {}
      int status = 0;
      for (pid_t process; (process = ::waitpid(-1, &status, WNOHANG)) > 0;) note_end(process, status);
    }
    for (pid_t const worker : workers_) kill_process(worker);
    while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {}
    ::_exit(0);
  }

  /// False if the owner wants no more.
  bool obey() {
    kill_order order;
    auto const n = ::recv(socket_, &order, sizeof order, MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n != sizeof order) return false;
    process_slot const& slot = memory_.slot(int(order.worker));
    // While it has this question the owner writes nothing into the slot.
    if (slot.state.load(std::memory_order_acquire) == turn::asked && slot.number == order.number)
      kill_process(workers_[std::size_t(order.worker)]);
    return true;
  }

  /// Returns an error number, or 0.
  int start_worker(std::size_t w) {
    pid_t const process = ::fork();
    if (process == 0) become_worker(int(w));
    workers_[w] = process > 0 ? process : 0;
    return process > 0 ? 0 : errno;
  }
  [[noreturn]] void become_worker(int w) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != me_) ::_exit(0);
    ::close(socket_);
    ::close(ended_);
    memory_.keep_only(w);
    for (int const s : {SIGINT, SIGTERM, SIGHUP}) ::signal(s, SIG_IGN);
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
#ifdef __GLIBC__
    ::on_exit([](int status, void*) { ::_exit(status); }, nullptr);  // before all that the owner has registered
#endif
    work_in_process(memory_.slot(w), memory_.record(w), read_);
  }

  void note_end(pid_t process, int status) {
    std::size_t w = 0;
    while (w < workers_.size() && workers_[w] != process) ++w;
    if (w == workers_.size()) return;
    workers_[w] = 0;
    auto& state = memory_.slot(int(w)).state;
    ++memory_.notes().died;
    // The question first, or a new worker would answer it. The owner may ask another one at any time.
    if (state.load() == turn::asked) {
      note(w, process, status, 0);
      state.store(turn::died);
    }
    int const error = replace_ ? start_worker(w) : 0;
    if (workers_[w] != 0) ++memory_.notes().replaced;
    else {
      note(w, process, status, error);
      std::uint32_t was = state.load();
      while (!state.compare_exchange_weak(was, (was == turn::asked ? turn::died : was) | turn::gone)) {}
    }
    wake(state);  // also if the worker had answered and was killed before it could wake the owner
  }
  void note(std::size_t w, pid_t process, int status, int error) {
    auto& to = memory_.notes().workers[w];
    to.process = process;
    to.status = status;
    to.error = error;
  }

  process_memory const& memory_;
  bool replace_;
  process_read read_;
  std::vector<pid_t> workers_;  // 0: none
  sigset_t mask_{};
  pid_t owner_ = 0, me_ = 0;
  int socket_ = -1, ended_ = -1;
};

}  // namespace descent::detail
