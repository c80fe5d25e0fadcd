// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "parts/gpu.cuh"
#include "train.hpp"

template struct example::training<example::gpu, descent::half>;
