// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Random recipes against a plain step, first quarter of the rows.
#include "recipe_rows.hpp"

#include <set>
#include <string>
#include <typeindex>
#include <utility>

namespace ds = descent;

namespace {

/// The policies of a row; scheduled fields of different rules count as one.
template <class P> struct which { static inline std::type_index const type = typeid(P); };
template <auto Field> struct which<ds::detail::varied<Field, recipes::any_schedule>> {
  static inline std::type_index const type = typeid(recipes::any_schedule);
};

template <class... Rows> auto policies_of(std::type_identity<std::tuple<Rows...>>) {
  std::vector<std::set<std::type_index>> all;
  auto const row = [&]<class Row>() {
    all.emplace_back();
    Row::each_policy([&]<class P>() { all.back().insert(which<P>::type); });
  };
  (row.template operator()<Rows>(), ...);
  return all;
}

}  // namespace

TEST_CASE("random recipes: every call does what the formulas say, first quarter") {
  recipes::try_quarter(recipes::rows_a{}, 40, 100);
}

TEST_CASE("random recipes: what is not a number is near nothing else, and infinity near no number") {
  constexpr double infinity = std::numeric_limits<double>::infinity(),
                   not_a_number = std::numeric_limits<double>::quiet_NaN();
  CHECK(!recipes::near(not_a_number, 1));
  CHECK(!recipes::near(1, not_a_number));
  CHECK(!recipes::near(infinity, 1));
}

TEST_CASE("random recipes: any two policies meet, and each is absent beside any other") {
  auto const rows = policies_of(std::type_identity<recipes::all_rows>{});
  std::set<std::type_index> all;
  for (auto const& row : rows) all.insert(row.begin(), row.end());
  CHECK(all.size() == 32);
  std::size_t meet = 0, alone = 0;
  for (auto a : all)
    for (auto b : all) {
      bool together = false, apart = false;
      for (auto const& row : rows) {
        together = together || (row.contains(a) && row.contains(b));
        apart = apart || (row.contains(a) && !row.contains(b));
      }
      meet += a < b && together;
      alone += a != b && apart;
    }
  // All pairs except two masters (4), states (3), loss scales (3), clippings (10), averages (2): no optimizer has two.
  CHECK(meet == 32 * 31 / 2 - 6 - 3 - 3 - 45 - 1);
  CHECK(alone == 32 * 31);
}
