// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace descent {

/// A collective failed because a rank is late, gone or in another call. The communicator can no longer be used; the
/// parameters are those of the last complete step.
struct comm_error : std::runtime_error { using std::runtime_error::runtime_error; };

/// The progress of a device, written by the kernels of a step to memory that the host can read meanwhile: how many
/// meetings (exchanges with the other ranks) it has begun and ended, the kind of the last one, and what ranks compare.
struct comm_progress {
  /// Meetings begun and ended, and the kind of the last one.
  std::int64_t begun = 0, ended = 0;
  std::int32_t meeting = 0;
  std::int32_t differ = 0;  // whether ranks met in different calls
  /// The call to which the last exchange of gradients or of a model belongs: its number, t, and the numbers that must
  /// be equal on all ranks. The weight only in a model, where it is not negative.
  std::uint64_t call = 0;
  std::int64_t step = 0, skipped = 0;
  double scale = 1, plateau = 1, sweep = 0, weight = -1;
  std::int32_t unscaled = 0;
};

/// Collective operations over ranks: sum, gather, broadcast. Every rank calls the same functions with the same counts
/// in the same order. Counts are 64-bit and in elements of T, a storage type or std::byte; n is the size of one rank's
/// part if data is divided. The communicator decides how often sums of half and bfloat16 are rounded to T. Every call
/// has a deadline and then throws comm_error. With `on_device` data is in device memory and a stream comes last.
template <class C>
concept communicator = requires(C& c, float const* from, float* to, std::byte* bytes, std::int64_t n, int root) {
  { c.rank() } -> std::same_as<int>;
  { c.size() } -> std::same_as<int>;
  { C::on_device } -> std::convertible_to<bool>;
  { c.abort(std::string()) } noexcept;
} && (C::on_device || requires(C& c, float const* from, float* to, std::byte* bytes, std::int64_t n, int root) {
                         c.all_reduce(to, n);  // to <- the sum over ranks
                         c.reduce_scatter(from, to, n);  // to <- the sum over ranks of their part `rank` of size * n
                         c.all_gather(from, to, n);  // part r of to <- from of rank r; from may be part `rank` of to
                         c.all_to_all(from, to, n);  // part r of to <- part `rank` of from of rank r
                         c.broadcast(bytes, n, root);
                       });

}  // namespace descent
