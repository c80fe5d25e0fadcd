// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "rules.hpp"

#include "text.hpp"

#include <iterator>
#include <stdexcept>
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

/// Calls v(name, field) for each field of a rule.
template <class Rule, class Visit> void fields(Rule& r, Visit v) {
  if constexpr (requires { r.lr; }) v("lr", r.lr);
  if constexpr (requires { r.final_lr; }) v("final_lr", r.final_lr);
  if constexpr (requires { r.base_lr; }) v("base_lr", r.base_lr);
  if constexpr (requires { r.first_lr; }) v("first_lr", r.first_lr);
  if constexpr (requires { r.lr_decay; }) v("lr_decay", r.lr_decay);
  if constexpr (requires { r.momentum; }) v("momentum", r.momentum);
  if constexpr (requires { r.momentum_decay; }) v("momentum_decay", r.momentum_decay);
  if constexpr (requires { r.dampening; }) v("dampening", r.dampening);
  if constexpr (requires { r.rho; }) v("rho", r.rho);
  if constexpr (requires { r.beta; }) v("beta", r.beta);
  if constexpr (requires { r.beta1; }) v("beta1", r.beta1);
  if constexpr (requires { r.beta2; }) v("beta2", r.beta2);
  if constexpr (requires { r.beta3; }) v("beta3", r.beta3);
  if constexpr (requires { r.nu; }) v("nu", r.nu);
  if constexpr (requires { r.nu1; }) v("nu1", r.nu1);
  if constexpr (requires { r.nu2; }) v("nu2", r.nu2);
  if constexpr (requires { r.alpha; }) v("alpha", r.alpha);
  if constexpr (requires { r.gamma; }) v("gamma", r.gamma);
  if constexpr (requires { r.partial; }) v("partial", r.partial);
  if constexpr (requires { r.eps; }) v("eps", r.eps);
  if constexpr (requires { r.eps_root; }) v("eps_root", r.eps_root);
  if constexpr (requires { r.initial; }) v("initial", r.initial);
  if constexpr (requires { r.weight_decay; }) v("weight_decay", r.weight_decay);
  if constexpr (requires { r.lambd; }) v("lambd", r.lambd);
  if constexpr (requires { r.t0; }) v("t0", r.t0);
  if constexpr (requires { r.power; }) v("power", r.power);
  if constexpr (requires { r.reps; }) v("reps", r.reps);
  if constexpr (requires { r.d0; }) v("d0", r.d0);
  if constexpr (requires { r.d_coef; }) v("d_coef", r.d_coef);
  if constexpr (requires { r.trust; }) v("trust", r.trust);
  if constexpr (requires { r.at_zero; }) v("at_zero", r.at_zero);
  if constexpr (requires { r.min_ratio; }) v("min_ratio", r.min_ratio);
  if constexpr (requires { r.max_ratio; }) v("max_ratio", r.max_ratio);
  if constexpr (requires { r.min_norm; }) v("min_norm", r.min_norm);
  if constexpr (requires { r.eta_minus; }) v("eta_minus", r.eta_minus);
  if constexpr (requires { r.eta_plus; }) v("eta_plus", r.eta_plus);
  if constexpr (requires { r.min_step; }) v("min_step", r.min_step);
  if constexpr (requires { r.max_step; }) v("max_step", r.max_step);
  if constexpr (requires { r.nesterov; }) v("nesterov", r.nesterov);
  if constexpr (requires { r.correction; }) v("correction", r.correction);
  if constexpr (requires { r.centered; }) v("centered", r.centered);
  if constexpr (requires { r.eps_inside; }) v("eps_inside", r.eps_inside);
  if constexpr (requires { r.eps_hat; }) v("eps_hat", r.eps_hat);
  if constexpr (requires { r.eps_outside; }) v("eps_outside", r.eps_outside);
  if constexpr (requires { r.bias_correction; }) v("bias_correction", r.bias_correction);
  if constexpr (requires { r.lr_inside; }) v("lr_inside", r.lr_inside);
  if constexpr (requires { r.correct_rate; }) v("correct_rate", r.correct_rate);
  if constexpr (requires { r.decay_after; }) v("decay_after", r.decay_after);
  if constexpr (requires { r.decay_corrected; }) v("decay_corrected", r.decay_corrected);
  if constexpr (requires { r.corrected_max; }) v("corrected_max", r.corrected_max);
  if constexpr (requires { r.init_zero; }) v("init_zero", r.init_zero);
  if constexpr (requires { r.undampened_first_step; }) v("undampened_first_step", r.undampened_first_step);
  if constexpr (requires { r.full_first_step; }) v("full_first_step", r.full_first_step);
  if constexpr (requires { r.raw_moment; }) v("raw_moment", r.raw_moment);
  if constexpr (requires { r.joint_norm; }) v("joint_norm", r.joint_norm);
  if constexpr (requires { r.clip; }) v("clip", r.clip);
  if constexpr (requires { r.adapt; }) v("adapt", r.adapt);
  if constexpr (requires { r.always; }) v("always", r.always);
  if constexpr (requires { r.averaging; }) v("averaging", r.averaging);
  if constexpr (requires { r.amsgrad; }) v("amsgrad", r.amsgrad);
  if constexpr (requires { r.amsbound; }) v("amsbound", r.amsbound);
  if constexpr (requires { r.decoupled; }) v("decoupled", r.decoupled);
  if constexpr (requires { r.decay_by_lr; }) v("decay_by_lr", r.decay_by_lr);
  if constexpr (requires { r.paper_weight; }) v("paper_weight", r.paper_weight);
  if constexpr (requires { r.safeguard_warmup; }) v("safeguard_warmup", r.safeguard_warmup);
  if constexpr (requires { r.rule; }) v("momentum", r.rule.momentum);
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
  throw std::invalid_argument("there is no optimizer " + quoted(wanted) + "; there are " + joined(rule_names(), ", "));
}

std::vector<std::string> hyperparameters(any_rule const& rule) {
  std::vector<std::string> names;
  auto const visit = [&](char const* name, auto) { names.emplace_back(name); };
  std::visit([&](auto r) { fields(r, visit); }, rule);
  return names;
}

namespace {
template <class... Rules> bool holds_one(any_rule const& rule, rule_group<Rules...>) {
  return (std::holds_alternative<Rules>(rule) || ...);
}
}  // namespace

bool is_common(any_rule const& rule) { return holds_one(rule, common_rules{}); }

double get(any_rule const& rule, std::string_view hyperparameter) {
  double value = 0;
  auto const visit = [&](std::string_view name, auto x) { value = name == hyperparameter ? x : value; };
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
