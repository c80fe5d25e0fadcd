// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace example {

namespace ds = descent;

/// A rule chosen at run time.
using any_rule =
    std::variant<ds::sgd, ds::adam, ds::adamw, ds::rmsprop, ds::lion, ds::lars, ds::lamb, ds::dog>;

/// All names, in the order in which --help lists them.
std::vector<std::string> rule_names();

/// The rule of that name with hyperparameters that suit this program; throws std::invalid_argument
/// if there is none.
any_rule rule_named(std::string_view name);

/// The names of a rule's hyperparameters, in the order of its fields.
std::vector<std::string> hyperparameters(any_rule const& rule);

double get(any_rule const& rule, std::string_view hyperparameter);
/// False if the rule has no such hyperparameter.
bool set(any_rule& rule, std::string_view hyperparameter, double value);

}  // namespace example
