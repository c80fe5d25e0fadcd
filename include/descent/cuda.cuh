// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

/// The backend cuda{stream}.
#include <descent/backends/cuda.hpp>
#include <descent/engine/cuda/engine.cuh>
#include <descent/engine/cuda/memory_of_backend.hpp>
#include <descent/engine/cuda/scaler.cuh>
