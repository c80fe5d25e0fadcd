// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>
#include <descent/core/range.hpp>

namespace descent {

/// QK-clip of MuonClip (Kimi K2, 2025, algorithm 1): keeps the logits of attention below tau. Called after a step for
/// the weights of queries and of keys, with the largest logit s of each head in the forward pass:
///
///     W_h <- min(1, tau / s_h)^exponent W_h                          h: the rows of a head
///
///     opt.scale_rows("attention.q", s, heads, qk_clip{});            s: heads floats, which the backend reads
///     opt.scale_rows("attention.k", s, heads, qk_clip{});
///
/// Both together multiply the logits by tau / s_h. Weights that one head shares with others, such as the rotary keys of
/// latent attention, stay as they are, and its rotary queries have an exponent of 1. Logits that are not finite leave
/// the weights as they are.
struct qk_clip {
  double tau = 100;       ///< finite and above 0
  double exponent = 0.5;  ///< in [0, 1]

  DESCENT_HD double operator()(double s) const { return is_finite(float(s)) && s > tau ? pow(tau / s, exponent) : 1; }
  static constexpr field_range<qk_clip> ranges[] = {{&qk_clip::tau, above_0}, {&qk_clip::exponent, up_to_1}};
};

}  // namespace descent
