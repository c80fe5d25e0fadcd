// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

/// The policy model_parallel{comm} for the backend cuda{stream}.
#include <descent/cuda.cuh>
#include <descent/ranks/detail/cuda_model.cuh>
#include <descent/ranks/model_parallel.hpp>
