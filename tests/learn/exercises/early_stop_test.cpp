// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../verdict.hpp"

namespace {

std::size_t right(learn::path const& losses, std::size_t patience, bool equal = false) {
  std::size_t best = 0;
  for (std::size_t e = 1; e < losses.size() && e - best <= patience; ++e) {
    if (losses[e] < losses[best] || (equal && losses[e] == losses[best])) best = e;
    else if (e - best >= patience) break;
  }
  return best;
}

void check(learn::path const& losses, std::size_t patience) {
  std::size_t const got = kept_epoch(losses, patience), want = right(losses, patience);
  if (got == want) return;
  std::string sentence = "losses";
  for (double one : losses) sentence += " " + learn::number(one);
  sentence += ", patience " + std::to_string(patience) + ": kept_epoch() returns " + std::to_string(got) +
              " and should return " + std::to_string(want);
  auto const lowest = std::size_t(std::min_element(losses.begin(), losses.end()) - losses.begin());
  if (got == 0) learn::wrong(sentence + "; the lines are still to be written.");
  if (got == right(losses, patience, true)) learn::wrong(sentence + "; is an equal loss taken for an improvement?");
  if (got == lowest) learn::wrong(sentence + "; does training stop at all? The lowest loss came too late.");
  if (got == right(losses, patience + 1)) learn::wrong(sentence + "; is it one epoch too patient?");
  if (got == right(losses, patience - 1)) learn::wrong(sentence + "; is it one epoch too impatient?");
  if (got == want + patience) learn::wrong(sentence + "; is it the epoch at which training stops, not the best one?");
  learn::wrong(sentence + ".");
}

}  // namespace

int main() {
  check({0.9, 0.5, 0.6, 0.7, 0.4}, 2);
  check({0.9, 0.5, 0.6, 0.7, 0.65, 0.45, 0.1}, 3);
  check({1, 0.8, 0.8, 0.9, 0.7, 0.95, 0.3}, 2);
  check({5, 4, 3, 2, 1}, 1);
  check({1, 2, 3}, 10);
}
