// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/control.hpp>
#include <descent/detail/chunk_pass.hpp>
#include <descent/detail/host_check.hpp>
#include <descent/detail/host_control.hpp>
#include <descent/detail/host_scaler.hpp>
#include <descent/detail/measure.hpp>
#include <descent/detail/memory.hpp>
#include <descent/detail/passes.hpp>
#include <descent/detail/reduce.hpp>
#include <descent/systems.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

/// The host backend: every pass is one parallel loop of a Thrust system over the chunks of all tensors, AVX2 where the
/// processor has it, with or without compiler flags. The results have the same bits for any system and any number of
/// threads. step() returns when the step is done.
namespace descent {
template <class System> struct host;
}

namespace descent::detail {

template <class Plan, class System> class host_engine : host_control<Plan> {
  using rule = typename Plan::rule;
  using real = typename Plan::real;
  using entry = group_entry<rule>;
  using base = host_control<Plan>;
  using typename base::tensors;
  using base::control_, base::factors_, base::memories_, base::partial_, base::pending_, base::pending_step_;
  using base::policies_, base::rows, base::step_terms_, base::units_, base::where_;
  using base::find_factors, base::find_terms, base::first_bad_chunk, base::partial_at, base::prepare, base::scale;
  using base::total;

 public:
  host_engine(tensors const& where, std::vector<entry> const& groups, typename Plan::policies const& policies,
              std::array<bool, Plan::slots> const& used, host<System> const&)
      : base(where, groups, policies) {
    for (std::size_t t = 0; t < where_.tensors.size(); ++t) {
      auto const& x = where_.tensors[t];
      require_host_memory(x.value, x.count * x.value_size(), "parameter '" + where_.names[t] + "': its value");
      require_host_memory(x.gradient, x.count * x.gradient_size(), "parameter '" + where_.names[t] + "': its gradient");
    }
    if constexpr (Plan::template given<typename Plan::loss>)
      require_host_memory(static_cast<typename Plan::loss const&>(policies_).where, sizeof(float), "loss_at: the loss");
    if constexpr (Plan::sums) pending_.reserve(groups.size());
    if constexpr (Plan::has_master) master_ = allocate<typename Plan::master>();
    if constexpr (Plan::has_remainder) remainder_ = allocate<std::uint16_t>();
    if constexpr (Plan::template given<typename Plan::average>) average_ = allocate<real>();
    if constexpr (Plan::template given<typename Plan::ascent>) make_saved();
    if constexpr (Plan::template given<typename Plan::lookahead>) slow_ = allocate<typename Plan::slow>();
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((slot_[I] = used[I] ? allocate<typename Plan::template slot<I>>() : nullptr), ...);
    }(typename Plan::every_slot{});
    for_chunks(start_body{this, groups.data()});
  }

  void step(std::vector<entry> const& groups, step_call const& call) {
    norm_totals totals;
    if constexpr (Plan::sums) prepare(groups);
    if constexpr (Plan::measures) {
      if (completes<Plan>(control_, policies_, call)) {
        if constexpr (Plan::norm_first || !Plan::sums) measure_all<measure::norm>(groups, 1);
        else measure_all<measure::norm_and_sums>(groups, inverse_of<Plan>(control_, scale(), call));
        totals = norm_totals_from<Plan>([&](int row) { return total(row); });
      }
    }
    decide<Plan>(control_, groups[0].rule, policies_, scale(), totals, call);
    if (Plan::clip_over != scope::model && control_.applied) find_factors();
    rescale<Plan>(control_, policies_);
    if (!control_.applied) {
      if (control_.waiting) return;
      control_.bad_chunk = first_bad_chunk();
      if constexpr (Plan::zeroes) for_chunks(packets(zero_all{}, groups.data()));
      return;
    }
    if constexpr (Plan::norm_first) measure_all<measure::sums>(groups, control_.factor);
    find_terms(groups);
    for_chunks(update_body{this});
  }

  void measure_norm(std::vector<entry> const& groups) {
    partial_.resize(std::size_t(std::max(rows, Plan::norm_rows) * where_.chunks()));
    measure_all<measure::norm>(groups, 1);
  }
  /// The rows of the norm as the last read-only pass left them; none when there was none.
  std::vector<double> norm_partials() const { return partial_; }

  void zero_gradients() { for_chunks(packets(zero_all{})); }
  void unscale_gradients() {
    for_chunks(packets(multiply_all{real(1 / double(scale().scale))}));
    control_.unscaled = true;
  }
  template <class F> void transform_gradients(F const& f) {
    real const s = control_.unscaled ? real(1) : real(scale().scale);
    for_chunks(scalar_packets<transform_all<F, real>>{this, {f, s, 1 / s}});
  }
  void reload_values() { for_chunks(packets(reload_all{})); }
  void ascend(std::vector<entry> const& groups) {
    measure_norm(groups);
    norm_totals const totals = norm_totals_from<Plan>([&](int row) { return total(row); });
    for_chunks(ascend_body{this, groups.data(), real(ascent_factor<Plan>(policies_, totals))});
  }
  void swap_in() {
    make_saved();
    for_chunks(packets(swap_in_all{saved_.get()}));
  }
  void restore_values() { for_chunks(packets(restore_all{saved_.get()})); }

  void copy(void* to, void const* from, std::size_t bytes) {
    if (bytes) std::memcpy(to, from, bytes);
  }
  void set_step(std::int64_t t, std::vector<entry> const&) { control_.step = t; }
  bool set_groups(std::vector<entry> const&) { return true; }
  void refuse_capture(char const*) const {}
  control_block read_control() const { return control_; }
  control_block late_control() const {
    control_block c = control_;
    c.scale = scale();
    return c;
  }
  void set_loss_scale(loss_scale_state const& s) { control_.scale = s; }
  float const* loss_scale_pointer() const { return &scale().scale; }
  loss_scale_state read_scale() const { return scale(); }
  void* master() const { return master_.get(); }
  void* remainder() const { return remainder_.get(); }
  void* average() const { return average_.get(); }
  void* slow() const { return slow_.get(); }
  void* slot(std::size_t i) const { return slot_[i].get(); }
  std::string name() const { return host<System>::name(); }

 private:


  void make_saved() {
    if (!saved_) saved_ = allocate_host(std::size_t(where_.arena * Plan::largest_value));
  }
  template <class T> host_memory allocate() const { return allocate_host(std::size_t(where_.arena) * sizeof(T)); }

  /// Body<Real>() on every packet; of groups that are not frozen where groups are given.
  template <class Body> struct every_packet {
    host_engine* e;
    Body body;
    entry const* groups = nullptr;
    template <class Real> void operator()(std::int64_t chunk) const {
      if (groups && groups[std::size_t(e->record(chunk).group)].frozen) return;
      e->each_packet<Real>(chunk, [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, extent part) {
        body.template operator()<Typed, Real, reals<Real>>(x, i, part);
      });
    }
  };
  /// The same for what cannot be done in packs.
  template <class Body> struct scalar_packets {
    host_engine* e;
    Body body;
    template <class Real> void operator()(std::int64_t chunk) const {
      every_packet<Body>{e, body}.template operator()<real>(chunk);
    }
  };
  template <class Body> every_packet<Body> packets(Body const& body, entry const* groups = nullptr) {
    return {this, body, groups};
  }

  struct start_body {
    host_engine* e;
    entry const* groups;
    template <class Real> void operator()(std::int64_t chunk) const {
      rule const& r = groups[std::size_t(e->record(chunk).group)].rule;
      e->each_packet<Real>(chunk, [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, extent part) {
        start_packet<Typed, Real>(x, i, part, r);
      });
    }
  };

  struct update_body {
    host_engine* e;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const& u = e->units_[e->unit_of(chunk)];
      if (u.frozen) return;
      auto const k = e->spread<Real>(u);
      Real const factor(u.factor);
      e->each_packet<Real>(chunk, [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, extent part) {
        update_packet<Typed, Real>(x, i, part, factor, k, e->step_terms_);
      });
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

  template <measure What> struct measure_body {
    host_engine* e;
    entry const* groups;
    double factor;
    template <class Real> void operator()(std::int64_t chunk) const {
      constexpr int sums = measured<Plan, What>;
      double lane[sums][chunk_threads] = {};
      auto const g = std::size_t(e->record(chunk).group);
      if (!groups[g].frozen) {
        typename rule::template terms<Real> k{};
        if constexpr (Plan::sums && What != measure::norm) k = e->spread<Real>(e->pending_[g]);
        Real const scaled(
            real(What == measure::sums && Plan::clip_over != scope::model ? e->factor_of(chunk) : factor));
        int const packets = (span_of(chunk, e->record(chunk)).size + int(packet_size) - 1) / int(packet_size);
        int const used = packets < chunk_threads ? packets : chunk_threads;
        double four[chunk_threads][sums][4];
        std::memset(four, 0, std::size_t(used) * sizeof four[0]);
        int q = 0;
        e->each_packet<Real>(chunk, [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, extent part) {
          measure_packet<Typed, What, Real>(four[q++ % chunk_threads], x, i, part, scaled, k, e->pending_step_);
        });
        for (int t = 0; t < used; ++t) lane[0][t] = fold<first_is_largest<Plan, What>>(four[t][0]);
        for (int c = 1; c < sums; ++c)
          for (int t = 0; t < used; ++t) lane[c][t] = fold(four[t][c]);
      }
      constexpr int first = What == measure::sums ? Plan::norm_rows : 0;
      e->partial_at(first, chunk) = add_block<first_is_largest<Plan, What>>(lane[0], chunk_threads);
      for (int c = 1; c < sums; ++c) e->partial_at(first + c, chunk) = add_block(lane[c], chunk_threads);
    }
  };
  template <measure What> void measure_all(std::vector<entry> const& groups, double factor) {
    for_chunks(measure_body<What>{this, groups.data(), factor});
  }

  auto const& record(std::int64_t chunk) const {
    return where_.tensors[std::size_t(where_.tensor_of_chunk[std::size_t(chunk)])];
  }
  std::size_t tensor_or_group(std::int64_t chunk, bool tensor) const {
    return std::size_t(tensor ? where_.tensor_of_chunk[std::size_t(chunk)] : record(chunk).group);
  }
  std::size_t unit_of(std::int64_t chunk) const { return tensor_or_group(chunk, Plan::unit_per_tensor); }
  double factor_of(std::int64_t chunk) const {
    return factors_[tensor_or_group(chunk, Plan::clip_over == scope::tensor)];
  }

  template <class Real> static auto spread(unit<rule, real> const& u) {
    typename rule::template terms<Real> k{};
    for (std::size_t i = 0; i < members<rule::template terms>; ++i)
      reinterpret_cast<Real*>(&k)[i] = Real(reinterpret_cast<real const*>(&u.terms)[i]);
    return k;
  }

  /// f(buffers, element, extent) for every packet, with the buffers of the tensor's types.
  template <class Real, int Types = 0, class F> void each_packet(std::int64_t chunk, F const& f) const {
    auto const& t = record(chunk);
    if constexpr (Types + 1 < Plan::pairs)
      if (t.types != Types) return each_packet<Real, Types + 1>(chunk, f);
    auto const [begin, size] = span_of(chunk, t);
    auto const x = buffers_of<typename Plan::template typed<Types>>(t);
    for (int i = 0; i < size; i += int(packet_size))
      f(x, begin + i, size - i < packet_size ? extent{size - i, false} : extent{int(packet_size), true});
  }

  template <class Typed, class Record> buffers<Typed> buffers_of(Record const& t) const {
    auto const at = [&]<class T>(host_memory const& m, T*& p) {
      if (m) p = reinterpret_cast<T*>(m.get()) + t.arena;
    };
    buffers<Typed> x{static_cast<typename Typed::value*>(t.value),
                     static_cast<typename Typed::gradient*>(t.gradient), nullptr, {}, {}};
    if constexpr (Typed::has_master) at(master_, x.exact);
    else x.exact = x.value;
    if constexpr (Plan::has_extras) {
      at(remainder_, x.extra.remainder);
      at(average_, x.extra.average);
      at(slow_, x.extra.slow);
      x.extra.arena = t.arena;
    }
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((x.slot[I] = slot_[I] ? slot_[I].get() + std::size_t(t.arena) * sizeof(typename Plan::template slot<I>)
                             : nullptr), ...);
    }(typename Plan::every_slot{});
    return x;
  }

  template <class Body> void for_chunks(Body const& body) {
    chunk_pass<real, Body> const pass{&body, has_lanes()};
    if (where_.elements < fork_worth) cpp::each(where_.chunks(), pass);
    else System::each(where_.chunks(), pass);
  }
  /// Below this many elements a parallel region costs more than it saves.
  static constexpr std::int64_t fork_worth = 32 * 1024;

  host_memory master_, remainder_, average_, slow_, saved_;
  std::array<host_memory, Plan::slots> slot_;
};

}  // namespace descent::detail

namespace descent {

/// Values, gradients and states in host memory; the step runs on the calling thread and its Thrust system: `host{}` is
/// omp where the compiler has OpenMP switched on and cpp otherwise, host<tbb>{} needs host_tbb.hpp.
template <class System = default_system> struct host {
  using policy_kind = kind::backend;
  template <class Plan> using engine = detail::host_engine<Plan, System>;
  template <class Policy> using scaler = detail::host_scaler<Policy>;
  static std::string name() { return std::string("host, Thrust ") + System::name(); }
};

}  // namespace descent
