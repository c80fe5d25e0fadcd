// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 16: the schedule of a pipeline.
//
// A model is cut into `stages` stages on as many devices, a batch into micro-batches. F3 is the forward pass of the
// third micro-batch on a stage, B3 its backward pass. Return what stage 1, 2, ... does, in order, with spaces between.
// Each micro-batch goes backward as soon as it can. So stage k first goes stages - k micro-batches ahead; then forward
// and backward passes alternate, while there are forward passes left.
//
//     the last of 2 stages, 3 micro-batches:  F1 B1 F2 B2 F3 B3
//
// Hint: count f forward and b backward passes. A forward pass is next if one is left and f is at most b + stages - k.
#pragma once

#include <string>

inline std::string schedule(int stage, int stages, int micro_batches) {
  return "";  // your lines
}
