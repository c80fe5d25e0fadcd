// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Trains a classifier of images and compares optimizers: `train --help` says how.
//
// This is the program on the host; train.cu is the same on the GPU. train.hpp has the training
// loop, which both share and which is the place to start reading; parts/ has what it is made of.
#include "train.hpp"

#include "parts/cpu.hpp"

int main(int argc, char** argv) { return example::run_program(argc, argv, example::train_with_options<example::cpu>); }
