// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/precision.hpp>
#include <descent/presets/amp.hpp>

#include <cstdio>
#include <type_traits>

/// An operation in half, in autocast's types and in float.
namespace example::learn {

namespace ds = descent;
using namespace ds::amp;

using rounding = float (*)(float);
inline float to_half(float x) { return ds::widen<float>(ds::narrow<ds::half>(x)); }
inline float exact(float x) { return x; }

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

}  // namespace example::learn
