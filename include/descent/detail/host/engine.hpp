// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/host.hpp>
#include <descent/detail/host/check.hpp>
#include <descent/detail/host/gradients.hpp>
#include <descent/detail/host/scaler.hpp>
#include <descent/detail/matrix/stage.hpp>
#include <descent/detail/step/control.hpp>
#include <descent/detail/step/passes.hpp>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

/// Every pass is one loop, of a system's threads, over the chunks of all tensors, AVX2 where the processor has it, with
/// or without compiler flags. step() returns when the step is done.
namespace descent::detail {

template <class Plan, class System> class host_engine : host_gradients<Plan, System> {
  using rule = typename Plan::rule;
  using real = typename Plan::real;
  using entry = group_entry<rule>;
  using base = host_gradients<Plan, System>;
  using typename base::tensors;
  using base::control_, base::factors_, base::memories_, base::partial_, base::pending_, base::pending_step_;
  using base::policies_, base::rows, base::step_terms_, base::units_, base::where_, base::rows_;
  using base::master_, base::remainder_, base::average_, base::slow_, base::saved_, base::slot_;
  using base::advance, base::first_bad_chunk, base::partial_at, base::prepare, base::scale;
  using base::total, base::each_packet, base::for_chunks, base::for_all_chunks, base::owned, base::record;
  using base::each_own_packet, base::rows_of_chunk;
  using base::row_unit, base::spread, base::unit_of, base::factor_of, base::ranks_, base::share_values;

 public:
  using base::ready, base::any_ready, base::memories;
  using base::master, base::remainder, base::average, base::slow, base::slot;

  host_engine(tensors const& where, std::vector<entry> const& groups, typename Plan::policies const& policies,
              std::array<bool, Plan::slots> const& used, host<System> const&)
      : base(where, groups, policies) {
    require_host_tensors(where_);
    if constexpr (Plan::template given<typename Plan::loss>)
      require_host_memory(static_cast<typename Plan::loss const&>(policies_).where,
                          sizeof *static_cast<typename Plan::loss const&>(policies_).where, "loss_at: the loss");
    ranks_.join(where_, groups, policies_);
    if constexpr (Plan::sums) pending_.reserve(Plan::pending_per_tensor ? where_.tensors.size() : groups.size());
    if constexpr (Plan::has_master) master_ = base::template allocate<typename Plan::master>();
    if constexpr (Plan::has_remainder) remainder_ = base::template allocate<std::uint16_t>();
    if constexpr (Plan::template given<typename Plan::average>) average_ = base::template allocate<real>();
    if constexpr (Plan::template given<typename Plan::ascent>) make_saved();
    if constexpr (Plan::template given<typename Plan::lookahead>)
      slow_ = base::template allocate<typename Plan::slow>();
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((slot_[I] = used[I] ? allocate_host(std::size_t(Plan::shards ? where_.own.size : where_.rule_arena) *
                                         sizeof(typename Plan::template slot<I>))
                           : nullptr), ...);
    }(typename Plan::every_slot{});
    for_chunks(start_body{this, groups.data()}, where_.rule_chunks);
    matrices_.start(*this);
    ranks_.start();
  }

  void step(std::vector<entry> const& groups, step_call const& call) {
    base::keep();
    try {
      change(groups, call);
    } catch (...) {
      base::put_back();
      throw;
    }
  }
  auto& matrices() { return matrices_; }
  void commit_matrices() { matrices_.commit(); }

  void measure_norm(std::vector<entry> const& groups, [[maybe_unused]] char const* call = "gradient_norm()") {
    if constexpr (Plan::parallel) base::meet_to_look(groups, call);
    partial_.resize(std::size_t(std::max(rows, Plan::norm_rows) * where_.chunks()));
    base::template measure_all<measure::norm>(groups, 1);
  }
  /// The rows of the norm as the last read-only pass left them; none when there was none.
  std::vector<double> norm_partials() const { return partial_; }

  void zero_gradients() { for_all_chunks(own_packets<zero_all>{this, {}}); }
  void unscale_gradients() {
    for_all_chunks(own_packets<multiply_all<real>>{this, {real(1 / double(scale().scale))}});
  }
  void mark_unscaled(bool is) { control_.unscaled = is; }
  template <class F> void transform_gradients(F const& f) {
    real const s = control_.unscaled ? real(1) : real(scale().scale);
    scalar_packets<transform_all<F, real>> const body{this, {f, s, 1 / s}};
    if constexpr (std::is_nothrow_invocable_v<F const&, real>) for_all_chunks(body);
    else base::change_gradients([&] { for_all_chunks(body); });
  }
  void reload_values() { for_chunks(packets(reload_all{})); }
  void ascend(std::vector<entry> const& groups) {
    measure_norm(groups, "ascend()");
    norm_totals const totals = norm_totals_from<Plan>([&](int row) { return total(row); });
    for_chunks(ascend_body{this, groups.data(), real(ascent_factor<Plan>(policies_, totals))});
  }
  template <point To> void swap_in(std::vector<entry> const& groups) {
    make_saved();
    base::find_rules(groups, control_.step);
    share_values([&] { for_chunks(swap_in_body<To>{this, groups.data()}); });
  }
  void restore_values() {
    share_values([&] { for_chunks(packets(restore_all{saved_.get()})); });
  }

  void select_rows(std::size_t tensor, std::int64_t rows, auto... selection) {
    rows_.select(tensor, rows, selection...);
  }
  std::int32_t const* row_updates(std::size_t tensor) const { return rows_[tensor].updates; }

  /// Copies the state of the rows that stay, and all state that belongs to no element, from `old`.
  void take(host_engine const& old, row_changes<tensors> const& changes, std::vector<entry> const&) {
    require_sources(changes);
    base::take_rows(old, changes.moves);
    base::take(old, changes.moves);
  }

  /// Throws std::invalid_argument on all ranks where one has something else than others.
  void agree(tensors const&, std::vector<entry> const& groups) {
    ranks_.agree(facts_now<Plan>(where_, groups, control_, scale(), memories_, base::prints()));
  }

  /// Values, groups and all that is owned become those of one rank.
  void broadcast(std::vector<entry>& groups, int root) {
    if (control_.batches != 0) throw std::logic_error("broadcast(): micro-batches wait for their step");
    for (auto const& x : where_.tensors) ranks_.broadcast(x.value, x.count * x.value_size(), root);
    for (owned_buffer const& b : owned(0))
      if (b.at) ranks_.broadcast(b.at, where_.own.size * b.size, root);
    ranks_.broadcast(memories_.data(), std::int64_t(memories_.size() * sizeof memories_[0]), root);
    ranks_.broadcast(&control_, sizeof control_, root);
    ranks_.broadcast(groups.data(), std::int64_t(groups.size() * sizeof(entry)), root);
  }

  void copy(void* to, void const* from, std::size_t bytes) {
    if (bytes) std::memcpy(to, from, bytes);
  }
  template <class T> void set_control(T control_block::*field, T x, std::vector<entry> const&) { control_.*field = x; }
  void observe(float const* x, double y, auto const&) { observe_metric<Plan>(control_, policies_, x, y); }
  bool set_groups([[maybe_unused]] std::vector<entry> const& groups) {
    if constexpr (Plan::parallel) ranks_.set_groups(hash_of_groups<Plan>(groups, policies_));
    return true;
  }
  void check_schedules(std::vector<entry> const& groups, std::int64_t step) {
    if constexpr (Plan::has_matrices) {
      base::check_schedules(groups, step, &matrices_.rule_at(0));
      if (term_fault const fault = matrices_.find_terms(*this, groups, step + 1); fault.what != term_fault::none)
        refuse_terms<Plan>(where_, fault, step + 1);
    } else {
      base::check_schedules(groups, step);
    }
  }
  void check_next_terms(std::vector<entry> const& groups) const {
    check_terms<Plan>(where_, groups, policies_, control_.step + 1, memories_, rates_of(control_));
  }
  void refuse_capture(char const*) const {}
  /// The factor from gradients in memory to true ones.
  double inverse(control_block const& c, step_call const& call) const {
    return inverse_of<Plan>(c, policies_, scale(), call);
  }
  typename Plan::policies const& policies() const { return policies_; }
  static bool on_host(void const*) { return true; }
  control_block read_control() const { return control_; }
  control_block late_control() const {
    control_block c = control_;
    c.scale = scale();
    return c;
  }
  float const* loss_scale_pointer() const { return &scale().scale; }
  loss_scale_state read_scale() const { return scale(); }
  std::string name() const { return host<System>::name(); }

 private:
  template <class, class> friend class host_matrices;

  /// The step. It may throw before elements are changed, and in gather(), which puts the values back.
  void change(std::vector<entry> const& groups, step_call const& call) {
    bool const complete = completes<Plan>(control_, policies_, call);
    if constexpr (Plan::sums) prepare(groups);
    if constexpr (Plan::parallel) {
      if constexpr (!Plan::sums)
        if (complete) base::rehearse(groups);
      if constexpr (Plan::team::agrees)
        if (complete && ++updates_ % team().updates_between == 0) agree(where_, groups);
      base::meet(groups, call);
    }
    auto const find_all = [&] {
      term_fault fault = base::judge(groups, call, complete);
      if constexpr (Plan::has_matrices)
        if (control_.applied && fault.what == term_fault::none)
          fault = matrices_.find_terms(*this, groups, control_.step + 1);
      if (control_.applied) {
        if (fault.what == term_fault::none) advance(groups);
        else skip(control_, fault);
      }
      rescale<Plan>(control_, policies_);  // last, for others may share the scale
    };
    if (complete) ranks_.together(find_all);
    else find_all();
    matrices_.count(policies_, call);
    if (!control_.applied) {
      if constexpr (Plan::zeroes)
        if (!control_.waiting) for_chunks(zero_body{this, groups.data()});
      return;
    }
    if constexpr (Plan::own_updates) for_chunks(count_body{this});
    share_values([&] { for_chunks(update_body{this}, where_.rule_chunks); });
    matrices_.step(*this, groups);
  }

  auto const& team() const { return static_cast<typename Plan::team const&>(policies_); }
  void make_saved() {
    if (!saved_) saved_ = allocate_host(std::size_t(where_.arena * Plan::largest_value));
  }
  /// Body<Real>() on every packet, with the caller's gradients or those that the step reads.
  template <class Body, bool Callers = false> struct every_packet {
    host_engine* e;
    Body body;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const one = [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, extent part) {
        body.template operator()<Typed, Real, reals<Real>>(x, i, part);
      };
      if constexpr (Callers) e->template each_own_packet<Real>(chunk, one);
      else e->template each_packet<Real>(chunk, one);
    }
  };
  template <class Body> using own_packets = every_packet<Body, true>;
  /// The same for what cannot be done in packs.
  template <class Body> struct scalar_packets {
    host_engine* e;
    Body body;
    template <class Real> void operator()(std::int64_t chunk) const {
      own_packets<Body>{e, body}.template operator()<real>(chunk);
    }
  };
  template <class Body> every_packet<Body> packets(Body const& body) { return {this, body}; }

  struct start_body {
    host_engine* e;
    entry const* groups;
    template <class Real> void operator()(std::int64_t chunk) const {
      rule const& r = groups[std::size_t(e->record(chunk).group)].rule;
      e->template each_packet<Real>(chunk, [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, extent part) {
        start_packet<Typed, Real>(x, i, part, r);
      });
    }
  };

  template <point To> struct swap_in_body {
    host_engine* e;
    entry const* groups;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const g = std::size_t(e->record(chunk).group);
      rule const& r = e->scheduled_[g];
      bool const stays = To == point::ahead && groups[g].frozen;
      e->template each_packet<Real>(chunk, [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, extent part) {
        swap_in_packet<Typed, Real, reals<Real>, To>(x, i, part, e->saved_.get(), r, stays);
      });
    }
  };

  struct update_body {
    host_engine* e;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const& u = e->units_[e->unit_of(chunk)];
      if (u.frozen) return;
      auto const k = e->template spread<Real>(u);
      Real const factor(u.factor);
      auto const step = e->step_terms_;  // a copy that no store can change
      e->template each_packet<Real>(chunk, [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, extent part) {
        if constexpr (Plan::selects_rows) {
          auto const rows = e->rows_of_chunk(chunk);
          auto const one = [&](int j, std::int64_t row) {
            update_packet<Typed, real, 1>(x, i + j, {1, true}, u.factor, e->row_unit(u, chunk, row).terms, step);
          };
          auto const all = [&](std::int64_t row) {
            if constexpr (!Plan::own_updates) update_packet<Typed, Real>(x, i, part, factor, k, step);
            else
              update_packet<Typed, Real>(x, i, part, factor, e->template spread<Real>(e->row_unit(u, chunk, row)), step);
          };
          each_selected<Plan::own_updates>(rows, i, part.size, all, one);
        } else {
          update_packet<Typed, Real>(x, i, part, factor, k, step);
        }
      });
    }
  };

  /// Gradients of a step that is skipped.
  struct zero_body {
    host_engine* e;
    entry const* groups;
    template <class Real> void operator()(std::int64_t chunk) const {
      if (groups[std::size_t(e->record(chunk).group)].frozen) return;
      e->template each_packet<Real>(chunk, [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, extent part) {
        auto const all = [&](std::int64_t) { zero_packet<Typed, Real>(x, i, part); };
        if constexpr (Plan::selects_rows)
          each_selected<false>(e->rows_of_chunk(chunk), i, part.size, all,
                               [&](int j, std::int64_t) { zero_packet<Typed, real, 1>(x, i + j, {1, true}); });
        else all(0);
      });
    }
  };
  struct count_body {
    host_engine* e;
    template <class Real> void operator()(std::int64_t chunk) const {
      if (e->units_[e->unit_of(chunk)].frozen) return;
      auto const [begin, size] = span_of(chunk, e->record(chunk));
      count_rows(e->rows_of_chunk(chunk), begin, size, 0, 1);
    }
  };

  struct ascend_body {
    host_engine* e;
    entry const* groups;
    real factor;
    template <class Real> void operator()(std::int64_t chunk) const {
      bool const frozen = groups[std::size_t(e->record(chunk).group)].frozen;
      every_packet<ascend_all<real>>{e, {e->saved_.get(), frozen ? real(0) : factor}}.template operator()<Real>(chunk);
    }
  };

  std::int64_t updates_ = 0;  // in which ranks met
  stage_of<Plan, host_matrices<Plan, System>> matrices_;
};

}  // namespace descent::detail
