// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Random recipes against a plain step, third quarter of the rows.
#include "recipe_rows.hpp"

TEST_CASE("random recipes: every call does what the formulas say, third quarter") {
  recipes::tally const sum = recipes::try_all(recipes::rows_c{}, 40, 300);
  MESSAGE(sum.applied, " updates, ", sum.skipped, " skipped, ", sum.waited, " waited, worst ", sum.worst);
  CHECK(sum.recipes >= 500);
  CHECK(sum.applied >= 2000);
  CHECK(sum.skipped >= 200);
  CHECK(sum.waited >= 500);
  CHECK(sum.flushed >= 30);
  CHECK(sum.clipped >= 500);
  CHECK(sum.swapped >= 100);
  CHECK(sum.unscaled >= 30);
  CHECK(sum.reloaded >= 50);
  CHECK(sum.frozen >= 100);
}
