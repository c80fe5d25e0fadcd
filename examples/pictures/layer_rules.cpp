// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/rules/adam.hpp>
#include <descent/rules/fromage.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/larc.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/layerwise.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/sgd.hpp>

#include "shown_rule.hpp"

namespace example::pictures {

std::vector<shown_rule> layer_rules() {
  return {
      searched("lars", ds::lars{}),
      noted(searched("larc", ds::larc<ds::sgd>{.trust = 0.1}, ds::larc<ds::sgd>{}),
            {"around sgd, trust 0.1", "around sgd"}),
      searched("lamb", ds::lamb{}),
      noted(searched("layerwise", ds::layerwise<ds::adam>{}), {"around adam", "around adam"}),
      searched("novograd", ds::novograd{}),
      searched("fromage", ds::fromage{}),
  };
}

}  // namespace example::pictures
