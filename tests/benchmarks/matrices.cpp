// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// usage: matrices [blocks [width [exact|bf16]]]
//
// Steps of muon on the matrices of a transformer: `blocks` (12) times those of GPT-2 for a width of 768, with exact
// products or with errors of the size of bfloat16's. Makes a step for each line that it reads, and prints its seconds.
// See matrices.py.
#include <descent/matrices/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/muon.hpp>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  int const blocks = argc > 1 ? std::atoi(argv[1]) : 12;
  std::int64_t const width = argc > 2 ? std::atoi(argv[2]) : 768;
  bool const coarse = argc > 3 && argv[3] == std::string("bf16");
  if (blocks < 1 || width < 1) return std::fputs("usage: matrices [blocks [width [exact|bf16]]]\n", stderr), 1;
  descent::shape const shapes[] = {{3 * width, width}, {width, width}, {4 * width, width}, {width, 4 * width}};
  std::vector<float> values(std::size_t(blocks * 12 * width * width), 0.01f), gradients(values.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = float(std::sin(double(i) * double(i)));
  descent::parameters<float> params;
  std::int64_t at = 0;
  for (int b = 0; b < blocks; ++b)
    for (auto const s : shapes) {
      params.add(std::to_string(at), &values[std::size_t(at)], &gradients[std::size_t(at)], s);
      at += s.rows * s.columns;
    }
  descent::muon const rule{.lr = 0.02, .precision = coarse ? descent::operands::bf16 : descent::operands::exact};
  descent::optimizer opt{params, descent::adamw{}, descent::matrices{rule}};
  while (std::getchar() == '\n') {
    auto const begin = std::chrono::steady_clock::now();
    opt.step();
    std::printf("%.9f\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    std::fflush(stdout);
  }
  return std::isfinite(values[0]) ? 0 : 1;
}
