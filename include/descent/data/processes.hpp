// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#ifndef __linux__
#error "descent/data/processes.hpp needs Linux"
#endif

#include <descent/data/process_options.hpp>
#include <descent/data/source.hpp>
#include <descent/data/detail/process_pool.hpp>
#include <descent/core/detail/floating_point_mode.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace descent {

/// A source that lets processes read from another one, for sources that only one thread may use at a time, that crash,
/// hang, or leak memory. Only on Linux. The loader's threads then wait for one process each:
///
///     ds::in_processes source{slow, ds::processes{.count = 4, .deadline = std::chrono::seconds(10)}};
///     ds::loader data{source, ds::batches{64}, ds::shuffled{1}, ds::workers{.threads = 4}};
///
/// The records are the same bytes as without processes, in the same order. A process reads one record at a time into
/// memory that is shared, and read() copies it from there.
///
/// The constructor forks the processes. Each has a copy of the source, and of all memory of the program at that time,
/// so make it early: before large arrays are allocated, connections are opened, the device is used, and threads are
/// started, which do not exist in the processes and may hold locks there forever. What a source changes in memory stays
/// in its process. A process that takes the place of another begins with the source as it was at the construction.
///
/// The processes end with the last copy of the in_processes, and if the program ends in any way, also by SIGKILL. They
/// end without destructors, without functions of std::atexit, and without writing what is still in stdout's buffer.
/// They ignore SIGINT, SIGTERM and SIGHUP, which a terminal or a batch system sends to all processes of a program: the
/// program decides. A process that the program itself forks later cannot read, and does not end them.
template <source S> class in_processes {
 public:
  using fields_type = fields_of<S>;  ///< those of the source

  /// Owns the source and starts the processes. Throws std::invalid_argument if a setting is out of range, and
  /// std::runtime_error if there is not enough memory or a process cannot be started; nothing is left then.
  explicit in_processes(S from, processes const& of = {})
      : shared_(new shared(std::move(from), (of.check(), of)), let_go) {}

  fields_type const& fields() const { return shared_->layout.fields(); }  ///< of the source
  std::int64_t size() const { return shared_->size; }  ///< of the source, when this was constructed
  /// Lets a process read record i, and waits for one if all are busy. Any number of threads may call it at once.
  ///
  /// Throws worker_died if the process ends while it reads, or just before. Other reads are not affected, and later
  /// ones use the new process or the others. Throws std::runtime_error with the text of what the source has
  /// thrown, up to 1023 bytes, and source_ended if no process is left, the one that starts them has ended, stop() was
  /// called, or this process was forked from the one that made the source.
  void read(std::int64_t i, record<fields_type> const& out, record_random& random) const {
    shared_->pool.read(i, random, [&](std::byte* bytes) { detail::copy_record(shared_->layout.at(bytes), out); });
  }
  /// What all copies have done so far.
  process_report report() const { return shared_->pool.report(); }
  /// Ends all processes, even busy ones, and waits until they are gone. Reads in progress and later ones throw, for
  /// all copies. Lets a loader end whose source hangs without a deadline.
  void stop() const { shared_->pool.stop(); }

 private:
  struct shared {
    S source;
    std::int64_t size;
    detail::record_layout<fields_type> layout;
    detail::process_pool pool;  // last, because it reads from the others

    shared(S from, processes const& of)
        : source(std::move(from)), size(source.size()), layout(checked(source.fields())),
          pool(of, layout.bytes(),
               [this](std::byte* to, std::int64_t i, record_random& random) { read(to, i, random); }) {}
    void read(std::byte* to, std::int64_t i, record_random& random) const {
      record<fields_type> const out = layout.at(to);
      for (std::int32_t* const length : out.lengths())
        if (length) *length = 0;
      detail::floating_point_scope const standard;
      source.read(i, out, random);
    }
    static fields_type checked(fields_type of) {
      detail::require(of.bytes() <= std::int64_t{1} << 46, "in_processes", "the size of a record", "at most 2^46 bytes",
                      of.bytes());
      return of;
    }
  };

  /// A process that was forked from the owner leaves all as it is: the source belongs to the owner, whose threads
  /// may have held locks.
  static void let_go(shared* all) {
    if (all->pool.is_of_this_process()) delete all;
  }

  std::shared_ptr<shared> shared_;
};

}  // namespace descent
