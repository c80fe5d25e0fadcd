// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/layout.hpp>

#include <cstddef>
#include <vector>

namespace test {

inline constexpr std::size_t packet = descent::detail::packet_size, chunk = descent::detail::chunk_size;

/// Sizes at the edges of loops over packets and chunks.
inline std::vector<std::size_t> const edge_sizes{0, 1, packet - 1, packet, packet + 1,
                                                 chunk - 1, chunk, chunk + 1, 2 * chunk + 3};

/// Several tensors with such sizes, empty ones first, in the middle and last.
inline std::vector<std::size_t> const tensor_sizes{0, chunk + 5, 1, 9, 0, 0, 64, 7, 0};

/// Enough elements for a step to run on several threads.
inline std::vector<std::size_t> const parallel_sizes{46000, 1, 2 * chunk + 1, 12345, 0, 8};

}  // namespace test
