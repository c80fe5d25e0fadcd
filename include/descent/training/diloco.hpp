// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/parallel.hpp>
#include <descent/rules/sgd.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace descent {

namespace detail {

/// Memory for the slow weights and the outer gradients, and the loops over them. training/diloco.cuh has those of cuda.
template <class Backend> struct outer_memory {
  static_assert(!std::is_same_v<Backend, Backend>, "diloco on a device: #include <descent/training/diloco.cuh>");
};
template <class System> struct outer_memory<host<System>> {
  template <class Real> struct array {
    std::vector<Real> elements;
    array(host<System> const&, std::size_t count) : elements(count) {}
    Real* data() { return elements.data(); }
  };
  /// to <- slow - values, and to <- from
  template <class Real, class T>
  static void distance(host<System> const&, Real* to, Real const* slow, T const* values, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = slow[i] - widen<Real>(values[i]);
  }
  template <class To, class From>
  static void copy(host<System> const&, To* to, From const* from, std::int64_t count) {
    using real = std::conditional_t<std::is_same_v<To, double> || std::is_same_v<From, double>, double, float>;
    for (std::int64_t i = 0; i < count; ++i) to[i] = narrow<To>(widen<real>(from[i]));
  }
};

template <class Value> struct outer_real { using type = float; };
template <> struct outer_real<double> { using type = double; };

}  // namespace detail

/// DiLoCo (Douillard et al. 2023, algorithm 1): every rank trains by itself for K steps; then all average how far they
/// have gone, and take a step of SGD with Nesterov's momentum with it. Ranks exchange 1/K of the bytes of `replicated`.
///
///     K times on each rank:  p <- rule(p, g)
///     d <- mean over ranks of s - p,  b <- mu b + d,  s <- s - lr (d + mu b),  p <- s
///
///     diloco global{params, outer{.every = 500}, replicated{comm, wire<bfloat16>{}}};
///     optimizer opt{params, adamw{}};               // without ranks
///     ... backward ...; opt.step(); global.step(opt);
///
/// Construct it before the optimizer, which it neither owns nor refers to: the constructor gives all ranks the values
/// of rank 0. Options of replicated and sharded work, except overlap: wire types, ordered sums, agreement. It owns s, b
/// and d in float, or in double for values in double, in memory of the backend. With masters in that type the distance
/// is that of the masters. If the distance of any rank is not finite, all ranks go back to s.
template <class Value, class Gradient, class Parallel, class Backend = host<>> class diloco {
  using real = typename detail::outer_real<Value>::type;
  using memory = detail::outer_memory<Backend>;
  using array = typename memory::template array<real>;
  using outer_optimizer = optimizer<real, real, sgd, skip_nonfinite, Parallel, Backend>;
  static_assert(!detail::types<Value>::several, "diloco: parameters of one type");
  static_assert(!Parallel::overlaps, "diloco: overlap{} has no backward pass to overlap with");

 public:
  /// Waits for all ranks. Throws like optimizer's constructor, and std::invalid_argument if a field of `how` is out of
  /// range.
  diloco(parameters<Value, Gradient> params, outer how, Parallel parallel, Backend backend = {})
      : params_(std::move(params)), how_((how.check(), how)), backend_(backend), slow_(backend, elements()),
        distance_(backend, elements()),
        outer_(list(), sgd{.lr = how.lr, .momentum = how.momentum, .nesterov = how.momentum > 0}, skip_nonfinite{},
               parallel, backend) {
    each([&](auto const& v, std::int64_t at) { memory::copy(backend_, v.value, slow_.data() + at, v.count); });
  }
  diloco(diloco const&) = delete;

  /// Counts a step of `opt`, which has the same parameters; the K-th one ends with the outer step. Returns whether
  /// there was one. Every rank must call it equally often, also after skipped steps. The outer step throws like
  /// optimizer::step(), with nothing changed.
  template <class Optimizer> bool step(Optimizer& opt) {
    if (steps_ + 1 < how_.every) return ++steps_, false;
    each([&](auto const& v, std::int64_t at) {
      auto const measure = [&](auto const* p) {
        memory::distance(backend_, distance_.data() + at, slow_.data() + at, p, v.count);
      };
      if constexpr (has_master<Optimizer>) measure(opt.master(v.name).data());
      else measure(v.value);
    });
    outer_.step();
    each([&](auto const& v, std::int64_t at) {
      if constexpr (has_master<Optimizer>)
        opt.set_master(v.name, std::span<real const>(slow_.data() + at, std::size_t(v.count)));
      else memory::copy(backend_, v.value, slow_.data() + at, v.count);
    });
    if constexpr (!has_master<Optimizer>) opt.reload_values();
    steps_ = 0;
    return true;
  }

  /// The steps since the last outer step, in [0, K), to be saved with optimizer() and restored.
  int steps() const { return steps_; }
  void set_steps(int steps) {
    detail::require(steps >= 0 && steps < how_.every, "diloco", "steps", "at least 0 and below every", steps);
    steps_ = steps;
  }
  /// The optimizer of the slow weights, whose parameters are called "outer." and the name; to save and load, for
  /// report(), and to change lr and momentum.
  auto& optimizer_of_slow() { return outer_; }
  auto const& optimizer_of_slow() const { return outer_; }

 private:
  /// Whether an optimizer has masters in the type of the slow weights.
  template <class Optimizer> static constexpr bool has_master = [] {
    if constexpr (requires(Optimizer const& opt) { opt.master(""); })
      return std::is_same_v<typename decltype(std::declval<Optimizer const&>().master(""))::element_type, real const>;
    else return false;
  }();
  std::size_t elements() const {
    std::int64_t n = 0;
    for (auto const& v : params_.views()) n += detail::arena_of(v.count);
    return std::size_t(n);
  }
  template <class F> void each(F const& f) {
    std::int64_t at = 0;
    for (auto const& v : params_.views()) {
      f(v, at);
      at += detail::arena_of(v.count);
    }
  }
  /// Fills the slow weights from the values, and lists them.
  parameters<real> list() {
    parameters<real> all;
    each([&](auto const& v, std::int64_t at) {
      memory::copy(backend_, slow_.data() + at, v.value, v.count);
      all.add("outer." + v.name, slow_.data() + at, distance_.data() + at, v.count);
    });
    return all;
  }

  parameters<Value, Gradient> params_;
  outer how_;
  Backend backend_;
  array slow_, distance_;
  outer_optimizer outer_;
  int steps_ = 0;
};
template <class Value, class Gradient, class Parallel>
diloco(parameters<Value, Gradient>, outer, Parallel) -> diloco<Value, Gradient, Parallel>;
template <class Value, class Gradient, class Parallel, class Backend>
diloco(parameters<Value, Gradient>, outer, Parallel, Backend) -> diloco<Value, Gradient, Parallel, Backend>;

}  // namespace descent
