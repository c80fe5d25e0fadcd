// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/communicator.hpp>
#include <descent/core/policy.hpp>
#include <descent/core/precision.hpp>
#include <descent/ranks/detail/host_ranks.hpp>
#include <descent/engine/step/collective_sums.hpp>
#include <descent/engine/step/gradient_reduction.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

/// Data parallelism as a policy. Every rank has the same parameters and its own part of each batch. A step uses the
/// mean of the ranks' gradients:
///
///     g = (sum over ranks of the gradients in memory) / (sum over ranks of the weights of step(weight))
///
/// With weight 1 this is the mean over ranks. If each rank's weight is the number of examples or tokens that its loss
/// was summed over, it is the mean over all of those. The gradients of a rank whose weight is 0 are not read; with
/// overlap{} it needs no marks, but what it has marked is sent. Without examples on any rank, the step is skipped.
/// Collectives only add: division, loss scale and clipping are one factor in the update. Norm, skipping and loss scale
/// follow from the sum, so they are the same on all ranks. Every call of a non-const member function, and every change
/// of a group, must be made on every rank in the same order.
namespace descent {

/// The type of gradients on the wire. The default is the gradients' own type, or float if they have several. In half
/// they are divided by a power of two of at least sqrt(ranks), which the update undoes. Gradients that agree on many
/// ranks may still overflow; the step is then skipped.
template <storage_type T> struct wire { using type = T; };

/// How gradients are added up.
struct native_sum {};  ///< as the communicator does it, in the wire type
struct float_sum {};   ///< as the communicator does it, in float (in double for gradients in double)
/// In float (or double), in the order of the ranks: the same bits for every communicator. Ranks send as many bytes as
/// with native_sum, with replicated up to twice as many. Each rank needs a buffer for one part from every rank.
struct ordered_sum {};

/// Sends gradients while the backward pass still computes others. opt.ready(parameter) marks a gradient as complete: in
/// any order, once for each parameter before a step(), from one thread at a time; optional for frozen groups. A bucket
/// is sent once it and all buckets before it are complete. Buckets hold whole tensors, from the last parameter to the
/// first, and are the same on all ranks; with ordered_sum their size changes no bit of the result. On CUDA a mark
/// enqueues on the producer's stream and on an internal stream that step() joins; on the host ready() itself sends.
struct overlap {
  std::int64_t bucket_bytes = 25 << 20;  ///< of gradients on the wire; a single tensor may be larger
};
/// With overlap{}: a gradient without ready() counts as zero on this rank. Otherwise step() throws and names it.
struct missing_is_zero {};

/// Before every `updates`-th update ranks compare what agree() compares. If they differ, step() throws like agree() and
/// nothing has changed. Only such a step waits for the device. On CUDA step() cannot be captured with this option.
struct agree_every { std::int64_t updates = 1000; };

namespace detail {
template <class T>
inline constexpr bool is_overlap = std::is_same_v<T, overlap> || std::is_same_v<T, missing_is_zero>;
template <class T> inline constexpr bool is_agreement = std::is_same_v<T, agree_every>;
template <class T> inline constexpr bool is_wire = false;
template <class T> inline constexpr bool is_wire<wire<T>> = true;
template <class T>
inline constexpr bool is_sum =
    std::is_same_v<T, native_sum> || std::is_same_v<T, float_sum> || std::is_same_v<T, ordered_sum>;

template <class... Options> struct parallel_options {
  static_assert(((is_wire<Options> || is_sum<Options> || is_overlap<Options> || is_agreement<Options>) && ...),
                "an option of replicated or sharded must be wire<T>{}, native_sum{}, float_sum{}, ordered_sum{}, "
                "overlap{}, missing_is_zero{} or agree_every{updates}");
  static_assert((std::size_t{0} + ... + is_wire<Options>) <= 1 && (std::size_t{0} + ... + is_sum<Options>) <= 1,
                "replicated and sharded take at most one wire<T>{} and at most one sum");

  static constexpr bool in_float = (std::is_same_v<Options, float_sum> || ...);
  static constexpr bool ordered = (std::is_same_v<Options, ordered_sum> || ...);
  static constexpr bool overlaps = (std::is_same_v<Options, overlap> || ...);
  static constexpr bool missing_zero = (std::is_same_v<Options, missing_is_zero> || ...);
  static constexpr bool agrees = (is_agreement<Options> || ...);
  static_assert(overlaps || !missing_zero, "missing_is_zero{} needs overlap{}");
};
/// The wire type among Options, or void.
template <class... Options> struct wire_of { using type = void; };
template <class T, class... Rest> struct wire_of<wire<T>, Rest...> { using type = T; };
template <class First, class... Rest> struct wire_of<First, Rest...> : wire_of<Rest...> {};

template <class Comm, class... Options> struct parallel_policy : parallel_options<Options...> {
  static_assert(communicator<Comm>,
                "replicated{comm} and sharded{comm} take a communicator: rank(), size(), abort(why), on_device and the "
                "collectives of descent/core/communicator.hpp");
  using policy_kind = kind::parallel;
  using communicator_type = Comm;
  using wire = typename wire_of<Options...>::type;

  Comm* comm;
  std::int64_t bucket_bytes = 0;
  std::int64_t updates_between = 0;  // between two calls of agree()
  collective_sums* now = nullptr;             // owned by the engine, like `progress`
  comm_progress* progress = nullptr;

  explicit parallel_policy(Comm& c, Options const&... options) : comm(&c) {
    [[maybe_unused]] auto const take = [&](auto const& option) {
      if constexpr (requires { option.bucket_bytes; }) bucket_bytes = option.bucket_bytes;
      if constexpr (requires { option.updates; }) updates_between = option.updates;
    };
    (take(options), ...);
  }
  void check() const {
    if (parallel_options<Options...>::overlaps && bucket_bytes <= 0)
      throw std::invalid_argument("overlap: bucket_bytes must be above 0, is " + std::to_string(bucket_bytes));
    if (parallel_options<Options...>::agrees && updates_between <= 0)
      throw std::invalid_argument("agree_every: updates must be above 0, is " + std::to_string(updates_between));
  }
};
}  // namespace detail

/// `replicated{comm, options...}`: every rank holds the whole optimizer state and makes the whole step, like Horovod's
/// DistributedOptimizer and PyTorch's DistributedDataParallel. The communicator must outlive the optimizer. Gradients
/// in memory remain local to each rank. The constructor waits for all ranks, compares their training setups, reports
/// the first difference, and broadcasts the values of rank 0. Also owns a buffer for the sum of the gradients.
template <class Comm, class... Options> struct replicated : detail::parallel_policy<Comm, Options...> {
  /// Whether each rank owns only its shard of the state.
  static constexpr bool shards = false;
  explicit replicated(Comm& communicator, Options... options)
      : detail::parallel_policy<Comm, Options...>(communicator, options...) {}
};
template <class Comm, class... Options> replicated(Comm&, Options...) -> replicated<Comm, Options...>;

/// `sharded{comm, options...}`: every rank owns the state of its shard of the parameters, updates that shard and
/// receives the values of the others (ZeRO stage 1, Rajbhandari et al. 2020). The wire carries as many bytes as with
/// replicated; state, master copies and averages take 1/size of the memory on each rank. A shard is a run of chunks of
/// 4096 elements of a tensor, whatever the tensors' sizes. state(name) and similar functions return this rank's shard.
template <class Comm, class... Options> struct sharded : detail::parallel_policy<Comm, Options...> {
  /// Whether each rank owns only its shard of the state.
  static constexpr bool shards = true;
  explicit sharded(Comm& communicator, Options... options)
      : detail::parallel_policy<Comm, Options...>(communicator, options...) {}
};
template <class Comm, class... Options> sharded(Comm&, Options...) -> sharded<Comm, Options...>;

}  // namespace descent
