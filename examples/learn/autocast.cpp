// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Why each operation is on its list of autocast, by one number each: docs/learn/mixed_precision.md.
#include "../parts/claim.hpp"

#include <descent/core/precision.hpp>
#include <descent/presets/amp.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ds = descent;
using namespace ds::amp;

using rounding = float (*)(float);
float to_half(float x) { return ds::widen<float>(ds::narrow<ds::half>(x)); }
float exact(float x) { return x; }

/// `f(in, r)` is an operation whose inputs are rounded by `in`, and each number that it computes by `r`.
template <op O, class... Inputs> void row(char const* what, auto const& f) {
  float const low = f(to_half, to_half), without = f(exact, exact);
  if constexpr (list_of(O) == cast::banned) {
    std::printf("%-46s %-8s %10.6g %11s %11.6g\n", what, "refused", double(low), "-", double(without));
  } else {
    // snippet: compute
    using computed = compute_t<O, ds::half, Inputs...>;
    using sums = accumulate_t<O, ds::half, Inputs...>;
    // end
    bool const wide = std::is_same_v<sums, float> && list_of(O) != cast::none;
    float const y = f(to_half, wide ? exact : to_half), autocast = std::is_same_v<computed, float> ? y : to_half(y);
    std::printf("%-46s %-8s %10.6g %11.6g %11.6g\n", what, ds::type_name<computed>(), double(low), double(autocast),
                double(without));
  }
}

int main() {
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
}
