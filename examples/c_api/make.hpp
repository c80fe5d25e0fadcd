// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "any_optimizer.hpp"

#include <descent/descent.hpp>
#include <descent/rules/muon.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Makes the optimizers of one backend. To add a rule, add a line to make() and its fields to find_field().
namespace c_api {

namespace ds = descent;

[[noreturn]] inline void refuse(std::string const& what) { throw std::invalid_argument(what); }

/// The field of this name and type, or null.
template <class T, class Rule> T* find_field(Rule& rule, std::string const& name) {
  T* found = nullptr;
  auto const look = [&](char const* called, auto& x) {
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(x)>, T>)
      if (name == called) found = &x;
  };
#define FIELD(f) \
  if constexpr (requires { rule.f; }) look(#f, rule.f);
  FIELD(lr) FIELD(momentum) FIELD(dampening) FIELD(nesterov) FIELD(weight_decay) FIELD(beta1) FIELD(beta2) FIELD(eps)
  FIELD(decoupled) FIELD(bias_correction) FIELD(eps_hat) FIELD(averaging) FIELD(min_ratio) FIELD(max_ratio) FIELD(rms)
  FIELD(eps_added)
#undef FIELD
              return found;
}
[[noreturn]] inline void refuse_field(std::string const& name) { refuse("the rule has no field '" + name + "'"); }
template <class Rule> void set_field(Rule& rule, std::string const& name, double value) {
  if (double* const x = find_field<double>(rule, name)) {
    *x = value;
  } else if (bool* const flag = find_field<bool>(rule, name)) {
    if (value != 0 && value != 1) refuse("'" + name + "' must be 0 or 1, is " + std::to_string(value));
    *flag = value != 0;
  } else {
    refuse_field(name);
  }
}
template <class Rule> double get_field(Rule& rule, std::string const& name) {
  if (double const* const x = find_field<double>(rule, name)) return *x;
  if (bool const* const flag = find_field<bool>(rule, name)) return *flag;
  refuse_field(name);
}

inline constexpr char prefix[] = "muon.";
inline bool is_of_muon(std::string const& name) { return name.starts_with(prefix); }
inline std::string without_prefix(std::string const& name) { return name.substr(sizeof prefix - 1); }

template <class Value> ds::parameters<Value> list_of(std::span<descent_parameter const> all) {
  ds::parameters<Value> list;
  for (descent_parameter const& p : all) {
    if (!p.name) refuse("a parameter has no name");
    list.add(p.name, static_cast<Value*>(p.value), static_cast<Value*>(p.gradient), ds::shape{p.rows, p.columns},
             ds::group{p.group});
  }
  return list;
}

/// Backend: fetch(to, from, bytes) copies to host memory; is_device_error(e).
template <class Value, class Backend, class Optimizer> class erased final : public any_optimizer {
 public:
  erased(Optimizer&& of, Backend const& backend, int groups) : of_(std::move(of)), backend_(backend), groups_(groups) {}

  void step() override { of_.step(); }
  void zero_grad() override { of_.zero_grad(); }
  int groups() const override { return groups_; }
  void set(int group, std::string const& field, double value) override {
    with_rule(group, field, [&](auto& rule, std::string const& name) { set_field(rule, name, value); });
  }
  double get(int group, std::string const& field) override {
    double value = 0;
    with_rule(group, field, [&](auto& rule, std::string const& name) { value = get_field(rule, name); });
    return value;
  }
  ds::step_report report() const override { return of_.report(); }
  double loss_scale() const override { return of_.loss_scale(); }
  void rebind(std::span<descent_parameter const> parameters) override { of_.rebind(list_of<Value>(parameters)); }
  void save(writer const& write) const override {
    of_.save([&](std::string const& name, auto elements) {
      std::vector<std::byte> copy(elements.size_bytes());
      backend_.fetch(copy.data(), elements.data(), copy.size());
      write(name, copy.data(), copy.size());
    });
  }
  void load(reader const& read) override {
    of_.load([&](std::string const& name, auto elements) {
      std::vector<std::remove_const_t<typename decltype(elements)::element_type>> saved(elements.size());
      read(name, saved.data(), elements.size_bytes());
      return saved;
    });
  }
  bool is_device_error(std::exception const& e) const override { return Backend::is_device_error(e); }

 private:
  template <class F> void with_rule(int group, std::string const& field, F const& f) {
    if constexpr (requires { of_.matrix_rule(0); })
      if (is_of_muon(field)) return f(of_.matrix_rule(group), without_prefix(field));
    f(of_.group(group), field);
  }

  Optimizer of_;
  Backend backend_;
  int groups_;
};

/// An optimizer with all policies; those that are not wanted have settings with which they change nothing.
template <class Value, class Backend, class Rule, class... More>
std::unique_ptr<any_optimizer> make_one(recipe const& r, Backend const& backend, Rule rule, More... more) {
  for (descent_setting const& s : r.settings) {
    if (!s.name) refuse("a setting has no name");
    bool const of_muon = sizeof...(More) > 0 && is_of_muon(s.name);
    if (of_muon) (set_field(more.rule, without_prefix(s.name), s.value), ...);
    else set_field(rule, s.name, s.value);
  }
  auto const& o = r.options;
  if (!(o.clip_norm >= 0)) refuse("clip_norm must be at least 0, is " + std::to_string(o.clip_norm));
  if (!(o.loss_scale >= 0)) refuse("loss_scale must be at least 0, is " + std::to_string(o.loss_scale));
  ds::clip_norm const clip{o.clip_norm > 0 ? o.clip_norm : 1e300};
  auto const scale = o.loss_scale > 0 ? ds::dynamic_loss_scale{.init = o.loss_scale}
                                      : ds::dynamic_loss_scale{.init = 1, .min = 1, .max = 1};
  int groups = 1;
  for (auto const& p : r.parameters) groups = std::max(groups, p.group + 1);
  auto const made = [&](auto&& optimizer) -> std::unique_ptr<any_optimizer> {
    using type = std::remove_reference_t<decltype(optimizer)>;
    return std::make_unique<erased<Value, Backend, type>>(std::move(optimizer), backend, groups);
  };
  auto const list = list_of<Value>(r.parameters);
  if constexpr (sizeof(Value) == 2)
    return made(ds::optimizer{list, rule, more..., ds::master<float>{}, scale, clip, backend.policy()});
  else return made(ds::optimizer{list, rule, more..., scale, clip, backend.policy()});
}

template <class Value, class Backend> std::unique_ptr<any_optimizer> make_of(recipe const& r, Backend const& backend) {
  if (r.rule == "sgd") return make_one<Value>(r, backend, ds::sgd{});
  if (r.rule == "adamw") return make_one<Value>(r, backend, ds::adamw{});
  if (r.rule == "lion") return make_one<Value>(r, backend, ds::lion{});
  if (r.rule == "lamb") return make_one<Value>(r, backend, ds::lamb{});
  if (r.rule == "muon") return make_one<Value>(r, backend, ds::adamw{}, ds::matrices{ds::muon{}});
  refuse("there is no rule '" + r.rule + "'; there are sgd, adamw, lion, lamb and muon");
}

template <class Backend> std::unique_ptr<any_optimizer> make(recipe const& r, Backend const& backend) {
  switch (r.options.type) {
    case DESCENT_FLOAT: return make_of<float>(r, backend);
    case DESCENT_HALF: return make_of<ds::half>(r, backend);
    case DESCENT_BFLOAT16: return make_of<ds::bfloat16>(r, backend);
  }
  refuse("type must be 0, 1 or 2, is " + std::to_string(int(r.options.type)));
}

}  // namespace c_api
