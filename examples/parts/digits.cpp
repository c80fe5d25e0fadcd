// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "dataset.hpp"

namespace example {
namespace {

char const* const digits[] = {
#include "../data/digits.inc"
};

int pixel(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

}  // namespace

dataset embedded_digits() {
  dataset data{.name = "digits",
               .train = {.features = 64, .brightest = 16},
               .test = {.features = 64, .brightest = 16},
               .classes = 10};
  int number = 0;
  for (char const* line : digits) {
    auto& part = ++number % 5 == 0 ? data.test : data.train;
    for (int row = 0; row < 8; ++row, ++line)
      for (int column = 0; column < 8; ++column) part.pixels.push_back(std::uint8_t(pixel(*line++)));
    part.labels.push_back(std::uint8_t(*line - '0'));
  }
  return data;
}

}  // namespace example
