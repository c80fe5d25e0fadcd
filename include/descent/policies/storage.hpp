// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/core/precision.hpp>

/// Storage policies: where the exact values are kept, and the type of each member of a rule's state.
namespace descent {

/// A master copy of every value in type M, owned by the optimizer. The update reads and writes the master, and the
/// caller's value is the master rounded to its type. The master starts as the value.
template <storage_type M> struct master {
  using policy_kind = kind::master;
  /// The type of the master.
  using type = M;
};

/// A float master copy for two extra bytes: the value is bfloat16, and the optimizer owns the 16 bits that it lacks. As
/// integers, master = value 2^16 + remainder with the remainder in [-2^15, 2^15), so the value is the master rounded to
/// nearest, ties away from zero. For parameters<bfloat16>.
struct master_remainder { using policy_kind = kind::master; };

/// The types of the rule's state: one for all members, or one for each in the order of the rule's `slots`. Without this
/// policy, states are stored in the type of the arithmetic. Counts (has_counts) have their own type and are left out. A
/// finite number that a type cannot hold is stored as the largest that it can.
template <storage_type... Ts> struct states {
  static_assert(sizeof...(Ts) > 0, "states<T...>: name one type for all members of the state, or one for each");
  using policy_kind = kind::states;
};

}  // namespace descent
