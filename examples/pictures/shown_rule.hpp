// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "draw.hpp"

#include <descent/optimizer.hpp>
#include <descent/parameters.hpp>
#include <descent/policies/gradient_ahead.hpp>
#include <descent/policies/loss_at.hpp>
#include <descent/policies/sam.hpp>
#include <descent/rules/sophia.hpp>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Every rule of the library and every wrapper of rules, ready to be drawn.
namespace example::pictures {

namespace ds = descent;

/// A problem for a rule to minimise. The caller keeps values, gradients and the loss up to date.
struct problem {
  ds::parameters<float> parameters{};
  float const* loss = nullptr;
  std::vector<std::string> names{};  // of the parameters
  std::function<void()> backward{};  // recomputes the gradient and the loss at the current values
  /// The diagonal of the Hessian, or an estimate, for rules that use it, and the number of steps between its updates.
  std::function<std::vector<float>(std::string const& name)> curvature{};
  int curvature_every = 1;
};

/// One training step.
using stepper = std::function<void()>;
using starter = std::function<stepper(problem const&, double lr)>;

/// A surface of a rule's own: with a fixed lr, or walked by an algorithm that evaluates the loss itself.
struct scene {
  surface on;
  starter start{};
  double lr = 0;
  std::function<path(surface const&)> walk{};
};

struct shown_rule {
  std::string name;
  bool searched;  // whether lr is searched; otherwise it is 1, and the rule finds its rate itself
  starter on_surface, on_network;  // without the first, only the training is drawn
  notes settings{};  // settings that are not the defaults
  std::vector<scene> scenes{};  // instead of the surfaces that all rules share
  double network_lr = 1;  // of a rule whose lr is not searched
};
inline shown_rule with_network_lr(shown_rule rule, double lr) {
  rule.network_lr = lr;
  return rule;
}
inline shown_rule noted(shown_rule rule, notes settings) {
  rule.settings = std::move(settings);
  return rule;
}

/// Starts a rule with its settings; the caller sets lr.
template <class Rule, class... Ps> starter start_of(Rule rule, Ps... policies) {
  return [=](problem const& p, double lr) -> stepper {
    Rule r = rule;
    r.lr = lr;
    if constexpr (ds::has_loss<Rule>) {
      auto const opt =
          std::make_shared<ds::optimizer<float, float, Rule, ds::loss_at<>>>(p.parameters, r, ds::loss_at{p.loss});
      return [opt] { opt->step(); };
    } else {
      auto const opt = std::make_shared<ds::optimizer<float, float, Rule, Ps...>>(p.parameters, r, policies...);
      if constexpr ((std::is_same_v<Ps, ds::sam> || ...)) return [opt, p] { opt->ascend(), p.backward(), opt->step(); };
      else if constexpr ((std::is_same_v<Ps, ds::gradient_ahead> || ...))
        return [opt, p] { opt->move_ahead(), p.backward(), opt->step(); };
      else if constexpr (std::is_same_v<Rule, ds::sophia>)
        return [opt, p, t = 0]() mutable {
          if (t++ % p.curvature_every == 0)
            for (auto const& name : p.names) {
              auto const h = p.curvature(name);
              opt->template set_state<1>(name, std::span{h});
            }
          opt->step();
        };
      else return [opt] { opt->step(); };
    }
  };
}

template <class Rule> shown_rule searched(std::string name, Rule surface, Rule network) {
  return {std::move(name), true, start_of(surface), start_of(network)};
}
template <class Rule> shown_rule searched(std::string name, Rule both) { return searched(std::move(name), both, both); }
template <class Rule> shown_rule found(std::string name, Rule surface, Rule network) {
  return {std::move(name), false, start_of(surface), start_of(network)};
}
template <class Rule> shown_rule found(std::string name, Rule both) { return found(std::move(name), both, both); }

/// The table, by section of docs/optimizers.md.
std::vector<shown_rule> momentum_rules();
std::vector<shown_rule> adaptive_rules();
std::vector<shown_rule> layer_rules();
std::vector<shown_rule> free_rules();
std::vector<shown_rule> matrix_rules();
std::vector<shown_rule> around_rules();  // and the algorithms that evaluate the loss themselves

}  // namespace example::pictures
