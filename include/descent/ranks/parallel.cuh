// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

/// The policies replicated{comm} and sharded{comm} for the backend cuda{stream}.
#include <descent/cuda.cuh>
#include <descent/ranks/detail/cuda_ranks.cuh>
#include <descent/ranks/parallel.hpp>
