// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/buffers.hpp>
#include <descent/engine/step/packet_io.hpp>
#include <descent/engine/step/packet_random.hpp>
#include <descent/engine/step/plan.hpp>
#include <descent/engine/step/terms.hpp>
#include <descent/core/detail/loops.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rounding.hpp>

// g++ warns of each array whose bound is an int.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"

/// The step, one packet of eight elements at a time: the only code that touches values, masters and states, on host and
/// device. Real is float or double, or on the host a SIMD pack of eight floats; a packet is an array of Real.
namespace descent::detail {

/// Random numbers for what a step rounds in a packet, including the value if With is true. SIMD code makes two streams
/// at a time, in advance; other code makes the numbers on demand.
template <class Plan, class Real, bool With = true> class packet_random {
  using streams = rounded_streams<Plan, With>;
  static constexpr bool in_lanes = lanes<Real> > 1 && streams::count > 0;

 public:
  DESCENT_HD packet_random(buffers<Plan> const& x, std::int64_t i, step_terms_of<Plan> const& step)
      : x_(x), i_(i), step_(step) {
#if !defined(__CUDA_ARCH__)
    if constexpr (in_lanes)
      unrolled<(streams::count + 1) / 2>([&](auto pair) {
        constexpr int last = streams::count - 1, first = 2 * int(pair);
        random_bits_in_lanes(made_[first], made_[first + 1], step.rounding_seed, step.t, element() / packet_size,
                             streams::template number<first>,
                             streams::template number < first < last ? first + 1 : last >);
      });
#endif
  }

  /// Rounds stochastically to a neighbour in T, if the policy is set and T has 16 bits.
  template <int Stream, class T, int M> DESCENT_HD void round([[maybe_unused]] Real (&r)[M]) const {
    if constexpr (Plan::template rounds<T>) {
      int const lane = int(element() % packet_size);
      if constexpr (in_lanes && streams::template rounded<Stream>)
        round_lanes<T>(r, made_[streams::template before<Stream>].bits, lane);
      else round_lanes<T>(r, random_bits(step_.rounding_seed, step_.t, element() / packet_size, Stream).bits, lane);
    }
  }

 private:
  DESCENT_HD std::int64_t element() const { return x_.extra.element(i_); }

  buffers<Plan> const& x_;
  std::int64_t i_;
  step_terms_of<Plan> const& step_;
  struct none {};
  [[no_unique_address]] std::conditional_t<in_lanes, random_packet[streams::count + 1], none> made_;
};

/// r <- 0
template <class Real, int M> DESCENT_HD void set_to_zero(Real (&r)[M]) {
  for (auto& one : r) one = Real(0);
}

/// The state of one packet, by member. whole() and part() convert one element's to the rule's struct and back.
template <class Plan, class Real, int M = reals<Real>, class Slots = typename Plan::every_slot> struct packet_state;
template <class Plan, class Real, int M, std::size_t... I>
struct packet_state<Plan, Real, M, std::index_sequence<I...>> {
  using state = typename Plan::rule::template state<Real>;
  Real member[Plan::slots + 1][M];

  template <bool ForSums>
  DESCENT_HD void read([[maybe_unused]] buffers<Plan> const& x, [[maybe_unused]] std::int64_t i,
                       [[maybe_unused]] packet_extent e) {
    (((ForSums || Plan::template updates<I>) && stored(x, I) ? detail::read(member[I], x.template slot_at<I>() + i, e)
                                                             : set_to_zero(member[I])),
     ...);
  }
  template <bool AtStart>
  DESCENT_HD void write([[maybe_unused]] buffers<Plan> const& x, [[maybe_unused]] std::int64_t i,
                        [[maybe_unused]] packet_extent e) const {
    (((AtStart || Plan::template updates<I>) && stored(x, I) ? write_one<AtStart, I>(x, i, e) : void()), ...);
  }
  template <bool With>
  DESCENT_HD void round([[maybe_unused]] buffers<Plan> const& x,
                        [[maybe_unused]] packet_random<Plan, Real, With> const& random) {
    ((Plan::template updates<I> && stored(x, I) ? round_one<I>(random) : void()), ...);
  }
  DESCENT_HD state whole(int j) const {
    state s{};
    if constexpr (Plan::slots > 0)
      for (std::size_t slot = 0; slot < Plan::slots; ++slot) real_at<Real>(s, slot) = member[slot][j];
    return s;
  }
  DESCENT_HD void part(int j, state const& s) {
    if constexpr (Plan::slots > 0)
      for (std::size_t slot = 0; slot < Plan::slots; ++slot) member[slot][j] = real_at<Real>(s, slot);
  }

 private:
  template <std::size_t J> using type = typename Plan::template slot<J>;

  /// Finite numbers that a state's type cannot hold become the largest that it can; before they are rounded at random.
  template <std::size_t J, class Random> DESCENT_HD void round_one(Random const& random) {
    if constexpr (Plan::template rounds<type<J>>) saturate<type<J>>(member[J]);
    random.template round<random_slot + int(J), type<J>>(member[J]);
  }
  template <bool AtStart, std::size_t J>
  DESCENT_HD void write_one(buffers<Plan> const& x, std::int64_t i, packet_extent e) const {
    constexpr bool is_rounded = !AtStart && Plan::template rounds<type<J>>;
    if constexpr (is_rounded) detail::write(x.template slot_at<J>() + i, member[J], e);
    else write_saturated(x.template slot_at<J>() + i, member[J], e);
  }
  DESCENT_HD static bool stored([[maybe_unused]] buffers<Plan> const& x, [[maybe_unused]] std::size_t slot) {
    return !has_optional_state<typename Plan::rule> || x.slot[slot];
  }
};

/// Adds what ranks have sent, in the order of the ranks.
template <class Sum, int M, class Wire>
DESCENT_HD void read_sum(Sum (&sum)[M], Wire const* parts, std::int64_t stride, int ranks, packet_extent e) {
  Sum one[M];
  read(sum, parts, e);
  for (int r = 1; r < ranks; ++r) {
    read(one, parts + r * stride, e);
    for (int j = 0; j < M; ++j) sum[j] += one[j];
  }
}

/// Reads stored gradients. The first pass that reads them may also add the parts that ranks have sent.
template <bool First, class Plan, class Real, int M>
DESCENT_HD void read_gradient(Real (&g)[M], buffers<Plan> const& x, std::int64_t i, packet_extent e) {
  if constexpr (First && Plan::adds_when_read) {
    typename Plan::gradient sum[M];
    read_sum(sum, x.sent.first + i, x.sent.stride, x.sent.ranks, e);
    if constexpr (Plan::keeps_sum) write(x.gradient + i, sum, e);
    for (int j = 0; j < M; ++j) g[j] = Real(sum[j]);
  } else {
    read(g, x.gradient + i, e);
  }
}

/// Reads the master, the value, or the value and its remainder.
template <class Plan, class Real, int M>
DESCENT_HD void read_master(Real (&p)[M], buffers<Plan> const& x, std::int64_t i, packet_extent e) {
  if constexpr (Plan::has_remainder) read_joined(p, x.value + i, x.extra.remainder + i, e);
  else read(p, x.master + i, e);
}

/// Draws standard normals for the elements of a packet from i on.
template <class Plan, class Real, int M>
DESCENT_HD void draw_normals(Real (&z)[M], buffers<Plan> const& x, std::int64_t i, step_terms_of<Plan> const& step) {
  std::int64_t const element = x.extra.element(i);
  float lanes[packet_size];
  normals(lanes, step.noise_seed, step.t, element / packet_size);
  from_lanes(z, lanes, int(element % packet_size));
}

/// Turns a stored gradient into what the rule sees: g * factor -> value clip -> noise -> sign. p: the parameter.
template <class Plan, class Real, int M>
DESCENT_HD void to_true_gradient(Real (&g)[M], [[maybe_unused]] Real const (&p)[M],
                                 [[maybe_unused]] buffers<Plan> const& x, [[maybe_unused]] std::int64_t i,
                                 [[maybe_unused]] Real const& factor,
                                 [[maybe_unused]] step_terms_of<Plan> const& step) {
  bool by_rows = false;
  if constexpr (Plan::scales && Plan::clips_rows) {
    by_rows = x.rows.of;
    if (by_rows) x.rows.multiply(g, i);
  }
  if (Plan::scales && !by_rows)
    for (int j = 0; j < M; ++j) g[j] = g[j] * factor;
  if constexpr (Plan::has_step_terms)
    each_stage(typename Plan::stages_before{}, [&]<class P>() {
      auto const k = step.template as<P, Real>();
      if constexpr (transform_takes_normal<P>) {
        Real z[M];
        draw_normals<Plan>(z, x, i, step);
        for (int j = 0; j < M; ++j) g[j] = P::apply(p[j], g[j], k, z[j]);
      } else {
        for (int j = 0; j < M; ++j) g[j] = P::apply(p[j], g[j], k);
      }
    });
}

/// Sets gradients to zero.
template <class Plan, class Real, int M = reals<Real>>
DESCENT_HD void zero_packet(buffers<Plan> const& x, std::int64_t i, packet_extent e) {
  write_zeros<Real, M>(x.gradient + i, e);
}

/// Updates a packet, or one element if M is 1, from element i on:
/// g * factor -> value clip, noise -> rule -> lookahead -> rounding -> master -> value -> average -> g <- 0.
template <class Plan, class Real, int M = reals<Real>>
DESCENT_HD void update_packet(buffers<Plan> const& x, std::int64_t i, packet_extent e, Real const& factor,
                              typename Plan::update::template terms<Real> const& k,
                              [[maybe_unused]] step_terms_of<Plan> const& step = {}) {
  using rule = typename Plan::rule;
  using master_or_value = typename Plan::master_or_value;
  constexpr bool rounds = has<Plan, kind::rounding>;
  Real p[M], g[M];
  packet_state<Plan, Real, M> s;
  read_gradient<!Plan::measures>(g, x, i, e);
  read_master(p, x, i, e);
  s.template read<false>(x, i, e);
  [[maybe_unused]] Real slow[M];

  to_true_gradient<Plan>(g, p, x, i, factor, step);
  [[maybe_unused]] Real z[M];
  if constexpr (takes_normal<rule>) draw_normals<Plan>(z, x, i, step);
  for (int j = 0; j < M; ++j) {
    auto state = s.whole(j);
    if constexpr (takes_normal<rule>) p[j] = Plan::update::update(p[j], g[j], state, k, z[j]);
    else p[j] = Plan::update::update(p[j], g[j], state, k);
    s.part(j, state);
  }

  [[maybe_unused]] auto const random = [&] {
    if constexpr (rounds) return packet_random<Plan, Real>(x, i, step);
    else return 0;
  }();
  if constexpr (has<Plan, kind::lookahead>) {
    using stage = typename Plan::lookahead;
    if (!is_idle<stage>(step.template of<stage>())) {
      auto const of_stage = step.template as<stage, Real>();
      Real b[M];
      if constexpr (Plan::has_outer) read(b, x.extra.outer + i, e);
      read(slow, x.extra.slow + i, e);
      if constexpr (Plan::leads) {
        if constexpr (rounds) random.template round<random_slow, typename Plan::slow>(p);
        round_to<typename Plan::slow>(p);  // so that b sums the steps of what is stored
      }
      for (int j = 0; j < M; ++j) {
        typename stage::template kept<Real> kept;
        kept.slow = slow[j];
        if constexpr (Plan::has_outer) kept.b = b[j];
        p[j] = stage::after(p[j], kept, of_stage);
        slow[j] = kept.slow;
        if constexpr (Plan::has_outer) b[j] = kept.b;
      }
      if constexpr (Plan::has_outer) write(x.extra.outer + i, b, e);
      if constexpr (rounds && !Plan::leads) random.template round<random_slow, typename Plan::slow>(p);
      write(x.extra.slow + i, Plan::leads ? slow : p, e);
    }
  }
  if constexpr (rounds) {
    if constexpr (!Plan::has_remainder) random.template round<random_value, master_or_value>(p);
    s.round(x, random);
  }

  if constexpr (Plan::has_remainder) write_joined(x.value + i, x.extra.remainder + i, p, e);
  else write(x.master + i, p, e);
  s.template write<false>(x, i, e);
  if constexpr (Plan::has_master) {
    round_to<typename Plan::master>(p);
    if constexpr (rounds_beside<Plan>) {
      Real value[M];
      for (int j = 0; j < M; ++j) value[j] = p[j];
      random.template round<random_beside<Plan>, typename Plan::value>(value);
      write(x.value + i, value, e);
    } else {
      write(x.value + i, p, e);
    }
  }
  if constexpr (has<Plan, kind::average>) {
    using stage = typename Plan::average;
    if (!is_idle<stage>(step.template of<stage>())) {
      auto const of_stage = step.template as<stage, Real>();
      Real mean[M];
      if constexpr (!Plan::leads && !Plan::has_master && !Plan::has_remainder) round_to<master_or_value>(p);
      Real(&averaged)[M] = Plan::leads ? slow : p;
      read(mean, x.extra.average + i, e);
      for (int j = 0; j < M; ++j) mean[j] = stage::after(averaged[j], mean[j], of_stage);
      write(x.extra.average + i, mean, e);
    }
  }
  if constexpr (Plan::zeroes) zero_packet<Plan, Real, M>(x, i, e);
}

/// Initializes the master or the remainder from the value p.
template <class Plan, class Real, int M>
DESCENT_HD void start_master([[maybe_unused]] Real (&p)[M], [[maybe_unused]] buffers<Plan> const& x,
                             [[maybe_unused]] std::int64_t i, [[maybe_unused]] packet_extent e) {
  if constexpr (Plan::has_remainder) write_joined(x.value + i, x.extra.remainder + i, p, e);
  if constexpr (Plan::has_master) {
    write(x.master + i, p, e);
    round_to<typename Plan::master>(p);
  }
}

/// Initializes masters, averages, slow weights and state.
template <class Plan, class Real, int M = reals<Real>>
DESCENT_HD void start_packet(buffers<Plan> const& x, std::int64_t i, packet_extent e,
                             [[maybe_unused]] typename Plan::rule const& rule) {
  Real p[M];
  packet_state<Plan, Real, M> s;
  read(p, x.value + i, e);
  start_master<Plan, Real, M>(p, x, i, e);
  if constexpr (has<Plan, kind::average>) write(x.extra.average + i, p, e);
  if constexpr (has<Plan, kind::lookahead>) write(x.extra.slow + i, p, e);
  if constexpr (Plan::has_outer) write_zeros<Real, M>(x.extra.outer + i, e);
  for (int j = 0; j < M; ++j) {
    typename packet_state<Plan, Real, M>::state state{};
    if constexpr (has_start<typename Plan::rule>) state = rule.start(p[j]);
    s.part(j, state);
  }
  s.template write<true>(x, i, e);
}

}  // namespace descent::detail

#pragma GCC diagnostic pop
