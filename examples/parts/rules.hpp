// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

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
#include <descent/rules/asgd.hpp>
#include <descent/rules/cocob.hpp>
#include <descent/rules/dadapt_adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/dowg.hpp>
#include <descent/rules/fromage.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/larc.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/madgrad.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/optimistic.hpp>
#include <descent/rules/optimistic_adam.hpp>
#include <descent/rules/padam.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/qhadam.hpp>
#include <descent/rules/qhm.hpp>
#include <descent/rules/radam.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/rprop.hpp>
#include <descent/rules/schedule_free_adamw.hpp>
#include <descent/rules/schedule_free_sgd.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/signsgd.hpp>
#include <descent/rules/signum.hpp>
#include <descent/rules/yellowfin.hpp>
#include <descent/rules/yogi.hpp>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace example {

namespace ds = descent;

/// Rules whose optimizers are compiled in one unit.
template <class... Rules> struct rule_group {};

using common_rules = rule_group<ds::sgd, ds::adam, ds::adamw, ds::rmsprop, ds::lion, ds::lars, ds::lamb, ds::dog>;
using torch_rules = rule_group<ds::heavy_ball, ds::adagrad, ds::adadelta, ds::adamax, ds::nadam, ds::radam, ds::amsgrad,
                               ds::asgd, ds::rprop>;
using adaptive_rules = rule_group<ds::yogi, ds::adabelief, ds::acprop, ds::adabound, ds::padam, ds::adan, ds::adopt,
                                  ds::ademamix, ds::qhadam>;
using momentum_rules = rule_group<ds::qhm, ds::signsgd, ds::signum, ds::optimistic, ds::optimistic_adam, ds::fromage,
                                  ds::novograd, ds::larc<ds::sgd>>;
using free_rules = rule_group<ds::dowg, ds::prodigy, ds::dadapt_adamw, ds::madgrad, ds::cocob, ds::schedule_free_sgd,
                              ds::schedule_free_adamw, ds::yellowfin>;

/// Rules that are also compiled for the opt levels O1 to O3.
using level_rules = rule_group<ds::sgd, ds::adamw>;

/// Calls f(group) for each group, or only for the common one, which is compiled for every storage type; the others are
/// compiled for float.
template <bool only_common, class F> void each_rule_group(F f) {
  f(common_rules{});
  if constexpr (!only_common) f(torch_rules{}), f(adaptive_rules{}), f(momentum_rules{}), f(free_rules{});
}

template <class... A, class... B, class... C, class... D, class... E>
std::variant<A..., B..., C..., D..., E...> any_of(rule_group<A...>, rule_group<B...>, rule_group<C...>,
                                                  rule_group<D...>, rule_group<E...>);

/// A rule chosen at run time.
using any_rule = decltype(any_of(common_rules{}, torch_rules{}, adaptive_rules{}, momentum_rules{}, free_rules{}));

/// All names, in the order of --help.
std::vector<std::string> rule_names();
/// The names of common_rules.
std::vector<std::string> common_rule_names();
bool is_common(any_rule const& rule);
/// The names of level_rules.
std::vector<std::string> level_rule_names();

/// The rule of this name, with hyperparameters that suit this program. Throws std::invalid_argument if there is none.
any_rule rule_named(std::string_view name);

/// The names of a rule's hyperparameters, which are its fields.
std::vector<std::string> hyperparameters(any_rule const& rule);

double get(any_rule const& rule, std::string_view hyperparameter);
/// False if the rule has no such hyperparameter.
bool set(any_rule& rule, std::string_view hyperparameter, double value);

}  // namespace example
