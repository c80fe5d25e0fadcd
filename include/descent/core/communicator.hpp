// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace descent {

/// A collective that did not happen: a rank that is late, gone or does something else. The communicator cannot be used
/// any more; parameters are those of the last complete step.
struct comm_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Where a device is, in memory that the host can read meanwhile: the meetings of ranks that it has begun and ended, and
/// which one is the last. Kernels of the step write it.
struct comm_progress {
  std::int64_t begun = 0, ended = 0;
  std::int32_t meeting = 0;
  std::int32_t differ = 0;  // whether ranks met that were in different calls
};

/// Ranks that can sum, gather and broadcast. Every rank calls the same functions with the same counts in the same
/// order. Counts are of elements of T, which is a storage type or std::byte, and 64-bit; n is each rank's part where
/// there are parts. Sums of half and bfloat16 are rounded to T once or more often, as the communicator says. Every call
/// has a deadline and throws comm_error behind it. `on_device` says where the memory is; there a stream comes last.
template <class C>
concept communicator = requires(C& c, float const* from, float* to, std::byte* bytes, std::int64_t n, int root) {
  { c.rank() } -> std::same_as<int>;
  { c.size() } -> std::same_as<int>;
  { C::on_device } -> std::convertible_to<bool>;
  { c.abort(std::string()) } noexcept;
} && (C::on_device || requires(C& c, float const* from, float* to, std::byte* bytes, std::int64_t n, int root) {
  c.all_reduce(to, n);                // to <- the sum over ranks
  c.reduce_scatter(from, to, n);      // to <- the sum over ranks of their part `rank` of size * n
  c.all_gather(from, to, n);          // part r of to <- from of rank r; from may be part `rank` of to
  c.all_to_all(from, to, n);          // part r of to <- part `rank` of from of rank r
  c.broadcast(bytes, n, root);
});

}  // namespace descent
