// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/rules/acprop.hpp>
#include <descent/rules/adabelief.hpp>
#include <descent/rules/adabound.hpp>
#include <descent/rules/adadelta.hpp>
#include <descent/rules/adagrad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamax.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/adan.hpp>
#include <descent/rules/ademamix.hpp>
#include <descent/rules/adopt.hpp>
#include <descent/rules/amsgrad.hpp>
#include <descent/rules/laprop.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/optimistic_adam.hpp>
#include <descent/rules/padam.hpp>
#include <descent/rules/qhadam.hpp>
#include <descent/rules/radam.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sophia.hpp>
#include <descent/rules/yogi.hpp>

#include "shown_rule.hpp"

namespace example::pictures {

std::vector<shown_rule> adaptive_rules() {
  return {
      searched("adagrad", ds::adagrad{}),
      searched("adadelta", ds::adadelta{}),
      searched("rmsprop", ds::rmsprop{}),
      searched("adam", ds::adam{}),
      searched("adamw", ds::adamw{}),
      searched("adamax", ds::adamax{}),
      searched("nadam", ds::nadam{}),
      noted(searched("radam", ds::radam{.beta2 = 0.9}, ds::radam{}), {"beta2 0.9"}),
      searched("amsgrad", ds::amsgrad{}),
      searched("yogi", ds::yogi{}),
      searched("adabelief", ds::adabelief{}),
      // without noise, the deviation of the gradient goes to 0 and the step grows without limit
      noted(searched("acprop", ds::acprop{.eps = 10, .eps_root = 1e-6}, ds::acprop{}), {"eps 10, eps_root 1e-6"}),
      searched("laprop", ds::laprop{}),
      searched("adabound", ds::adabound{}),
      searched("padam", ds::padam{}),
      searched("qhadam", ds::qhadam{}),
      searched("adan", ds::adan{}),
      searched("adopt", ds::adopt{}),
      searched("ademamix", ds::ademamix{}),
      searched("optimistic_adam", ds::optimistic_adam{}),
      // on a surface the true curvature at every step; on the network an estimate at every tenth
      noted(searched("sophia", ds::sophia{.gamma = 1}, ds::sophia{}), {"gamma 1"}),
  };
}

}  // namespace example::pictures
