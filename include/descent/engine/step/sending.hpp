// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/control_block.hpp>

#include <cstdint>

namespace descent::detail {

/// Which gradients are summed: those in memory or those that are marked; `rest`: those in memory, without what marks
/// have sent already. `to_measure`: only measure, and keep the marks.
enum class sending { all, all_to_measure, marked, marked_to_measure, rest };
/// Whether a call of step() or flush() needs marks: not without examples.
inline bool needs_marks(step_call const& call) { return !call.flush && call.weight != 0; }
inline sending way_to_send(step_call const& call) {
  return call.flush ? sending::all : needs_marks(call) ? sending::marked : sending::rest;
}
inline bool by_marks(sending how) { return how == sending::marked || how == sending::marked_to_measure; }
inline bool looks(sending how) { return how == sending::all_to_measure || how == sending::marked_to_measure; }
/// Added to the number of a call: measuring what was sent and measuring what is in memory are different calls.
template <class Plan> std::uint64_t kind_of_look(sending how) {
  return Plan::overlaps && how == sending::marked_to_measure;
}

}  // namespace descent::detail
