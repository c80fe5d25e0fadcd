// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

/// All of descent; needs nvcc and no flag but the standard.
#include <descent/cuda.cuh>
#include <descent/descent.hpp>
#include <descent/esgd.cuh>
#include <descent/lbfgs.cuh>
