// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../verdict.hpp"

namespace {

using list = std::vector<int>;

list right(list const& order, std::size_t rank, std::size_t ranks, bool up = true, bool in_turn = true) {
  std::size_t const each = (order.size() + (up ? ranks - 1 : 0)) / ranks;
  list part;
  for (std::size_t i = 0; i < each; ++i)
    part.push_back(order[(in_turn ? rank + i * ranks : rank * each + i) % order.size()]);
  return part;
}
std::string text(list const& all) {
  std::string joined;
  for (int one : all) joined += (joined.empty() ? "" : " ") + std::to_string(one);
  return joined.empty() ? "nothing" : joined;
}

void check(list const& order, std::size_t rank, std::size_t ranks) {
  list const got = part_of(order, rank, ranks), want = right(order, rank, ranks);
  if (got == want) return;
  std::string const sentence = "order " + text(order) + ", rank " + std::to_string(rank) + " of " +
                               std::to_string(ranks) + " takes " + text(got) + " and should take " + text(want);
  if (got.empty()) learn::wrong(sentence + "; the lines are still to be written.");
  if (got == right(order, rank, ranks, true, false))
    learn::wrong(sentence + "; is it a run of neighbours? Ranks take turns.");
  if (got == right(order, rank, ranks, false))
    learn::wrong(sentence + "; are the last examples left out? The order continues with its first ones.");
  learn::wrong(sentence + ".");
}

}  // namespace

int main() {
  list const order{4, 0, 3, 1, 2};
  for (std::size_t ranks : {2, 1, 3, 5, 7})
    for (std::size_t rank = 0; rank < ranks; ++rank) check(order, rank, ranks);
}
