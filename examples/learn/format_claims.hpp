// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/claim.hpp"
#include "../parts/text.hpp"
#include "number_format.hpp"

#include <cmath>
#include <string>

/// The formats of the chapter against those of the library and of the CUDA Toolkit.
namespace example::learn {

/// Rounds all numbers of the format, the midpoints between them, and the floats beside both; `convert` gives the bits.
inline void compare(char const* name, floating f, auto const& convert) {
  unsigned code = 0;
  for (double y = 0; y <= f.largest(); y += f.spacing(y), ++code) {
    claim(f.code(y) == code, std::string(name) + ": codes are in order");
    for (double x : {y, y + f.spacing(y) / 2})
      for (float near : {float(x), std::nextafter(float(x), 0.f), std::nextafter(float(x), INFINITY)})
        for (float z : {near, -near})
          claim(f.code(f.round(z)) == convert(z), std::string(name) + " rounds " + short_number(z) + " alike");
  }
}

}  // namespace example::learn
