// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// Three tensors whose norms are 3, 4 and 12, so 13 together.
#include "../verdict.hpp"

using learn::number, learn::path;
using tensors = std::vector<std::vector<double>>;

namespace {

constexpr double scale = 1024;
tensors const truth = {{3, 0}, {2, -2, 2, 2}, {-7.2, 9.6}};

path flat(tensors const& all, double factor = 1) {
  path elements;
  for (auto const& tensor : all)
    for (double const g : tensor) elements.push_back(g * factor);
  return elements;
}

path per_tensor(double max_norm) {
  tensors all = truth;
  double const norms[] = {3, 4, 12};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (double& g : all[i]) g *= std::min(1.0, max_norm / norms[i]);
  return flat(all);
}

path by_value(double most) {
  path all = flat(truth);
  for (double& g : all) g = std::clamp(g, -most, most);
  return all;
}

void check(double max_norm) {
  tensors g = truth;
  for (auto& tensor : g)
    for (double& one : tensor) one *= scale;
  double const norm = clip(g, scale, max_norm);
  path const got = flat(g);
  double const factor = std::min(1.0, max_norm / 13);
  std::string const where = "true gradients of norm 13 with a loss scale of 1024, max_norm " + number(max_norm) + ": ";

  double squares = 0;
  for (double const x : got) squares += x * x;
  std::string const length =
      where + "afterwards their norm is " + number(std::sqrt(squares)) + " and should be " + number(13 * factor);
  learn::mistake const mistakes[] = {
      {"the lines are still to be written.", flat(truth, scale)},
      {"are they clipped before they are divided by the loss scale? Then the step is 1024 times too short.",
       flat(truth, max_norm / (13 * scale))},
      {"is each tensor clipped by its own norm? That changes the direction; one norm covers all.",
       per_tensor(max_norm)},
      {"are the elements clipped one by one? That changes the direction.", by_value(max_norm)},
      {"are the norms of the tensors added? Add the squares, and take one root.",
       flat(truth, std::min(1.0, max_norm / 19))},
      {"is the root missing?", flat(truth, std::min(1.0, max_norm / 169))},
      {"are short gradients made longer? The factor is at most 1.", flat(truth, max_norm / 13)},
      {"is clipping missing?", flat(truth)},
  };
  if (!learn::same(got, flat(truth, factor))) {
    for (auto const& one : mistakes)
      if (learn::same(got, one.values)) learn::wrong(length + "; " + one.question);
    learn::wrong(length + ".");
  }
  if (learn::same(norm, 13)) return;
  std::string const returned =
      where + "the gradients are right, but clip() returns " + number(norm) + " and should return 13";
  if (learn::same(norm, 13 * factor)) learn::wrong(returned + "; is it the norm after clipping?");
  if (learn::same(norm, 13 * scale))
    learn::wrong(returned + "; is the division by the loss scale missing, or does it follow the norm?");
  if (learn::same(norm, 169)) learn::wrong(returned + "; is the root missing?");
  learn::wrong(returned + ".");
}

}  // namespace

int main() {
  check(6.5);
  check(20);
}
