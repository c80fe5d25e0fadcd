// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

/// The kernels that move the bytes, for AdamW in three storages. What they may do stands here and
/// is checked by guard.py in the code that the compiler makes of them:
///
///     guard: update_packets  plan<float, float, descent::adamw, descent::clip<  loads 8 stores 6 registers 64
///     guard: update_packets  sharded<ranks>          loads 8 stores 6 registers 64
///     guard: update_packets  plan<__half, __half, descent::adamw, descent::clip<   loads 7 stores 7 registers 64
///     guard: update_packets  plan<__nv_bfloat16, __nv_bfloat16, descent::adamw, descent::clip<(descent::norm)1, (descent::scope)2>, descent::states  loads 4 stores 3 registers 64
///     guard: update_packets  master_remainder        loads 7 stores 6 registers 64
///     guard: update_packets  stochastic_rounding     loads 4 stores 3 registers 64
///     guard: update_packets  dynamic_loss_scale      loads 9 stores 10 registers 64 zeroing 1
///     guard: measure_chunks  plan<float, float       loads 2 stores 0 registers 64
///     guard: measure_chunks  plan<__half, __half     loads 1 stores 0 registers 64
///     guard: measure_chunks  states<__nv_bfloat16>   loads 1 stores 0 registers 64
///
/// in accesses of 16 bytes for a packet of 8 elements, and so many in a skipped step that sets gradients to zero.
#include <descent/descent.cuh>

#include <string>

namespace ds = descent;
namespace detail = descent::detail;

using in_float = detail::plan<float, float, ds::adamw, ds::clip_norm>;
using in_half = detail::plan<ds::half, ds::half, ds::adamw, ds::clip_norm, ds::master<float>>;
using in_bfloat16 =
    detail::plan<ds::bfloat16, ds::bfloat16, ds::adamw, ds::clip_norm, ds::states<ds::bfloat16>>;
using with_remainder = detail::plan<ds::bfloat16, ds::bfloat16, ds::adamw, ds::master_remainder>;
using at_random = detail::plan<ds::bfloat16, ds::bfloat16, ds::adamw, ds::stochastic_rounding, ds::states<ds::bfloat16>>;
using whole_step =
    detail::plan<ds::half, ds::half, ds::adamw, ds::master<float>, ds::dynamic_loss_scale, ds::clip_norm, ds::ema, ds::zero_grad>;

template <class Plan>
constexpr auto update_bytes = Plan::update_bytes({true, true}) * detail::packet_size;
static_assert(update_bytes<in_float> == (8 + 6) * 16);
static_assert(update_bytes<in_half> == (7 + 7) * 16);
static_assert(update_bytes<in_bfloat16> == (4 + 3) * 16);
static_assert(update_bytes<with_remainder> == (7 + 6) * 16);
static_assert(update_bytes<at_random> == (4 + 3) * 16);
static_assert(update_bytes<whole_step> == (9 + 10) * 16);
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
template __global__ void detail::each_packet(detail::update_packets<with_remainder>);
template __global__ void detail::each_packet(detail::update_packets<at_random>);
template __global__ void detail::each_packet(detail::update_packets<whole_step>);

/// The same where ranks meet; nobody calls their communicator.
struct ranks {
  static constexpr bool on_device = true;
  int rank(), size();
  void abort(std::string const&) noexcept;
};
using shards = detail::plan<float, float, ds::adamw, ds::sharded<ranks>>;
using ordered = detail::plan<float, float, ds::adamw, ds::sharded<ranks, ds::ordered_sum>>;
using ordered_and_clipped = detail::plan<ds::bfloat16, ds::bfloat16, ds::adamw, ds::clip_norm, ds::master<float>,
                                         ds::sharded<ranks, ds::ordered_sum>>;
template __global__ void detail::each_packet(detail::update_packets<shards>);
template __global__ void detail::each_packet(detail::update_packets<ordered>);
KERNELS(ordered_and_clipped)
