// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Compares optimizers on three networks, each at its best learning rate: `compare_optimizers --help` says how.
//
// parts/comparison.cpp has the search and the comparison, train.hpp the training loop, which `train` has, too. This is
// the program on the host, compare.cu the same on the GPU.
#include "train.hpp"

#include "parts/comparison.hpp"
#include "parts/device.hpp"

int main(int argc, char** argv) {
  return example::run_comparison(argc, argv, example::train_with_options<example::device>);
}
