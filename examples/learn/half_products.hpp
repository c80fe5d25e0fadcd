// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/cpu.hpp"
#include "../parts/matrix.hpp"

#include <descent/core/precision.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace example::learn {

namespace ds = descent;

// snippet: device
/// The host, but each product has operands and result in half and sums in float, and data between layers are half.
struct half_products : cpu {
  template <class> using real = ds::half;

  template <class A, class B, class C> void multiply(double alpha, matrix<A> a, matrix<B> b, matrix<C> c) {
    auto const a16 = in_half(a), b16 = in_half(b);
    std::vector<ds::half> c16(std::size_t(c.rows) * std::size_t(c.columns));
    cpu::multiply(alpha, matrix<ds::half const>{a16.data(), a.rows, a.columns, a.transposed},
                  matrix<ds::half const>{b16.data(), b.rows, b.columns, b.transposed},
                  matrix{c16.data(), c.rows, c.columns});
    std::copy(c16.begin(), c16.end(), c.data);
  }
  // end

  template <class T> static std::vector<ds::half> in_half(matrix<T> m) {
    std::vector<ds::half> x(std::size_t(m.rows) * std::size_t(m.columns));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = ds::narrow<ds::half>(float(m.data[i]));
    return x;
  }
};

}  // namespace example::learn
