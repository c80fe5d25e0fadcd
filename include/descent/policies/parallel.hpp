// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/communicator.hpp>
#include <descent/core/math.hpp>
#include <descent/core/policy.hpp>
#include <descent/core/precision.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

/// Data parallelism as a policy. Every rank has the same parameters and its own part of each batch; a step sees the
/// mean of the ranks' gradients,
///
///     g = (sum over ranks of the gradients in memory) / (sum over ranks of the weights of step(weight))
///
/// so with weight 1 the mean over ranks, and with the number of examples or tokens that each rank's loss was summed
/// over the mean over all of them. Ranks only ever add: division, loss scale and clipping are one factor in the update.
/// Norm, skipping and loss scale are those of the sum, the same on all ranks. Every call of a member function that is
/// not const or that changes a group must be made on every rank, in the same order.
namespace descent {

/// One rank: the default, which compiles to nothing.
struct single {
  using policy_kind = kind::parallel;
};

/// The type that gradients have on the wire; without it their own, or float where they have several. In half they are
/// divided by a power of two of at least sqrt(ranks) and multiplied again in the update; gradients that agree on many
/// ranks may still overflow, and then the step is skipped.
template <storage_type T> struct wire { using type = T; };

/// How gradients are added up.
struct native_sum {};  ///< as the communicator does it, in the type on the wire
struct float_sum {};   ///< as the communicator does it, in float (in double for gradients in double)
/// In float (or double), in the order of the ranks: the same bits whatever is underneath. Ranks send as many bytes as
/// native_sum does, with replicated up to twice as many, and each needs room for a part from every rank.
struct ordered_sum {};

/// Gradients go over the wire while the backward pass still makes others. opt.ready(parameter) says that one is
/// complete; in any order, each once before a step(), from one thread at a time; those of frozen groups may be left out.
/// A bucket is sent when it is complete and those before it are. Buckets hold whole tensors, from the last parameter to
/// the first, and their cut is the same on all ranks; with ordered_sum it changes no bit. On cuda a mark enqueues on the
/// producer's stream and on one of the optimizer's own, which step() joins; on the host ready() itself sends.
struct overlap {
  std::int64_t bucket_bytes = 25 << 20;  ///< of gradients on the wire; one tensor may have more
};
/// With overlap{}: a gradient without ready() is zero on this rank. Otherwise step() throws, naming it.
struct missing_is_zero {};

/// Every so many updates ranks compare what agree() compares, in front of the update: step() throws as agree() does,
/// and nothing has changed. Such a step waits for the device, the others do not; on cuda step() cannot be captured.
struct agree_every {
  std::int64_t updates = 1000;
};

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
                "an option of replicated or sharded is wire<T>{}, native_sum{}, float_sum{}, ordered_sum{}, overlap{}, "
                "missing_is_zero{} or agree_every{updates}");
  static_assert((std::size_t{0} + ... + is_wire<Options>) <= 1 && (std::size_t{0} + ... + is_sum<Options>) <= 1,
                "two options of replicated or sharded exclude each other: one wire<T>, one sum");

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

/// What the ranks agree on in each step, in the memory of the backend: four sums over the ranks, in one collective.
struct agreed {
  double weights = 1, losses = 0;  // of a loss, its weight times what rules look at
  double present = 1;              // ranks whose gradients are in the sum
  double calls = 0;                // of what each is in

  double call = 0;                 // what this rank is in
  std::uint64_t groups = 0;        // a part of it: its groups
  double ranks = 1, shrink = 1;    // what gradients on the wire are divided by

  /// This rank's part.
  DESCENT_HD void enter(double weight, double loss, double what) {
    weights = weight, losses = weight > 0 ? weight * loss : 0, present = 1;
    calls = call = what;
  }
  /// What the sum of the gradients in memory is divided by, and the mean loss.
  DESCENT_HD double weight() const { return weights / shrink; }
  DESCENT_HD double loss() const { return losses / weights; }
  /// Whether the sums are those of all ranks, in the same call: a collective that is given up on a device leaves others
  /// behind.
  DESCENT_HD bool complete() const { return same(present, ranks) && same(calls, call * ranks); }
  DESCENT_HD bool differ() const { return same(present, ranks) && !same(calls, call * ranks); }

 private:
  /// What a collective leaves behind that was given up may be not a number, and is then the same as nothing.
  DESCENT_HD static bool same(double const& a, double const& b) {
    return __builtin_bit_cast(std::uint64_t, a) == __builtin_bit_cast(std::uint64_t, b);
  }
};
inline constexpr int agreed_sums = 4;

template <class Comm, class... Options> struct parallel_policy : parallel_options<Options...> {
  static_assert(communicator<Comm>,
                "replicated{comm} and sharded{comm} take a communicator: rank(), size(), abort(why), on_device and the "
                "collectives of descent/core/communicator.hpp");
  using policy_kind = kind::parallel;
  using communicator_type = Comm;
  using wire = typename wire_of<Options...>::type;

  Comm* comm;
  std::int64_t bucket_bytes = 0;
  std::int64_t updates_between = 0;  // two agreements
  agreed* now = nullptr;  // the engine's, as the next
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

/// Every rank has all of the optimizer's state and makes the whole step, as Horovod's DistributedOptimizer and
/// PyTorch's DistributedDataParallel do: `replicated{comm, options...}`. The communicator must outlive the optimizer.
/// Gradients in memory stay each rank's own. The constructor waits for all ranks: it compares what they are about to
/// train, down to the first difference, and gives them the values of rank 0. Owned besides: the sum of the gradients.
template <class Comm, class... Options> struct replicated : detail::parallel_policy<Comm, Options...> {
  static constexpr bool shards = false;
  explicit replicated(Comm& comm, Options... options) : detail::parallel_policy<Comm, Options...>(comm, options...) {}
};
template <class Comm, class... Options> replicated(Comm&, Options...) -> replicated<Comm, Options...>;

/// Every rank owns the state of its part of the parameters, updates that part and gets the others' values (ZeRO stage
/// 1, Rajbhandari et al. 2020): `sharded{comm, options...}`. As many bytes go over the wire as with replicated, and
/// state, master and averages take 1/size of the memory on each rank. Parts are runs of chunks of 4096 elements of a
/// tensor, whatever the sizes. state(name) and the like show the part that this rank has.
template <class Comm, class... Options> struct sharded : detail::parallel_policy<Comm, Options...> {
  static constexpr bool shards = true;
  explicit sharded(Comm& comm, Options... options) : detail::parallel_policy<Comm, Options...>(comm, options...) {}
};
template <class Comm, class... Options> sharded(Comm&, Options...) -> sharded<Comm, Options...>;

}  // namespace descent
