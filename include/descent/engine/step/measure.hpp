// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/double_sums.hpp>
#include <descent/engine/step/packet.hpp>
#include <descent/engine/step/row_mask.hpp>

/// The read-only pass, one packet at a time.
namespace descent::detail {

/// What a read-only pass sums up: the norm of the stored gradients, the rule's sums, or both.
enum class measure { norm, sums, norm_and_sums };
template <class Plan, measure What>
inline constexpr int measured =
    (What == measure::sums ? 0 : Plan::norm_sums) + (What == measure::norm ? 0 : int(Plan::sum_count));
template <class Plan, measure What> using measured_totals = double[measured<Plan, What>][4];

/// Whether the first measured row keeps the largest value instead of the sum.
template <class Plan, measure What>
inline constexpr bool first_is_largest = Plan::norm_of == norm::inf && What != measure::sums;

/// Prefetches `count` elements. Always inlined: GCC drops calls to a function that only prefetches.
template <class T> [[gnu::always_inline]] DESCENT_HD inline void fetch(T const* p, std::int64_t count) {
  for (std::int64_t line = 0; line < count * std::int64_t(sizeof(T)); line += 64)
#if defined(__CUDA_ARCH__)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(reinterpret_cast<char const*>(p) + line)));
#else
    __builtin_prefetch(reinterpret_cast<char const*>(p) + line, 0, 2);
#endif
}
/// Prefetches all that the pass reads of elements i, i + 1, ...
template <class Plan, measure What>
[[gnu::always_inline]] DESCENT_HD inline void fetch_measured(buffers<Plan> const& x, std::int64_t i,
                                                             std::int64_t count) {
  fetch(x.gradient + i, count);
  if constexpr (What != measure::norm || Plan::measures_parameters) fetch(x.master + i, count);
  if constexpr (What != measure::norm && has_sums_of_state<typename Plan::update>)
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((x.slot[I] ? fetch(x.template slot_at<I>() + i, count) : void()), ...);
    }(typename Plan::every_slot{});
}

/// Adds the elements' contributions to four accumulators for each measured row: element j to accumulator j mod 4, if
/// bit j of `in` is set.
/// A float's square is exact in double, so a fused multiply-add changes nothing and no finite gradient overflows.
template <class Plan, measure What, class Real>
DESCENT_HD void measure_packet(measured_totals<Plan, What>& total, buffers<Plan> const& x, std::int64_t i,
                               packet_extent e, Real const& factor,
                               typename Plan::update::template terms<Real> const& k,
                               [[maybe_unused]] step_terms_of<Plan> const& step,
                               [[maybe_unused]] unsigned in = all_selected) {
  using update = typename Plan::update;
  constexpr bool reads_parameters = What != measure::norm || Plan::measures_parameters;
  in_double<Real> each;
  auto const take = [&](auto const& r) {
    to_doubles<Real>(each, r, e.size);
    if constexpr (Plan::selects_rows) keep(each, in);
  };
  Real g[reals<Real>];
  [[maybe_unused]] Real p[reals<Real>];
  [[maybe_unused]] packet_state<Plan, Real> s;
  read_gradient<What != measure::sums>(g, x, i, e);
  if constexpr (reads_parameters) read_master(p, x, i, e);
  if constexpr (What != measure::norm && has_sums_of_state<update>) s.template read<true>(x, i, e);
  if constexpr (What != measure::sums) {
    take(g);
    if constexpr (Plan::norm_of == norm::inf) {
      magnitude(each, 1);
      enlarge(total[0], each);
    } else if constexpr (Plan::norm_of == norm::l1) {
      magnitude(each, Plan::sum_scale);
      add(total[0], each);
    } else if constexpr (Plan::has_large) {
      auto small = each;
      for (int j = 0; j < packet_size; ++j) {
        bool const is_small = is_at_most(each.lane[j], large_threshold);
        small.lane[j] = is_small ? each.lane[j] : 0;
        each.lane[j] = is_small ? 0 : each.lane[j] * large_scale;
      }
      square(small);
      square(each);
      add(total[1], each);
      add(total[0], small);
    } else {
      square(each);
      add(total[0], each);
    }
    if constexpr (Plan::measures_parameters) {
      take(p);
      square(each);
      add(total[Plan::norm_sums - 1], each);
    }
  }
  if constexpr (What != measure::norm) {
    constexpr std::size_t first = std::size_t(measured<Plan, What>) - Plan::sum_count;
    to_true_gradient<Plan>(g, p, x, i, factor, step);
    auto const sums_of = [&](int j) -> typename update::template sums<Real> {
      if constexpr (has_sums_of_state<update>) return update::sum(p[j], g[j], s.whole(j), k);
      else return update::sum(p[j], g[j], k);
    };
    if constexpr (lanes<Real> == 1) {
      // As add() does, but two elements at a time, so that a device needs fewer registers.
      auto const taken = [&](Real const& sum, int j) { return j < e.size && in >> j & 1 ? double(sum) : 0; };
      for (int j = 0; j < 4; ++j) {
        auto const a = sums_of(j), b = sums_of(j + 4);
        unrolled<Plan::sum_count>(
            [&](auto c) { total[first + c][j] += taken(real_at<Real>(a, c), j) + taken(real_at<Real>(b, c), j + 4); });
      }
    } else {
      Real sums[Plan::sum_count][reals<Real>];
      for (int j = 0; j < reals<Real>; ++j) {
        auto const sum = sums_of(j);
        unrolled<Plan::sum_count>([&](auto c) { sums[c][j] = real_at<Real>(sum, c); });
      }
      unrolled<Plan::sum_count>([&](auto c) {
        take(sums[c]);
        add(total[first + c], each);
      });
    }
  }
}

/// measure_packet for a tensor that the matrix rule updates: it contributes nothing to the rule's sums.
template <class Plan, measure What, class Real>
DESCENT_HD void measure_matrix_packet([[maybe_unused]] measured_totals<Plan, What>& total,
                                      [[maybe_unused]] buffers<Plan> const& x, [[maybe_unused]] std::int64_t i,
                                      [[maybe_unused]] packet_extent e) {
  if constexpr (What != measure::sums)
    measure_packet<Plan, measure::norm, Real>(reinterpret_cast<double (&)[Plan::norm_sums][4]>(total), x, i, e, Real(1),
                                              {}, {});
}

}  // namespace descent::detail
