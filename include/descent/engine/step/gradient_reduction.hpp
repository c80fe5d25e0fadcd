// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/parameters.hpp>

#include <type_traits>

namespace descent {

/// One rank. The default; it adds no code. ranks/parallel.hpp has the policies for several.
struct single { using policy_kind = kind::parallel; };

}  // namespace descent
namespace descent::detail {

/// How ranks share tensors; ranks/parallel.hpp defines it.
template <class Plan> struct shared_layout;

/// What happens to gradients before the step: nothing, or a sum over ranks.
template <class Gradient, class Team> struct gradient_reduction {
  static constexpr bool parallel = false, shards = false, ordered = false, overlaps = false, when_read = false;
  using wire = void;
  using sum = Gradient;  // what the step reads
};
template <class Gradient, class Team> requires requires { typename Team::communicator_type; }
struct gradient_reduction<Gradient, Team> {
 private:
  using wide = std::conditional_t<types<Gradient>::any_double, double, float>;
  using own = std::conditional_t<types<Gradient>::several, wide, Gradient>;
  using given = typename Team::wire;
  static_assert(!Team::in_float || std::is_void_v<given>,
                "float_sum sets the type on the wire: leave out wire<T>, or use native_sum");

 public:
  static constexpr bool parallel = true, shards = Team::shards, ordered = Team::ordered, overlaps = Team::overlaps;
  /// Whether the step adds what ranks have sent when it first reads it, instead of in a separate pass.
  static constexpr bool when_read = ordered && shards && !overlaps && Team::communicator_type::on_device;
  using wire = std::conditional_t<Team::in_float, wide, std::conditional_t<std::is_void_v<given>, own, given>>;
  using sum = std::conditional_t<ordered && !std::is_same_v<wire, double>, float, wire>;
};

}  // namespace descent::detail
