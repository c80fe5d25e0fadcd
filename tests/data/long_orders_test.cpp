// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/data/distributed_sampler.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"

#include <cstdint>
#include <fstream>
#include <string>

/// Orders of so many indices that torch.randperm draws in another way.

namespace ds = descent;

TEST_CASE("long orders are those of torch.randperm, which draws in another way from (2^32 - 1) / 20 on") {
  std::ifstream file(test::tests_dir() + "/reference/values_sampler.txt");
  std::string word;
  while (file >> word && word != "order") file.ignore(1 << 20, '\n');
  std::int64_t n = 0, seed = 0, want[4] = {};
  file >> n >> seed >> word >> want[0] >> want[1] >> want[2] >> want[3];
  REQUIRE(file);
  REQUIRE(n == 214'748'364);
  auto const order = ds::random_order(n, std::uint64_t(seed));
  CHECK(order[0] == want[0]);
  CHECK(order[1] == want[1]);
  CHECK(order[2] == want[2]);
  CHECK(order.back() == want[3]);
}
