// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// A quadratic with the curvatures 1, 4 and 9, whose gradients are known everywhere.
#include "../verdict.hpp"

namespace {

using learn::path;

path gradient(path const& p) {
  path g;
  for (std::size_t i = 0; i < p.size(); ++i) g.push_back(double((i + 1) * (i + 1)) * p[i]);
  return g;
}
constexpr double lr = 0.1, rho = 0.5;

/// The step, with the ascent times `up` divided by the norm (or not), from p or from p_.
path step(path const& p, double up, bool divided = true, bool from_above = false) {
  path const g = gradient(p);
  double squares = 0;
  for (double one : g) squares += one * one;
  double const length = divided && squares > 0 ? std::sqrt(squares) : 1;
  path above = p, next;
  for (std::size_t i = 0; i < p.size(); ++i) above[i] += up * rho * g[i] / length;
  path const worst = gradient(above);
  for (std::size_t i = 0; i < p.size(); ++i) next.push_back((from_above ? above : p)[i] - lr * worst[i]);
  return next;
}
std::string text(path const& p) {
  std::string all;
  for (double one : p) all += (all.empty() ? "" : ", ") + learn::number(one);
  return all;
}

void check(path const& start) {
  path got = start;
  sam_step(got, gradient, lr, rho);
  path const want = step(start, 1);
  if (learn::same(got, want)) return;
  std::string const sentence =
      "from " + text(start) + " sam_step() goes to " + text(got) + " and should go to " + text(want);
  learn::mistake const mistakes[] = {
      {"the lines are still to be written.", start},
      {"is it plain gradient descent? The gradient is that of p_.", step(start, 0)},
      {"does the first step go down? Go up, to where the loss is worse.", step(start, -1)},
      {"is the division by the norm missing? The ascent has the length rho.", step(start, 1, false)},
      {"does the second step start at p_? It starts at p.", step(start, 1, true, true)},
  };
  for (auto const& one : mistakes)
    if (learn::same(got, one.values)) learn::wrong(sentence + "; " + one.question);
  for (double one : got)
    if (std::isnan(one)) learn::wrong(sentence + "; is 0 divided by 0? At a gradient of 0, p_ is p.");
  learn::wrong(sentence + ".");
}

}  // namespace

int main() {
  check({1, -2, 0.5});
  check({0, 0, 0});
}
