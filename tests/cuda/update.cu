// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

/// The kernels that move the bytes, for AdamW in three storages. What they may do stands here and
/// is checked by guard.py in the code that the compiler makes of them:
///
///     guard: update_packets  plan<float, float       loads 8 stores 6 registers 64
///     guard: update_packets  plan<__half, __half     loads 7 stores 7 registers 64
///     guard: update_packets  plan<__nv_bfloat16,     loads 4 stores 3 registers 64
///     guard: measure_chunks  plan<float, float       loads 2 stores 0 registers 64
///     guard: measure_chunks  plan<__half, __half     loads 1 stores 0 registers 64
///     guard: measure_chunks  plan<__nv_bfloat16,     loads 1 stores 0 registers 64
///
/// in accesses of 16 bytes for a packet of 8 elements.
#include <descent/descent.cuh>

namespace ds = descent;
namespace detail = descent::detail;

using in_float = detail::plan<float, float, ds::adamw, ds::clip_norm>;
using in_half = detail::plan<ds::half, ds::half, ds::adamw, ds::clip_norm, ds::master<float>>;
using in_bfloat16 =
    detail::plan<ds::bfloat16, ds::bfloat16, ds::adamw, ds::clip_norm, ds::states<ds::bfloat16>>;

template <class Plan>
constexpr auto update_bytes = Plan::update_bytes({true, true}) * detail::packet_size;
static_assert(update_bytes<in_float> == (8 + 6) * 16);
static_assert(update_bytes<in_half> == (7 + 7) * 16);
static_assert(update_bytes<in_bfloat16> == (4 + 3) * 16);
template <class Plan>
constexpr auto pass_bytes = Plan::pass_bytes({true, true}) * detail::packet_size;
static_assert(pass_bytes<in_float> == 2 * 16);
static_assert(pass_bytes<in_half> == 1 * 16);
static_assert(pass_bytes<in_bfloat16> == 1 * 16);

#define KERNELS(plan)                                                           \
  template __global__ void detail::each_packet(detail::update_packets<plan>);   \
  template __global__ void detail::measure_chunks<plan, detail::measure::norm>( \
      detail::device_view<plan>, detail::control_view<plan>, descent::step_call);
KERNELS(in_float)
KERNELS(in_half)
KERNELS(in_bfloat16)
