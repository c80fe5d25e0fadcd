// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/host/engine.hpp>
#include <descent/matrices/detail/matrix_work.hpp>
#include <descent/engine/host/memory.hpp>
#include <descent/matrices/detail/groups.hpp>
#include <descent/ranks/detail/divergence.hpp>
#include <descent/matrices/matrices.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

/// The policy matrices on the host, with products by the BLAS that the program links: any with the CBLAS interface,
/// such as OpenBLAS (`-lopenblas`). Without one, the linker does not find cblas_sgemm.
namespace descent::detail {

template <class Plan, class System> requires(Plan::has_matrices) class host_matrices<Plan, System> {
  using real = typename Plan::real;
  using mrule = typename Plan::matrix_rule;

 public:
  matrix_groups<Plan> common;

  template <class Engine> void start(Engine& e) {
    common.prepare(e.control.where, e.control.policies);
    policies_ = &e.control.policies;
    auto const zeros = [&](std::int64_t n) {
      std::size_t const bytes = std::size_t(n) * sizeof(real);
      host_memory x = allocate_host(bytes, e.storage.source);
      if (bytes) std::memset(x.get(), 0, bytes);
      return x;
    };
    auto const& where = *common.where;
    auto const threads = std::size_t(where.threads);
    memory_ = zeros(where.memory), scratch_ = zeros(where.scratch);
    partials_.resize(threads * std::size_t(where.partials)), sums_.resize(threads * matrix_sums);
    units_.resize(where.matrices.size()), parts_.resize(where.matrices.size());
    lanes_.clear(), order_.clear();
    for (std::size_t i = 0; i < threads; ++i)
      lanes_.push_back({reinterpret_cast<real*>(scratch_.get()) + std::int64_t(i) * (where.scratch / where.threads),
                        partials_.data() + i * std::size_t(where.partials), sums_.data() + i * matrix_sums});
    for (std::size_t u = 0; u < where.matrices.size(); ++u)
      if (where.matrices[u].owned) order_.push_back(u);
    auto const cost = [&](std::size_t u) { return get<kind::matrices>(*policies_).cost(where.matrices[u].shape); };
    std::ranges::stable_sort(order_, std::ranges::greater{}, cost);
    if constexpr (Plan::splits) common.find_others(e.control.model);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((state_[I] = common.where->used[I] ? allocate_host(std::size_t(common.where->state) *
                                                              sizeof(typename matrix_plan<Plan>::template slot<I>),
                                                          e.storage.source)
                                          : nullptr,
        [&] {
          for (lane& l : lanes_) l.states.at[I] = state_[I].get();
        }()), ...);
    }(typename matrix_plan<Plan>::every_slot{});
    find_parts();
    one_blas_thread const alone;
    lane& l = lanes_[0];
    for (std::size_t u : order_) {
      l.states.begin = where.matrices[u].state;
      chunks(e, u, start_body<Engine>{&e, this, &l});
      if constexpr (requires { mrule::starts_memory; }) common.rules[0].start_memory(work(l, u));
    }
  }

  /// The terms of the matrices in an update, for the controller. They are kept for step().
  template <class Engine, class Groups> struct all_terms {
    host_matrices& m;
    Engine const& e;
    Groups const& groups;
    int count;

    DESCENT_CALLS
    DESCENT_HD matrix_unit<Plan> const& terms(int u, std::int64_t t, rate_change const& rates) const {
      auto const& x = m.common.known(u);
      int const own = m.common.own(u);
      auto& unit = own < 0 ? m.other_ : m.units_[std::size_t(own)];
      if (groups[std::size_t(x.group)].frozen) unit = {{}, 0, true};
      else unit = m.terms_of(e, x, t, rates);
      return unit;
    }
    term_fault stray_field(int u, std::int64_t t, rate_change const& rates) const {
      int const group = m.common.known(u).group;
      return stray_field_of<real, typename Plan::policies>(
          scheduled_for_matrices(rule(u), *m.policies_, t - 1, group, rates), group, term_fault::matrix_field);
    }
    mrule const& rule(int u) const { return m.common.accepted[std::size_t(m.common.known(u).group)]; }
    std::int64_t tensor(int u) const { return m.common.known(u).tensor; }
  };
  template <class Engine, class Groups> all_terms<Engine, Groups> terms_in(Engine const& e, Groups const& groups) {
    return {*this, e, groups, common.known_count()};
  }

  /// Each thread takes the most expensive matrix that is left, or all threads together take one after the other.
  template <class Engine, class Groups> void step(Engine& e, Groups const& groups) {
    [[maybe_unused]] auto const range = begin_range<Plan>("matrices");
    find_parts();
    one_blas_thread const alone;
    std::atomic<std::size_t> next = 0;
    auto const by_one = [&](std::int64_t thread) {
      for (std::size_t i = next++; i < order_.size(); i = next++)
        if (!groups[std::size_t(common.where->matrices[order_[i]].group)].frozen)
          step_matrix(e, lanes_[std::size_t(thread)], order_[i]);
    };
    if constexpr (has_team<System>)
      if (lanes_.size() > 1) {
        caught_body const caught(by_one);
        System::in_team(std::int64_t(lanes_.size()), caught);
        return caught.rethrow();
      }
    by_one(0);
  }

  /// Takes changed rules; returns whether there are any.
  bool commit() {
    if (!common.changed(*policies_)) return false;
    common.accepted = common.rules;
    return true;
  }

  template <class F> void each_buffer(F const& f) const { each_matrix_buffer<Plan>(*this, f); }
  std::uint64_t hash() const { return hash_of_matrix_rules<Plan>(common.rules, *policies_); }
  std::vector<std::string> facts() const { return facts_of_matrix_rules(common.rules); }
  std::vector<std::string> facts(std::vector<std::string> const& names) const {
    return facts_of_matrices<Plan>(*this, names, [](auto const* x, std::int64_t n) {
      std::uint64_t print = 0;
      for (std::int64_t i = 0; i < n; ++i) print += print_of(bits_at(x, i, sizeof *x), i);
      return print;
    });
  }
  /// Replaces the rules, their state and memory by those of another rank. send(data, bytes) is a broadcast.
  template <class Send> void broadcast(Send const& send) {
    each_buffer([&](auto const&, auto const&, auto* x, std::int64_t n) { send(x, n * std::int64_t(sizeof *x)); });
    send(common.rules.data(), std::int64_t(common.rules.size() * sizeof(mrule)));
    send(&common.updates, sizeof common.updates);
    common.accepted = common.rules;
  }

  void* state(std::size_t i) const { return state_[i].get(); }
  real* memory() const { return reinterpret_cast<real*>(memory_.get()); }

 private:
  /// What a thread needs for the matrix that it computes.
  struct lane {
    real* scratch;
    double *partials, *sums;
    matrix_unit<Plan> unit = {};
    matrix_states<Plan> states = {};
    matrix_inputs<Plan> inputs = {};

    template <class Real> auto terms() const {
      typename mrule::template terms<Real> k{};
      for (std::size_t i = 0; i < members<mrule::template terms>; ++i)
        real_at<Real>(k, i) = Real(real_at<real>(unit.terms, i));
      return k;
    }
  };

  void find_parts() {
    for (std::size_t u : order_) {
      auto const& x = common.where->matrices[u];
      std::int64_t end = 0;
      parts_[u] = common.where->scratch_of(common.accepted[std::size_t(x.group)], x.shape, end);
    }
  }

  template <class Engine> void step_matrix(Engine& e, lane& l, std::size_t u) {
    auto const& x = common.where->matrices[u];
    l.unit = units_[u];
    l.states.begin = x.state;
    auto const w = work(l, u);
    for (int c = 0; c < input_count<Plan>; ++c) l.inputs.at[c] = w.input(c);
    chunks(e, u, front_body<Engine>{&e, &l});
    real* const direction = common.accepted[std::size_t(x.group)].transform(w);
    chunks(e, u, back_body<Engine>{&e, &l, direction});
  }

  template <class Engine, class Matrix>
  matrix_unit<Plan> terms_of(Engine const& e, Matrix const& x, std::int64_t t, rate_change const& rates) const {
    auto const tensor = std::size_t(x.tensor), g = std::size_t(x.group);
    double factor = e.control.block.factor;
    if constexpr (Plan::clip_over != scope::model)
      factor = e.control.factors[Plan::clip_over == scope::tensor ? tensor : g];
    return matrix_terms_of<Plan>(common.accepted[g], *policies_, t, x.shape, factor, false, x.group, rates);
  }

  host_work<Plan, System> work(lane& l, std::size_t u) {
    auto const& x = common.where->matrices[u];
    return {x.shape.rows, x.shape.columns, common.updates, memory(), l.scratch,
            x.memory,     parts_[u],       &l.unit.terms,  l.sums,   l.partials};
  }

  template <class Engine, class Body> void chunks(Engine& e, std::size_t u, Body const& body) {
    auto const& t = e.control.where.tensors[std::size_t(common.where->matrices[u].tensor)];
    std::int64_t const first = t.first_chunk;
    chunk_pass<real, Body> const pass{&body, has_lanes()};
    auto const one = [&](std::int64_t c) { pass(first + c); };
    each_of<System>(t.count, chunks_of(t.count), one, matrix_worth);
  }

  template <class Engine> struct start_body {
    Engine* e;
    host_matrices* m;
    lane* l;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const one = [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, packet_extent part) {
        using plan = front_plan<Typed>;
        start_packet<plan, Real>(matrix_buffers<plan>(x, x.gradient, l->states), i, part, m->common.rules[0]);
      };
      e->storage.template each_packet<Real>(chunk, one);
    }
  };
  template <class Engine> struct front_body {
    Engine* e;
    lane const* l;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const k = l->template terms<Real>();
      Real const factor(l->unit.factor);
      auto const one = [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, packet_extent part) {
        using plan = front_plan<Typed>;
        front_packet<plan, Real>(matrix_buffers<plan>(x, x.gradient, l->states), i, part, factor, k,
                                 e->control.step_terms, l->inputs.at);
      };
      e->storage.template each_packet<Real>(chunk, one);
    }
  };
  template <class Engine> struct back_body {
    Engine* e;
    lane const* l;
    real* direction;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const k = l->template terms<Real>();
      auto const one = [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, packet_extent part) {
        using plan = back_plan<Typed>;
        update_packet<plan, Real>(matrix_buffers<plan>(x, direction, l->states), i, part, Real(1), k,
                                  e->control.step_terms);
      };
      e->storage.template each_packet<Real>(chunk, one);
    }
  };

  typename Plan::policies const* policies_ = nullptr;
  host_memory memory_, scratch_;
  std::vector<double> partials_, sums_;
  std::vector<lane> lanes_;         // one for each thread
  std::vector<std::size_t> order_;  // of this rank's matrices, the most expensive first
  std::vector<std::vector<std::int64_t>> parts_;  // of each matrix's scratch memory
  std::array<host_memory, matrix_plan<Plan>::slots> state_;
  std::vector<matrix_unit<Plan>> units_;
  matrix_unit<Plan> other_{};  // of a matrix that another rank has
};

}  // namespace descent::detail
