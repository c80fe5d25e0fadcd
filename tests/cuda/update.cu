// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

/// The kernels that move the bytes, for AdamW in three storage types, alone and with policies, and for chains in float.
/// guard.py checks these promises in the compiled code:
///
///     guard: update_packets  plan<float, float, adamw>                  loads 8 stores 6 registers 80
///     guard: update_packets  plan<half, half, adamw, master<float>>     loads 7 stores 7 registers 80
///     guard: update_packets  adamw, states<bfloat16>                    loads 4 stores 3 registers 80 pieces 3
///     guard: update_packets  plan<float, float, adamw, clip<            loads 8 stores 6 registers 80
///     guard: update_packets  plan<half, half, adamw, clip<              loads 7 stores 7 registers 80
///     guard: update_packets  (scope)2>, states                          loads 4 stores 3 registers 80 pieces 3
///     guard: update_packets  master_remainder                           loads 7 stores 6 registers 80
///     guard: update_packets  stochastic_rounding                        loads 4 stores 3 registers 80 pieces 2 random
///     guard: update_packets  stochastic_values                          loads 7 stores 7 registers 80 random
///     guard: update_packets  dynamic_loss_scale                      loads 9 stores 10 registers 80 zeroing 1
///     guard: measure_chunks  plan<float, float                          loads 2 stores 0 registers 64
///     guard: measure_chunks  plan<half, half                            loads 1 stores 0 registers 64
///     guard: measure_chunks  states<bfloat16>                           loads 1 stores 0 registers 64
///     guard: update_packets  sharded<ranks>                             loads 8 stores 6 registers 80
///     guard: update_packets  float, adamw, sharded<ranks, ordered_sum>  loads 8 stores 6 registers 80 ranks
///     guard: update_packets  master<float>, sharded<ranks               loads 8 stores 7 registers 80
///     guard: measure_chunks  sharded<ranks, ordered_sum>                loads 1 stores 1 registers 80 ranks narrow 4
///     guard: update_packets  clip_l2_adam>                              loads 8 stores 6 registers 80 terms 12
///     guard: update_packets  centered_adamw>                            loads 8 stores 6 registers 80
///     guard: update_packets  trace_lamb>                                loads 10 stores 8 registers 128 terms 12
///     guard: update_packets  noisy_sgd>                                 loads 6 stores 4 registers 80 pieces 4 random
///
/// in accesses of 16 bytes for a packet of 8 elements; `zeroing` is the number in a skipped step that zeroes gradients.
/// A chain moves what its rule and its transforms' states move. Where ranks add in order and clip by norm, the first
/// pass has 80 registers for three blocks on a multiprocessor, and stores half of a packet of sums number by number on
/// sm_80 and sm_90. Then the update needs more than 64 registers: 10 more on sm_90. The random numbers of a value
/// beside its master need 2 more on sm_80.
///
///     spills: update_packets  master<float>, sharded<ranks  stack 40
///     spills: update_packets  stochastic_values             stack 8
///
/// Policies that a step does not have cost nothing. The machine code of the plain updates is recorded; code.py reports
/// where it has changed.
///
///     code: 13.0.88 sm_80 bfloat16 96295be7f352f691
///     code: 13.0.88 sm_80 float 443038eca6ca1108
///     code: 13.0.88 sm_80 half 4c69842b34e3be89
///     code: 13.0.88 sm_90 bfloat16 908601affed7e819
///     code: 13.0.88 sm_90 float 7561bc022df06bce
///     code: 13.0.88 sm_90 half 47e7a55ab3a5eb18
///     code: 13.0.88 sm_100 bfloat16 7822dd40916765bf
///     code: 13.0.88 sm_100 float 9ec92491ee8c6e2c
///     code: 13.0.88 sm_100 half c2c46dc7cbee89c0
#include <descent/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/transforms/chain.hpp>
#include <descent/transforms/parts.hpp>

#include <string>

namespace ds = descent;
namespace detail = descent::detail;

using plain_float = detail::plan<float, float, ds::adamw>;
using plain_half = detail::plan<ds::half, ds::half, ds::adamw, ds::master<float>>;
using plain_bfloat16 = detail::plan<ds::bfloat16, ds::bfloat16, ds::adamw, ds::states<ds::bfloat16>>;
using in_float = detail::plan<float, float, ds::adamw, ds::clip_norm>;
using in_half = detail::plan<ds::half, ds::half, ds::adamw, ds::clip_norm, ds::master<float>>;
using in_bfloat16 = detail::plan<ds::bfloat16, ds::bfloat16, ds::adamw, ds::clip_norm, ds::states<ds::bfloat16>>;
using with_remainder = detail::plan<ds::bfloat16, ds::bfloat16, ds::adamw, ds::master_remainder>;
using at_random =
    detail::plan<ds::bfloat16, ds::bfloat16, ds::adamw, ds::stochastic_rounding, ds::states<ds::bfloat16>>;
using master_at_random = detail::plan<ds::bfloat16, ds::bfloat16, ds::adamw, ds::master<float>, ds::stochastic_values>;
using whole_step = detail::plan<ds::half, ds::half, ds::adamw, ds::master<float>, ds::dynamic_loss_scale, ds::clip_norm,
                                ds::ema, ds::zero_grad>;

template <class Plan>
constexpr auto update_bytes = Plan::update_bytes({true, true}) * detail::packet_size;
static_assert(update_bytes<in_float> == (8 + 6) * 16);
static_assert(update_bytes<in_half> == (7 + 7) * 16);
static_assert(update_bytes<in_bfloat16> == (4 + 3) * 16);
static_assert(update_bytes<with_remainder> == (7 + 6) * 16);
static_assert(update_bytes<at_random> == (4 + 3) * 16);
static_assert(update_bytes<master_at_random> == (7 + 7) * 16);
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
template __global__ void detail::each_packet(detail::update_packets<plain_float>);
template __global__ void detail::each_packet(detail::update_packets<plain_half>);
template __global__ void detail::each_packet(detail::update_packets<plain_bfloat16>);
KERNELS(in_float)
KERNELS(in_half)
KERNELS(in_bfloat16)
template __global__ void detail::each_packet(detail::update_packets<with_remainder>);
template __global__ void detail::each_packet(detail::update_packets<at_random>);
template __global__ void detail::each_packet(detail::update_packets<master_at_random>);
template __global__ void detail::each_packet(detail::update_packets<whole_step>);

/// The same with ranks; their communicator is never called.
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
