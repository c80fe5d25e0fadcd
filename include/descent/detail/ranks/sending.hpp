// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/step/control_block.hpp>

#include <cstdint>

namespace descent::detail {

/// Which gradients are summed: those in memory or those that are marked. `to_measure`: only measure, and keep the
/// marks.
enum class sending { all, all_to_measure, marked, marked_to_measure };
/// Whether a call of step() or flush() needs no marks: in flush(), or without examples if none was given.
inline bool sends_all(step_call const& call, bool any_marked) {
  return call.flush || (call.weight == 0 && !any_marked);
}
inline sending way_to_send(step_call const& call, bool any_marked) {
  return sends_all(call, any_marked) ? sending::all : sending::marked;
}
inline bool by_marks(sending how) { return how == sending::marked || how == sending::marked_to_measure; }
inline bool looks(sending how) { return how == sending::all_to_measure || how == sending::marked_to_measure; }
/// Added to the number of a call: measuring what was sent and measuring what is in memory are different calls.
template <class Plan> std::uint64_t kind_of_look(sending how) {
  return Plan::overlaps && how == sending::marked_to_measure;
}

}  // namespace descent::detail
