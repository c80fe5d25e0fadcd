// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Trains a classifier of images and compares optimizers. `train --help` lists the options.
//
// This program runs on the host, train.cu on the GPU. Start reading at the training loop in train.hpp, which both
// share; parts/ has its components.
#include "train.hpp"

#include "parts/cpu.hpp"

int main(int argc, char** argv) { return example::run_program(argc, argv, example::train_with_options<example::cpu>); }
