// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/detail/loading.hpp>
#include <descent/core/detail/seconds.hpp>
#include <descent/core/detail/home_process.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace descent::detail {

/// A ring of slots that workers fill and the user's thread empties. Batches have numbers since the last restart():
///
///     delivered_ <= filling_ <= opened_       delivered_ - held_ + slots > opened_
///
/// Batch q is in slot q mod slots. It is opened, its pieces are handed out in order, and it is ready when the last of
/// them is filled. The user holds batch delivered_ - 1 until the next call.
template <class S, class O, class Slots> class loader_core {
  using filler_type = filler<S, O, Slots>;
  using slot_type = typename filler_type::slot_type;
  using clock = std::chrono::steady_clock;

 public:
  template <class Backend>
  loader_core(S from, batches cut, O order, workers const& w, rank_slice const& mine, Backend const& backend)
      : workers_((w.check(), w)), fill_(std::move(from), cut, std::move(order), w, mine), slots_(slots_of(w)),
        memory_(slots_.size(), fill_.layout().bytes, backend), readers_(std::size_t(w.threads)) {
    require_records("loader", fill_.source().size(), 0);
  }
  ~loader_core() {
    {
      std::lock_guard const lock(mutex_);
      stop_ = true;
    }
    work_.notify_all();
    for (auto& t : threads_) t.join();
  }
  /// Starts the workers. Not in the constructor, so that the destructor joins those that did start.
  void start() {
    for (int w = 0; w < workers_.threads; ++w) threads_.emplace_back([this, w] { work(w); });
  }

  /// Whether the workers are threads of this process. If not, it may not wait for them, nor end the core.
  bool is_of_this_process() const { return threads_.empty() || home_.is_here(); }

  filler_type& fill() {
    require_this_process();
    return fill_;
  }
  loader_position position() const { return position_; }

  /// Delivers the next batch, if it is of this epoch, or of any if epoch is -1. Null if there is none.
  batch_data<fields_of<S>> const* next(std::int64_t epoch) {
    require_this_process();
    let_go();
    if (epoch >= 0 && position_.epoch != epoch) return nullptr;
    auto const began = clock::now();
    if (report_.batches == 0) first_ = began;
    if (threads_.empty() && opened_ == delivered_) make_one();
    std::unique_lock lock(mutex_);
    if (std::exchange(paused_, false)) work_.notify_all();
    std::int64_t ready = 0;
    if (!threads_.empty())
      while (delivered_ + ready < opened_ && at(delivered_ + ready).ready) ++ready;
    wait_for_batch(lock);
    if (opened_ == delivered_) return nullptr;  // the epoch has no batches
    slot_type& s = at(delivered_);
    if (s.failed) {
      failure const failed = std::move(*s.failed);
      s.failed.reset();
      lock.unlock();
      restart(position_, true);
      rethrow(failed);
    }
    lock.unlock();
    memory_.before_reading(number(delivered_));
    lock.lock();
    ++delivered_;
    held_ = true;
    lock.unlock();
    report_.ready += double(ready);
    count(s, clock::now() - began);
    position_ = s.data.is_last ? loader_position{s.data.epoch + 1, 0} : loader_position{s.data.epoch, s.data.index + 1};
    return &s.data;
  }

  /// Makes `to` the next batch. Waits for the pieces that workers read at the moment. The batch held ends. `paused`:
  /// nothing is read before the next batch is asked for.
  void restart(loader_position to, bool paused = false) {
    require_this_process();
    let_go();
    std::unique_lock lock(mutex_);
    paused_ = true;
    done_.wait(lock, [&] { return busy_ == 0; });
    delivered_ = filling_ = opened_ = 0;
    held_ = no_more_ = false;
    position_ = next_to_open_ = to;
    paused_ = paused;
    lock.unlock();
    work_.notify_all();
  }

  loader_report report() const {
    require_this_process();
    std::lock_guard const lock(mutex_);
    loader_report r = report_;
    r.threads = workers_.threads;
    r.filled = std::chrono::duration<double>(filled_).count();
    r.copied = memory_.copy_seconds();
    if (r.batches > 0)
      r.ready /= double(r.batches), r.seconds = std::chrono::duration<double>(clock::now() - first_).count();
    return r;
  }

 private:
  /// What a worker reads at the moment.
  struct reader {
    std::atomic<std::int64_t> record{-1};
    std::atomic<std::int64_t> since{0};  // in nanoseconds of the deadline's clock
  };

  static std::vector<slot_type> slots_of(workers const& w) {
    int const ahead = w.ahead >= 0 ? w.ahead : w.threads > 0 ? 2 : 0;
    return std::vector<slot_type>(std::size_t(ahead) + (w.threads > 0 || Slots::on_device ? 2 : 1));
  }
  std::size_t number(std::int64_t q) const { return std::size_t(q) % slots_.size(); }
  slot_type& at(std::int64_t q) { return slots_[number(q)]; }
  bool has_room() const { return opened_ - delivered_ + held_ < std::int64_t(slots_.size()); }

  void require_this_process() const {
    if (!is_of_this_process())
      throw std::logic_error("loader: process " + std::to_string(::getpid()) +
                             " cannot use it: its workers are threads of process " + std::to_string(home_.id()) +
                             ", from which fork() made this one; make a loader here");
  }

  /// The user is done with the batch held.
  void let_go() {
    if (!held_) return;
    memory_.after_reading(number(delivered_ - 1));
    {
      std::lock_guard const lock(mutex_);
      held_ = false;
    }
    work_.notify_one();
  }

  /// Opens the next batch, after opened_ was checked. False if there is none.
  bool open_next() {
    loader_position const to = next_to_open_;
    slot_type& s = at(opened_);
    return fill_.open(s, to, memory_, number(opened_));
  }
  void opened(bool there) {
    if (!there) {
      no_more_ = true;
      return;
    }
    slot_type& s = at(opened_++);
    next_to_open_ =
        s.data.is_last ? loader_position{s.data.epoch + 1, 0} : loader_position{s.data.epoch, s.data.index + 1};
    no_more_ = s.failed.has_value();  // where it goes on is not known
  }

  void make_one() {
    auto const began = clock::now();
    opened(open_next());
    filling_ = opened_;
    if (opened_ == delivered_) return;
    slot_type& s = at(delivered_);
    auto const no_status = [](std::int64_t) {};
    for (int p = 0; p < s.pieces && !s.failed; ++p)
      s.failed = fill_.fill(s, p, memory_.written(number(delivered_)), -1, no_status);
    std::unique_lock lock(mutex_);
    finish(lock, delivered_);
    filled_ += clock::now() - began;
  }
  /// The last thing that happens to a batch before it is ready.
  void finish(std::unique_lock<std::mutex>& lock, std::int64_t q) {
    slot_type& s = at(q);
    lock.unlock();
    try {
      if (!s.failed) fill_.finish(s, memory_, number(q));
    } catch (...) {
      s.failed = failure{std::current_exception()};
    }
    lock.lock();
    s.ready = true;
  }

  void work(int w) {
    try {
      memory_.enter_thread();
    } catch (...) {}  // the first use of the memory says it again
    std::unique_lock lock(mutex_);
    while (!stop_) {
      if (paused_) work_.wait(lock);
      else if (filling_ < opened_) fill_piece(lock, w);
      else if (!opening_ && !no_more_ && has_room()) open_one(lock);
      else work_.wait(lock);
    }
  }
  void open_one(std::unique_lock<std::mutex>& lock) {
    opening_ = true;
    ++busy_;
    lock.unlock();
    bool const there = open_next();
    lock.lock();
    opening_ = false;
    opened(there);
    if (std::int64_t const q = opened_ - 1; there && at(q).pieces == 0) {
      if (filling_ == q) ++filling_;
      finish(lock, q);
    }
    end_of_work();
  }
  void fill_piece(std::unique_lock<std::mutex>& lock, int w) {
    std::int64_t const q = filling_;
    slot_type& s = at(q);
    if (s.handed_out == s.pieces) {
      ++filling_;
      return;
    }
    int const piece = s.handed_out++;
    if (s.handed_out == s.pieces) ++filling_;
    ++busy_;
    lock.unlock();
    auto const began = clock::now();
    reader& me = readers_[std::size_t(w)];
    bool const timed = workers_.deadline.count() > 0;
    auto failed = fill_.fill(s, piece, memory_.written(number(q)), w, [&](std::int64_t record) {
      if (!timed) return;
      me.since.store(deadline_clock::now().time_since_epoch().count(), std::memory_order_relaxed);
      me.record.store(record, std::memory_order_relaxed);
    });
    me.record.store(-1, std::memory_order_relaxed);
    auto const took = clock::now() - began;
    lock.lock();
    filled_ += took;
    if (failed && (!s.failed || failed->row < s.failed->row)) s.failed = std::move(failed);
    if (--s.left == 0) finish(lock, q);
    end_of_work();
  }
  void end_of_work() {
    --busy_;
    done_.notify_all();
    work_.notify_all();
  }

  void wait_for_batch(std::unique_lock<std::mutex>& lock) {
    auto const there = [&] {
      return delivered_ < opened_ ? at(delivered_).ready : threads_.empty() || (no_more_ && !opening_);
    };
    if (workers_.deadline.count() == 0) return done_.wait(lock, there);
    auto const until = deadline_clock::now() + cut_wait(workers_.deadline);
    while (!there()) {
      if (deadline_clock::now() >= until) late();
      done_.wait_for(lock, std::chrono::milliseconds(10));
    }
  }
  [[noreturn]] void late() {
    std::int64_t record = -1, since = 0;
    int worker = -1;
    for (std::size_t w = 0; w < readers_.size(); ++w) {
      std::int64_t const r = readers_[w].record.load(std::memory_order_relaxed),
                         t = readers_[w].since.load(std::memory_order_relaxed);
      if (r >= 0 && (worker < 0 || t < since)) record = r, since = t, worker = int(w);
    }
    auto const took = deadline_clock::now().time_since_epoch().count() - since;
    std::string text = where() + " is not ready after " + seconds_of(workers_.deadline) + " s";
    if (worker >= 0)
      text += ": worker " + std::to_string(worker) + " has been reading record " + std::to_string(record) + " for " +
              seconds_of(std::chrono::nanoseconds(took)) + " s";
    throw loader_error(text, position_.epoch, position_.batch, record, worker);
  }
  std::string where() const {
    return "loader: batch " + std::to_string(position_.batch) + " of epoch " + std::to_string(position_.epoch);
  }
  [[noreturn]] void rethrow(failure const& f) const {
    std::string text = where() + ": ";
    if (f.record >= 0) text += "record " + std::to_string(f.record);
    if (f.record >= 0 && f.worker >= 0) text += ", read by worker " + std::to_string(f.worker);
    if (f.record >= 0) text += ": ";
    try {
      std::rethrow_exception(f.error);
    } catch (std::exception const& e) {
      std::throw_with_nested(loader_error(text + e.what(), position_.epoch, position_.batch, f.record, f.worker));
    } catch (...) {
      std::throw_with_nested(loader_error(text + "an exception other than std::exception", position_.epoch,
                                          position_.batch, f.record, f.worker));
    }
  }
  void count(slot_type const& s, clock::duration waited) {
    ++report_.batches;
    report_.records += s.data.size;
    report_.skipped += s.slice.count - s.data.size;
    report_.waited += std::chrono::duration<double>(waited).count();
    std::array<used_bytes, 2 * fields_of<S>::count> used;
    std::size_t const n = fill_.layout().used(used, s.data.size, s.data.width);
    for (std::size_t i = 0; i < n; ++i) report_.bytes += std::int64_t(used[i].size);
  }

  home_process home_;
  workers workers_;
  filler_type fill_;
  std::vector<slot_type> slots_;
  Slots memory_;
  std::vector<reader> readers_;
  std::vector<std::thread> threads_;

  // of the user's thread
  loader_position position_{};
  clock::time_point first_{};
  loader_report report_{};

  mutable std::mutex mutex_;  // of what follows, and of the state of slots
  std::condition_variable work_, done_;
  std::int64_t delivered_ = 0, filling_ = 0, opened_ = 0;
  int busy_ = 0;
  bool held_ = false, opening_ = false, no_more_ = false, paused_ = false, stop_ = false;
  loader_position next_to_open_{};
  clock::duration filled_{};
};

}  // namespace descent::detail
