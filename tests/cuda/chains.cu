// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

/// The update kernel of chains in float: read by guard.py, as in rules.cu. A chain moves what its rule and the states
/// of its transforms move, and has no stack and no local memory.
///
///     guard: update_packets  clip_l2_adam>   loads 8 stores 6 registers 64
///     guard: update_packets  centered_adamw> loads 8 stores 6 registers 64
///     guard: update_packets  trace_lamb>     loads 10 stores 8 registers 128 terms 12
///     guard: update_packets  noisy_sgd>      loads 6 stores 4 registers 64 pieces 4
#include <descent/descent.cuh>

namespace ds = descent;
namespace detail = descent::detail;

struct clip_l2_adam : ds::chain<ds::clip_value, ds::l2, ds::adam> {};
struct centered_adamw : ds::chain<ds::centralize, ds::adamw> {};
struct trace_lamb : ds::chain<ds::gradient_trace, ds::lamb> {};
struct noisy_sgd : ds::chain<ds::gradient_noise, ds::sgd> {};

#define CHAIN(rule) \
  template __global__ void detail::each_packet(detail::update_packets<detail::plan<float, float, rule>>);
CHAIN(clip_l2_adam)
CHAIN(centered_adamw)
CHAIN(trace_lamb)
CHAIN(noisy_sgd)
