// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// flags: -pthread
//
// Rank r starts at 10 r and gets gradients of t + 2 r, so the mean over four ranks is t + 3.
#include "../verdict.hpp"

#include <thread>

using learn::path;

namespace {

constexpr int ranks = 4;
constexpr float lr = 0.125f;

/// The path of an element if p starts at `start` and step t subtracts lr times g(t).
path with(double start, auto g) {
  return learn::walk(start, path(6), [&](double& p, double, auto t) { p -= double(lr) * g(double(t)); });
}

}  // namespace

int main() {
  descent::comm::threads world{ranks};  // a rank that leaves is noticed at once
  std::vector<path> paths(ranks);
  std::vector<std::string> failures(ranks);
  std::vector<std::thread> team;
  for (int r = 0; r < ranks; ++r)
    team.emplace_back([&, r] {
      try {
        auto comm = world.rank(r);
        std::vector<float> p(3, 10.f * float(r)), g(3);
        begin(comm, p);
        paths[std::size_t(r)].push_back(double(p[2]));
        for (int t = 1; t <= 6; ++t) {
          g.assign(3, float(t + 2 * r));
          step(comm, p, g, lr);
          paths[std::size_t(r)].push_back(double(p[2]));
        }
      } catch (descent::comm_error const& e) {
        failures[std::size_t(r)] = e.what();
      }
    });
  for (auto& one : team) one.join();
  for (auto const& failure : failures)
    if (!failure.empty())
      learn::wrong("the ranks do not meet (" + failure + "); does every rank make the same calls in the same order?");

  path const want = with(0, [](double t) { return t + 3; });
  for (int r : {2, 0, 1, 3}) {
    double const start = 10 * r, offset = 2 * r;
    auto const own = [&](double t) { return t + offset; };
    learn::require_path("p of rank " + std::to_string(r), paths[std::size_t(r)], want,
                        {{"both are still to be written: nothing connects the ranks.", with(start, own)},
                         {"is the broadcast missing? The copies start at different values.",
                          with(start, [](double t) { return t + 3; })},
                         {"is the broadcast missing, and is the sum over the ranks not divided?",
                          with(start, [](double t) { return 4 * t + 12; })},
                         {"is the all-reduce missing? The rank uses its own gradient.", with(0, own)},
                         {"is the sum over the ranks taken for the mean? The step is 4 times too long.",
                          with(0, [](double t) { return 4 * t + 12; })},
                         {"is the broadcast from another rank than 0?", with(30, [](double t) { return t + 3; })},
                         {"is every rank's own gradient divided by the number of ranks? Add them up first.",
                          with(0, [&](double t) { return own(t) / 4; })}},
                        "", 1e-6);
  }
}
