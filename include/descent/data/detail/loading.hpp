// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/batch.hpp>
#include <descent/data/batches.hpp>
#include <descent/data/loader_options.hpp>
#include <descent/data/order.hpp>
#include <descent/data/source.hpp>
#include <descent/data/detail/host_slots.hpp>
#include <descent/data/detail/meeting.hpp>
#include <descent/data/detail/position.hpp>
#include <descent/core/detail/floating_point_mode.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// What a loader does for one batch: open it, fill pieces of it, finish it. Nothing here waits for another thread.
namespace descent::detail {

/// What went wrong with a batch, at the first row where something did.
struct failure {
  std::exception_ptr error;
  std::int64_t row = -1, record = -1;
  int worker = -1;
};

/// A batch on its way. One thread has it while it is opened and finished; pieces are filled by several.
template <class Fields, class Places> struct slot {
  batch_data<Fields> data{};
  std::shared_ptr<Places const> places{};
  batch_slice slice{};
  std::vector<char> skipped{};  // per row; only if rows may be left out
  int pieces = 0, handed_out = 0, left = 0;
  bool ready = false;
  std::optional<failure> failed{};
};

/// Reads the records of batches.
template <class S, class O, class Slots> class filler {
 public:
  using fields_type = fields_of<S>;
  using places_type = decltype(std::declval<O const&>().epoch(0, 0));
  using slot_type = slot<fields_type, places_type>;

  filler(S from, batches cut, O order, workers const& w, rank_slice const& mine)
      : source_(std::move(from)), order_(std::move(order)), cut_(cut), workers_(w), mine_(mine),
        layout_(source_.fields(), most_records()) {}

  S const& source() const { return source_; }
  batch_layout<fields_type> const& layout() const { return layout_; }
  batches const& cut() const { return cut_; }

  /// The places of an epoch. Those of the last two are kept.
  std::shared_ptr<places_type const> places(std::int64_t epoch) {
    floating_point_scope const standard;
    std::lock_guard const lock(mutex_);
    for (auto const& [e, p] : kept_)
      if (e == epoch) return p;
    auto made = std::make_shared<places_type const>(order_.epoch(source_.size(), epoch));
    kept_[oldest_] = {epoch, made};
    oldest_ = 1 - oldest_;
    return made;
  }

  /// Throws std::invalid_argument if the first epoch has no batches: a program would train on nothing, without a word.
  void require_batches() {
    std::int64_t places_of_first = 0;
    try {
      places_of_first = places(0)->size();
      if (cut_.count(places_of_first) > 0) return;
    } catch (...) {
      return;  // what an order throws comes with the batch
    }
    bool const dropped = cut_.last == last_batch::drop && places_of_first > 0;
    refuse("loader", "the number of records in the first epoch",
           dropped ? ("at least " + std::to_string(cut_.size) + ", the size of a batch, with last_batch::drop").c_str()
                   : "at least 1",
           places_of_first);
  }

  /// Prepares a batch. False if the epoch has none.
  bool open(slot_type& s, loader_position at, Slots& memory, std::size_t number) {
    s.failed.reset();
    s.ready = false;
    s.data.epoch = at.epoch, s.data.index = at.batch;
    s.data.size = 0, s.slice = {}, s.pieces = s.handed_out = s.left = 0;
    try {
      s.places = places(at.epoch);
      std::int64_t const n = s.places->size(), all = cut_.count(n);
      if (all == 0) return false;
      s.slice = cut_.slice(at.batch, n, mine_.rank, mine_.ranks);
      s.data.global_size = cut_.slice(at.batch, n).count;
      s.data.is_last = at.batch + 1 == all;
      s.data.layout = &layout_;
      s.data.block = memory.read(number);
      s.data.records.resize(std::size_t(s.slice.count));
      if (workers_.on_error == on_error::skip) s.skipped.assign(std::size_t(s.slice.count), 0);
      s.pieces = int(std::min<std::int64_t>(s.slice.count, std::max(workers_.threads, 1)));
      s.left = s.pieces;
      memory.before_writing(number);
    } catch (...) {
      s.pieces = s.left = 0;
      s.failed = failure{std::current_exception()};
      s.data.is_last = false;
    }
    return true;
  }

  /// Reads one piece of the records, and calls status(record) before each. Returns what went wrong. The floating-point
  /// mode is the standard one: threads have others than the caller, and may be ahead of it.
  template <class Status>
  std::optional<failure> fill(slot_type& s, int piece, std::byte* block, int worker, Status const& status) const {
    floating_point_scope const standard;
    std::int64_t const n = s.slice.count, end = part(n, piece + 1, s.pieces);
    std::int64_t const first = part(n, piece, s.pieces);
    std::int64_t k = first;
    try {
      for (; k < end; ++k) {
        std::int64_t const place = s.slice.place(k, s.places->size());
        s.data.records[std::size_t(k)] = checked((*s.places)[place], place);
      }
    } catch (...) {
      return failure{std::current_exception(), k, -1, worker};
    }
    k = first;
    while (k < end) {
      std::int64_t const i = s.data.records[std::size_t(k)];
      status(i);
      if constexpr (reads_runs<S>) {
        std::int64_t run = 1;
        while (k + run < end && s.data.records[std::size_t(k + run)] == i + run) ++run;
        try {
          source_.read_run(i, run, layout_.row(block, k));
          k += run;
          continue;
        } catch (...) {}  // the records one by one tell which one it is
      }
      auto const row = layout_.row(block, k);
      for (auto* const length : row.lengths())
        if (length) *length = 0;
      try {
        record_random random(workers_.seed, s.data.epoch, s.slice.place(k, s.places->size()));
        source_.read(i, row, random);
      } catch (source_ended const&) {
        return failure{std::current_exception(), k, i, worker};
      } catch (...) {
        if (workers_.on_error == on_error::stop) return failure{std::current_exception(), k, i, worker};
        s.skipped[std::size_t(k)] = 1;
      }
      ++k;
    }
    return {};
  }

  /// Closes gaps, pads ragged fields, and hands the memory over.
  void finish(slot_type& s, Slots& memory, std::size_t number) const {
    std::byte* const block = memory.written(number);
    std::int64_t size = s.slice.count;
    if (workers_.on_error == on_error::skip) {
      size = 0;
      for (std::int64_t k = 0; k < s.slice.count; ++k) {
        if (s.skipped[std::size_t(k)]) continue;
        if (size != k) {
          layout_.move_row(block, k, size);
          s.data.records[std::size_t(size)] = s.data.records[std::size_t(k)];
        }
        ++size;
      }
      s.data.records.resize(std::size_t(size));
    }
    s.data.size = size;
    s.data.width = layout_.pad(block, size);
    std::array<used_bytes, 2 * fields_type::count> used;
    memory.after_writing(number, std::span(used).first(layout_.used(used, size, s.data.width)));
  }

  std::uint64_t fingerprint(std::int64_t epoch) {
    return detail::fingerprint(source_.size(), source_.fields(), cut_, workers_.seed, *places(epoch));
  }
  /// What ranks compare.
  std::vector<std::string> facts() const { return facts_of_data(source_, cut_, order_, workers_.seed); }

 private:
  /// The greatest part of a rank in any batch. Throws std::invalid_argument for what cannot be.
  std::int64_t most_records() const {
    cut_.slice(0, cut_.last == last_batch::drop ? cut_.size : 1, mine_.rank, mine_.ranks);  // checks
    std::int64_t const most = cut_.size / mine_.ranks + (cut_.size % mine_.ranks != 0), each = source_.fields().bytes();
    require(most <= (std::int64_t{1} << 46) / std::max<std::int64_t>(each, 1), "loader", "the size of a batch",
            ("at most 2^46 bytes, with " + std::to_string(each) + " bytes per record").c_str(), most);
    return most;
  }
  static std::int64_t part(std::int64_t n, int piece, int pieces) {
    return n / pieces * piece + n % pieces * piece / pieces;
  }
  std::int64_t checked(std::int64_t record, std::int64_t place) const {
    if (record < 0 || record >= source_.size())
      throw std::out_of_range("the order has record " + std::to_string(record) + " at place " + std::to_string(place) +
                              ", must be in [0, " + std::to_string(source_.size()) + ")");
    return record;
  }

  S source_;
  O order_;
  batches cut_;
  workers workers_;
  rank_slice mine_;
  batch_layout<fields_type> layout_;
  std::mutex mutex_;  // of what follows
  std::array<std::pair<std::int64_t, std::shared_ptr<places_type const>>, 2> kept_{{{-1, {}}, {-1, {}}}};
  std::size_t oldest_ = 0;
};

}  // namespace descent::detail
