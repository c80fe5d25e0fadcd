// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/matrices/host.hpp>
#include <descent/rules/adafactor.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/kl_shampoo.hpp>
#include <descent/rules/muon.hpp>
#include <descent/rules/shampoo.hpp>
#include <descent/rules/sm3.hpp>
#include <descent/rules/soap.hpp>

#include "shown_rule.hpp"

namespace example::pictures {
namespace {

/// adam updates all but the matrices. A point of a surface is no matrix: only rules that also take vectors have paths.
template <class Rule> shown_rule of_matrices(std::string name, Rule rule) {
  starter const start = [rule](problem const& p, double lr) -> stepper {
    Rule r = rule;
    r.lr = lr;
    using optimizer = ds::optimizer<float, float, ds::adam, ds::matrices<Rule>>;
    auto const opt = std::make_shared<optimizer>(p.parameters, ds::adam{.lr = 0.01}, ds::matrices{r});
    return [opt] { opt->step(); };
  };
  starter on_surface;
  if constexpr (ds::update_rule<Rule>) on_surface = start_of(rule);
  return {std::move(name), true, on_surface, start, {"", "adam for biases"}};
}

}  // namespace

std::vector<shown_rule> matrix_rules() {
  return {
      of_matrices("muon", ds::muon{}), of_matrices("adafactor", ds::adafactor{}), of_matrices("sm3", ds::sm3{}),
      of_matrices("shampoo", ds::shampoo{}), of_matrices("soap", ds::soap{}),
      of_matrices("kl_shampoo", ds::kl_shampoo{}),
  };
}

}  // namespace example::pictures
