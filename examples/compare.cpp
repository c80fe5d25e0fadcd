// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Compares optimizers on three networks, each at its best learning rate. `compare_optimizers --help` lists the options.
//
// parts/comparison.cpp has the search and the comparison; train.hpp has the training loop, which `train` uses, too.
// This program runs on the host, compare.cu on the GPU.
#include "train.hpp"

#include "parts/comparison.hpp"
#include "parts/device.hpp"

int main(int argc, char** argv) {
  return example::run_comparison(argc, argv, example::train_with_options<example::device>);
}
