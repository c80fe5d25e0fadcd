// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "activation.hpp"

#include <string_view>
#include <vector>

namespace example {

/// A hidden layer: how many units, and what they compute.
struct layer_size {
  int units;
  activation function;
};

/// The hidden layers of "softmax" (none), "shallow" (sigmoid100), "deep"
/// (sigmoid300,relu100,sigmoid50), or of a list written like these; throws
/// std::invalid_argument if it is none.
std::vector<layer_size> parse_network(std::string_view text);

}  // namespace example
