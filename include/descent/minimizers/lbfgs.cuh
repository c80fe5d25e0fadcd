// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

/// L-BFGS with the backend cuda{stream}.
#include <descent/minimizers/detail/cuda_vector_space.cuh>
#include <descent/minimizers/lbfgs.hpp>
