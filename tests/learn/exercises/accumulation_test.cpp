// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// Examples whose gradients are 1, 2, ..., 21, so every mean is known. The batches are 1 to 12 and 13 to 21.
#include "../verdict.hpp"

using learn::path;

namespace {

std::vector<std::vector<int>> const batches = {{2, 7, 3}, {4, 5}};

/// The means that take() returns after each batch; the second element is minus twice the first.
template <class Accumulator> path of(Accumulator a) {
  path means;
  int first = 1;
  for (auto const& batch : batches) {
    for (int const n : batch) {
      double const mean = first + (n - 1) / 2.0;
      a.add({mean, -2 * mean}, n);
      first += n;
    }
    std::vector<double> const got = a.take();
    means.insert(means.end(), got.begin(), got.end());
  }
  return means;
}

/// An accumulator with mistakes.
struct accumulating {
  bool weighted = true, divided = true, cleared = true, count_cleared = true, by_parts = false;
  std::vector<double> sum = {0, 0};
  double count = 0;
  int parts = 0;

  void add(std::vector<double> const& g, int n) {
    for (std::size_t i = 0; i < 2; ++i) sum[i] += weighted ? n * g[i] : g[i];
    count += n, ++parts;
  }
  std::vector<double> take() {
    double const by = !divided ? 1 : by_parts ? parts : count;
    std::vector<double> const mean = {sum[0] / by, sum[1] / by};
    if (cleared) sum = {0, 0};
    if (count_cleared) count = parts = 0;
    return mean;
  }
};

}  // namespace

int main() {
  path const got = of(accumulator(2)), want = {6.5, -13, 17, -34};
  if (learn::same(got, want)) return 0;
  std::size_t const at = !learn::same(got[0], want[0]) ? 0 : !learn::same(got[1], want[1]) ? 1 : 2;
  std::string const sizes = at < 2 ? "2, 7 and 3" : "4 and 5";
  std::string const sentence = "the mean over micro-batches of " + sizes + " examples is " + learn::number(got[at]) +
                               " and should be " + learn::number(want[at]);
  learn::mistake const mistakes[] = {
      {"the lines are still to be written.", path(4)},
      {"is it the mean of the means? A micro-batch counts as often as it has examples.",
       of(accumulating{.weighted = false, .by_parts = true})},
      {"is the sum divided by the number of micro-batches? Divide by the number of examples.",
       of(accumulating{.by_parts = true})},
      {"is each mean multiplied by its number of examples? The means are added as they are.",
       of(accumulating{.weighted = false})},
      {"is the sum divided by the number of examples?", of(accumulating{.divided = false})},
      {"is neither the mean weighted nor the sum divided?", of(accumulating{.weighted = false, .divided = false})},
      {"does the first batch count again in the second? take() must set the sum and the count to 0.",
       of(accumulating{.cleared = false, .count_cleared = false})},
      {"does the sum of the first batch count again in the second? take() must set it to 0.",
       of(accumulating{.cleared = false})},
      {"does the count of the first batch count again in the second? take() must set it to 0.",
       of(accumulating{.count_cleared = false})},
  };
  for (auto const& one : mistakes)
    if (learn::same(got, one.values)) learn::wrong(sentence + "; " + one.question);
  learn::wrong(sentence + ".");
}
