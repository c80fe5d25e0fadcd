// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Why each operation is on its list of autocast, by one number each: docs/learn/mixed_precision.md.
#include "autocast_row.hpp"
#include "experiment.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ds = descent;
using namespace ds::amp;
using namespace example::learn;

int main(int argc, char** argv) {
  return example::exit_code([&] {
    options const options{argc, argv,
                          options::only_help("Shows by one number each why an operation is on its list of autocast.")};
    std::puts("                                               type        in half    autocast    in float");
    // snippet: rows
    row<op::linear>("linear: 4096 products of 1.1 and 0.9", [](rounding in, rounding r) {
      float sum = 0;
      for (int i = 0; i < 4096; ++i) sum = r(sum + r(in(1.1f) * in(0.9f)));
      return sum;
    });
    row<op::exp>("exp: of 12", [](rounding in, rounding r) { return r(std::exp(in(12))); });
    row<op::pow>("pow: 300 squared", [](rounding in, rounding r) { return r(in(300) * in(300)); });
    row<op::reciprocal>("reciprocal: of 1e-5", [](rounding in, rounding r) { return r(1 / in(1e-5f)); });
    // end
    row<op::sum>("sum: of 4096 ones", [](rounding in, rounding r) {
      float sum = 0;
      for (int i = 0; i < 4096; ++i) sum = r(sum + in(1));
      return sum;
    });
    row<op::norm>("norm: of 300 elements of 300", [](rounding in, rounding r) {
      float sum = 0;
      for (int i = 0; i < 300; ++i) sum = r(sum + r(in(300) * in(300)));
      return r(std::sqrt(sum));
    });
    row<op::softmax>("softmax: of (12, 12), maximum not subtracted", [](rounding in, rounding r) {
      float const e = r(std::exp(in(12)));
      return r(e / r(e + e));
    });
    row<op::log_softmax>("log_softmax: of (0, 20), first element", [](rounding in, rounding r) {
      float const a = r(std::exp(in(0) - in(20))), b = 1;
      return r(std::log(r(a / r(a + b))));
    });
    row<op::layer_norm>("layer_norm: variance of 99 and 101", [](rounding in, rounding r) {
      float const a = in(99), b = in(101), mean = r(r(a + b) / 2), squares = r(r(r(a * a) + r(b * b)) / 2);
      return r(squares - r(mean * mean));
    });
    row<op::mse_loss>("mse_loss: of 0.1001 and 0.1", [](rounding in, rounding r) {
      float const d = r(in(0.1001f) - in(0.1f));
      return r(d * d);
    });
    row<op::cat, ds::half, float>("cat: of 1 and the float 70000, last element",
                                  [](rounding, rounding r) { return r(70000); });
    row<op::dot, ds::half, float>("dot: of 2048 and the floats 1.0001 and 1",
                                  [](rounding in, rounding r) { return r(r(in(2048) * r(1.0001f)) + r(1)); });
    row<op::other>("relu: of 0.1", [](rounding in, rounding r) { return r(std::max(in(0.1f), 0.f)); });
    row<op::binary_cross_entropy>("binary_cross_entropy: dL/dp at p = 1e-5",
                                  [](rounding in, rounding r) { return r(-1 / in(1e-5f)); });
    row<op::binary_cross_entropy_with_logits>("..._with_logits: dL/dz at p = 1e-5",
                                              [](rounding in, rounding r) { return r(in(1e-5f) - 1); });
  });
}
