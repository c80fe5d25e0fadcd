// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

/// descent.hpp and the CUDA backend. Needs nvcc, with no flags except the C++ standard.
#include <descent/cuda.cuh>
#include <descent/descent.hpp>
