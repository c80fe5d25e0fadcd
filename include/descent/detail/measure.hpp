// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/packet.hpp>
#include <descent/detail/reduce.hpp>
#include <descent/detail/row_record.hpp>

/// The read-only pass, one packet at a time.
namespace descent::detail {

/// What the read-only passes add up: the norm of the gradients as they lie in memory, and the rule's sums.
enum class measure { norm, sums, norm_and_sums };
template <class Plan, measure What>
inline constexpr int measured =
    (What == measure::sums ? 0 : Plan::norm_rows) + (What == measure::norm ? 0 : int(Plan::sum_count));

/// Whether a row of what is measured keeps the largest instead of the sum.
template <class Plan, measure What>
inline constexpr bool first_is_largest = Plan::norm_of == norm::inf && What != measure::sums;

/// Adds the elements' contributions to four accumulators for each measured row: element j to accumulator j mod 4, where
/// bit j of `in` says so.
/// A float's square is exact in double, so a fused multiply-add changes nothing and no finite gradient overflows.
template <class Plan, measure What, class Real>
DESCENT_HD void measure_packet(double (&total)[(measured<Plan, What>)][4], buffers<Plan> const& x, std::int64_t i,
                               extent e, Real const& factor, typename Plan::rule::template terms<Real> const& k,
                               [[maybe_unused]] step_terms_of<Plan> const& step,
                               [[maybe_unused]] unsigned in = all_selected) {
  using rule = typename Plan::rule;
  constexpr bool reads_parameters = What != measure::norm || Plan::measures_parameters;
  double each[packet_size];
  auto const take = [&](auto const& r) {
    to_doubles(each, r, e.size);
    if constexpr (Plan::selects_rows)
      for (int j = 0; j < packet_size; ++j)
        if (!(in >> j & 1)) each[j] = 0;
  };
  auto const add = [&](double(&sum)[4]) {
    for (int j = 0; j < 4; ++j) sum[j] += each[j] + each[j + 4];
  };
  Real g[reals<Real>];
  [[maybe_unused]] Real p[reals<Real>];
  read_gradient<What != measure::sums>(g, x, i, e);
  if constexpr (reads_parameters) read_exact(p, x, i, e);
  if constexpr (What != measure::sums) {
    take(g);
    if constexpr (Plan::norm_of == norm::inf) {
      for (int j = 0; j < 4; ++j) total[0][j] = larger(total[0][j], larger(abs(each[j]), abs(each[j + 4])));
    } else if constexpr (Plan::norm_of == norm::l1) {
      for (double& one : each) one = abs(one) * Plan::sum_scale;
      add(total[0]);
    } else if constexpr (Plan::has_large) {
      double small[packet_size];
      for (int j = 0; j < packet_size; ++j) {
        bool const is_small = abs(each[j]) <= large_threshold;
        small[j] = is_small ? each[j] * each[j] : 0;
        each[j] = is_small ? 0 : each[j] * large_scale * (each[j] * large_scale);
      }
      add(total[1]);
      for (int j = 0; j < packet_size; ++j) each[j] = small[j];
      add(total[0]);
    } else {
      for (double& one : each) one *= one;
      add(total[0]);
    }
    if constexpr (Plan::measures_parameters) {
      take(p);
      for (double& one : each) one *= one;
      add(total[Plan::norm_rows - 1]);
    }
  }
  if constexpr (What != measure::norm) {
    Real sums[Plan::sum_count][reals<Real>];
    [[maybe_unused]] packet_state<Plan, Real> s;
    if constexpr (has_sums_of_state<rule>) s.template read<true>(x, i, e);
    to_true<Plan>(g, x, i, factor, step);
    for (int j = 0; j < reals<Real>; ++j) {
      typename rule::template sums<Real> sum;
      if constexpr (has_sums_of_state<rule>) sum = rule::sum(p[j], g[j], s.whole(j), k);
      else sum = rule::sum(p[j], g[j], k);
      for (std::size_t c = 0; c < Plan::sum_count; ++c) sums[c][j] = reinterpret_cast<Real const*>(&sum)[c];
    }
    for (std::size_t c = 0; c < Plan::sum_count; ++c) {
      take(sums[c]);
      add(total[measured<Plan, What> - Plan::sum_count + c]);
    }
  }
}

/// The same for a tensor that the matrix rule updates: it has no part in the rule's sums.
template <class Plan, measure What, class Real>
DESCENT_HD void measure_matrix_packet([[maybe_unused]] double (&total)[(measured<Plan, What>)][4],
                                      [[maybe_unused]] buffers<Plan> const& x, [[maybe_unused]] std::int64_t i,
                                      [[maybe_unused]] extent e) {
  if constexpr (What != measure::sums)
    measure_packet<Plan, measure::norm, Real>(reinterpret_cast<double(&)[Plan::norm_rows][4]>(total), x, i, e, Real(1),
                                              {}, {});
}

}  // namespace descent::detail
