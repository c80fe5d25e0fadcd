// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/rules/sgd.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace descent {

namespace detail {

/// Memory for the slow weights and the outer gradients. training/diloco.cuh has that of cuda.
template <class Backend> struct outer_memory {
  static_assert(!std::is_same_v<Backend, Backend>, "diloco on a device: #include <descent/training/diloco.cuh>");
};
template <class System> struct outer_memory<host<System>> {
  template <class Real> struct array {
    std::vector<Real> elements;
    array(host<System> const&, std::size_t count) : elements(count) {}
    Real* data() { return elements.data(); }
  };
  /// to <- from, where the optimizer is not there yet
  template <class To, class From>
  static void copy(host<System> const&, To* to, From const* from, std::int64_t count) {
    using real = std::conditional_t<std::is_same_v<To, double> || std::is_same_v<From, double>, double, float>;
    for (std::int64_t i = 0; i < count; ++i) to[i] = narrow<To>(widen<real>(from[i]));
  }
  static void wait(host<System> const&) {}
};

template <class Value> struct outer_real { using type = float; };
template <> struct outer_real<double> { using type = double; };

/// Bodies for one tensor, as in engine/step/passes.hpp: to <- slow - parameter, where the parameter is what the rule
/// has reached, in the type in which it is stored.
template <class Outer> struct outer_distance_all {
  Outer* to;
  Outer const* slow;
  template <class Plan, class Real, int M>
  DESCENT_HD void operator()(buffers<Plan> const& x, std::int64_t i, packet_extent e) const {
    Real p[std::size_t(M)], s[std::size_t(M)];
    if constexpr (Plan::leads) read(p, x.extra.slow + i, e);
    else read_master(p, x, i, e);
    read(s, slow + i, e);
    for (int j = 0; j < M; ++j) s[j] = s[j] - p[j];
    write(to + i, s, e);
  }
};
/// Parameter, value and the optimizer's own slow weights <- from.
template <class Outer> struct outer_set_all {
  Outer const* from;
  template <class Plan, class Real, int M>
  DESCENT_HD void operator()(buffers<Plan> const& x, std::int64_t i, packet_extent e) const {
    Real p[std::size_t(M)];
    read(p, from + i, e);
    if constexpr (has<Plan, kind::lookahead>) write(x.extra.slow + i, p, e);
    if constexpr (Plan::has_remainder) write_joined(x.value + i, x.extra.remainder + i, p, e);
    else write(x.master + i, p, e);
    if constexpr (Plan::has_master) round_to<typename Plan::master>(p), write(x.value + i, p, e);
  }
};

/// diloco's access to the internals of an optimizer.
struct outer_access {
  template <class O> static constexpr bool reaches = requires(O& opt) { opt.core_; };
  template <class O> static auto& core_of(O& opt) { return opt.core_; }
};

}  // namespace detail

/// DiLoCo (Douillard et al. 2023, algorithm 1): every rank trains alone for K steps; then all ranks average their
/// distance from the common slow weights and take a step of SGD with Nesterov's momentum along it. Ranks exchange 1/K
/// of the bytes of `replicated`.
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
/// and d in float, or in double for values in double, in memory of the backend. p is the master copy, if there is one,
/// and with ema_nesterov the parameters, not the point ahead, to which the values return with the next step; the slow
/// weights of lookahead, outer and ema_nesterov become s, too. Averages and the states of rules do not. If the distance
/// of any rank is not finite, all ranks go back to s. Groups that the optimizer has frozen keep values, s and b; they
/// must be the same on all ranks at an outer step.
template <class Value, class Gradient, class Parallel, class Backend = host<>> class diloco {
  using real = typename detail::outer_real<Value>::type;
  using memory = detail::outer_memory<Backend>;
  using array = typename memory::template array<real>;
  using outer_optimizer = optimizer<real, real, sgd, skip_nonfinite, Parallel, Backend>;
  static_assert(!detail::types<Value>::several, "diloco: parameters of one type");
  static_assert(!Parallel::overlaps, "diloco: overlap{} has no backward pass to overlap with");

 public:
  /// Waits for all ranks. Throws like optimizer's constructor, and std::invalid_argument if a field of `how` is out of
  /// range or differs between ranks.
  diloco(parameters<Value, Gradient> params, outer how, Parallel parallel, Backend backend = {})
      : params_(std::move(params)), how_((detail::check_ranges<real>(how), how)), backend_(backend),
        slow_(backend, elements()), distance_(backend, elements()), comm_(parallel.comm),
        outer_(list(), sgd{.lr = how.lr, .momentum = how.momentum, .nesterov = how.momentum > 0}, skip_nonfinite{},
               parallel, backend) {
    compare(backend_, "an outer step every " + std::to_string(how_.every) + " steps");
    each([&](auto const& v, std::int64_t at) { memory::copy(backend_, v.value, slow_.data() + at, v.count); });
    memory::wait(backend_);
  }
  diloco(diloco const&) = delete;

  /// Counts a step of `opt`, which has the same parameters, wherever rebind() has moved them; the K-th one ends with
  /// the outer step. Returns whether there was one. Every rank must call it equally often, also after skipped steps.
  /// Throws, with nothing changed or counted: std::invalid_argument if the optimizer has other parameters, or if
  /// set_steps() has given the ranks other counts, std::logic_error between two calls of swap_average() or ascend(),
  /// move_ahead() or ready() and step(), and what optimizer::step() of the outer step throws. On CUDA it works on the
  /// optimizer's stream, which must not be capturing at an outer step.
  template <class Optimizer> bool step(Optimizer& opt) {
    static_assert(detail::outer_access::reaches<Optimizer>,
                  "diloco: step(opt) takes an optimizer; any_optimizer has it as target<Optimizer>()");
    auto& core = detail::outer_access::core_of(opt);
    check(core);
    if (steps_ + 1 < how_.every) return ++steps_, false;
    auto& engine = core.waiting("diloco::step()");
    Backend on = backend_;
    if constexpr (requires { on.stream = engine.storage.stream; }) on.stream = engine.storage.stream;
    compare(on, std::to_string(how_.every - set_) + " calls of step() since the last outer step or set_steps()");
    auto const in_tensor = [&](auto const& v, auto const& body) {
      if (v.count > 0) engine.in_tensor(core.where, core.where.find(v.name), body);
    };
    each([&](auto const& v, std::int64_t at) {
      in_tensor(v, detail::outer_distance_all<real>{distance_.data() + at, slow_.data() + at});
    });
    for (std::size_t g = 0; g < core.groups.size(); ++g) outer_.freeze(int(g), core.groups[g].frozen);
    if constexpr (requires { engine.storage.stream; }) outer_.step(engine.storage.stream);
    else outer_.step();
    each([&](auto const& v, std::int64_t at) {
      if (!core.groups[std::size_t(v.group)].frozen) in_tensor(v, detail::outer_set_all<real>{slow_.data() + at});
    });
    steps_ = set_ = 0;
    return true;
  }

  /// The steps since the last outer step, in [0, K), to be saved with optimizer_of_slow() and restored, on all ranks
  /// alike: the next outer step compares.
  int steps() const { return steps_; }
  void set_steps(int steps) {
    detail::require(steps >= 0 && steps < how_.every, "diloco", "steps", "at least 0 and below every", steps);
    steps_ = set_ = steps;
  }
  /// The optimizer of the slow weights, whose parameters are called "outer." and the name, in their groups; to save and
  /// load, for report(), and to change lr and momentum of each group.
  auto& optimizer_of_slow() { return outer_; }
  auto const& optimizer_of_slow() const { return outer_; }

 private:
  /// Throws std::invalid_argument on all ranks if they give different facts.
  void compare(Backend const& on, std::string const& fact) {
    std::string difference;
    std::uint64_t none = 0;
    detail::host_meeting<Parallel::communicator_type::on_device>::meet(*comm_, on, "diloco", [&](auto&& over) {
      difference = detail::difference_in(over, {fact}, none, "diloco: ranks disagree:");
    });
    if (!difference.empty()) throw std::invalid_argument(difference);
  }
  /// Throws if the optimizer has other parameters, or its values are elsewhere.
  template <class Plan, class Engine> void check(detail::optimizer_core<Plan, Engine> const& core) const {
    static_assert(std::is_same_v<typename Plan::value, Value>, "diloco: the optimizer has values of another type");
    static_assert(!Plan::shards,
                  "diloco: the optimizer cannot be sharded, because its ranks have parts of the masters");
    core.alive();
    core.refuse_averages("diloco::step()");
    core.refuse_elsewhere("diloco::step()");
    core.refuse_ready("diloco::step()");
    auto const refuse = [](std::string const& what) {
      throw std::invalid_argument("diloco: the optimizer has other parameters: " + what);
    };
    auto const& tensors = core.where.tensors;
    auto const& views = params_.views();
    if (tensors.size() != views.size()) refuse(std::to_string(tensors.size()) + " of " + std::to_string(views.size()));
    for (auto const& v : views) {
      std::int64_t const place = core.where.place_of(v.name);
      if (place < 0) refuse("no '" + v.name + "'");
      auto const& x = tensors[std::size_t(place)];
      if (x.count != v.count)
        refuse("'" + v.name + "' has " + std::to_string(x.count) + " elements, not " + std::to_string(v.count));
      if (x.group != v.group)
        refuse("'" + v.name + "' is in group " + std::to_string(x.group) + ", not " + std::to_string(v.group));
    }
  }
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
      all.add("outer." + v.name, slow_.data() + at, distance_.data() + at, v.count, descent::group{v.group});
    });
    return all;
  }

  parameters<Value, Gradient> params_;
  outer how_;
  Backend backend_;
  array slow_, distance_;
  typename Parallel::communicator_type* comm_;
  outer_optimizer outer_;
  int steps_ = 0, set_ = 0;  // since the last outer step; of those, what set_steps() has set
};
template <class Value, class Gradient, class Parallel>
diloco(parameters<Value, Gradient>, outer, Parallel) -> diloco<Value, Gradient, Parallel>;
template <class Value, class Gradient, class Parallel, class Backend>
diloco(parameters<Value, Gradient>, outer, Parallel, Backend) -> diloco<Value, Gradient, Parallel, Backend>;

}  // namespace descent
