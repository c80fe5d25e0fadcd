// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Gradient accumulation: unequal parts, an overflow in one part, clipping, the last parts, memory:
// docs/learn/accumulation.md.
#include "experiment.hpp"
#include "micro_batch_cases.hpp"

#include <cstdio>
#include <vector>

using namespace example;
using namespace example::learn;

int main(int argc, char** argv) {
  return exit_code([&] {
    options const options{
        argc,
        argv,
        {.what = "Shows what accumulation does to unequal parts, an overflow, clipping, the last parts and memory."}};
    std::vector<std::vector<float>> const parts{{0}, {2, 4}, {5, 6, 7}};
    std::printf("1. A step to the mean of {0}, {2, 4}, {5, 6, 7}: mean of means %g, weighted %g\n",
                double(one_step(parts, false)), double(one_step(parts, true)));
    std::puts("2. Five updates of four parts in half:");
    overflow();
    auto const sum = clipped(false), each = clipped(true);
    std::puts("3. Gradients (30, 40) and (0, 1), largest norm 1:");
    std::printf("   accumulate, then clip: (%.3f, %.3f); clip each part: (%.3f, %.3f)\n", double(sum[0]),
                double(sum[1]), double(each[0]), double(each[1]));
    last_parts();
    std::puts("5. Memory and work for a batch of 512 rows:");
    panel drawn{"memory of a step, MB", "parts of the batch", axis::logarithmic,
                {{"activations", {}}, {"weights; gradients as much", {}}, {"optimizer", {}}}, x_axis::doubling};
    for (int n : {1, 4, 16, 64}) memory(n, drawn);
    options.write("What a batch of 512 rows needs in a network of 784-1024-1024-10, in parts", {drawn});
  });
}
