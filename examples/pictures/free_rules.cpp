// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/rules/cocob.hpp>
#include <descent/rules/dadapt_adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/dowg.hpp>
#include <descent/rules/madgrad.hpp>
#include <descent/rules/momo.hpp>
#include <descent/rules/polyak.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/schedule_free_adamw.hpp>
#include <descent/rules/schedule_free_sgd.hpp>
#include <descent/rules/yellowfin.hpp>

#include "shown_rule.hpp"

namespace example::pictures {

std::vector<shown_rule> free_rules() {
  return {
      noted(found("dog", ds::dog{.reps = 1e-2}, ds::dog{}), {"reps 0.01"}),
      with_network_lr(found("dowg", ds::dowg{}), 0.3),
      noted(found("prodigy", ds::prodigy{.d0 = 1e-2}, ds::prodigy{}), {"d0 0.01"}),
      noted(found("dadapt_adamw", ds::dadapt_adamw{.d0 = 1e-2}, ds::dadapt_adamw{}), {"d0 0.01"}),
      searched("madgrad", ds::madgrad{}),
      noted(found("cocob", ds::cocob{.alpha = 3}, ds::cocob{}), {"alpha 3"}),
      searched("schedule_free_sgd", ds::schedule_free_sgd{}),
      searched("schedule_free_adamw", ds::schedule_free_adamw{}),
      found("polyak", ds::polyak{}),
      found("momo", ds::momo{}),
      noted(searched("yellowfin", ds::yellowfin{.beta = 0.9, .first_lr = 0.01}, ds::yellowfin{}),
            {"beta 0.9, first_lr 0.01"}),
  };
}

}  // namespace example::pictures
