// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "rules.hpp"

#include "text.hpp"

#include <stdexcept>
#include <type_traits>

namespace example {
namespace {

struct named_rule {
  char const* name;
  any_rule rule;
};

/// Rates found by trying 1, 3, 10, ... on the digits; all else is the library's default.
named_rule const rules[] = {
    {"sgd", ds::sgd{.lr = 3e-2, .momentum = 0.9}},
    {"adam", ds::adam{.lr = 3e-3}},
    {"adamw", ds::adamw{.lr = 3e-3}},
    {"rmsprop", ds::rmsprop{.lr = 3e-3}},
    {"lion", ds::lion{.lr = 1e-3}},
    {"lars", ds::lars{.lr = 3}},
    {"lamb", ds::lamb{.lr = 3e-3}},
    {"dog", ds::dog{.lr = 2}},  // the mean of a falling schedule is half its peak
};

template <class Visit> void fields(ds::sgd& r, Visit v) {
  v("lr", r.lr), v("momentum", r.momentum), v("dampening", r.dampening);
  v("weight_decay", r.weight_decay), v("nesterov", r.nesterov);
}
template <class Visit> void adam_fields(auto& r, Visit v) {
  v("lr", r.lr), v("beta1", r.beta1), v("beta2", r.beta2), v("eps", r.eps);
  v("weight_decay", r.weight_decay);
}
template <class Visit> void fields(ds::adam& r, Visit v) { adam_fields(r, v); }
template <class Visit> void fields(ds::adamw& r, Visit v) { adam_fields(r, v); }
template <class Visit> void fields(ds::lamb& r, Visit v) { adam_fields(r, v); }
template <class Visit> void fields(ds::rmsprop& r, Visit v) {
  v("lr", r.lr), v("alpha", r.alpha), v("eps", r.eps), v("weight_decay", r.weight_decay);
  v("momentum", r.momentum), v("centered", r.centered);
}
template <class Visit> void fields(ds::lion& r, Visit v) {
  v("lr", r.lr), v("beta1", r.beta1), v("beta2", r.beta2), v("weight_decay", r.weight_decay);
}
template <class Visit> void fields(ds::lars& r, Visit v) {
  v("lr", r.lr), v("momentum", r.momentum), v("weight_decay", r.weight_decay);
  v("trust", r.trust), v("eps", r.eps), v("nesterov", r.nesterov);
  v("joint_norm", r.joint_norm);
}
template <class Visit> void fields(ds::dog& r, Visit v) {
  v("lr", r.lr), v("reps", r.reps), v("eps", r.eps), v("weight_decay", r.weight_decay);
}

}  // namespace

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (auto const& [name, rule] : rules) names.emplace_back(name);
  return names;
}

any_rule rule_named(std::string_view wanted) {
  for (auto const& [name, rule] : rules)
    if (name == wanted) return rule;
  throw std::invalid_argument("there is no optimizer " + quoted(wanted) + "; there are " +
                              joined(rule_names(), ", "));
}

std::vector<std::string> hyperparameters(any_rule const& rule) {
  std::vector<std::string> names;
  auto const visit = [&](char const* name, auto) { names.emplace_back(name); };
  std::visit([&](auto r) { fields(r, visit); }, rule);
  return names;
}

double get(any_rule const& rule, std::string_view hyperparameter) {
  double value = 0;
  auto const visit = [&](std::string_view name, auto x) {
    value = name == hyperparameter ? x : value;
  };
  std::visit([&](auto r) { fields(r, visit); }, rule);
  return value;
}

bool set(any_rule& rule, std::string_view hyperparameter, double value) {
  bool found = false;
  auto const visit = [&](std::string_view name, auto& field) {
    if (name != hyperparameter) return;
    field = static_cast<std::remove_reference_t<decltype(field)>>(value);
    found = true;
  };
  std::visit([&](auto& r) { fields(r, visit); }, rule);
  return found;
}

}  // namespace example
