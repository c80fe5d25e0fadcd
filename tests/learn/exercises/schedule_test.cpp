// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../verdict.hpp"

using learn::path;

namespace {

constexpr double peak = 0.5, lowest = 0.1, pi = 3.14159265358979323846;
constexpr std::int64_t warmup = 5, steps = 20;

path rates(auto at) {
  path all;
  for (std::int64_t t = 0; t < 30; ++t) all.push_back(at(t));
  return all;
}

struct form {
  double first = 1;  // of the warm-up, at t = 0
  std::int64_t from = warmup, over = steps - warmup, end = steps;
  double down = lowest, height = peak - lowest;
  double operator()(std::int64_t t) const {
    if (t < warmup) return peak * (double(t) + first) / double(warmup);
    return t >= end ? lowest : down + height * (1 + std::cos(pi * double(t - from) / double(over))) / 2;
  }
};

}  // namespace

int main() {
  path const got = rates(warmup_then_cosine{.peak = peak, .floor = lowest, .warmup = warmup, .steps = steps});
  path const want = rates(form{});
  std::size_t t = 0;
  while (t < want.size() && learn::same(got[t], want[t])) ++t;
  if (t == want.size()) return 0;
  std::string const where = "with peak 0.5, floor 0.1, warmup 5 and steps 20, the rate at t = " + std::to_string(t) +
                            " is " + learn::number(got[t]) + " and should be " + learn::number(want[t]);
  learn::mistake const mistakes[] = {
      {"the lines are still to be written.", path(want.size(), peak)},
      {"does the warm-up begin with 0? Then the first update moves nothing.", rates(form{.first = 0})},
      {"is the cosine as long as the whole training? It has only steps - warmup steps.", rates(form{.over = steps})},
      {"does the cosine begin at t = 0? It begins where the warm-up ends.", rates(form{.from = 0})},
      {"does the cosine begin at t = 0? It begins where the warm-up ends.", rates(form{.from = 0, .over = steps})},
      {"does the cosine rise again after the end? It stays at floor.", rates(form{.end = 1000})},
      {"is floor added to the whole peak? The cosine falls by peak - floor.", rates(form{.height = peak})},
      {"does the cosine end at 0? It ends at floor.", rates(form{.down = 0, .height = peak})},
      {"are two integers divided? The result is rounded down.",
       rates([](std::int64_t t) { return t < warmup ? peak * double((t + 1) / warmup) : form{}(t); })},
  };
  for (learn::mistake const& one : mistakes)
    if (learn::same(got, one.values)) learn::wrong(where + "; " + one.question);
  learn::wrong(where + ".");
}
