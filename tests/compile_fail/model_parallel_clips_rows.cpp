// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// expect: model_parallel cannot be combined with clip_adaptive
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

namespace ds = descent;

int main() {
  ds::parameters<float> params;
  ds::comm::threads world{1};
  auto comm = world.rank(0);
  ds::optimizer opt{params, ds::sgd{}, ds::clip_adaptive{}, ds::model_parallel{comm}};
}
