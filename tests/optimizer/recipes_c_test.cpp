// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Random recipes against a plain step, third quarter of the rows.
#include "recipe_rows.hpp"

TEST_CASE("random recipes: every call does what the formulas say, third quarter") {
  recipes::try_quarter(recipes::rows_c{}, 40, 300);
}
