// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/control.hpp>
#include <descent/detail/layout.hpp>
#include <descent/report.hpp>

#include <limits>
#include <string>
#include <vector>

namespace descent::detail {

/// The totals over the chunks of the tensors that are wanted, added as the step adds all.
template <class Plan, class Wanted>
norm_totals totals_of(layout<typename Plan::value, typename Plan::gradient> const& where,
                      std::vector<double> const& partial, Wanted const& wanted) {
  return norm_totals_from<Plan>([&](int row) {
    auto const value = [&](std::int64_t c) {
      return wanted(where.tensors[std::size_t(where.tensor_of_chunk[std::size_t(c)])])
                 ? partial[std::size_t(row * where.chunks() + c)]
                 : 0.0;
    };
    return row_total<Plan, total_threads>(row, value, where.chunks());
  });
}

/// Every tensor, if the gradients of any are not finite.
template <class Plan>
std::vector<gradient_state> diagnosis_of(layout<typename Plan::value, typename Plan::gradient> const& where,
                                         std::vector<double> const& partial) {
  if (partial.empty()) return {};
  std::vector<gradient_state> all;
  bool finite = true;
  for (std::size_t t = 0; t < where.tensors.size(); ++t) {
    auto const x = totals_of<Plan>(where, partial, [&](auto const& tensor) { return &tensor == &where.tensors[t]; });
    all.push_back({where.names[t], x.finite(), norm_from<Plan>(x)});
    finite = finite && x.finite();
  }
  return finite ? std::vector<gradient_state>{} : all;
}

/// Skips in a row after which a training without a loss scale of its own counts as stuck.
inline constexpr int usual_patience = 20;

/// What the control block says, for people.
template <class Plan>
step_report report_of(layout<typename Plan::value, typename Plan::gradient> const& where,
                      [[maybe_unused]] typename Plan::policies const& policies, control_block const& c,
                      loss_scale_state const& scale) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  constexpr bool scales_loss = Plan::template given<typename Plan::loss_scale>;
  step_report r{c.step, c.skipped, c.applied, {}, c.learning_rate, scale.scale, c.grad_norm, c.clip};
  if (!has_lr<typename Plan::rule>) r.learning_rate = none;
  if (!Plan::measures) r.grad_norm = none;
  if (c.applied) return r;
  if (c.lost) r.why = "ranks were lost";
  else if (c.waiting && c.batches > 0) r.why = "gradients are being accumulated, " + std::to_string(c.batches) + " so far";
  else if (c.waiting) r.why = "no gradients were waiting";
  else if (c.step + c.skipped == 0) r.why = "no step was taken yet";
  else if (c.bad_chunk < 0) r.why = "the loss is not finite";
  else
    r.why = "the gradient of '" + where.names[std::size_t(where.tensor_of_chunk[std::size_t(c.bad_chunk)])] +
            "' is not finite";
  bool stuck = c.skipped_in_row >= usual_patience;
  if constexpr (Plan::shares_scale) stuck = scale.stuck >= usual_patience;
  else if constexpr (scales_loss)
    stuck = static_cast<typename Plan::loss_scale const&>(policies).is_stuck(scale);
  if (stuck)
    r.why += "; training is not recovering: " + std::to_string(c.skipped_in_row) + " steps in a row were skipped" +
             (scales_loss ? ", and the loss scale cannot go lower" : "");
  return r;
}

}  // namespace descent::detail
