// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Optimizers of most kinds, for compilers with flags that users have: see flags.sh.
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>
#include <descent/matrices/host.hpp>
#include <descent/minimizers/lbfgs.hpp>
#include <descent/rules/muon.hpp>

#include <chrono>
#include <vector>

namespace ds = descent;

template <class Value, class... Policies> void train(Policies... policies) {
  std::vector<Value> values(8), gradients(8);
  ds::parameters<Value> list;
  list.add("w", values, gradients, ds::shape{2, 4});
  ds::optimizer opt{list, ds::lamb{}, policies...};
  opt.step();
  opt.report();
  opt.explain();
}

int main() {
  train<float>();
  train<ds::half>(ds::master<float>{}, ds::dynamic_loss_scale{}, ds::clip_norm{1}, ds::ema{}, ds::lookahead{},
                  ds::gradient_noise{}, ds::accumulate{2}, ds::zero_grad{});
  train<ds::bfloat16>(ds::master_remainder{}, ds::masked_rows{}, ds::clip_adaptive{});
  train<float>(ds::matrices{ds::muon{}}, ds::sam{},
               ds::learning_rate(ds::warmup<ds::cosine>{.steps = 10, .then = {.peak = 0.1, .steps = 90}}));
  ds::comm::threads world{1, std::chrono::seconds(1)};
  auto comm = world.rank(0);
  train<float>(ds::sharded{comm});
  train<float>(ds::replicated{comm, ds::overlap{}});
}
