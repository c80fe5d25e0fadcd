// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/layout.hpp>
#include <descent/engine/step/owned.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/uio.h>
#include <unistd.h>
#endif

/// What is asked of every address that comes from outside, before it is used. require_host_memory() and
/// require_device_memory() of the backends add the question whether they can reach it.
namespace descent::detail {

/// Elements in the caller's memory, and what they are called in messages. Their size is their alignment.
struct outside_memory {
  void const* at;
  std::int64_t count, size;  // of elements, and the bytes of one
  std::string what;

  std::int64_t bytes() const { return count * size; }
  char const* last() const { return static_cast<char const*>(at) + bytes() - 1; }
  [[noreturn]] void refuse(std::string const& why) const { throw std::invalid_argument(what + " " + why); }
};

inline std::string in_hex(void const* p) {
  std::string digits;
  for (auto x = reinterpret_cast<std::uintptr_t>(p); x != 0 || digits.empty(); x /= 16)
    digits.insert(digits.begin(), "0123456789abcdef"[x % 16]);
  return "0x" + digits;
}

/// Throws std::invalid_argument unless this can be the address of so many elements. False if there are none.
inline bool require_address(outside_memory const& m) {
  if (m.count == 0) return false;
  require(m.count > 0 && m.count <= most_elements, m.what.c_str(), "the number of elements", "in [0, 2^48]", m.count);
  auto const at = reinterpret_cast<std::uintptr_t>(m.at);
  if (at == 0)
    m.refuse("is null, but there must be " + std::to_string(m.count) + (m.count == 1 ? " element" : " elements"));
  if (auto const beyond = at % std::uintptr_t(m.size))
    m.refuse("must be aligned to " + std::to_string(m.size) + " bytes, is " + std::to_string(beyond) +
             " past a multiple");
  if (at + std::uintptr_t(m.bytes()) < at) m.refuse("at " + in_hex(m.at) + " would end past the last address");
  return true;
}

/// Whether the processor can read this byte, tested without touching it. True if the system cannot tell.
inline bool host_readable([[maybe_unused]] void const* p) {
#if defined(__linux__)
  char byte;
  iovec here{&byte, 1}, there{const_cast<void*>(p), 1};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1 || errno != EFAULT;
#else
  return true;
#endif
}

/// Adds what an optimizer owns for elements, and its copies of values, if any, to the ranges.
template <class Plan, class Layout, class Buffers>
void add_owned_ranges(std::vector<memory_range>& ranges, Layout const& where, Buffers const& owned, void const* saved) {
  constexpr char const* what = "what the optimizer owns";
  for (std::size_t b = 0; b < owned.size(); ++b)
    if (owned[b].at) {
      std::int64_t const count = is_slot<Plan>(b) ? rule_elements<Plan>(where) : where.own.size;
      ranges.push_back(memory_range::called(what, owned[b].at, count * owned[b].size));
    }
  if (saved) ranges.push_back(memory_range::called(what, saved, where.arena * Plan::largest_value));
}

[[noreturn]] inline void refuse_end(outside_memory const& m) {
  m.refuse("has " + std::to_string(m.count) + (m.count == 1 ? " element, " : " elements, ") +
           std::to_string(m.bytes()) + " bytes from " + in_hex(m.at) + " on, but the memory there ends before");
}

/// Throws std::invalid_argument unless a resource of memory_from has returned memory of this alignment that reach()
/// accepts.
template <class Reach>
void require_resource(void const* p, std::size_t bytes, std::size_t alignment, Reach const& reach) {
  outside_memory const m{p, std::int64_t(bytes), 1, "memory_from: what the resource has returned"};
  if (auto const beyond = reinterpret_cast<std::uintptr_t>(p) % alignment)
    m.refuse("must be aligned to " + std::to_string(alignment) + " bytes, is " + std::to_string(beyond) +
             " past a multiple");
  reach(m);
}

/// The memory that steps of one optimizer write, in the order of addresses: values, gradients and state.
class memory_in_use {
 public:
  memory_in_use() = default;
  /// Throws std::invalid_argument if two of the ranges overlap.
  explicit memory_in_use(std::vector<memory_range> ranges) : ranges_(std::move(ranges)) { refuse_overlaps(ranges_); }

  bool empty() const { return ranges_.empty(); }
  /// Throws std::invalid_argument if the memory, which a step only reads, overlaps with one of them.
  void refuse_overlap(outside_memory const& m) const {
    memory_range const x = memory_range::of(m.at, m.bytes(), nullptr, m.what);
    std::size_t low = 0, high = ranges_.size();  // the first that ends behind the begin of x
    while (low < high) {
      std::size_t const middle = (low + high) / 2;
      if (ranges_[middle].end <= x.begin) low = middle + 1;
      else high = middle;
    }
    if (low < ranges_.size() && ranges_[low].begin < x.end) m.refuse("overlaps " + ranges_[low].text() + " in memory");
  }

 private:
  std::vector<memory_range> ranges_;
};

}  // namespace descent::detail
