// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/comm/detail/complaints.hpp>
#include <descent/comm/detail/handshake.hpp>
#include <descent/comm/detail/heartbeat_line.hpp>
#include <descent/comm/detail/rank_status.hpp>
#include <descent/comm/detail/socket.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <poll.h>
#include <span>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace descent::detail {

/// Each rank reports its position to rank 0 over its own connection (a line). Rank 0 sends all ranks the verdict, the
/// reason why they cannot go on. Thread-safe. Only reach_rank_0(), fail(), ask() and leave() wait.
class heartbeats {
  using clock = deadline_clock;

 public:
  /// Heartbeats are sent every second, or every deadline / 10 if shorter; all ranks together send at most 1000/s.
  heartbeats(int rank, int size, std::chrono::nanoseconds deadline)
      : rank_(rank), pause_(std::chrono::milliseconds(size)),
        interval_(std::max(pause_, std::min<std::chrono::nanoseconds>(deadline / 10, std::chrono::seconds(1)))),
        me_{{}, rank, size}, lines_(std::size_t(rank == 0 ? size : 1)),
        ranks_seen_{std::vector<rank_record>(lines_.size()), 3 * interval_}, complaints_(int(lines_.size())) {}

  /// Rank 0: starts to listen and returns what the other ranks need to connect.
  endpoint listen() {
    std::lock_guard const lock(mutex_);
    endpoint c;
    listener_ = listen_everywhere(std::max(me_.size, 128), why_no_line_);
    if (!listener_) return c;
    c.port = std::uint16_t(port_of(listener_));
    for (auto* key : {&c.asks, &c.answers}) *key = {random_number(), random_number()};
    list_addresses(c);
    return contact_ = c;
  }
  /// Other ranks: reach_rank_0() is about to be called.
  void expect_line() {
    std::lock_guard const lock(mutex_);
    reaching_ = true;
  }
  template <class Stopped> void reach_rank_0(endpoint const& c, time_limit limit, Stopped const& stopped) {
    introduction me = me_;
    me.asks = c.asks;
    std::string why = "rank 0 is not listening";
    descriptor s = c.port ? reach(c, me, limit, stopped, why) : descriptor();
    std::lock_guard const lock(mutex_);
    reaching_ = false;
    if (!s) {
      why_no_line_ = "no connection to rank 0: " + why;
      return;
    }
    lines_[0] = heartbeat_line(std::move(s));
    ranks_seen_[0].is = rank_state::here;
    ranks_seen_[0].heard = clock::now();
    changed_ = true;
    tell_position();
  }
  /// Rank 0: whether some ranks have not connected yet.
  bool expects_ranks() const {
    std::lock_guard const lock(mutex_);
    return bool(listener_) && came_ + 1 < lines_.size();
  }

  void set(rank_position const& p) {
    std::lock_guard const lock(mutex_);
    changed_ = changed_ || p != position_;
    position_ = p;
  }
  /// Sends and receives what is pending.
  void tick() {
    std::lock_guard const lock(mutex_);
    if (rank_ == 0) serve(), find_verdict();
    else hear_rank_0();
    auto const now = clock::now();
    if (now - told_at_ < (changed_ && rank_ != 0 ? pause_ : interval_)) return;
    tell_position();
  }
  /// Reports that this rank cannot go on, for a reason of its own.
  void fail(std::string const& why) {
    await_line(time_limit(std::chrono::seconds(1)));
    std::lock_guard const lock(mutex_);
    std::string const me = name(rank_);
    std::string const text = why.starts_with(me + " ") || why.starts_with(me + ":") ? why : me + " ended: " + why;
    if (rank_ == 0) conclude(text);
    else if (verdict_.empty()) say(heartbeat::failed, text);
  }
  /// Reports that this rank cannot go on because of others: they are late (heartbeat::late), NCCL reports an error
  /// (heartbeat::hurt), or the device has met them in other calls (heartbeat::differs; `facts` are what it compares).
  /// `doing` and `more` say what it was doing. Returns the message, with what rank 0 knows.
  std::string ask(heartbeat::kinds kind, std::string const& doing, std::string const& more,
                  std::chrono::nanoseconds most, std::vector<std::string> const& facts = {}) {
    std::string const text = name(rank_) + " " + doing + more;
    time_limit limit(most);
    await_line(limit);
    if (kind != heartbeat::differs) {
      complain(kind, text);
    } else if (!compared_.exchange(true)) {
      for (auto const& fact : facts) complain(kind, fact);
      complain(kind, "");
    }
    for (; may_hear() && !limit.passed(); limit.pause()) tick();
    std::lock_guard const lock(mutex_);
    if (!verdict_.empty()) return with_verdict(doing);
    return kind == heartbeat::late ? text + unknown() : text;
  }
  /// What this rank knows about the other ranks.
  rank_status knows() const { return std::lock_guard(mutex_), ranks_seen_; }
  /// Why all ranks end, or empty.
  std::string verdict() const {
    std::lock_guard const lock(mutex_);
    return verdict_;
  }
  /// The verdict as the message of a rank that was doing this when it arrived.
  std::string verdict_for(std::string const& doing) const {
    std::lock_guard const lock(mutex_);
    return with_verdict(doing);
  }
  /// Leaves without an error. Rank 0 waits up to a second to tell late ranks why the job failed.
  void leave() {
    tick();
    for (time_limit limit(std::chrono::seconds(1)); expects_ranks() && !verdict().empty() && !limit.passed();
         limit.pause())
      tick();
    std::lock_guard const lock(mutex_);
    say(heartbeat::goodbye, "");
    for (guest& g : guests_) g.line.say(beat_of(heartbeat::goodbye), "");
    for (heartbeat_line& l : lines_) l = heartbeat_line();
    for (rank_record& r : ranks_seen_.ranks) r.is = r.is == rank_state::here ? rank_state::left : r.is;
    guests_.clear();
    listener_ = descriptor();
    why_no_line_ = "this rank has left";
  }

 private:
  /// A connection to rank 0.
  struct guest {
    descriptor socket;
    clock::time_point since = clock::now();
    introduction said{};
    std::size_t have = 0;
    heartbeat_line line{};  // once the introduction was valid
  };

  static std::string name(int r) { return "rank " + std::to_string(r); }
  heartbeat beat_of(heartbeat::kinds kind) const {
    return {kind, 0, position_.collective, position_.begun, position_.ended};
  }

  void say(heartbeat::kinds kind, std::string const& text) {
    for (heartbeat_line& l : lines_) l.say(beat_of(kind), text);
  }
  void tell_position() {
    told_at_ = clock::now();
    for (heartbeat_line& l : lines_) {
      l.flush();
      if (!l.sends_all()) continue;
      l.say(beat_of(heartbeat::alive), std::exchange(changed_, false) && rank_ != 0 ? position_.where : "");
    }
  }
  void await_line(time_limit limit) const {
    auto const reaching = [&] {
      std::lock_guard const lock(mutex_);
      return reaching_;
    };
    for (; reaching() && !limit.passed(); limit.pause()) {}
  }
  void complain(heartbeat::kinds kind, std::string const& text) {
    std::lock_guard const lock(mutex_);
    if (rank_ == 0) complaints_.add(0, kind, text);
    else say(kind, text);
  }
  bool may_hear() const {
    std::lock_guard const lock(mutex_);
    return verdict_.empty() && (rank_ == 0 || ranks_seen_[0].is == rank_state::here);
  }

  // ---- other ranks

  void hear_rank_0() {
    rank_record& zero = ranks_seen_[0];
    heartbeat b;
    std::string text;
    for (;;) {
      auto const got = lines_[0].read(b, text);
      if (got == heartbeat_line::reads::nothing) return;
      if (got == heartbeat_line::reads::nonsense) zero.is = rank_state::unknown, why_no_line_ = "rank 0 sent garbage";
      if (got == heartbeat_line::reads::end && zero.is == rank_state::here) {
        zero.is = rank_state::gone;
        if (verdict_.empty()) verdict_ = "rank 0 is gone";
      }
      if (got != heartbeat_line::reads::message) return;
      zero.heard = clock::now();
      if (b.kind == heartbeat::verdict && verdict_.empty()) verdict_ = text;
      if (b.kind == heartbeat::goodbye) zero.is = rank_state::left, why_no_line_ = "rank 0 has left";
    }
  }
  std::string with_verdict(std::string const& doing) const {
    std::string const mine = name(rank_) + " " + doing;
    return verdict_.starts_with(mine) ? verdict_ : mine + ": " + verdict_;
  }
  /// For whom this rank waits, if it has not received a verdict.
  std::string unknown() const {
    if (rank_ != 0 && ranks_seen_.is_silent(ranks_seen_[0])) return " for rank 0; " + ranks_seen_.state_of(0);
    return " for other ranks; which ones is unknown: " + (why_no_line_.empty() ? "rank 0 did not say" : why_no_line_);
  }

  // ---- rank 0

  void serve() {
    std::vector<pollfd> fds{{listener_.get(), POLLIN, 0}};  // only open ones: poll() counts empty entries, too
    for (guest const& g : guests_) fds.push_back({g.line ? g.line.get() : g.socket.get(), POLLIN, 0});
    std::vector<int> who;
    for (int r = 1; r < me_.size; ++r)
      if (heartbeat_line const& l = lines_[std::size_t(r)]) {
        fds.push_back({l.get(), POLLIN, 0});
        who.push_back(r);
      }
    if (::poll(fds.data(), nfds_t(fds.size()), 0) > 0) {
      for (std::size_t i = 0; i < who.size(); ++i)
        if (fds[1 + guests_.size() + i].revents) hear(who[i]);
      for (std::size_t i = guests_.size(); i-- > 0;)
        if (fds[1 + i].revents && !hear_guest(guests_[i])) forget(i);
      if (fds[0].revents) welcome();
    }
    for (std::size_t i = guests_.size(); i-- > 0;)
      if (clock::now() - guests_[i].since > std::chrono::seconds(10)) forget(i);
  }
  void forget(std::size_t i) { guests_.erase(guests_.begin() + std::ptrdiff_t(i)); }

  void welcome() {
    for (;;) {
      guest g;
      std::string from;
      if (accept_from(listener_, g.socket, from)) {
        guests_.push_back(std::move(g));
        continue;
      }
      bool const full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (full && !std::exchange(is_full_, true))
        std::fprintf(stderr, "descent: rank 0 cannot accept another connection, has %zu: %s (ulimit -n)\n", came_,
                     system_message(errno).c_str());
      return;
    }
  }
  /// False: drop the guest. A rank counts as present after its first message, because it may try several addresses.
  bool hear_guest(guest& g) {
    if (!g.line) {
      auto const room = std::as_writable_bytes(std::span(&g.said, 1)).subspan(g.have);
      std::ptrdiff_t const n = receive_some(g.socket, room);
      if (n <= 0) return n < 0;
      g.have += std::size_t(n);
      if (g.have < sizeof g.said) return true;
      auto const& key = contact_.answers;
      if (!same_key(g.said.asks, contact_.asks) || g.said.size != me_.size || g.said.rank < 1 ||
          g.said.rank >= me_.size || ::send(g.socket.get(), &key, sizeof key, MSG_NOSIGNAL) != ssize_t(sizeof key))
        return false;
      g.line = heartbeat_line(std::move(g.socket));
      return true;
    }
    heartbeat b;
    std::string text;
    auto const got = g.line.read(b, text);
    if (got == heartbeat_line::reads::nothing) return true;
    rank_record& r = ranks_seen_[g.said.rank];
    if (got != heartbeat_line::reads::message || r.is != rank_state::absent) return false;
    r.is = rank_state::here;
    ++came_;
    take(g.said.rank, b, text);
    heartbeat_line& l = lines_[std::size_t(g.said.rank)] = std::move(g.line);
    l.say(beat_of(verdict_.empty() ? heartbeat::alive : heartbeat::verdict), verdict_);
    hear(g.said.rank);
    return false;
  }
  void hear(int rank) {
    rank_record& r = ranks_seen_[rank];
    heartbeat b;
    std::string text;
    for (;;) {
      auto const got = lines_[std::size_t(rank)].read(b, text);
      if (got == heartbeat_line::reads::nonsense) r.is = rank_state::unknown;
      if (got == heartbeat_line::reads::end && r.is == rank_state::here) {
        r.is = rank_state::gone;
        complaints_.add_gone();
      }
      if (got != heartbeat_line::reads::message) return;
      take(rank, b, text);
    }
  }
  void take(int rank, heartbeat const& b, std::string const& text) {
    rank_record& r = ranks_seen_[rank];
    r.heard = clock::now();
    r.at.collective = b.collective, r.at.begun = b.begun, r.at.ended = b.ended;
    if (b.kind == heartbeat::alive && !text.empty()) r.at.where = text;
    if (b.kind == heartbeat::failed) conclude(text);
    if (b.kind >= heartbeat::late && b.kind <= heartbeat::differs)
      complaints_.add(rank, heartbeat::kinds(b.kind), text);
    if (b.kind == heartbeat::goodbye) r.is = rank_state::left;
  }
  void find_verdict() {
    if (!verdict_.empty()) return;
    ranks_seen_[0] = {rank_state::here, clock::now(), position_};
    if (std::string const text = complaints_.verdict(ranks_seen_); !text.empty()) conclude(text);
  }
  /// Keeps the first reason.
  void conclude(std::string const& text) {
    if (!verdict_.empty()) return;
    verdict_ = text;
    say(heartbeat::verdict, text);
  }

  int rank_;
  std::chrono::nanoseconds pause_, interval_;
  introduction me_;
  std::vector<heartbeat_line> lines_;  // rank 0: one for each rank, its own empty; others: the one to rank 0
  bool reaching_ = false;              // reach_rank_0() has not returned yet
  rank_status ranks_seen_;                     // with the same indices as lines_
  endpoint contact_{};
  descriptor listener_;
  std::vector<guest> guests_;
  std::size_t came_ = 0;
  bool is_full_ = false;
  rank_position position_{0, 0, 0, "joining"};
  bool changed_ = true;
  clock::time_point told_at_{};
  std::string verdict_, why_no_line_;
  complaints complaints_;  // of ranks, to rank 0
  std::atomic<bool> compared_ = false;
  mutable std::mutex mutex_;
};

}  // namespace descent::detail
