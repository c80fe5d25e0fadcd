// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/layout.hpp>
#include <descent/engine/step/packet.hpp>
#include <descent/engine/step/terms.hpp>
#include <descent/matrices/matrices.hpp>

#include <cstdint>
#include <type_traits>

// g++ warns of each array whose bound is an int.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"

/// Plans for the element-wise parts of a matrix rule.
namespace descent::detail {

/// A plan, or its view of tensors of one pair of types, with the state of the matrix rule.
template <class Typed> struct matrix_plan : Typed {
  using rule = typename Typed::matrix_rule;
  using update = rule;
  static constexpr std::size_t slots = members<rule::template state>;
  using state_types =
      std::conditional_t<Typed::state_types::size == 1, typename Typed::state_types, type_list<typename Typed::real>>;
  template <std::size_t I> using slot = typename slot_type<rule, state_types, I>::type;
  using every_slot = std::make_index_sequence<slots>;

  static constexpr bool after(std::size_t i) {
    if constexpr (requires { rule::after(i); }) return rule::after(i);
    else return false;
  }
};

/// The part from the gradient to the scratch matrices.
template <class Typed> struct front_plan : matrix_plan<Typed> {
  template <std::size_t I> static constexpr bool updates = !matrix_plan<Typed>::after(I);
};

/// The part from the direction, a scratch matrix that replaces the gradient, to the parameter.
template <class Typed> struct back_plan : matrix_plan<Typed> {
  using gradient = typename Typed::real;
  using stages_before = policy_list<>;
  static constexpr bool zeroes = false, scales = false;
  template <std::size_t I> static constexpr bool updates = matrix_plan<Typed>::after(I);
};

template <class Plan> using matrix_unit = unit_terms<typename Plan::matrix_rule, typename Plan::real>;
template <class Plan> inline constexpr int input_count = int(members<Plan::matrix_rule::template inputs>);
/// The scratch matrices that the rule's direction() fills.
template <class Plan> struct matrix_inputs { typename Plan::real* at[input_count<Plan>]; };

/// The arrays of the matrix rule's state.
template <class Plan> struct matrix_states {
  void* at[matrix_plan<Plan>::slots + 1];
  std::int64_t begin;  // of the current matrix
};

/// A tensor's buffers with the matrix rule's state.
template <class To, class From, class States>
DESCENT_HD buffers<To> matrix_buffers(buffers<From> const& x, typename To::gradient* gradient, States const& states) {
  buffers<To> y{x.value, gradient, x.master, {}, x.extra.template from<To>(0, 0)};
  if constexpr (To::clips_rows) y.rows = {x.rows.of, x.rows.columns, x.rows.inverse, x.rows.first};
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((y.slot[I] = states.at[I] ? static_cast<typename To::template slot<I>*>(states.at[I]) + states.begin : nullptr),
     ...);
  }(typename To::every_slot{});
  return y;
}

/// Writes eight elements. On a device it uses 16-byte stores, which the compiler does not generate by itself.
template <class Real, int M, class T> DESCENT_HD void write_input(T* p, Real const (&r)[M], packet_extent e) {
#if defined(__CUDA_ARCH__)
  if constexpr (M == packet_size) {
    constexpr int words = sizeof(r) / sizeof(uint4);
    uint4 word[words];
    memcpy(word, r, sizeof r);
    for (int w = 0; w < words; ++w) __stwb(reinterpret_cast<uint4*>(in_memory(p)) + w, word[w]);
    return;
  }
#endif
  write(p, r, e);
}

/// The matrix rule's packet before the transform: computes the inputs from gradient and state.
template <class Plan, class Real, int M = reals<Real>>
DESCENT_HD void front_packet(buffers<Plan> const& x, std::int64_t i, packet_extent e, Real const& factor,
                             typename Plan::rule::template terms<Real> const& k,
                             [[maybe_unused]] step_terms_of<Plan> const& step, typename Plan::real* const* to) {
  constexpr int inputs = input_count<Plan>;
  Real p[M], g[M], out[inputs][M];
  packet_state<Plan, Real, M> s;
  read(g, x.gradient + i, e);
  read_master(p, x, i, e);
  s.template read<false>(x, i, e);
  if constexpr (Plan::zeroes) zero_packet<Plan, Real, M>(x, i, e);
  to_true_gradient<Plan>(g, p, x, i, factor, step);
  for (int j = 0; j < M; ++j) {
    auto state = s.whole(j);
    auto const in = Plan::rule::direction(p[j], g[j], state, k);
    for (int c = 0; c < inputs; ++c) out[c][j] = real_at<Real>(in, c);
    s.part(j, state);
  }
  if constexpr (has<Plan, kind::rounding>) s.round(x, packet_random<Plan, Real, false>(x, i, step));
  s.template write<false>(x, i, e);
  for (int c = 0; c < inputs; ++c) write_input(to[c] + i, out[c], e);
}

/// The terms of update t of one matrix.
template <class Plan>
DESCENT_HD matrix_unit<Plan> matrix_terms_of(typename Plan::matrix_rule const& rule,
                                             typename Plan::policies const& policies, std::int64_t t, shape s,
                                             double factor, bool frozen, int group, rate_change const& rates) {
  using matrix_rule = typename Plan::matrix_rule;
  matrix_rule const r = scheduled_for_matrices(rule, policies, t - 1, group, rates);
  return checked<matrix_rule, typename Plan::real, typename Plan::policies>(r, r.at(t, s), factor, frozen);
}

}  // namespace descent::detail

#pragma GCC diagnostic pop
