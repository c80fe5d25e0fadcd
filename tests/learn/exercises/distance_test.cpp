// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../verdict.hpp"

using learn::path;

namespace {

constexpr double start = 1, r_eps = 0.01;

/// A path with one thing changed.
path with(bool farthest, bool summed, bool rooted, bool before = true) {
  double r = r_eps, s = 0;
  return learn::walk(start, learn::gradients, [&](double& p, double g, std::int64_t) {
    double const now = std::abs(p - start);
    if (before) r = farthest ? std::max(r, now) : std::max(r_eps, now);
    s = summed ? s + g * g : g * g;
    p -= r / (rooted ? std::sqrt(s) : s) * g;
    if (!before) r = std::max(r, std::abs(p - start));
  });
}

}  // namespace

int main() {
  dog_state state{start, r_eps};
  path const got =
      learn::walk(start, learn::gradients, [&](double& p, double g, std::int64_t) { dog_step(p, g, state); });
  learn::require_path(
      "p", got, with(true, true, true),
      {{"the lines are still to be written.", path(got.size(), start)},
       {"is it the distance now instead of the largest one so far?", with(false, true, true)},
       {"is the gradient of this step alone under the root? Add up all squares.", with(true, false, true)},
       {"is the root missing?", with(true, true, false)}});
}
