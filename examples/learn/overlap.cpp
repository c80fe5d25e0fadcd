// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// When the backward pass, the exchange of gradients and the update happen, with and without overlap:
// docs/learn/overlap.md. Network, gradients and sums are real; compute and wire are slowed by sleeping.
#include "slow_ranks.hpp"

#include <cstddef>
#include <cstdio>
#include <vector>

using namespace example;
using learn::run;

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::options const options{
        argc,
        argv,
        {.what =
             "Shows when the backward pass, the exchange of gradients and the update happen, with and without overlap.",
         .figures = false,
         .words = "[STEPS]"}};
    int const steps = options.words.empty() ? 6 : integer("steps", options.words[0], 1, 1000);
    std::vector<timeline> all;
    auto const without = run("without overlap: one all-reduce after the backward pass", steps, all);
    auto const with = run("with overlap: an all-reduce for each tensor, from the last layer to the first", steps, all,
                          ds::overlap{.bucket_bytes = 1});
    for (std::size_t rank : {0, 1}) {
      std::printf("rank %d sends before its backward pass ends: in %d of %d steps without overlap, in %d with it\n",
                  int(rank), without[rank].overlapped, steps, with[rank].overlapped);
      claim(without[rank].overlapped == 0, "without overlap all is sent after the backward pass");
      claim(with[rank].overlapped > 0, "with overlap the last layer is sent before the first one is there");
    }
    claim(with[0].values == with[1].values && with[0].values == without[0].values, "both have the same bits");
    options.write(draw("A training step of two ranks; numbers are layers", "ms", all));
  });
}
