// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

inline double rate_of(int t, double base_lr, double base_batch, double batch, int warmup) {
  double const k = batch / base_batch;
  return t < warmup ? base_lr * (1 + (k - 1) * t / warmup) : base_lr * k;
}
