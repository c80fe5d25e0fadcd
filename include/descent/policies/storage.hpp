// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/core/precision.hpp>

/// Storage policies: which copy of the values is exact, and how wide each member of a rule's state is.
namespace descent {

/// A master copy of every value in type M, owned by the optimizer. The update reads and writes the master; the
/// caller's value is the master rounded to its type. Starts as the value.
template <storage_type M> struct master {
  using policy_kind = kind::master;
  using type = M;
};

/// A master copy in float at the price of two bytes: the value is bfloat16 and the optimizer owns the 16 bits that it
/// lacks. master = value 2^16 + remainder, as integers, with the remainder in [-2^15, 2^15); so the value is the master
/// rounded to nearest, ties away from zero. For parameters<bfloat16>.
struct master_remainder {
  using policy_kind = kind::master;
};

/// The types of the rule's state, one for all members or one for each, in the order of the rule's `slots`.
/// Without this policy states are stored in the type of the arithmetic.
template <storage_type... Ts> struct states {
  static_assert(sizeof...(Ts) > 0, "states<T...>: name one type for all members of the state, or one for each");
  using policy_kind = kind::states;
};

}  // namespace descent
