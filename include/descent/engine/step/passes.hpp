// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/packet.hpp>

#include <cstddef>

// g++ warns of each array whose bound is an int.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"

/// What is done to every packet outside a step: body.operator()<Plan, Real, M>(buffers, element, packet_extent), with
/// the plan of the tensor's types.
namespace descent::detail {

struct zero_all {
  template <class Plan, class Real, int M>
  DESCENT_HD void operator()(buffers<Plan> const& x, std::int64_t i, packet_extent e) const {
    zero_packet<Plan, Real, M>(x, i, e);
  }
};

/// Sets the master or remainder, and slow weights, from the value.
struct reload_all {
  template <class Plan, class Real, int M>
  DESCENT_HD void operator()(buffers<Plan> const& x, std::int64_t i, packet_extent e) const {
    Real p[M];
    read(p, x.value + i, e);
    start_master<Plan, Real, M>(p, x, i, e);
    if constexpr (has<Plan, kind::lookahead>) write(x.extra.slow + i, p, e);
  }
};

/// Sets *found if a value is not its master, rounded.
struct compare_all {
  std::int32_t* found;
  template <class Plan, class Real, int M>
  DESCENT_HD void operator()([[maybe_unused]] buffers<Plan> const& x, [[maybe_unused]] std::int64_t i,
                             [[maybe_unused]] packet_extent e) const {
    if constexpr (Plan::has_master)
      for (int j = 0; j < e.size; ++j) {
        using real = typename Plan::real;
        real const value = real(x.value[i + j]);
        real const want = real(narrow<typename Plan::value>(real(x.master[i + j])));
        if (value != want && !(is_nan(value) && is_nan(want))) set();
      }
  }

 private:
  DESCENT_HD void set() const {
#if defined(__CUDA_ARCH__)
    *found = 1;
#else
    __atomic_store_n(found, 1, __ATOMIC_RELAXED);
#endif
  }
};

struct listed_factor {
  double const* all;
  DESCENT_HD double operator()(std::int64_t k) const { return all[k]; }
};
/// f(s[k])
template <class F> struct factor_from {
  F f;
  float const* s;
  DESCENT_HD double operator()(std::int64_t k) const { return f(double(s[k])); }
};

/// Multiplies parameters by factor(k), where k is the number of their block of so many elements.
template <class Factor> struct scale_rows_all {
  Factor factor_of;
  std::int64_t block;
  template <class Plan, class Real, int M>
  DESCENT_HD void operator()(buffers<Plan> const& x, std::int64_t i, packet_extent e) const {
    Real p[M], factor[M];
    for (int j = 0; j < M * lanes<Real>; ++j) {
      double const one = j < e.size ? factor_of((i + j) / block) : 1;
      if constexpr (M * lanes<Real> == 1) factor[0] = Real(one);
      else lane_at(factor, j) = typename Plan::real(one);
    }
    auto const scale = [&] {
      for (int j = 0; j < M; ++j) p[j] = p[j] * factor[j];
    };
    if constexpr (has<Plan, kind::lookahead>) read(p, x.extra.slow + i, e), scale(), write(x.extra.slow + i, p, e);
    read_master(p, x, i, e);
    scale();
    if constexpr (Plan::has_remainder) write_joined(x.value + i, x.extra.remainder + i, p, e);
    else write(x.master + i, p, e);
    if constexpr (Plan::has_master) round_to<typename Plan::master>(p), write(x.value + i, p, e);
  }
};

/// Sets the value from its master.
struct round_all {
  template <class Plan, class Real, int M>
  DESCENT_HD void operator()([[maybe_unused]] buffers<Plan> const& x, [[maybe_unused]] std::int64_t i,
                             [[maybe_unused]] packet_extent e) const {
    if constexpr (Plan::has_master) {
      Real p[M];
      read(p, x.master + i, e);
      write(x.value + i, p, e);
    }
  }
};

template <class Factor> struct multiply_all {
  Factor factor;
  template <class Plan, class Real, int M>
  DESCENT_HD void operator()(buffers<Plan> const& x, std::int64_t i, packet_extent e) const {
    Real g[M];
    read(g, x.gradient + i, e);
    for (auto& one : g) one = one * Real(factor);
    write(x.gradient + i, g, e);
  }
};
template <class Factor> multiply_all(Factor) -> multiply_all<Factor>;

/// g <- f(g / scale) scale
template <class F, class Factor> struct transform_all {
  F f;
  Factor scale, inverse;
  template <class Plan, class Real, int M>
  DESCENT_HD void operator()(buffers<Plan> const& x, std::int64_t i, packet_extent e) const {
    Real g[M];
    read(g, x.gradient + i, e);
    for (auto& one : g) one = Real(f(one * inverse)) * scale;
    write(x.gradient + i, g, e);
  }
};
template <class F, class Factor> transform_all(F, Factor, Factor) -> transform_all<F, Factor>;

/// Where an element's value is saved, by the element's number among all. There is room for the largest type.
template <class Plan> DESCENT_HD typename Plan::value* saved_at(std::byte* saved, std::int64_t element) {
  std::int64_t const within = element % arena_alignment;
  return reinterpret_cast<typename Plan::value*>(saved + (element - within) * Plan::largest_value) + within;
}

/// What temporarily replaces the values.
enum class swap_target { average, ahead };

/// saved[..] <- value <- the target of the swap; if `stays`, the value is only saved. The average is the policy's or,
/// without one, the rule's.
template <class Plan, class Real, int M, swap_target To = swap_target::average>
DESCENT_HD void swap_in_packet(buffers<Plan> const& x, std::int64_t i, packet_extent e, std::byte* saved,
                               [[maybe_unused]] typename Plan::rule const& rule, bool stays = false) {
  Real p[M];
  read(p, x.value + i, e);
  write(saved_at<Plan>(saved, x.extra.arena + i), p, e);
  if (stays) return;
  if constexpr (To == swap_target::average && has<Plan, kind::average>) {
    read(p, x.extra.average + i, e);
  } else {
    packet_state<Plan, Real, M> s;
    if constexpr (Plan::leads) read(p, x.extra.slow + i, e);  // where the rule's last update ended
    else read_master(p, x, i, e);
    s.template read<true>(x, i, e);
    for (int j = 0; j < M; ++j) {
      if constexpr (To == swap_target::ahead) p[j] = rule.ahead(p[j], s.whole(j));
      else p[j] = rule.averaged(p[j], s.whole(j));
    }
  }
  write(x.value + i, p, e);
}

/// saved[..] <- value, value <- parameter + factor g; a factor of 0 leaves the value unchanged.
template <class Factor> struct ascend_all {
  std::byte* saved;
  Factor factor;
  template <class Plan, class Real, int M>
  DESCENT_HD void operator()(buffers<Plan> const& x, std::int64_t i, packet_extent e) const {
    Real p[M], g[M];
    read(p, x.value + i, e);
    write(saved_at<Plan>(saved, x.extra.arena + i), p, e);
    if (factor == 0) return;
    read_master(p, x, i, e);
    read(g, x.gradient + i, e);
    for (int j = 0; j < M; ++j) p[j] = p[j] + Real(factor) * g[j];
    write(x.value + i, p, e);
  }
};

/// value <- saved[..]
struct restore_all {
  std::byte* saved;
  template <class Plan, class Real, int M>
  DESCENT_HD void operator()(buffers<Plan> const& x, std::int64_t i, packet_extent e) const {
    Real p[M];
    read(p, saved_at<Plan>(saved, x.extra.arena + i), e);
    write(x.value + i, p, e);
  }
};

}  // namespace descent::detail

#pragma GCC diagnostic pop
