// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "layer_sizes.hpp"

#include "arguments.hpp"

#include <algorithm>

namespace example {

std::vector<layer_size> parse_network(std::string_view text) {
  if (text == "softmax") return {};
  if (text == "shallow") text = "sigmoid100";
  if (text == "deep") text = "sigmoid300,relu100,sigmoid50";

  std::vector<layer_size> layers;
  for (auto const& layer : split(text, ',')) {
    auto const digits = std::min(layer.find_first_of("0123456789"), layer.size());
    auto const name = layer.substr(0, digits);
    int units = 0;
    if ((name != "sigmoid" && name != "relu") || !read(std::string_view{layer}.substr(digits), units) || units < 1 ||
        units > 65536) {
      auto const meant = did_you_mean(layer, {"softmax", "shallow", "deep"});
      if (!meant.empty()) fail("there is no network " + quoted(layer) + meant);
      fail("a network must be softmax, shallow, deep, or a list of hidden layers such as sigmoid300,relu100;\n" +
           quoted(layer) + " is none");
    }
    layers.push_back({units, name == "relu" ? activation::relu : activation::sigmoid});
  }
  return layers;
}

}  // namespace example
