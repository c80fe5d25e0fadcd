// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/comm/mpi_session.hpp>
#include <descent/core/communicator.hpp>
#include <descent/comm/detail/mpi_notice.hpp>
#include <descent/ranks/detail/ordered_sum.hpp>
#include <descent/ranks/model_parallel.hpp>
#include <descent/ranks/parallel.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace descent::comm {

/// A communicator over MPI in host memory: each rank is a process. Sums have the same bits as with comm::threads: they
/// are added in the order of the ranks, half and bfloat16 in float, and rounded once. Data travels in messages between
/// pairs of ranks, so that a deadline can name the late rank and a header shows that a rank is in another collective.
/// Messages have at most `largest` bytes; larger data is split.
///
///     comm::mpi_session session{argc, argv};
///     comm::mpi comm{MPI_COMM_WORLD, std::chrono::seconds(30)};
///
/// Either all surviving ranks complete a collective or none does. A rank completes it once all others have confirmed
/// that they have all data. If a confirmation is missing at the deadline, the others have one second to object. Ranks
/// can disagree only if the network splits at this moment, or if a stopped rank continues after the deadline.
///
/// The destructor tells the other ranks, whose next collective then fails at once, and waits up to a second for them to
/// leave as well. The constructor waits for all ranks of `parent`. It and each collective wait up to the deadline, a
/// sum of more than 4096 elements up to twice that. Throws std::invalid_argument on bad arguments and comm_error on
/// lost ranks, the latter also in every later call. Owns buffers for what the largest collective so far sends and
/// receives; they are leaked if messages are in flight after a failure. For one thread at a time.
class mpi {
 public:
  static constexpr bool on_device = false;

  explicit mpi(MPI_Comm parent = MPI_COMM_WORLD, std::chrono::nanoseconds deadline = std::chrono::minutes(10),
               int largest = 1 << 30)
      : deadline_(detail::checked_wait("comm::mpi", "deadline", deadline)), largest_(std::size_t(largest)),
        memory_(new memory) {
    if (largest < 1)
      throw std::invalid_argument("comm::mpi: the largest message must be at least 1 byte, is " +
                                  std::to_string(largest));
    if (!detail::mpi_runs())
      throw std::logic_error("comm::mpi: MPI is not running; a comm::mpi_session must outlive a comm::mpi");
    comm_ = detail::duplicate(parent, deadline_);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  mpi(mpi const&) = delete;
  mpi& operator=(mpi const&) = delete;
  ~mpi() {
    if (std::uncaught_exceptions() > exceptions_) abort("rank " + std::to_string(rank_) + " ended with an exception");
    if (!failed_ && memory_->waiting.empty() && detail::mpi_runs()) leave();
    if (failed_ || !memory_->waiting.empty() || left_ + 1 < size_)
      static_cast<void>(memory_.release());  // messages may still arrive
    else if (detail::mpi_runs()) MPI_Comm_free(&comm_);
  }

  int rank() const { return rank_; }
  int size() const { return size_; }

  template <class T> void all_reduce(T* to, std::int64_t n) {
    std::string const what = begin<T>("all_reduce", n);
    if (n <= small) {  // one exchange instead of two
      exchange<T>(what, n, n, [&](int) { return to; }, [&](int) { return n; });
      detail::add_in_order(to, n, size_, [&](int r) { return received<T>(r, n); });
      return;
    }
    std::int64_t const part = (n + size_ - 1) / size_;
    auto const first = [&](int r) { return std::min(r * part, n); };
    auto const length = [&](int r) { return first(r + 1) - first(r); };
    exchange<T>(what, part, part, [&](int r) { return to + first(r); }, length, false);
    // The sum overwrites the receive buffer. `to` stays unchanged until all ranks have all data.
    T* const mine = reinterpret_cast<T*>(memory_->in.data());
    detail::add_in_order(mine, length(rank_), size_, [&](int r) { return received<T>(r, part); });
    exchange<T>(what, part, part, [&](int) { return mine; }, [&](int) { return length(rank_); });
    for (int r = 0; r < size_; ++r) copy(to + first(r), received<T>(r, part), length(r));
  }
  template <class T> void reduce_scatter(T const* from, T* to, std::int64_t n) {
    exchange<T>(begin<T>("reduce_scatter", n), n, n, [&](int r) { return from + r * n; }, [&](int) { return n; });
    detail::add_in_order(to, n, size_, [&](int r) { return received<T>(r, n); });
  }
  template <class T> void all_gather(T const* from, T* to, std::int64_t n) {
    exchange<T>(begin<T>("all_gather", n), n, n, [&](int) { return from; }, [&](int) { return n; });
    for (int r = 0; r < size_; ++r) copy(to + r * n, received<T>(r, n), n);
  }
  template <class T> void all_to_all(T const* from, T* to, std::int64_t n) {
    exchange<T>(begin<T>("all_to_all", n), n, n, [&](int r) { return from + r * n; }, [&](int) { return n; });
    for (int r = 0; r < size_; ++r) copy(to + r * n, received<T>(r, n), n);
  }
  template <class T> void broadcast(T* data, std::int64_t n, int root) {
    if (root < 0 || root >= size_)
      throw std::invalid_argument("comm::mpi: the root of a broadcast must be in [0, " + std::to_string(size_) +
                                  "), is " + std::to_string(root));
    exchange<T>(begin<T>("broadcast from " + std::to_string(root), n), 0, n, [&](int) { return data; },
                [&](int) { return rank_ == root ? n : 0; });
    if (rank_ != root) copy(data, received<T>(0, 0), n);
  }

  /// Fails the calls of all ranks with this reason, after the last collective that this rank has completed.
  void abort(std::string const& why) noexcept { give_up(why, number_ + 1); }

 private:
  using clock = detail::deadline_clock;
  enum : int { header_tag = 1, body_tag, done_tag, notice_tag };
  /// What this collective waits for: data; confirmations; or objections, after a confirmation is missing.
  enum class stage { collecting, agreeing, asking };
  static constexpr std::int64_t small = 4096;  // elements; in larger sums each rank adds up one part
  static constexpr std::chrono::seconds objections{1}, goodbyes{1};

  using notice = detail::mpi_notice;
  struct pending {
    MPI_Request request;
    int rank;  // the peer
    bool receives;
    int code;  // MPI's error code
  };
  struct memory {
    std::vector<std::byte> in, out;
    std::vector<notice> sent, heard;
    std::vector<pending> waiting;
  };

  /// Checks the arguments of a collective. Returns its name for messages.
  template <class T> std::string begin(std::string const& name, std::int64_t n) {
    std::string const what = name + " of " + std::to_string(n) + " " + detail::name_of<T>();
    constexpr auto most = std::int64_t(std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T));
    if (n < 0 || n > most / size_)
      throw std::invalid_argument("comm::mpi: " + what + ": the count must be in [0, " + std::to_string(most / size_) +
                                  "]");
    if (failed_) throw comm_error("rank " + std::to_string(rank_) + " in " + what + ": " + failure_);
    return what;
  }
  template <class T> T const* received(int r, std::int64_t stride) const {
    return reinterpret_cast<T const*>(memory_->in.data()) + r * stride;
  }
  template <class T> static void copy(T* to, T const* from, std::int64_t n) {
    if (n && to != from) std::memcpy(static_cast<void*>(to), from, std::size_t(n) * sizeof(T));
  }

  /// Sends count(r) numbers, at most `room`, from data(r) to each rank r. What rank r sends arrives at
  /// received(r, stride), also this rank's own data if stride is not 0. The exchange with `last` ends the collective.
  template <class T, class Data, class Count>
  void exchange(std::string const& what, std::int64_t stride, std::int64_t room, Data const& data, Count const& count,
                bool last = true) {
    memory& m = *memory_;
    std::size_t const most = std::size_t(room) * sizeof(T), ranks = std::size_t(size_);
    bool const same = size_ > 1 && data(0) == data(1);  // all ranks get the same data
    auto const grow = [](auto& x, std::size_t n) { if (x.size() < n) x.resize(n); };
    grow(m.in, (std::size_t(stride) * (ranks - 1) + std::size_t(room)) * sizeof(T));
    grow(m.out, size_ == 1 ? 0 : same ? most : most * ranks);
    m.sent.resize(ranks);
    m.heard.resize(ranks);
    m.waiting.reserve(2 * ranks * (2 + (most + largest_ - 1) / largest_));  // no allocation fails after this line
    m.waiting.clear();
    if (!halfway_) ++number_;
    halfway_ = !last;
    auto const start = clock::now();
    auto const in = [&](int r) { return m.in.data() + std::size_t(r) * std::size_t(stride) * sizeof(T); };
    std::byte* out = m.out.data();
    for (int r = 0; r < size_; ++r) {
      auto const bytes = std::size_t(count(r)) * sizeof(T);
      if (r == rank_ && stride) copy(reinterpret_cast<T*>(in(r)), static_cast<T const*>(data(r)), count(r));
      if (r == rank_) continue;
      if (bytes && (!same || r == (rank_ == 0))) std::memcpy(out, data(r), bytes);
      m.sent[std::size_t(r)] = detail::make_notice(number_, what, std::int64_t(bytes));
      receive(&m.heard[std::size_t(r)], sizeof(notice), r, header_tag);
      send(&m.sent[std::size_t(r)], sizeof(notice), r, header_tag);
      each_piece(bytes, [&](auto at, auto n) { send(out + at, n, r, body_tag); });
      if (!same) out += most;
    }
    if (auto const why = wait(start, what, false, deadline_); !why.empty()) fail(why, what);
    for (int r = 0; r < size_; ++r)
      if (r != rank_) {
        notice const& h = m.heard[std::size_t(r)];
        if (h.number != number_ || what != h.text || h.bytes < 0 || h.bytes > std::int64_t(most))
          fail("ranks disagree about collective " + std::to_string(number_) + ": rank " + std::to_string(rank_) +
                   " is in " + what + ", rank " + std::to_string(r) + " in " + h.text,
               what);
        each_piece(std::size_t(h.bytes), [&](auto at, auto n) { receive(in(r) + at, n, r, body_tag); });
      }
    if (auto const why = wait(start, what, !last, deadline_); !why.empty()) fail(why, what);
    if (last) agree(start, what);
    m.waiting.clear();
  }

  /// All data is here. Waits until all ranks confirm the same; one that does not may still lack data.
  void agree(clock::time_point start, std::string const& what) {
    stage_ = stage::agreeing;
    for (int r = 0; r < size_; ++r)
      if (r != rank_) {
        receive(nullptr, 0, r, done_tag);
        send(nullptr, 0, r, done_tag);
      }
    std::string const why = wait(start, what, true, deadline_);
    if (!why.empty() && !failed_) {
      stage_ = stage::asking;
      tell(detail::make_notice(number_, why, notice::asks));
      wait(clock::now(), what, true, objections);
      give_up(why, number_ + 1);
    }
    stage_ = stage::collecting;
  }

  void receive(void* to, std::size_t bytes, int r, int tag) {
    auto& p = memory_->waiting.emplace_back(pending{MPI_REQUEST_NULL, r, true, MPI_SUCCESS});
    p.code = MPI_Irecv(to, int(bytes), MPI_BYTE, r, tag, comm_, &p.request);
  }
  void send(void const* from, std::size_t bytes, int r, int tag) {
    auto& p = memory_->waiting.emplace_back(pending{MPI_REQUEST_NULL, r, false, MPI_SUCCESS});
    p.code = MPI_Isend(from, int(bytes), MPI_BYTE, r, tag, comm_, &p.request);
  }
  template <class F> void each_piece(std::size_t bytes, F const& f) const {
    for (std::size_t at = 0; at < bytes; at += largest_) f(at, std::min(bytes - at, largest_));
  }

  /// Waits for all receives, and with `sends` for all sends. Returns an empty string, or why the wait ended early.
  std::string wait(clock::time_point start, std::string const& what, bool sends, std::chrono::nanoseconds longest) {
    for (int spins = 0;; ++spins) {
      bool all = true;
      for (pending& p : memory_->waiting) {
        int done = 1;
        if (p.code == MPI_SUCCESS && p.request != MPI_REQUEST_NULL)
          p.code = MPI_Test(&p.request, &done, MPI_STATUS_IGNORE);
        if (p.code != MPI_SUCCESS && stage_ != stage::asking)
          return broken(p) + ", after " + detail::seconds_of(clock::now() - start) + " s";
        all = all && p.code == MPI_SUCCESS && (done || (!p.receives && !sends));
      }
      if (all) return "";
      if (hear(what) && stage_ != stage::collecting) return failure_;
      if (auto const waited = clock::now() - start; waited > longest || asked_)
        return "rank " + std::to_string(rank_) + " waited " + detail::seconds_of(waited) + " s in collective " +
               std::to_string(number_) + ", " + what + " for rank " + late();
      detail::rest(spins);
    }
  }
  std::string broken(pending const& p) const {
    return "MPI reports an error between ranks " + std::to_string(rank_) + " and " + std::to_string(p.rank) +
           " in collective " + std::to_string(number_) + ": " + detail::mpi_text(p.code);
  }
  /// The ranks whose data is missing; if there are none, the ranks that do not receive ours.
  std::string late() const {
    std::string names;
    for (bool receives : {true, false}) {
      if (!names.empty()) break;
      for (int r = 0; r < size_; ++r)
        if (std::any_of(memory_->waiting.begin(), memory_->waiting.end(), [&](pending const& p) {
              return p.rank == r && p.receives == receives && p.request != MPI_REQUEST_NULL;
            }))
          names += (names.empty() ? "" : ", ") + std::to_string(r);
    }
    return names;
  }
  /// Reads notices. Throws if no rank completes this collective. True: a rank has completed it and then failed.
  bool hear(std::string const& what) {
    for (bool completed = false;;) {
      int there = 0;
      MPI_Status status;
      notice n;
      if (MPI_Iprobe(MPI_ANY_SOURCE, notice_tag, comm_, &there, &status) != MPI_SUCCESS || !there ||
          MPI_Recv(&n, int(sizeof n), MPI_BYTE, status.MPI_SOURCE, notice_tag, comm_, MPI_STATUS_IGNORE) !=
              MPI_SUCCESS) {
        if (ends_ <= number_ && !failed_) fail(leaver_, what);
        return completed;
      }
      if (n.bytes == notice::leaves) {
        ++left_;
        if (n.number < ends_) ends_ = n.number, leaver_ = n.text;
        continue;
      }
      if (n.bytes == notice::asks) {
        asked_ = asked_ || (n.number == number_ && stage_ == stage::collecting);
        continue;
      }
      failed_ = true;
      failure_ = n.text;
      if (n.number <= number_) throw comm_error("rank " + std::to_string(rank_) + " in " + what + ": " + failure_);
      completed = true;
    }
  }
  /// Announces that this rank leaves and waits up to a second for the others to do the same, so that no message is in
  /// flight when the communicator is freed. A rank that continues fails at its next collective and announces that.
  void leave() noexcept try {
    tell(detail::make_notice(number_ + 1, "rank " + std::to_string(rank_) + " has left after collective " +
                     std::to_string(number_), notice::leaves));
    auto const start = clock::now();
    for (int spins = 0; left_ + 1 < size_ && !failed_ && clock::now() - start <= goodbyes; ++spins) {
      hear("leaving");
      detail::rest(spins);
    }
  } catch (std::exception const&) {
    failed_ = true;
  }
  [[noreturn]] void fail(std::string const& why, std::string const& what) {
    give_up(why, number_);
    throw comm_error("rank " + std::to_string(rank_) + " in " + what + ": " + why);
  }
  /// Tells all ranks that this collective is not completed.
  void give_up(std::string const& why, std::int64_t number) noexcept {
    if (failed_) return;
    failed_ = true;
    try {
      failure_ = why;
    } catch (std::bad_alloc const&) {}
    tell(detail::make_notice(number, why, notice::gives_up));
  }
  void tell(notice const& x) noexcept {
    auto const* text = new (std::nothrow) notice(x);  // leaked: MPI may still send from it
    for (int r = 0; text && r < size_; ++r) {
      MPI_Request request = MPI_REQUEST_NULL;
      if (r != rank_ && MPI_Isend(text, int(sizeof *text), MPI_BYTE, r, notice_tag, comm_, &request) == MPI_SUCCESS)
        MPI_Request_free(&request);
    }
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::chrono::nanoseconds deadline_;
  std::size_t largest_;
  std::unique_ptr<memory> memory_;
  std::int64_t number_ = 0;  // of the collective that this rank is in or has completed
  stage stage_ = stage::collecting;
  bool halfway_ = false, asked_ = false, failed_ = false;
  int left_ = 0;  // ranks that have left; then the first collective without one of them, and its message
  std::int64_t ends_ = std::numeric_limits<std::int64_t>::max();
  std::string leaver_;
  std::string failure_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace descent::comm
