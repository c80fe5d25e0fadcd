// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

/// ESGD with the backend cuda{stream}.
#include <descent/minimizers/detail/cuda_population.cuh>
#include <descent/minimizers/esgd.hpp>
