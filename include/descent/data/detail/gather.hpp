// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/host.hpp>
#include <descent/core/math.hpp>
#include <descent/data/detail/host_slots.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace descent::detail {

/// What makes one batch from records that lie in one memory: a function of the number of batches made so far.
template <class Order, std::size_t Fields> struct gathering {
  struct rows { std::byte const* from; std::byte* to; std::int64_t bytes; };

  rows field[Fields];
  std::int64_t* records;  // the numbers of those in the batch
  Order order;
  std::int64_t count, batches;  // records of the source; batches of an epoch
  std::int64_t size, first, mine;  // of a global batch: places; the first and the number of those of this rank

  /// The places of the epoch of batch t, counted over epochs, the place of a row, and the record there.
  DESCENT_HD auto places(std::int64_t t) const { return order.at(count, t / batches); }
  DESCENT_HD std::int64_t place(std::int64_t t, std::int64_t row) const {
    return (t % batches * size + first + row) % count;
  }
  DESCENT_HD std::int64_t record(std::int64_t t, std::int64_t row) const { return places(t)[place(t, row)]; }
};

/// Resident memory on the host: the batch is made by the caller's thread.
template <class Backend> class resident_memory {
  static_assert(is_host<Backend>, "resident: cuda needs #include <descent/data/resident.cuh>");

 public:
  explicit resident_memory(Backend const&) {}

  std::byte* allocate(std::size_t bytes) { return keep_.emplace_back(1, bytes, 0).read(0); }
  void write(std::byte* to, std::byte const* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }
  template <class Gathering> void gather(Gathering const& g) {
    auto const places = g.places(batch_);
    for (std::int64_t row = 0; row < g.mine; ++row) g.records[row] = places[g.place(batch_, row)];
    for (auto const& f : g.field)
      for (std::int64_t row = 0; row < g.mine; ++row)
        std::memcpy(f.to + row * f.bytes, f.from + g.records[row] * f.bytes, std::size_t(f.bytes));
    ++batch_;
  }
  std::int64_t batch() const { return batch_; }
  void set_batch(std::int64_t t) { batch_ = t; }

 private:
  std::vector<host_slots> keep_;
  std::int64_t batch_ = 0;
};

}  // namespace descent::detail
