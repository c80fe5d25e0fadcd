// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

/// Rules for matrices in several storage types. guard.py checks these lines about Muon's element-wise kernels: gradient
/// and m are read, m and direction written; then value and direction are read, value written.
///
///     guard: front_packets  plan<float, float, adamw, matrices<muon   loads 4 stores 4 registers 64
///     guard: back_packets  plan<float, float, adamw, matrices<muon   loads 4 stores 2 registers 64
///
/// These need more registers than they have: two states, two averages and random bits; a direction in double.
///
///     spills: update_packets  sm3, matrices<sm3>, stochastic_rounding  stack 8
///     spills: matrix_each     soap_direction<double                    stack 8
#include <descent/cuda.cuh>
#include <descent/matrices/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adafactor.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/muon.hpp>
#include <descent/rules/shampoo.hpp>
#include <descent/rules/sm3.hpp>
#include <descent/rules/soap.hpp>

namespace ds = descent;

void in_float(ds::parameters<float> const& params, cudaStream_t s) {
  ds::optimizer opt{params, ds::adamw{}, ds::matrices{ds::muon{}}, ds::cuda{s}};
  opt.step();
}
void in_half(ds::parameters<ds::half> const& params, cudaStream_t s) {
  ds::optimizer opt{params, ds::adafactor{}, ds::matrices{ds::adafactor{}}, ds::master<float>{},
                    ds::dynamic_loss_scale{}, ds::clip_norm{}, ds::zero_grad{}, ds::cuda{s}};
  opt.step();
}
void in_bfloat16(ds::parameters<ds::bfloat16> const& params, cudaStream_t s) {
  ds::optimizer opt{params, ds::sm3{}, ds::matrices{ds::sm3{}}, ds::stochastic_rounding{}, ds::states<ds::bfloat16>{},
                    ds::lookahead{}, ds::ema{}, ds::cuda{s}};
  opt.step();
}
void in_double(ds::parameters<double> const& params, cudaStream_t s) {
  ds::optimizer opt{params, ds::lamb{}, ds::matrices{ds::shampoo{}}, ds::clip_norm{}, ds::accumulate{2}, ds::cuda{s}};
  opt.step();
}
void soap_in_float(ds::parameters<float> const& params, cudaStream_t s) {
  ds::optimizer opt{params, ds::adamw{}, ds::matrices{ds::soap{}}, ds::skip_nonfinite{}, ds::cuda{s}};
  opt.step();
}
void soap_in_double(ds::parameters<double> const& params, cudaStream_t s) {
  ds::optimizer opt{params, ds::adamw{}, ds::matrices{ds::soap{}}, ds::cuda{s}};
  opt.step();
}
