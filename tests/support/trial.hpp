// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/optimizer.hpp>

#include <algorithm>
#include <vector>

namespace test {

/// One small tensor in double with an optimizer, to test formulas.
template <class Rule> class trial {
 public:
  trial(Rule const& rule, std::vector<double> start) : p_(start), g_(start.size()), opt_(list(), rule) {}
  trial(trial const&) = delete;

  /// The values after a step with this gradient.
  std::vector<double> const& step(std::vector<double> const& gradient) {
    std::copy(gradient.begin(), gradient.end(), g_.begin());
    opt_.step();
    return p_;
  }
  std::vector<double> state(std::size_t slot) const {
    auto const s = opt_.state("p", slot);
    return {s.begin(), s.end()};
  }

 private:
  descent::parameters<double> list() {
    descent::parameters<double> all;
    all.add("p", p_.data(), g_.data(), p_.size());
    return all;
  }

  std::vector<double> p_, g_;
  descent::optimizer<double, double, Rule> opt_;
};

}  // namespace test
