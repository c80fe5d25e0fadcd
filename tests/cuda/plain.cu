// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

/// The update kernel of AdamW with no policy but its storage. Whatever other policies the step has costs it nothing: its
/// machine code is what it was before they were there. code.py compares, for the compilers that are recorded here.
///
///     code: 13.0.88 sm_80 bfloat16 915f85071ecfb075
///     code: 13.0.88 sm_80 float 03bf7fbdd37c987e
///     code: 13.0.88 sm_80 half d493ee20c48c2835
///     code: 13.0.88 sm_90 bfloat16 60e04c608c54defd
///     code: 13.0.88 sm_90 float 09e0ca2b91b8471c
///     code: 13.0.88 sm_90 half ba400a63822047e0
///     code: 13.0.88 sm_100 bfloat16 e92f8389411a81a6
///     code: 13.0.88 sm_100 float 887213e22982e5ca
///     code: 13.0.88 sm_100 half 8fb7a47b4161f60e
#include <descent/descent.cuh>

namespace ds = descent;
namespace detail = descent::detail;

using in_float = detail::plan<float, float, ds::adamw>;
using in_half = detail::plan<ds::half, ds::half, ds::adamw, ds::master<float>>;
using in_bfloat16 = detail::plan<ds::bfloat16, ds::bfloat16, ds::adamw, ds::states<ds::bfloat16>>;

template __global__ void detail::each_packet(detail::update_packets<in_float>);
template __global__ void detail::each_packet(detail::update_packets<in_half>);
template __global__ void detail::each_packet(detail::update_packets<in_bfloat16>);
