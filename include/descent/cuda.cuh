// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

/// The backend cuda{stream}.
#include <descent/backends/cuda.hpp>
#include <descent/detail/cuda/engine.cuh>
#include <descent/detail/cuda/memory_of_backend.hpp>
#include <descent/detail/cuda/scaler.cuh>
