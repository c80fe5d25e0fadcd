// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 1: gradient descent by hand.
//
// Write one line: move w against the gradient g of the loss, by lr times g.
//
//     w <- w - lr g
//
// Hint: the gradient points uphill.
#pragma once

inline void descend(double& w, double g, double lr) {
  // your line
}
