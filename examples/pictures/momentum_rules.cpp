// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/rules/asgd.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/optimistic.hpp>
#include <descent/rules/qhm.hpp>
#include <descent/rules/rprop.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/signsgd.hpp>
#include <descent/rules/signum.hpp>

#include "shown_rule.hpp"

namespace example::pictures {

std::vector<shown_rule> momentum_rules() {
  return {
      searched("sgd", ds::sgd{}),
      searched("heavy_ball", ds::heavy_ball{}),
      noted(searched("qhm", ds::qhm{.beta = 0.9}, ds::qhm{}), {"beta 0.9"}),
      searched("asgd", ds::asgd{}),
      noted(searched("rprop", ds::rprop{}), {"", "made for full batches; these have 32 images"}),
      searched("signsgd", ds::signsgd{}),
      searched("signum", ds::signum{}),
      searched("lion", ds::lion{}),
      searched("optimistic", ds::optimistic{}),
  };
}

}  // namespace example::pictures
