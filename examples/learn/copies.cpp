// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Why the copies of data-parallel ranks stay identical, and what breaks that: docs/learn/ranks.md.
#include "experiment.hpp"

#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>

namespace ds = descent;
using copy = std::array<float, 2>;

/// The gradient of rank r at p: each of four ranks has another part of the data.
copy gradient(int r, copy const& p) { return {p[0] - 0.1f * float(r + 1), std::sin(p[1]) + 0.7f / float(r + 1)}; }

/// Trains four copies, and tells what rank 0 threw. lr[r] is the learning rate on rank r.
std::string train(std::array<copy, 4>& p, std::array<double, 4> const& lr) {
  ds::comm::threads world{4};
  std::array<std::thread, 4> team;
  std::string told;
  for (int r = 0; r < 4; ++r)
    team[std::size_t(r)] = std::thread([&, r, own = &p[std::size_t(r)], rate = lr[std::size_t(r)]] {
      auto comm = world.rank(r);
      // snippet: rank
      copy g{};
      ds::parameters<float> params;
      params.add("p", own->data(), g.data(), 2);
      try {
        ds::optimizer opt{params, ds::adam{.lr = rate}, ds::replicated{comm}};
        for (int t = 0; t < 500; ++t) g = gradient(r, *own), opt.step();
      } catch (std::exception const& error) {
        if (r == 0) told = error.what();
      }
      // end
    });
  for (auto& one : team) one.join();
  return told;
}

float largest_difference(std::array<copy, 4> const& p) {
  float d = 0;
  for (auto const& one : p) d = std::fmax(d, std::fmax(std::fabs(one[0] - p[0][0]), std::fabs(one[1] - p[0][1])));
  return d;
}

/// Gradient descent on each rank with the mean of `parts` gradients, beginning with its own.
float difference_by_hand(int parts) {
  std::array<copy, 4> p{copy{1, 1}, copy{1, 1}, copy{1, 1}, copy{1, 1}};
  for (int t = 0; t < 500; ++t) {
    auto const before = p;
    for (int r = 0; r < 4; ++r) {
      copy sum{};
      for (int k = 0; k < parts; ++k)
        for (std::size_t i : {0, 1}) sum[i] += gradient((r + k) % 4, before[std::size_t((r + k) % 4)])[i];
      for (std::size_t i : {0, 1}) p[std::size_t(r)][i] -= 0.01f / float(parts) * sum[i];
    }
  }
  return largest_difference(p);
}

int main(int argc, char** argv) {
  return example::exit_code([&] {
    example::learn::options const options{
        argc, argv,
        example::learn::options::only_help(
            "Shows why the copies of data-parallel ranks stay identical, and what breaks that.")};
    std::array<copy, 4> p{copy{1, 1}, copy{1, 1}, copy{1, 1.5f}, copy{1, 1}};  // the start of rank 2 is another
    train(p, {0.01, 0.01, 0.01, 0.01});
    std::printf("replicated: the copies differ by %g\n", double(largest_difference(p)));
    std::printf("each rank uses its own gradient: by %.1f\n", double(difference_by_hand(1)));
    std::printf("each rank sums in its own order: by %.0e\n", double(difference_by_hand(4)));
    std::printf("another rate on rank 2: %s\n", train(p, {0.01, 0.01, 0.02, 0.01}).c_str());
    example::claim(largest_difference(p) == 0, "copies are identical, bit for bit");
    example::claim(difference_by_hand(1) > 0.1f && difference_by_hand(4) > 0, "by hand they are not");
  });
}
