// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "support.cuh"

#include <descent/parallel.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/storage.hpp>

#include <tuple>
#include <utility>

namespace {

using types = std::tuple<double, float, descent::half, descent::bfloat16>;
using masters = std::tuple<descent::single, descent::master<float>, descent::master<double>,
                           descent::master<descent::half>>;
template <int I> using type = std::tuple_element_t<I, types>;

/// Twice j in the field of four elements, whose sums are exclusive ors.
constexpr int twice(int j) { return 2 * j ^ (j > 1 ? 7 : 0); }

/// Value i, gradient j; the types of AdamW's states and the master are such that the sixteen cases have every type of
/// one of the five with every type of another.
template <int I, int J> void mix() {
  CAPTURE(I);
  CAPTURE(J);
  using stored = descent::states<type<I ^ J>, type<I ^ twice(J)>>;
  test::same_on_device<type<I>, type<J>>(descent::adamw{.lr = 0.05}, stored{},
                                         std::tuple_element_t<I ^ twice(twice(J)), masters>{});
}
template <int I, int... J> void mixes_of(std::integer_sequence<int, J...>) { (mix<I, J>(), ...); }

}  // namespace

TEST_CASE("values in double, gradients, states and masters of any type: the device equals the host") {
  mixes_of<0>(std::make_integer_sequence<int, 4>{});
}
TEST_CASE("values in float, gradients, states and masters of any type: the device equals the host") {
  mixes_of<1>(std::make_integer_sequence<int, 4>{});
}
TEST_CASE("values in half, gradients, states and masters of any type: the device equals the host") {
  mixes_of<2>(std::make_integer_sequence<int, 4>{});
}
TEST_CASE("values in bfloat16, gradients, states and masters of any type: the device equals the host") {
  mixes_of<3>(std::make_integer_sequence<int, 4>{});
}
