// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace example {

/// The contents of a file in the IDX format of MNIST: an array of bytes and its sizes.
struct idx_array {
  std::vector<std::uint32_t> sizes;
  std::vector<std::uint8_t> bytes;
};

/// Reads an array of unsigned bytes with this number of dimensions from `path` or, if there is no such file, from
/// `path`.gz. Throws std::runtime_error with the file and the mistake.
idx_array read_idx(std::string const& path, int dimensions);

}  // namespace example
