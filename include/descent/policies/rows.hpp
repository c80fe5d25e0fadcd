// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>

#include <cstdint>
#include <string>

namespace descent {

/// Which updates the bias correction of a row counts: those of all rows, or those of the row itself.
enum class row_step { shared, own };

/// Updates only selected rows, for embeddings, sparse gradients, or points that come and go. A row that is not selected
/// does not change: value, master, state, averages and gradient stay as they are, and its gradient, whatever it holds,
/// counts in no norm or sum. optimizer::select_rows() selects rows by a mask or a list, until its next call. Before the
/// first call all rows are selected. With accumulate, an update takes each row that was selected in any step() of its
/// micro-batches (1 byte per row), or in flush(). A parameter's shape defines its rows; without a shape each element is
/// a row.
///
/// masked_rows<row_step::own> counts the updates of each row (4 bytes per row), and t in the rule's formula is the
/// row's count. Schedules follow the shared t. Only for rules without sums and memory.
template <row_step Step = row_step::shared> struct masked_rows {
  using policy_kind = kind::rows;
  /// Whether t is the row's own count.
  static constexpr bool own_step = Step == row_step::own;
};

/// The origin of the rows of a parameter whose rows change; see optimizer::gathered(). `from`, in the backend's memory,
/// has one entry per new row: the index of an old row, or -1 for a row with a new state.
struct row_source {
  std::string name;  ///< of the parameter
  std::int64_t const* from;
};

}  // namespace descent
