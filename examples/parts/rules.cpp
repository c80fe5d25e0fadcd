// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "rules.hpp"

#include "arguments.hpp"

#include <descent/core/fields.hpp>

#include <iterator>
#include <type_traits>

namespace example {
namespace {

struct named_rule {
  char const* name;
  any_rule rule;
};

/// Rates found by trying 1, 3, 10, ... on the digits; everything else is the library's default.
named_rule const rules[] = {
    {"sgd", ds::sgd{.lr = 3e-2, .momentum = 0.9}},
    {"adam", ds::adam{.lr = 3e-3}},
    {"adamw", ds::adamw{.lr = 3e-3}},
    {"rmsprop", ds::rmsprop{.lr = 3e-3}},
    {"lion", ds::lion{.lr = 1e-3}},
    {"lars", ds::lars{.lr = 3}},
    {"lamb", ds::lamb{.lr = 3e-3}},
    {"dog", ds::dog{.lr = 2}},  // the mean of a falling schedule is half its peak
    {"heavy_ball", ds::heavy_ball{.lr = 1e-1}},
    {"adagrad", ds::adagrad{.lr = 3e-2}},
    {"adadelta", ds::adadelta{.lr = 3}},
    {"adamax", ds::adamax{.lr = 1e-2}},
    {"nadam", ds::nadam{.lr = 1e-2}},
    {"radam", ds::radam{.lr = 3e-2}},
    {"amsgrad", ds::amsgrad{.lr = 1e-2}},
    {"asgd", ds::asgd{.lr = 0.3}},
    {"rprop", ds::rprop{.lr = 1e-3}},
    {"yogi", ds::yogi{.lr = 1e-2}},
    {"adabelief", ds::adabelief{.lr = 1e-2}},
    {"acprop", ds::acprop{.lr = 3e-3, .eps = 1e-4}},  // its eps of 1e-16 cannot handle pixels that are rarely lit
    {"adabound", ds::adabound{.lr = 1e-2}},
    {"padam", ds::padam{.lr = 0.3}},
    {"adan", ds::adan{.lr = 3e-3}},
    {"adopt", ds::adopt{.lr = 1e-2}},
    {"ademamix", ds::ademamix{.lr = 1e-2}},
    {"qhadam", ds::qhadam{.lr = 1e-2}},
    {"qhm", ds::qhm{.lr = 1}},
    {"signsgd", ds::signsgd{.lr = 3e-3}},
    {"signum", ds::signum{.lr = 3e-3}},
    {"optimistic", ds::optimistic{.lr = 0.3}},
    {"optimistic_adam", ds::optimistic_adam{.lr = 1e-2}},
    {"fromage", ds::fromage{.lr = 3e-2}},
    {"novograd", ds::novograd{.lr = 1e-1}},
    {"larc", ds::larc<ds::sgd>{.rule = {.momentum = 0.9}, .lr = 1e-1}},
    {"dowg", ds::dowg{.lr = 1}},
    {"prodigy", ds::prodigy{.lr = 1}},
    {"dadapt_adamw", ds::dadapt_adamw{.lr = 1}},
    {"madgrad", ds::madgrad{.lr = 1e-2}},
    {"cocob", ds::cocob{.lr = 1}},
    {"schedule_free_sgd", ds::schedule_free_sgd{.lr = 1}},
    {"schedule_free_adamw", ds::schedule_free_adamw{.lr = 1e-2}},
    {"yellowfin", ds::yellowfin{.lr = 3}},
};
static_assert(std::size(rules) == std::variant_size_v<any_rule>);

/// Calls v(name, field) for each field of a rule; a rule inside another one has momentum only.
template <class Rule, class Visit> void fields(Rule& r, Visit v) {
  ds::each_field(r, [&](std::string const& name, auto& field) {
    if (name == "rule.momentum") v(std::string("momentum"), field);
    else if (!name.starts_with("rule.")) v(name, field);
  });
}

}  // namespace

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (auto const& [name, rule] : rules) names.emplace_back(name);
  return names;
}

std::vector<std::string> common_rule_names() {
  auto names = rule_names();
  std::erase_if(names, [](auto const& name) { return !is_common(rule_named(name)); });
  return names;
}

any_rule rule_named(std::string_view wanted) {
  for (auto const& [name, rule] : rules)
    if (name == wanted) return rule;
  fail_unknown("there is no optimizer", std::string{wanted}, rule_names());
}

std::vector<std::string> hyperparameters(any_rule const& rule) {
  std::vector<std::string> names;
  auto const visit = [&](std::string const& name, auto) { names.push_back(name); };
  std::visit([&](auto r) { fields(r, visit); }, rule);
  return names;
}

namespace {
template <class... Rules> bool holds_one(any_rule const& rule, rule_group<Rules...>) {
  return (std::holds_alternative<Rules>(rule) || ...);
}
}  // namespace

bool is_common(any_rule const& rule) { return holds_one(rule, common_rules{}); }

std::vector<std::string> level_rule_names() {
  auto names = rule_names();
  std::erase_if(names, [](auto const& name) { return !holds_one(rule_named(name), level_rules{}); });
  return names;
}

double get(any_rule const& rule, std::string_view hyperparameter) {
  double value = 0;
  auto const visit = [&](std::string const& name, auto x) { value = name == hyperparameter ? double(x) : value; };
  std::visit([&](auto r) { fields(r, visit); }, rule);
  return value;
}

bool set(any_rule& rule, std::string_view hyperparameter, double value) {
  bool found = false;
  auto const visit = [&](std::string const& name, auto& field) {
    if (name != hyperparameter) return;
    field = static_cast<std::remove_reference_t<decltype(field)>>(value);
    found = true;
  };
  std::visit([&](auto& r) { fields(r, visit); }, rule);
  return found;
}

}  // namespace example
