// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 24: the rate of a large batch.
//
// With k times the batch, the rate is k times as large (linear scaling). Because the weights change fast at first, the
// rate rises from that of the small batch to the scaled one in `warmup` steps. Return the rate of step t = 0, 1, 2, ...
//
//     k = batch / base_batch     rate(t) = base_lr (1 + (k - 1) t / warmup) for t < warmup, then base_lr k
//
// Hint: the first step has base_lr, whatever the batch (Goyal et al. 2017, sections 2.1 and 2.2).
#pragma once

inline double rate_of(int t, double base_lr, double base_batch, double batch, int warmup) {
  return 0;  // your lines
}
