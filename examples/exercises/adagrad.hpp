// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 4: Adagrad, as a rule of the library.
//
// Write the two lines of update(). Every element sums its squared gradients and divides by their root.
//
//     s <- s + g^2
//     p <- p - lr g / (sqrt(s) + eps)
//
// Hint: the state is s.s, the terms are k.lr and k.eps. Write sqrt, not std::sqrt: on a CPU, Real may be eight floats
// at once.
#pragma once

#include <descent/core/rule.hpp>

#include <cstdint>

struct adagrad {
  double lr = 1e-2, eps = 1e-10;

  template <class Real> struct state { Real s; };
  template <class Real> struct terms { Real lr, eps; };
  static constexpr char const* slots[] = {"s"};

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, eps}; }

  template <class Real>
  DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using descent::sqrt;
    // your line: s.s
    return p;  // your line: the new p
  }
};
static_assert(descent::update_rule<adagrad>);
