// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/source.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <linux/futex.h>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <system_error>
#include <type_traits>
#include <unistd.h>

/// The memory that a process shares with those that read for it.
namespace descent::detail {

/// The states of a worker's slot. One side at a time may leave a state, so that nothing that a worker does before it is
/// killed can block another process:
///
///     idle -> asked          the process that owns the pool
///     asked -> done          the worker
///     asked -> died          the nursery, when the worker has ended
///     done, died -> idle     the owner, when it has taken what it needs
///
/// The nursery adds `gone` to any of them if no worker will have the slot again.
struct turn { static constexpr std::uint32_t idle = 0, asked = 1, done = 2, died = 3, gone = 8; };

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);
static_assert(std::is_trivially_copyable_v<record_random>, "the state of random numbers travels between processes");

/// Waits until another process wakes this word, or returns at once if it has another value. Also returns for no reason.
/// False if the time has passed. std::atomic's wait is not for memory of several processes.
inline bool wait_for_change(std::atomic<std::uint32_t>& word, std::uint32_t value, timespec const* limit) {
  return ::syscall(SYS_futex, &word, FUTEX_WAIT, value, limit, nullptr, 0) == 0 || errno != ETIMEDOUT;
}
/// Wakes all that wait.
inline void wake(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// What is asked and answered. The record follows.
struct alignas(64) process_slot {
  std::atomic<std::uint32_t> state{turn::idle};
  bool threw = false, ended = false;  // ended: source_ended
  std::int64_t record = 0;
  std::uint64_t number = 0;  // of the question
  record_random random{0, 0, 0};
  char text[1024] = {};  // what was thrown

  void say(char const* what) {
    threw = true;
    std::size_t const n = ::strnlen(what, sizeof text);
    std::memcpy(text, what, std::min(n, sizeof text - 1));
    if (n == sizeof text) std::memcpy(text + sizeof text - 4, "...", 4);
    else text[n] = 0;
  }
  std::string said() const { return {text, ::strnlen(text, sizeof text)}; }
};

/// What the nursery notes. Workers do not have this memory.
struct process_notes {
  struct of_worker {
    std::atomic<std::int32_t> process{0}, status{0};  // of the one that ended last, as waitpid() says it
    std::atomic<std::int32_t> error{0};  // why it could not be replaced, or 0
  };
  std::atomic<std::int64_t> died{0}, replaced{0};
  std::array<of_worker, 256> workers{};
};

/// Where the fields of a record are in the bytes behind a slot.
template <class Fields> class record_layout {
 public:
  explicit record_layout(Fields of) : fields_(std::move(of)) {
    bytes_ = rounded(Fields::count * sizeof(std::int32_t));
    fields_.each([&](auto i, auto const& f) {
      begin_[i] = bytes_;
      bytes_ += rounded(std::size_t(f.size()) * sizeof(typename Fields::template element<i>));
    });
  }

  Fields const& fields() const { return fields_; }
  std::size_t bytes() const { return bytes_; }
  record<Fields> at(std::byte* start) const {
    std::array<std::byte*, Fields::count> data;
    std::array<std::int32_t*, Fields::count> lengths{};
    fields_.each([&](auto i, auto const&) {
      data[i] = start + begin_[i];
      if constexpr (Fields::template type<i>::is_ragged) lengths[i] = reinterpret_cast<std::int32_t*>(start) + i;
    });
    return {fields_, data, lengths};
  }

 private:
  static std::size_t rounded(std::size_t n) { return (n + 63) / 64 * 64; }

  Fields fields_;
  std::array<std::size_t, Fields::count> begin_{};
  std::size_t bytes_ = 0;
};

/// Copies the elements that a record has.
template <class Fields> void copy_record(record<Fields> const& from, record<Fields> const& to) {
  from.fields().each([&](auto i, auto const& f) {
    std::int64_t n = f.size();
    if constexpr (Fields::template type<i>::is_ragged) {
      n = *from.lengths()[i];
      require(n >= 0 && n <= f.size(), "in_processes", ("the length of " + std::string(f.name.view())).c_str(),
              ("in [0, " + std::to_string(f.size()) + "]").c_str(), n);
      *to.lengths()[i] = std::int32_t(n);
    }
    if (n > 0) std::memcpy(to.data()[i], from.data()[i], std::size_t(n) * sizeof(typename Fields::template element<i>));
  });
}

/// A mapping that forked processes share: notes, and a slot with a record for each worker, all on pages of their own.
/// It has no name, so nothing can stay behind, and is not limited by the size of /dev/shm.
class process_memory {
 public:
  /// Throws std::runtime_error with the number of bytes if there is not so much memory.
  process_memory(int count, std::size_t record_bytes) : count_(std::size_t(count)) {
    auto const page = std::size_t(::sysconf(_SC_PAGESIZE));
    auto const pages = [&](std::size_t n) { return (n + page - 1) / page * page; };
    notes_bytes_ = pages(sizeof(process_notes));
    slot_bytes_ = pages(sizeof(process_slot) + record_bytes);
    bytes_ = notes_bytes_ + count_ * slot_bytes_;
    void* const start = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
      throw std::runtime_error("in_processes: there is no shared memory of " + std::to_string(bytes_) + " bytes for " +
                               std::to_string(count) + (count == 1 ? " process: " : " processes: ") +
                               std::generic_category().message(errno));
    start_ = static_cast<std::byte*>(start);
    notes_ = ::new (start) process_notes;
    for (std::size_t w = 0; w < count_; ++w) ::new (static_cast<void*>(place(w))) process_slot;
  }
  process_memory(process_memory const&) = delete;
  process_memory& operator=(process_memory const&) = delete;
  ~process_memory() { ::munmap(start_, bytes_); }

  process_notes& notes() const { return *notes_; }
  process_slot& slot(int w) const { return *std::launder(reinterpret_cast<process_slot*>(place(std::size_t(w)))); }
  std::byte* record(int w) const { return place(std::size_t(w)) + sizeof(process_slot); }

  /// In a worker: gives all but its slot away, so that a source that writes anywhere harms no other worker.
  void keep_only(int w) const {
    std::byte *const mine = place(std::size_t(w)), *const next = mine + slot_bytes_, *const end = start_ + bytes_;
    ::munmap(start_, std::size_t(mine - start_));
    if (next != end) ::munmap(next, std::size_t(end - next));
  }

 private:
  std::byte* place(std::size_t w) const { return start_ + notes_bytes_ + w * slot_bytes_; }

  std::size_t count_, notes_bytes_, slot_bytes_, bytes_;
  std::byte* start_;
  process_notes* notes_;
};

}  // namespace descent::detail
