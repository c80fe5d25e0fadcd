// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/plan.hpp>
#include <descent/detail/streams.hpp>

/// The step, one packet of eight elements at a time: the only code that touches values, masters and states, on host and
/// device. Real is float or double, or on the host a SIMD pack of eight floats; a packet is an array of Real.
namespace descent::detail {

/// The buffers of one tensor. A member of the state that is not stored is null.
template <class Plan> struct buffers {
  typename Plan::value* value;
  typename Plan::gradient const* gradient;
  typename Plan::exact* exact;  // the master, or the value
  void* slot[Plan::slots + 1];

  template <std::size_t I> DESCENT_HD auto* slot_at() const {
    return static_cast<typename Plan::template slot<I>*>(slot[I]);
  }
};

/// The state of one packet, by member; whole() and part() turn it into the rule's own struct and back.
template <class Plan, class Real, int M = reals<Real>> struct packet_state {
  using state = typename Plan::rule::template state<Real>;
  Real member[Plan::slots + 1][M];

  template <bool ForSums> DESCENT_HD void read(buffers<Plan> const& x, std::int64_t i, extent e) {
    each([&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      if constexpr (ForSums || Plan::template updates<I>) {
        if (stored(x, I)) return detail::read(member[I], x.template slot_at<I>() + i, e);
      }
      for (auto& one : member[I]) one = Real(0);
    });
  }
  template <bool AtStart> DESCENT_HD void write(buffers<Plan> const& x, std::int64_t i, extent e) const {
    each([&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      if constexpr (AtStart || Plan::template updates<I>) {
        if (stored(x, I)) detail::write(x.template slot_at<I>() + i, member[I], e);
      }
    });
  }
  DESCENT_HD state whole(int j) const {
    state s{};
    if constexpr (Plan::slots > 0)
      for (std::size_t I = 0; I < Plan::slots; ++I) reinterpret_cast<Real*>(&s)[I] = member[I][j];
    return s;
  }
  DESCENT_HD void part(int j, state const& s) {
    if constexpr (Plan::slots > 0)
      for (std::size_t I = 0; I < Plan::slots; ++I) member[I][j] = reinterpret_cast<Real const*>(&s)[I];
  }

 private:
  template <class F> DESCENT_HD static void each(F const& f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (f(std::integral_constant<std::size_t, I>{}), ...); }
    (typename Plan::every_slot{});
  }
  DESCENT_HD static bool stored(buffers<Plan> const& x, std::size_t slot) {
    return !has_optional_state<typename Plan::rule> || x.slot[slot];
  }
};

/// Updates a packet, or one element where M is 1, from element i on: g * factor -> rule -> master -> value.
template <class Plan, class Real, int M = reals<Real>>
DESCENT_HD void update_packet(buffers<Plan> const& x, std::int64_t i, extent e, Real const& factor,
                              typename Plan::rule::template terms<Real> const& k) {
  using rule = typename Plan::rule;
  Real p[M], g[M];
  packet_state<Plan, Real, M> s;
  read(g, x.gradient + i, e);
  read(p, x.exact + i, e);
  s.template read<false>(x, i, e);

  for (int j = 0; j < M; ++j) {
    auto state = s.whole(j);
    p[j] = rule::update(p[j], Plan::clips ? g[j] * factor : g[j], state, k);
    s.part(j, state);
  }

  write(x.exact + i, p, e);
  s.template write<false>(x, i, e);
  if constexpr (Plan::has_master) {
    round_to<typename Plan::master>(p);
    write(x.value + i, p, e);
  }
}

/// Gives master and state their first content.
template <class Plan, class Real, int M = reals<Real>>
DESCENT_HD void start_packet(buffers<Plan> const& x, std::int64_t i, extent e) {
  using rule = typename Plan::rule;
  Real p[M];
  packet_state<Plan, Real, M> s;
  read(p, x.value + i, e);
  if constexpr (Plan::has_master) {
    write(x.exact + i, p, e);
    round_to<typename Plan::master>(p);
  }
  for (int j = 0; j < M; ++j) {
    typename packet_state<Plan, Real, M>::state state{};
    if constexpr (has_start<rule>) state = rule::start(p[j]);
    s.part(j, state);
  }
  s.template write<true>(x, i, e);
}

/// What the read-only passes add up: the squared norm of the gradients as they lie in memory, and the rule's sums.
enum class measure { norm, sums, norm_and_sums };
template <class Plan, measure What>
inline constexpr int measured = (What == measure::sums ? 0 : 1) + (What == measure::norm ? 0 : int(Plan::sum_count));

/// Adds the elements' contributions to four accumulators for each measured sum: element j to accumulator j mod 4.
/// A float's square is exact in double, so a fused multiply-add changes nothing and no finite gradient overflows.
template <class Plan, measure What, class Real>
DESCENT_HD void measure_packet(double (&total)[(measured<Plan, What>)][4], buffers<Plan> const& x, std::int64_t i, extent e,
                               Real const& factor, typename Plan::rule::template terms<Real> const& k) {
  using rule = typename Plan::rule;
  double each[packet_size];
  auto const add = [&](double(&sum)[4]) {
    for (int j = 0; j < 4; ++j) sum[j] += each[j] + each[j + 4];
  };
  Real g[reals<Real>];
  read(g, x.gradient + i, e);
  if constexpr (What != measure::sums) {
    to_doubles(each, g, e.size);
    for (double& one : each) one *= one;
    add(total[0]);
  }
  if constexpr (What != measure::norm) {
    Real p[reals<Real>], sums[Plan::sum_count][reals<Real>];
    [[maybe_unused]] packet_state<Plan, Real> s;
    read(p, x.exact + i, e);
    if constexpr (has_sums_of_state<rule>) s.template read<true>(x, i, e);
    for (int j = 0; j < reals<Real>; ++j) {
      Real const scaled = Plan::clips ? g[j] * factor : g[j];
      typename rule::template sums<Real> sum;
      if constexpr (has_sums_of_state<rule>) sum = rule::sum(p[j], scaled, s.whole(j), k);
      else sum = rule::sum(p[j], scaled, k);
      for (std::size_t c = 0; c < Plan::sum_count; ++c) sums[c][j] = reinterpret_cast<Real const*>(&sum)[c];
    }
    for (std::size_t c = 0; c < Plan::sum_count; ++c) {
      to_doubles(each, sums[c], e.size);
      add(total[measured<Plan, What> - Plan::sum_count + c]);
    }
  }
}

}  // namespace descent::detail
