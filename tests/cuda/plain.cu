// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

/// The update kernel of AdamW with no policy but its storage. Whatever other policies the step has costs it nothing: its
/// machine code is what it was before they were there. code.py compares, for the compilers that are recorded here.
///
///     code: 13.0.88 sm_80 bfloat16 77ae9b6fd497399f
///     code: 13.0.88 sm_80 float 658b333df723091a
///     code: 13.0.88 sm_80 half d2749220a1a77fb4
///     code: 13.0.88 sm_90 bfloat16 24dccfd45cf60ac8
///     code: 13.0.88 sm_90 float 310ef55e160ca8be
///     code: 13.0.88 sm_90 half 2c2ff94d9b5405fc
///     code: 13.0.88 sm_100 bfloat16 a0f05fa53aa08d16
///     code: 13.0.88 sm_100 float 019d2105e0243a37
///     code: 13.0.88 sm_100 half f111775e13b19aec
#include <descent/descent.cuh>

namespace ds = descent;
namespace detail = descent::detail;

using in_float = detail::plan<float, float, ds::adamw>;
using in_half = detail::plan<ds::half, ds::half, ds::adamw, ds::master<float>>;
using in_bfloat16 = detail::plan<ds::bfloat16, ds::bfloat16, ds::adamw, ds::states<ds::bfloat16>>;

template __global__ void detail::each_packet(detail::update_packets<in_float>);
template __global__ void detail::each_packet(detail::update_packets<in_half>);
template __global__ void detail::each_packet(detail::update_packets<in_bfloat16>);
