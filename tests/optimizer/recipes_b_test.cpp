// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Random recipes against a plain step, second quarter of the rows.
#include "recipe_rows.hpp"

TEST_CASE("random recipes: every call does what the formulas say, second quarter") {
  recipes::try_quarter(recipes::rows_b{}, 40, 200);
}
