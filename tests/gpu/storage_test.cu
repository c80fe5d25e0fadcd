// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "support.cuh"

using descent::bfloat16, descent::half, descent::master, descent::states, test::same_on_device;

TEST_CASE("half with a float master: the device equals the host") {
  same_on_device<half, half>(descent::adamw{}, master<float>{});
}
TEST_CASE("bfloat16 throughout: the device equals the host") {
  same_on_device<bfloat16, bfloat16>(descent::adamw{.lr = 0.1}, states<bfloat16>{});
}
TEST_CASE("half values, float gradients, states of two types: the device equals the host") {
  same_on_device<half, float>(descent::adamw{.lr = 0.1}, states<half, bfloat16>{});
}
TEST_CASE("float values, bfloat16 gradients, a double master: the device equals the host") {
  same_on_device<float, bfloat16>(descent::adamw{}, master<double>{}, states<float>{});
}
TEST_CASE("double throughout: the device equals the host") {
  same_on_device<double, double>(descent::adamw{});
}
