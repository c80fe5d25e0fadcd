// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// One unit for all precisions: on the device, reading the headers takes longer than compiling a few optimizers.
#include "common.cpp"
#include "common_bfloat16.cpp"
#include "common_half.cpp"
#include "levels.cpp"
