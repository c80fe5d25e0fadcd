// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "support.cuh"

#include <descent/rules/dog.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/storage.hpp>

using descent::bfloat16, descent::half, descent::master, descent::states, test::same_on_device;

TEST_CASE("lamb in half with a float master and bfloat16 states: the device equals the host") {
  same_on_device<half, half>(descent::lamb{.weight_decay = 0.1}, master<float>{},
                             states<bfloat16>{});
}
TEST_CASE("dog in bfloat16: the device equals the host") {
  same_on_device<bfloat16, bfloat16>(descent::dog{.reps = 0.1}, states<bfloat16>{});
}
TEST_CASE("lion in bfloat16 with a half state: the device equals the host") {
  same_on_device<bfloat16, half>(descent::lion{.lr = 0.05}, states<half>{});
}
TEST_CASE("sgd in half: the device equals the host") {
  same_on_device<half, half>(descent::sgd{.lr = 0.1, .momentum = 0.9}, states<half>{});
}
TEST_CASE("rmsprop in double with three states of three types: the device equals the host") {
  same_on_device<double, float>(descent::rmsprop{.momentum = 0.9, .centered = true},
                                states<float, half, bfloat16>{});
}
