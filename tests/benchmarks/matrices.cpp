// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// usage: matrices [blocks [width [exact|bf16]]]
//
// Steps of muon on the matrices of a transformer, with exact products or with errors of the size of bfloat16's. Makes a
// step for each line that it reads, and prints its seconds. See matrices.py.
#include <descent/matrices/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/rules/adamw.hpp>

#include "matrices.hpp"

#include <chrono>

int main(int argc, char** argv) {
  bench::transformer const of{argc > 1 ? std::atoi(argv[1]) : 12, argc > 2 ? std::atoi(argv[2]) : 768};
  if (of.blocks < 1 || of.width < 1) return std::fputs("usage: matrices [blocks [width [exact|bf16]]]\n", stderr), 1;
  std::vector<float> values(of.size(), 0.01f), gradients = of.gradients();
  descent::optimizer opt{of.parameters(values.data(), gradients.data()), descent::adamw{},
                         descent::matrices{bench::muon_of(argc > 3 ? argv[3] : "exact")}};
  while (std::getchar() == '\n') {
    auto const begin = std::chrono::steady_clock::now();
    opt.step();
    std::printf("%.9f\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    std::fflush(stdout);
  }
  return std::isfinite(values[0]) ? 0 : 1;
}
