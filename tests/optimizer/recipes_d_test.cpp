// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Random recipes against a plain step, fourth quarter of the rows.
#include "recipe_rows.hpp"

TEST_CASE("random recipes: every call does what the formulas say, fourth quarter") {
  recipes::try_quarter(recipes::rows_d{}, 40, 400);
}
