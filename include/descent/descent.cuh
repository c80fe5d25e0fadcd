// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

/// descent.hpp and the CUDA backend; needs nvcc and no flag but the standard.
#include <descent/cuda.cuh>
#include <descent/descent.hpp>
