// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "activation.hpp"

#include <string_view>
#include <vector>

namespace example {

/// A hidden layer: its number of units and its activation function.
struct layer_size {
  int units;
  activation function;
};

/// The hidden layers of "softmax" (none), "shallow" (sigmoid100), "deep" (sigmoid300,relu100,sigmoid50), or of a list
/// in the same form. Throws std::invalid_argument for any other text.
std::vector<layer_size> parse_network(std::string_view text);

}  // namespace example
