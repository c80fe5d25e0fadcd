// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// train.cpp on the GPU: only the device differs.
#include "train.hpp"

#include "parts/gpu.cuh"

int main(int argc, char** argv) { return example::run_program(argc, argv, example::train_with_options<example::gpu>); }
