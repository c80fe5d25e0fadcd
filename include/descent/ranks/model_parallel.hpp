// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/communicator.hpp>
#include <descent/core/policy.hpp>
#include <descent/ranks/detail/host_model.hpp>

/// Model parallelism as a policy: the ranks of a communicator have different parameters of one model, such as its
/// layers (pipeline parallelism) or the parts of each layer (tensor parallelism). Every rank updates its own. What a
/// step needs of the whole model is found over all ranks, with one all-reduce of 8 bytes per 4096 parameters for each
/// sum: the norm for clipping, whether gradients are finite and so whether the step is skipped, the loss scale, and the
/// sums of rules such as lamb and prodigy. Without any of these ranks do not communicate.
///
///     |g|^2 = sum over ranks r, and over the parameters w that r has first, of |g_w|^2
///
/// Sums are added in the order of the whole model, rank by rank, so the result has the bits of one process that has all
/// parameters in that order; with tensors that are cut, if all parts but the last have a multiple of 4096 elements.
namespace descent {

/// `model_parallel{comm}`. Ranks of the communicator, which must outlive the optimizer, have the same rule, policies
/// and groups, and each its own parameters: an empty one (count 0) adds a group to a rank. A name that several ranks
/// have must be marked on all of them, by parameters::mark_copied(), mark_part() or mark_columns():
///
/// - Copies are counted once. Their gradients must be equal on all ranks; then their updates are, too.
/// - Parts and columns are one tensor for the norm and sums of a tensor: lars, lamb, and clipping by tensor.
/// - A row whose columns are on several ranks is one row for clip_adaptive, which adds an all-reduce of up to 24 bytes
///   for each row, or 4096 elements of it, of each rank. Rows of other tensors are clipped without communication.
///
/// For a grid of ranks, give also replicated or sharded with a communicator of the ranks that have the same parameters.
/// Every step(), and every call that is documented to measure gradients or to change a group, must be made on all
/// ranks. A rule that uses the loss needs it on all ranks. The constructor waits for all ranks; it throws
/// std::invalid_argument on all if they disagree, or if a name is on several ranks without a mark. If a rank fails,
/// the others throw comm_error from the same step, and no rank updates. state(), save() and memory() are those of this
/// rank's parameters, and so is report()'s clip factor with clip_adaptive. Cannot be combined with masked_rows or
/// gathered(); a matrix that is cut cannot follow a matrix rule.
template <class Comm> struct model_parallel {
  static_assert(communicator<Comm>,
                "model_parallel{comm} takes a communicator: rank(), size(), abort(why), on_device and the collectives "
                "of descent/core/communicator.hpp");
  using policy_kind = kind::model;
  using communicator_type = Comm;  ///< of the ranks that have the model

  Comm* comm;  ///< not null

  explicit model_parallel(Comm& communicator) : comm(&communicator) {}
};
template <class Comm> model_parallel(Comm&) -> model_parallel<Comm>;

}  // namespace descent
