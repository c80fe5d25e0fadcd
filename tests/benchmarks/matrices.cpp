// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Steps of muon on the matrices of a transformer, with exact products or with errors of the size of bfloat16's. Makes a
// step for each line that it reads, and prints its seconds. See matrices.py.
#include "../../examples/parts/arguments.hpp"

#include <descent/matrices/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/rules/adamw.hpp>

#include "matrices.hpp"

#include <chrono>

namespace {

constexpr char const* help = R"(usage: bench_matrices [BLOCKS [WIDTH [exact|bf16]]]

Makes a step of Muon on the matrices of a transformer for each line that it reads, and prints its seconds.

  BLOCKS    default: 12
  WIDTH     default: 768
  exact     products in float (default), or bf16: with errors of the size of bfloat16's
  --help    this text
)";

void run(std::vector<std::string> const& arguments) {
  int blocks = 12, width = 768;
  std::string precision = "exact";
  example::each_word(arguments, {[&](auto& word) { blocks = example::integer("BLOCKS", word, 1, 10000); },
                                 [&](auto& word) { width = example::integer("WIDTH", word, 1, 100'000); },
                                 [&](auto& word) { precision = word; }});
  bench::transformer const of{blocks, width};
  std::vector<float> values(of.size(), 0.01f), gradients = of.gradients();
  descent::optimizer opt{of.parameters(values.data(), gradients.data()), descent::adamw{},
                         descent::matrices{bench::muon_of(precision)}};
  while (std::getchar() == '\n') {
    auto const begin = std::chrono::steady_clock::now();
    opt.step();
    std::printf("%.9f\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    std::fflush(stdout);
  }
  if (!std::isfinite(values[0])) throw std::runtime_error("the values are not finite");
}

}  // namespace

int main(int argc, char** argv) { return example::exit_code(argc, argv, help, run); }
