// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/host.hpp>
#include <descent/core/communicator.hpp>
#include <descent/core/error.hpp>
#include <descent/data/batch.hpp>
#include <descent/data/batches.hpp>
#include <descent/data/loader.hpp>
#include <descent/data/loader_options.hpp>
#include <descent/data/order.hpp>
#include <descent/data/source.hpp>
#include <descent/data/detail/gather.hpp>
#include <descent/data/detail/meeting.hpp>
#include <descent/data/detail/position.hpp>
#include <descent/core/detail/floating_point_mode.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace descent {

/// An order whose places can be computed on a device: `sequential` and `shuffled`.
template <class O> concept resident_order = record_order<O> && requires(O const order, std::int64_t n) {
  { order.at(n, n) } -> epoch_places;
};

/// Batches of data that fit into memory. All records are read once, at construction; then each batch is gathered from
/// that memory. With cuda{stream} (resident.cuh) it is device memory, and next() enqueues one kernel, which takes the
/// number of the batch from a counter in device memory. Each replay of a captured graph therefore makes the next batch
/// without any work of the host, and the steps of an epoch can be one graph.
///
///     resident data{source, batches{.size = 64, .last = last_batch::drop}, shuffled{.seed = 1}, cuda{stream}};
///     auto const batch = data.next();      // the same memory each time, overwritten in the order of the stream
///
/// Batches are those of `loader` with the same arguments; records have the random numbers of epoch 0 and their own
/// number as the place. All batches of an epoch have the same size: `last` is drop or pad, or the size divides the
/// number of records. A rank_slice or a communicator may come with the backend; ranks of a communicator compare what
/// those of a loader do. One thread at a time may call the functions.
template <source S, resident_order O, class Backend = host<>> class resident {
  using fields_type = fields_of<S>;
  using gathering = detail::gathering<O, fields_type::count>;

 public:
  using batch_type = batch<fields_type>;  ///< what is delivered

  /// Reads all records. Throws std::invalid_argument if a setting is out of range, and loader_error with the number of
  /// the record if the source throws. Ranks of a communicator then compare their data, like those of a loader.
  template <class... More>
  resident(S const& from, batches cut, O order, More&&... more) try
      : cut_(cut), order_(order), fields_(from.fields()), count_(from.size()),
        memory_(detail::backend_of<Backend>(more...)), all_(fields_, count_), one_(fields_, (check(), cut.size)) {
    static_assert((detail::is_setting<std::remove_cvref_t<More>> && ...),
                  "resident: after the order it takes a rank_slice or a communicator, and a backend");
    fields_.each([](auto i, auto const&) {
      static_assert(!fields_type::template type<i>::is_ragged,
                    "resident: a record of a ragged field has no fixed size");
    });
    detail::rank_part part = part_of(more...);
    ranks_ = std::move(part.ranks);
    auto const slice = cut.slice(0, count_, part.mine.rank, part.mine.ranks);
    std::byte* const records = memory_.allocate(all_.bytes);
    data_.block = memory_.allocate(one_.bytes);
    data_.layout = &one_;
    data_.size = slice.count;
    data_.global_size = cut.size;
    gather_ = {{},
               reinterpret_cast<std::int64_t*>(memory_.allocate(sizeof(std::int64_t) * std::size_t(cut.size))),
               order_,
               count_,
               cut.count(count_),
               cut.size,
               slice.first,
               slice.count};
    fields_.each([&](auto i, auto const& f) {
      data_.width[i] = f.size();
      gather_.field[i] = {records + all_.begin[i], data_.block + one_.begin[i], std::int64_t(all_.row_bytes[i])};
    });
    read(from, records);
    ranks_.agree([&] { return detail::facts_of_data(from, cut, order, 0); });
  } catch (detail::ranks_differ const&) {
    throw;
  } catch (comm_error const&) {
    throw;
  } catch (std::exception const& e) {
    part_of(more...).ranks.tell("no resident data", e);
  }
  resident(resident const&) = delete;
  resident& operator=(resident const&) = delete;

  /// Enqueues the next batch. Its memory is the same for all batches. On a stream that is capturing it becomes a part
  /// of the graph.
  batch_type next() {
    memory_.gather(gather_);
    return batch_type(data_);
  }
  /// The numbers of the records of the last batch, where the batch lies.
  std::span<std::int64_t const> records() const { return {gather_.records, std::size_t(data_.size)}; }
  /// The number of batches in an epoch.
  std::int64_t batches_per_epoch() const { return gather_.batches; }

  /// The next batch. On CUDA waits for the stream.
  loader_position position() const {
    std::int64_t const t = memory_.batch();
    return {t / gather_.batches, t % gather_.batches};
  }
  /// Continues with another batch, in the order of the stream. Throws std::invalid_argument if there is no such epoch
  /// or batch.
  void seek(loader_position to) {
    std::int64_t const n = gather_.batches, last = INT64_MAX / n - 1;
    detail::require(to.epoch >= 0 && to.epoch <= last, "resident", "the epoch",
                    ("in [0, " + std::to_string(last) + "]").c_str(), to.epoch);
    detail::require(to.batch >= 0 && to.batch < n, "resident", "the batch",
                    ("in [0, " + std::to_string(n) + ")").c_str(), to.batch);
    memory_.set_batch(to.epoch * n + to.batch);
  }
  /// The pieces of loader::save(); a loader with the same arguments may load them. On CUDA waits for the stream.
  template <class F> void save(F const& f) const {
    auto const at = position();
    detail::save_position(f, at, fingerprint(at.epoch));
  }
  /// Like loader::load().
  template <class F> void load(F const& f) {
    auto const print = [this](std::int64_t epoch) { return fingerprint(epoch); };
    seek(detail::load_position_of_all(ranks_, f, position(), print));
  }

 private:
  template <class... More> static detail::rank_part part_of(More&... more) {
    static_assert(detail::says_ranks_once<More...>,
                  "resident: one communicator or rank_slice: that of the ranks that share the batches");
    detail::rank_part part;
    (part.take(detail::backend_of<Backend>(more...), more), ...);
    return part;
  }
  void check() const {
    detail::require(count_ >= 1, "resident", "the number of records", "at least 1", count_);
    std::int64_t const n = cut_.count(count_);
    detail::require(n >= 1, "resident", "the number of batches", "at least 1", n);
    detail::require(
        cut_.last != last_batch::keep || count_ % cut_.size == 0, "resident", "the size of a batch",
        ("a divisor of the number of records, " + std::to_string(count_) + ", unless last is drop or pad").c_str(),
        cut_.size);
  }
  std::uint64_t fingerprint(std::int64_t epoch) const {
    return detail::fingerprint(count_, fields_, cut_, 0, order_.epoch(count_, epoch));
  }
  /// In chunks of about 16 MB.
  void read(S const& from, std::byte* records) {
    detail::floating_point_scope const standard;
    std::int64_t const chunk = std::clamp<std::int64_t>((1 << 24) / fields_.bytes(), 1, count_);
    detail::batch_layout<fields_type> const rows(fields_, chunk);
    detail::host_slots const staging(1, rows.bytes, host<>());
    for (std::int64_t begin = 0; begin < count_; begin += chunk) {
      std::int64_t const n = std::min(chunk, count_ - begin);
      for (std::int64_t k = 0; k < n; ++k) {
        record_random random(0, 0, begin + k);
        try {
          from.read(begin + k, rows.row(staging.read(0), k), random);
        } catch (std::exception const& e) {
          throw loader_error("resident: record " + std::to_string(begin + k) + ": " + e.what(), 0, 0, begin + k, -1);
        }
      }
      for (std::size_t i = 0; i < fields_type::count; ++i)
        memory_.write(records + all_.begin[i] + std::size_t(begin) * all_.row_bytes[i], staging.read(0) + rows.begin[i],
                      std::size_t(n) * all_.row_bytes[i]);
    }
  }

  batches cut_;
  O order_;
  fields_type fields_;
  std::int64_t count_;
  detail::data_ranks ranks_;
  detail::resident_memory<Backend> memory_;
  detail::batch_layout<fields_type> all_, one_;
  detail::batch_data<fields_type> data_;
  gathering gather_{};
};
template <source S, resident_order O, class... More>
resident(S const&, batches, O, More&&...)
    -> resident<S, O, typename detail::backend_among<std::remove_cvref_t<More>...>::type>;

}  // namespace descent
