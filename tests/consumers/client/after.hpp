// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The client's optimizer through descent: the only part of the client in C++20. `Backend` is host<> or cuda.
#pragma once

#include "before.hpp"

#include <descent/optimizer.hpp>
#include <descent/policies/gradient_factor_at.hpp>
#include <descent/policies/state_in.hpp>
#include <descent/policies/storage.hpp>

#include <optional>
#include <string>
#include <type_traits>

namespace ds = descent;

// snippet: clients_adam
/// The client's formula with its constants, so that no bit changes. It computes the corrections itself, in float.
///     m <- g + beta1 (m - g)     v <- g^2 + beta2 (v - g^2)     p <- p - lr (m / c1 / (sqrt(v / c2) + eps) + wd p)
struct clients_adam {
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0, correction1 = 1, correction2 = 1;

  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real lr, b1, b2, c1, c2, eps, wd; };
  static constexpr char const* slots[] = {"m", "v"};

  DESCENT_HD terms<double> at(std::int64_t) const {
    return {lr, beta1, beta2, correction1, correction2, eps, weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using ds::sqrt;
    s.m = g + k.b1 * (s.m - g);
    s.v = g * g + k.b2 * (s.v - g * g);
    return p - k.lr * (s.m / k.c1 / (sqrt(s.v / k.c2) + k.eps) + k.wd * p);
  }
};
static_assert(ds::update_rule<clients_adam>);
// end

template <class Backend> class with_descent : public adam {
 public:
  with_descent(settings const& s, std::vector<tensor> const& tensors, float const* inverse_scale, Backend backend)
      : settings_(s), tensors_(tensors), state_(state_of(tensors)), inverse_scale_(inverse_scale), backend_(backend) {}

  // snippet: clients_step
  void step(std::vector<__half*> const& gradients, void* stream) override {
    if (!optimizer_)  // now there are gradients
      optimizer_.emplace(parameters(gradients), clients_adam{}, ds::master<float>{},
                         ds::state_in{.where = &state_, .initialized = true},
                         ds::gradient_factor_at<float>{inverse_scale_}, backend_);
    else optimizer_->rebind(parameters(gradients));
    factors const k = factors_at(settings_, ++t_);
    optimizer_->group(0) = {k.lr, k.beta1, k.beta2, k.eps, k.weight_decay, k.correction1, k.correction2};
    if constexpr (std::is_same_v<Backend, ds::host<>>) optimizer_->step();
    else optimizer_->step(static_cast<typename Backend::stream_type>(stream));
  }
  // end

 private:
  static std::string name(std::size_t n) { return "tensor " + std::to_string(n); }
  static ds::state_memory state_of(std::vector<tensor> const& tensors) {
    ds::state_memory list;
    for (std::size_t n = 0; n < tensors.size(); ++n)
      list.add(name(n) + ".master", tensors[n].master)
          .add(name(n) + ".state.m", tensors[n].m)
          .add(name(n) + ".state.v", tensors[n].v);
    return list;
  }
  ds::parameters<ds::half> parameters(std::vector<__half*> const& gradients) const {
    ds::parameters<ds::half> list;
    for (std::size_t n = 0; n < tensors_.size(); ++n)
      list.add(name(n), tensors_[n].value, gradients[n], tensors_[n].count);
    return list;
  }

  settings settings_;
  std::vector<tensor> tensors_;
  ds::state_memory state_;
  float const* inverse_scale_;
  Backend backend_;
  int t_ = 0;
  std::optional<ds::optimizer<ds::half, ds::half, clients_adam, ds::master<float>, ds::state_in,
                              ds::gradient_factor_at<float>, Backend>>
      optimizer_;
};
