// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// The library on a CUDA device.    usage: ours_device [captured]
#include "contest.hpp"
#include "device.hpp"

#include <cstdlib>
#include <cstring>

int main(int count, char** words) {
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);  // no kernel may be loaded during a capture
  bench::replays = count > 1 && std::strcmp(words[1], "captured") == 0;
  std::string const name = bench::replays ? "descent, captured and replayed" : "descent";
  return bench::serve("\"name\": \"" + name + "\", \"compiler\": \"nvcc " + bench::cuda_version(CUDART_VERSION) +
                      "\", \"flags\": \"" BENCH_FLAGS "\"");
}
