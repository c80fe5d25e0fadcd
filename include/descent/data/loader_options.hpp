// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

/// Settings, errors and reports of a loader.
namespace descent {

/// What a loader does if a source throws.
enum class on_error {
  stop,  ///< the batch throws loader_error where it would have been delivered
  skip   ///< the record is left out of its batch and counted; source_ended throws loader_error as with stop
};

/// Who reads the records, and how far ahead. Neither changes what is delivered.
struct workers {
  int threads = 0;  ///< that read; 0: the thread that asks for a batch reads it
  int ahead = -1;  ///< batches that are held ready; needs threads; -1: two with threads
  std::chrono::nanoseconds deadline{0};  ///< for a batch, from when it is asked for; 0: none; needs threads
  descent::on_error on_error = descent::on_error::stop;  ///< what happens if a source throws
  std::uint64_t seed = 0;  ///< of the records' random numbers; the same on all ranks

  /// Throws std::invalid_argument if a field is out of range.
  void check() const {
    detail::require(threads >= 0 && threads <= 1024, "workers", "threads", "in [0, 1024]", threads);
    detail::require(ahead >= -1 && ahead <= 4096, "workers", "ahead", "-1 or in [0, 4096]", ahead);
    detail::require(ahead <= 0 || threads > 0, "workers", "ahead", "0 without threads", ahead);
    detail::require(deadline.count() >= 0, "workers", "deadline", "at least 0 ns", deadline.count());
    detail::require(deadline.count() == 0 || threads > 0, "workers", "deadline", "0 ns without threads",
                    deadline.count());
  }
};

/// The part of each global batch that a loader delivers: that of one rank.
struct rank_slice {
  int rank = 0, ranks = 1;  ///< at least 1 rank; rank in [0, ranks)
};

/// The next batch to deliver.
struct loader_position {
  std::int64_t epoch = 0, batch = 0;  ///< both from 0 on
  /// Whether both are equal.
  friend bool operator==(loader_position const&, loader_position const&) = default;
};

/// A source or an order threw while a batch was made, or the deadline has passed. what() says which.
/// std::rethrow_if_nested(error) throws what was thrown first, and returns if nothing was: after a deadline.
struct loader_error : std::runtime_error {
  std::int64_t epoch, batch;  ///< the batch
  std::int64_t record;  ///< its number in the source, or -1 if no record was read
  int worker;  ///< from 0 on, or -1 if the thread that asked for the batch read it
  loader_error(std::string const& what, std::int64_t e, std::int64_t b, std::int64_t r, int w)
      : std::runtime_error(what), epoch(e), batch(b), record(r), worker(w) {}
};

/// What a loader has done since its construction.
struct loader_report {
  std::int64_t batches = 0, records = 0, bytes = 0;  ///< delivered; bytes are those of the elements
  std::int64_t skipped = 0;  ///< records left out after an error
  double seconds = 0;  ///< since the first batch was asked for
  double waited = 0;  ///< seconds in which the user's thread waited for batches
  double filled = 0;  ///< seconds in which workers, or the user's thread, read records; the sum over workers
  double copied = 0;  ///< seconds of the device's copies; with a CUDA backend
  double ready = 0;  ///< batches that were ready when one was asked for, on average; 0 without threads
  int threads = 0;  ///< of the workers

  double records_per_second() const { return seconds > 0 ? double(records) / seconds : 0; }  ///< delivered
  double bytes_per_second() const { return seconds > 0 ? double(bytes) / seconds : 0; }  ///< delivered
  /// One sentence on what limits the rate: the source, the copies, or the step that takes the batches.
  std::string bottleneck() const {
    if (batches == 0 || !(seconds > 0)) return "no batch has been delivered";
    auto const percent = [this](double part) { return std::to_string(int(100 * part / seconds + 0.5)) + " %"; };
    std::string const waits = percent(waited) + " of the time was spent waiting for batches";
    if (copied > 0.8 * seconds)
      return "the copies to the device are the bottleneck: they take " + percent(copied) + " of the time";
    if (waited < 0.05 * seconds) return "the step is the bottleneck: " + waits;
    if (threads == 0) return "the source is the bottleneck: " + waits + ", without worker threads";
    return "the source is the bottleneck: " + waits + ", with " + std::to_string(threads) +
           (threads == 1 ? " worker" : " workers") + " busy for " + percent(filled / threads);
  }
};

}  // namespace descent
