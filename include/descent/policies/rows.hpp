// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>

#include <cstdint>
#include <string>

namespace descent {

/// What the bias correction of a row counts: the updates of all, or those of the row itself.
enum class row_step { shared, own };

/// Updates of selected rows only, for embeddings, sparse gradients, points that come and go. A row that is not selected
/// is not touched: value, master, state, averages and gradient stay, whatever the gradient holds, and count in no
/// norm and no sum. optimizer::select_rows() selects, by a mask or by a list, and holds until the next call; before
/// the first all rows are selected. The rows of a parameter are those of its shape; without one each element is a row.
///
/// masked_rows<row_step::own> counts the updates of each row, 4 bytes a row, and t in the rule's formula is the row's
/// own; schedules follow the shared t. For rules without sums and memory.
template <row_step Step = row_step::shared> struct masked_rows {
  using policy_kind = kind::rows;
  static constexpr bool own_step = Step == row_step::own;
};

/// Where the rows of a parameter come from when parameters change their rows: see optimizer::gathered(). `from` has one
/// entry for each new row: the number of an old row, or -1 for a row whose state starts anew. It lies in the backend's
/// memory.
struct row_source {
  std::string name;
  std::int64_t const* from;
};

}  // namespace descent
