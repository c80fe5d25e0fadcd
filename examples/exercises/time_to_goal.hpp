// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 27: 95 % on handwritten digits, in the shortest time.
//
// The network is that of exercise 15. Here a clock counts, not the steps. A step takes 1 ms, and 0.05 ms more for each
// image of its batch, as on a device that starts kernels slowly and computes fast. Choose the batch and the optimizer.
// The exercise is solved if the network is right for 95 % of the test images within 180 ms, from each of 3 starts.
//
//     time = steps (1 ms + 0.05 ms batch)
//
// Hint: with a small batch the 1 ms counts, with a large one the images. Change the batch by a factor of 2 and the rate
// by its square root. Then tune the rate.
#pragma once

#include <descent/descent.hpp>

namespace ds = descent;

inline constexpr int batch = 256;  // your batch, from 1 to 1438

inline auto make_optimizer(ds::parameters<float> const& params) {
  // your rule and its settings, and policies behind it
  return ds::optimizer{params, ds::sgd{.lr = 0.1}};
}
