// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/control.hpp>
#include <descent/detail/host_check.hpp>
#include <descent/detail/memory.hpp>
#include <descent/detail/packet.hpp>
#include <descent/detail/reduce.hpp>
#include <descent/systems.hpp>

#include <cstring>
#include <string>
#include <vector>

/// The host backend: every pass is one parallel loop of a Thrust system over the chunks of all tensors, AVX2 where the
/// processor has it, with or without compiler flags. The results have the same bits for any system and any number of
/// threads. step() returns when the step is done.
namespace descent::detail {

/// One pass over the chunks; Body::operator()<Real>(chunk) does one.
template <class Real, class Body> struct chunk_pass {
  Body const* body;
  bool use_lanes;

  void operator()(std::int64_t chunk) const {
    if constexpr (std::is_same_v<Real, float>)
      if (use_lanes) return in_lanes(*body, chunk);
    body->template operator()<Real>(chunk);
  }

 private:
  /// Flattened: everything that the body calls is inlined and compiled for the processor's lanes.
  DESCENT_LANES [[gnu::flatten]] static void in_lanes(Body const& b, std::int64_t chunk) {
    b.template operator()<pack>(chunk);
  }
};

}  // namespace descent::detail

namespace descent {
template <class System> struct host;
}

namespace descent::detail {

template <class Plan, class System> class host_engine {
  using rule = typename Plan::rule;
  using real = typename Plan::real;
  using entry = group_entry<rule>;
  using tensors = layout<typename Plan::value, typename Plan::gradient>;

 public:
  host_engine(tensors const& where, std::vector<entry> const& groups, typename Plan::policies const& policies,
              std::array<bool, Plan::slots> const& used, host<System> const&)
      : where_(where), policies_(policies), partial_(std::size_t(rows * where.chunks())),
        units_(Plan::sums_per_tensor ? where.tensors.size() : groups.size()), memories_(units_.size()) {
    for (std::size_t t = 0; t < where_.tensors.size(); ++t) {
      auto const& x = where_.tensors[t];
      require_host_memory(x.value, x.count, "value", where_.names[t]);
      require_host_memory(x.gradient, x.count, "gradient", where_.names[t]);
    }
    if constexpr (Plan::sums) pending_.reserve(groups.size());
    if constexpr (Plan::has_master) master_ = allocate_host(bytes<typename Plan::master>());
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((slot_[I] = used[I] ? allocate_host(bytes<typename Plan::template slot<I>>()) : nullptr), ...);
    }(typename Plan::every_slot{});
    for_chunks(start_body{this});
  }

  void step(std::vector<entry> const& groups) {
    double squares = 0;
    if constexpr (Plan::sums) prepare(groups);
    if constexpr (Plan::measures) {
      if constexpr (Plan::norm_first || !Plan::sums) for_chunks(measure_body<measure::norm>{this, groups.data()});
      else for_chunks(measure_body<measure::norm_and_sums>{this, groups.data()});
      squares = add_strided<total_threads>(partial_.data(), where_.chunks());
    }
    decide<Plan>(control_, groups[0].rule, policies_, squares);
    if (!control_.applied) {
      control_.bad_chunk = first_bad_chunk();
      return;
    }
    if constexpr (Plan::norm_first) for_chunks(measure_body<measure::sums>{this, groups.data()});
    find_terms(groups);
    for_chunks(update_body{this});
  }

  void zero_gradients() { for_chunks(zero_body{this}); }
  bool set_groups(std::vector<entry> const&) { return true; }
  control_block read_control() const { return control_; }
  void* master() const { return master_.get(); }
  void* slot(std::size_t i) const { return slot_[i].get(); }
  std::string name() const { return host<System>::name(); }

 private:
  static constexpr int rows = (Plan::measures ? 1 : 0) + int(Plan::sum_count);

  template <class T> std::size_t bytes() const { return std::size_t(where_.arena) * sizeof(T); }

  struct start_body {
    host_engine* e;
    template <class Real> void operator()(std::int64_t chunk) const {
      e->each_packet<Real>(chunk, [](auto const& x, std::int64_t i, extent e) { start_packet<Plan, Real>(x, i, e); });
    }
  };

  struct zero_body {
    host_engine* e;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const& t = e->record(chunk);
      auto const [begin, size] = span_of(chunk, t);
      std::memset(static_cast<void*>(t.gradient + begin), 0, std::size_t(size) * sizeof(typename Plan::gradient));
    }
  };

  struct update_body {
    host_engine* e;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const& u = e->units_[e->unit_of(chunk)];
      if (u.frozen) return;
      auto const k = e->spread<Real>(u);
      Real const factor(u.factor);
      e->each_packet<Real>(
          chunk, [&](auto const& x, std::int64_t i, extent e) { update_packet<Plan, Real>(x, i, e, factor, k); });
    }
  };

  template <measure What> struct measure_body {
    host_engine* e;
    entry const* groups;
    template <class Real> void operator()(std::int64_t chunk) const {
      constexpr int sums = measured<Plan, What>;
      double lane[sums][chunk_threads] = {};
      auto const g = std::size_t(e->record(chunk).group);
      if (!groups[g].frozen) {
        typename rule::template terms<Real> k{};
        if constexpr (Plan::sums) k = e->spread<Real>(e->pending_[g]);
        Real const factor(real(e->control_.factor));
        int const packets = (span_of(chunk, e->record(chunk)).size + int(packet_size) - 1) / int(packet_size);
        int const used = packets < chunk_threads ? packets : chunk_threads;
        double four[chunk_threads][sums][4];
        std::memset(four, 0, std::size_t(used) * sizeof four[0]);
        int q = 0;
        e->each_packet<Real>(chunk, [&](auto const& x, std::int64_t i, extent part) {
          measure_packet<Plan, What, Real>(four[q++ % chunk_threads], x, i, part, factor, k);
        });
        for (int c = 0; c < sums; ++c)
          for (int t = 0; t < used; ++t) lane[c][t] = fold(four[t][c]);
      }
      constexpr int first = What == measure::sums ? 1 : 0;
      for (int c = 0; c < sums; ++c)
        e->partial_[std::size_t((first + c) * e->where_.chunks() + chunk)] = add_block(lane[c], chunk_threads);
    }
  };

  auto const& record(std::int64_t chunk) const {
    return where_.tensors[std::size_t(where_.tensor_of_chunk[std::size_t(chunk)])];
  }
  std::size_t unit_of(std::int64_t chunk) const {
    if constexpr (Plan::sums_per_tensor) return std::size_t(where_.tensor_of_chunk[std::size_t(chunk)]);
    else return std::size_t(record(chunk).group);
  }

  template <class Real> static auto spread(unit<rule, real> const& u) {
    typename rule::template terms<Real> k{};
    for (std::size_t i = 0; i < members<rule::template terms>; ++i)
      reinterpret_cast<Real*>(&k)[i] = Real(reinterpret_cast<real const*>(&u.terms)[i]);
    return k;
  }

  template <class Real, class F> void each_packet(std::int64_t chunk, F const& f) const {
    auto const& t = record(chunk);
    auto const [begin, size] = span_of(chunk, t);
    buffers<Plan> x{t.value, t.gradient, nullptr, {}};
    if constexpr (Plan::has_master) x.exact = reinterpret_cast<typename Plan::master*>(master_.get()) + t.arena;
    else x.exact = t.value;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((x.slot[I] = slot_[I] ? slot_[I].get() + std::size_t(t.arena) * sizeof(typename Plan::template slot<I>)
                             : nullptr), ...);
    }(typename Plan::every_slot{});
    for (int i = 0; i < size; i += int(packet_size))
      f(x, begin + i, size - i < packet_size ? extent{size - i, false} : extent{int(packet_size), true});
  }

  template <class Body> void for_chunks(Body const& body) {
    chunk_pass<real, Body> const pass{&body, has_lanes()};
    if (where_.elements < fork_worth) cpp::each(where_.chunks(), pass);
    else System::each(where_.chunks(), pass);
  }
  /// Below this many elements a parallel region costs more than it saves.
  static constexpr std::int64_t fork_worth = 32 * 1024;

  void prepare(std::vector<entry> const& groups) {
    pending_.clear();
    for (auto const& g : groups) pending_.push_back(terms_of<Plan>(g, policies_, control_.step + 1, 1));
  }

  void find_terms(std::vector<entry> const& groups) {
    std::int64_t const t = control_.step;
    double const factor = control_.factor;
    if constexpr (!Plan::sums) {
      for (std::size_t g = 0; g < groups.size(); ++g) units_[g] = terms_of<Plan>(groups[g], policies_, t, factor);
    } else if constexpr (Plan::sums_per_tensor) {
      for (std::size_t u = 0; u < units_.size(); ++u) {
        auto const& x = where_.tensors[u];
        double totals[Plan::sum_count];
        for (std::size_t c = 0; c < Plan::sum_count; ++c)
          totals[c] = add_strided<warp>(sums_of(c) + x.first_chunk, chunks_of(x.count));
        units_[u] = terms_of<Plan>(groups[std::size_t(x.group)], policies_, t, factor, totals, 1, memories_[u]);
      }
    } else {
      double totals[Plan::sum_count];
      for (std::size_t c = 0; c < Plan::sum_count; ++c)
        totals[c] = add_strided<total_threads>(sums_of(c), where_.chunks());
      for (std::size_t g = 0; g < groups.size(); ++g)
        units_[g] = terms_of<Plan>(groups[g], policies_, t, factor, totals, 1, memories_[g]);
    }
  }

  /// The partial sums of the rule's sum c.
  double const* sums_of(std::size_t c) const { return partial_.data() + (std::int64_t(c) + 1) * where_.chunks(); }

  std::int64_t first_bad_chunk() const {
    for (std::int64_t c = 0; c < where_.chunks(); ++c)
      if (partial_[std::size_t(c)] - partial_[std::size_t(c)] != 0) return c;
    return -1;
  }

  tensors where_;
  typename Plan::policies policies_;
  control_block control_;
  std::vector<double> partial_;
  std::vector<unit<rule, real>> units_, pending_;
  std::vector<memory_of<rule>> memories_;
  host_memory master_;
  std::array<host_memory, Plan::slots> slot_;
};

}  // namespace descent::detail

namespace descent {

/// Values, gradients and states in host memory; the step runs on the calling thread and its Thrust system: `host{}` is
/// omp where the compiler has OpenMP switched on and cpp otherwise, host<tbb>{} needs host_tbb.hpp.
template <class System = default_system> struct host {
  using policy_kind = kind::backend;
  template <class Plan> using engine = detail::host_engine<Plan, System>;
  static std::string name() { return std::string("host, Thrust ") + System::name(); }
};

}  // namespace descent
