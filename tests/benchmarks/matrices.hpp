// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/parameters.hpp>
#include <descent/rules/muon.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// The matrices of a transformer: `blocks` times those of GPT-2 for a width, whose own is 768.
struct transformer {
  int blocks;
  std::int64_t width;

  std::vector<descent::shape> shapes() const {
    std::vector<descent::shape> all;
    for (int b = 0; b < blocks; ++b)
      for (auto const [rows, columns] : {std::array{3, 1}, {1, 1}, {4, 1}, {1, 4}})
        all.push_back({rows * width, columns * width});
    return all;
  }
  std::size_t size() const { return std::size_t(blocks * 12 * width * width); }
  std::vector<float> gradients() const {
    std::vector<float> all(size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = float(std::sin(double(i) * double(i)));
    return all;
  }
  /// For arrays of size() elements.
  descent::parameters<float> parameters(float* values, float* gradients) const {
    descent::parameters<float> all;
    std::int64_t at = 0;
    for (auto const s : shapes()) {
      all.add(std::to_string(at), values + at, gradients + at, s);
      at += s.rows * s.columns;
    }
    return all;
  }
};

inline descent::muon muon_of(std::string const& precision) {
  using descent::operands;
  for (auto const& [name, of] :
       {std::pair{"exact", operands::exact}, {"tf32", operands::tf32}, {"bf16", operands::bf16}})
    if (precision == name) return {.lr = 0.02, .precision = of};
  throw std::invalid_argument("precision: exact, tf32 or bf16, got " + precision);
}

}  // namespace bench
