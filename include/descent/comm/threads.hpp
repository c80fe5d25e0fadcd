// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/communicator.hpp>
#include <descent/core/detail/seconds.hpp>
#include <descent/ranks/detail/ordered_sum.hpp>
#include <descent/core/detail/home_process.hpp>
#include <descent/ranks/model_parallel.hpp>
#include <descent/ranks/parallel.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace descent::comm {

/// A communicator in host memory whose ranks are threads of one process: for tests, for teaching, and for results with
/// the same bits for any number of threads. Sums are added in the order of the ranks, half and bfloat16 in float, and
/// rounded once.
///
///     comm::threads world{4};                  // outlives its ranks
///     std::thread([&] { auto comm = world.rank(2); ... });
///
/// A call waits for the other ranks, up to the deadline. The destructor of a member tells the other ranks, so an
/// exception on one rank fails their calls at once, with its number in the message. In a child of fork(), which does
/// not have the other ranks' threads, each call throws comm_error.
class threads {
 public:
  /// For tests: what happens to a rank before a collective: nothing, it ends and the other ranks are notified, or it
  /// ends without notice.
  enum class fault { none, killed, vanished };

  class member;

  explicit threads(int ranks, std::chrono::nanoseconds deadline = std::chrono::minutes(10))
      : slots_(std::size_t(checked(ranks))), deadline_(detail::checked_wait("comm::threads", "deadline", deadline)) {}
  threads(threads const&) = delete;
  threads& operator=(threads const&) = delete;
  ~threads() {
    if (home_.is_here()) delete changed_;  // in a child it would wait for the parent's threads
  }

  int size() const { return int(slots_.size()); }

  /// The communicator of one rank, for one thread at a time. Throws std::invalid_argument if r is outside [0, size).
  member rank(int r);

  /// Called before each collective of each rank, with the rank and the collective's number 1, 2, ... It may sleep. Set
  /// it before the ranks start.
  std::function<fault(int rank, std::int64_t number)> before;

  /// For fast tests: the deadline passes at once for ranks that wait only for this rank, or only for ranks marked so.
  /// Throws std::invalid_argument if `rank` is outside [0, size).
  void comes_too_late(int rank) {
    require_rank(rank);
    std::lock_guard const lock(mutex_);
    slots_[std::size_t(rank)].late = true;
    changed_->notify_all();
  }

 private:
  struct slot {
    std::vector<std::byte> sent;
    std::string what;          // the collective that the rank is in
    std::int64_t posted = 0;   // collectives to which it has contributed
    std::int64_t finished = 0;  // collectives whose result it has
    bool left = false;
    bool late = false;  // see comes_too_late()
  };

  void require_rank(int r) const {
    if (r < 0 || r >= size())
      throw std::invalid_argument("comm::threads: rank must be in [0, " + std::to_string(size()) + "), is " +
                                  std::to_string(r));
  }
  static int checked(int ranks) {
    if (ranks < 1) throw std::invalid_argument("comm::threads: ranks must be at least 1, are " + std::to_string(ranks));
    return ranks;
  }

  std::vector<slot> slots_;
  std::chrono::nanoseconds deadline_;
  std::mutex mutex_;
  std::condition_variable* changed_ = new std::condition_variable;
  detail::home_process home_;
  std::string failure_;  // why collectives fail
  std::int64_t failed_ = std::numeric_limits<std::int64_t>::max();  // the first one that fails
};

/// The communicator of one rank.
class threads::member {
 public:
  static constexpr bool on_device = false;

  member(member&& other) noexcept
      : world_(std::exchange(other.world_, nullptr)), rank_(other.rank_), exceptions_(other.exceptions_) {}
  member& operator=(member&&) = delete;
  ~member() {
    if (!world_ || !is_home()) return;
    std::lock_guard const lock(world_->mutex_);
    own().left = true;
    if (std::uncaught_exceptions() > exceptions_)
      fail("rank " + std::to_string(rank_) + " ended with an exception", own().posted + 1);
    world_->changed_->notify_all();
  }

  int rank() const { return rank_; }
  int size() const { return world_->size(); }

  template <class T> void all_reduce(T* to, std::int64_t n) {
    collective<T>("all_reduce", to, n, n, [&](auto const& part) { detail::add_in_order(to, n, size(), part); });
  }
  template <class T> void reduce_scatter(T const* from, T* to, std::int64_t n) {
    collective<T>("reduce_scatter", from, size() * n, n, [&](auto const& part) {
      detail::add_in_order(to, n, size(), [&](int r) { return part(r) + rank_ * n; });
    });
  }
  template <class T> void all_gather(T const* from, T* to, std::int64_t n) {
    collective<T>("all_gather", from, n, n, [&](auto const& part) {
      for (int r = 0; r < size(); ++r) copy(to + r * n, part(r), n);
    });
  }
  template <class T> void all_to_all(T const* from, T* to, std::int64_t n) {
    collective<T>("all_to_all", from, size() * n, n, [&](auto const& part) {
      for (int r = 0; r < size(); ++r) copy(to + r * n, part(r) + rank_ * n, n);
    });
  }
  template <class T> void broadcast(T* data, std::int64_t n, int root) {
    collective<T>("broadcast from " + std::to_string(root), data, rank_ == root ? n : 0, n, [&](auto const& part) {
      if (rank_ != root) copy(data, part(root), n);
    });
  }

  /// Fails the calls of all ranks with this reason.
  void abort(std::string const& why) noexcept {
    if (!world_ || !is_home()) return;
    std::lock_guard const lock(world_->mutex_);
    fail(why, own().posted + 1);
  }

 private:
  friend class threads;
  member(threads& world, int rank) : world_(&world), rank_(rank) {}

  /// Whether the other ranks are threads of this process.
  bool is_home() const { return size() == 1 || world_->home_.is_here(); }
  slot& own() { return world_->slots_[std::size_t(rank_)]; }
  /// Fails this collective and all later ones.
  void fail(std::string const& why, std::int64_t number) {
    if (world_->failure_.empty()) world_->failure_ = why;
    world_->failed_ = std::min(world_->failed_, number);
    world_->changed_->notify_all();
  }

  /// Waits until done(slot) holds for every rank.
  template <class Done>
  void wait(std::unique_lock<std::mutex>& lock, std::int64_t number, std::string const& name, Done const& done) {
    std::string const what = "collective " + std::to_string(number) + ", " + name;
    auto const start = std::chrono::steady_clock::now();
    auto const missing = [&] {
      std::string names;
      for (int r = 0; r < size(); ++r)
        if (!done(world_->slots_[std::size_t(r)])) names += (names.empty() ? "" : ", ") + std::to_string(r);
      return names;
    };
    auto const gone = [&](slot const& s) { return s.left && !done(s); };
    auto const over = [&](slot const& s) { return s.late || done(s); };
    for (;;) {
      if (number >= world_->failed_)
        throw comm_error("rank " + std::to_string(rank_) + " in " + what + ": " + world_->failure_);
      if (std::all_of(world_->slots_.begin(), world_->slots_.end(), done)) return;
      for (int r = 0; r < size(); ++r)
        if (gone(world_->slots_[std::size_t(r)]))
          fail("rank " + std::to_string(r) + " has left before " + what, number);
      if (number >= world_->failed_) continue;
      if ((std::all_of(world_->slots_.begin(), world_->slots_.end(), over) ||
           world_->changed_->wait_until(lock, start + world_->deadline_) == std::cv_status::timeout) &&
          !std::all_of(world_->slots_.begin(), world_->slots_.end(), done))
        fail("rank " + std::to_string(rank_) + " waited " + detail::seconds_of(world_->deadline_) + " s in " + what +
                 " for rank " + missing(),
             number);
    }
  }

  /// Gives `count` numbers from `data` to the other ranks, then calls use(part), where part(r) is what rank r gave.
  template <class T, class Use>
  void collective(std::string const& name, T const* data, std::int64_t count, std::int64_t n, Use const& use) {
    if (!world_) throw comm_error("rank " + std::to_string(rank_) + " is gone");
    if (!is_home())
      throw comm_error("rank " + std::to_string(rank_) + " in process " + std::to_string(::getpid()) +
                       ": the other ranks are threads of process " + std::to_string(world_->home_.id()) +
                       ", from which fork() made this one");
    std::string const what = name + " of " + std::to_string(n) + " " + detail::name_of<T>();
    std::int64_t const number = own().posted + 1;
    if (world_->before) obey(world_->before(rank_, number), what);
    std::unique_lock lock(world_->mutex_);
    wait(lock, number, what, [&](slot const& s) { return s.finished >= number - 1; });
    auto const* bytes = reinterpret_cast<std::byte const*>(data);
    own().sent.assign(bytes, bytes + std::size_t(count) * sizeof(T));
    own().what = what;
    own().posted = number;
    world_->changed_->notify_all();
    wait(lock, number, what, [&](slot const& s) { return s.posted >= number; });
    require_same(number, what);
    lock.unlock();
    use([&](int r) { return reinterpret_cast<T const*>(world_->slots_[std::size_t(r)].sent.data()); });
    lock.lock();
    own().finished = number;
    world_->changed_->notify_all();
  }

  void obey(fault f, std::string const& what) {
    if (f == fault::none) return;
    std::string const why = "rank " + std::to_string(rank_) + " was killed before " + what;
    if (f == fault::killed) abort(why);
    else world_ = nullptr;
    throw comm_error(why);
  }

  void require_same(std::int64_t number, std::string const& what) {
    for (int r = 0; r < size(); ++r)
      if (slot const& s = world_->slots_[std::size_t(r)]; s.what != what) {
        fail("ranks disagree about collective " + std::to_string(number) + ": rank " + std::to_string(rank_) +
                 " is in " + what + ", rank " + std::to_string(r) + " in " + s.what,
             number);
        throw comm_error(world_->failure_);
      }
  }

  template <class T> static void copy(T* to, T const* from, std::int64_t n) {
    if (n) std::memcpy(static_cast<void*>(to), from, std::size_t(n) * sizeof(T));
  }

  threads* world_;
  int rank_;
  int exceptions_ = std::uncaught_exceptions();
};

inline threads::member threads::rank(int r) {
  require_rank(r);
  return {*this, r};
}

}  // namespace descent::comm
