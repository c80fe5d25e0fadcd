// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// The opt levels O0 to O3 side by side, on the host: docs/learn/mixed_precision.md.
#include "level_run.hpp"

#include <algorithm>
#include <cstdio>

namespace ds = descent;
using namespace example;
using learn::train;

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{argc, argv, {.what = "Compares the opt levels O0 to O3 on the host.", .seeds = "1"}};
    std::puts("                 values, in     scale      bytes  bytes             test  gradients\n"
              "                 grads  products         owned  moved     loss  accuracy       at 0");
    auto const o0 = train<ds::amp::O0>("O0", e), o1 = train<ds::amp::O1>("O1", e);
    auto const o2 = train<ds::amp::O2>("O2", e), o3 = train<ds::amp::O3>("O3", e);
    auto const scaled = train<ds::amp::O3>("O3 + loss scale", e, ds::dynamic_loss_scale{});
    auto const master = train<ds::amp::O3>("O3 + master", e, ds::master<float>{});
    e.claim(close(o1.last_loss, o0.last_loss, 0.02) && close(o2.last_loss, o0.last_loss, 0.02),
            "O1 and O2 learn as O0");
    e.claim(std::max({o1.all_zeros, o2.all_zeros, scaled.all_zeros}) < o0.all_zeros + 3,
            "a loss scale keeps gradients");
    e.claim(std::min(o3.all_zeros, master.all_zeros) > 90, "without it, half loses nearly all");
    e.claim(scaled.last_loss > 1.2 * o0.last_loss, "with it alone, updates are lost");
    e.claim(master.last_loss > 1.5 * o0.last_loss, "a master alone saves no gradients");
    e.claim(o3.last_loss > std::max(scaled.last_loss, master.last_loss), "O3 loses both");
    panel loss{"loss, without its factor", "step", axis::logarithmic, {}};
    panel zeros{"gradients that are 0, %", "step", axis::linear, {}};
    for (auto const& r : {o0, o1, o2, o3, scaled, master})
      loss.curves.push_back(r.loss), zeros.curves.push_back(r.zeros);
    e.write("A hidden layer on handwritten digits, loss times 2⁻²⁰", {loss, zeros});
  });
}
