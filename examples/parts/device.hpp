// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

/// The device of a program that compiles for both: the GPU with nvcc, otherwise the host.
#include <utility>

#ifdef __CUDACC__
#include "gpu.cuh"
namespace example {
using device = gpu;
}
#else
#include "cpu.hpp"
namespace example {
using device = cpu;
}
#endif

namespace example {
using device_backend = decltype(std::declval<device&>().backend());
}
