// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "recipe.hpp"

#include <descent/descent.hpp>
#include <descent/rules/muon.hpp>

#include <string>
#include <utility>

/// Makes the optimizers of one backend. To add a rule, add a line to make_of().
namespace c_api {

namespace ds = descent;

inline constexpr char of_matrices[] = "matrix.";

/// An optimizer with all policies; those that are not wanted have settings with which they change nothing.
/// Matrices: nothing, or the policy with the rule for matrices.
template <class Value, class Backend, class Rule, class... Matrices>
made make_one(recipe const& r, Backend const& backend, Rule rule, Matrices... matrices) {
  for (descent_setting const& s : r.settings) {
    if (!s.name) refuse("a setting has no name");
    std::string const name = s.name;
    bool const of_matrix = sizeof...(Matrices) > 0 && name.starts_with(of_matrices);
    if (of_matrix) (ds::set_field(matrices.rule, name.substr(sizeof of_matrices - 1), s.value), ...);
    else ds::set_field(rule, name, s.value);
  }
  auto const& o = r.options;
  if (!(o.clip_norm >= 0)) refuse("clip_norm must be at least 0, is " + std::to_string(o.clip_norm));
  if (!(o.loss_scale >= 0)) refuse("loss_scale must be at least 0, is " + std::to_string(o.loss_scale));
  ds::clip_norm const clip{o.clip_norm > 0 ? o.clip_norm : 1e300};
  auto const scale = o.loss_scale > 0 ? ds::dynamic_loss_scale{.init = o.loss_scale}
                                      : ds::dynamic_loss_scale{.init = 1, .min = 1, .max = 1};
  auto const with = [&](auto... masters) -> made {
    return {ds::optimizer{ds::parameters_of<Value>(r.parameters), rule, matrices..., masters..., scale, clip,
                          backend.policy()},
            Backend::fetch, Backend::is_device_error};
  };
  if constexpr (sizeof(Value) == 2) return with(ds::master<float>{});
  else return with();
}

template <class Value, class Backend> made make_of(recipe const& r, Backend const& backend) {
  if (r.rule == "sgd") return make_one<Value>(r, backend, ds::sgd{});
  if (r.rule == "adamw") return make_one<Value>(r, backend, ds::adamw{});
  if (r.rule == "lion") return make_one<Value>(r, backend, ds::lion{});
  if (r.rule == "lamb") return make_one<Value>(r, backend, ds::lamb{});
  if (r.rule == "muon") return make_one<Value>(r, backend, ds::adamw{}, ds::matrices{ds::muon{}});
  refuse("there is no rule '" + r.rule + "'; there are sgd, adamw, lion, lamb and muon");
}

template <class Backend> made make(recipe const& r, Backend const& backend) {
  switch (r.type) {
    case ds::element_type::f16: return make_of<ds::half>(r, backend);
    case ds::element_type::bf16: return make_of<ds::bfloat16>(r, backend);
    default: return make_of<float>(r, backend);
  }
}

}  // namespace c_api
