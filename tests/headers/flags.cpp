// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Optimizers of most kinds, and of every rule, for compilers with flags that users have: see flags.sh, which gives all
// headers. nvcc compiles this too.
#include <chrono>
#include <tuple>
#include <vector>

#include "support/rows_chain.hpp"
#include "support/rows_core.hpp"
#include "support/rows_free.hpp"
#include "support/rows_more.hpp"
#include "support/rows_optax.hpp"
#include "support/rows_torch.hpp"

namespace ds = descent;

template <class Value, class Rule, class... Policies> void train(Rule rule, Policies... policies) {
  std::vector<Value> values(8), gradients(8);
  ds::parameters<Value> list;
  list.add("w", values.data(), gradients.data(), ds::shape{2, 4});
  ds::optimizer opt{list, rule, policies...};
  opt.group(0);
  opt.freeze(0, false);
  opt.step();
  opt.report();
  opt.explain();
}

void of_every_kind() {
  train<float>(ds::lamb{});
  train<ds::half>(ds::adamw{}, ds::master<float>{}, ds::dynamic_loss_scale{}, ds::clip_norm{1}, ds::ema{},
                  ds::lookahead{}, ds::gradient_noise{}, ds::accumulate{2}, ds::zero_grad{});
  train<ds::bfloat16>(ds::adamw{}, ds::master_remainder{}, ds::masked_rows{}, ds::clip_adaptive{});
  float const factor = 1;
  ds::state_memory memory;
  train<float>(ds::adamw{}, ds::gradient_factor_at{&factor}, ds::state_in{&memory});
  train<double>(ds::sgd{}, ds::sam{},
                ds::learning_rate(ds::warmup<ds::cosine>{.steps = 10, .then = {.peak = 0.1, .steps = 90}}));
}

#if defined(__CUDACC__)
void on_a_device() {
  train<float>(ds::lamb{}, ds::cuda{});
  train<ds::half>(ds::adamw{}, ds::master<float>{}, ds::dynamic_loss_scale{}, ds::clip_norm{1}, ds::ema{}, ds::cuda{});
  train<ds::bfloat16>(ds::adamw{}, ds::master_remainder{}, ds::clip_adaptive{}, ds::zero_grad{}, ds::cuda{});
}
#else
template <class... Rules> void of_every_rule(std::tuple<test::row<Rules>...> const& rows) {
  float loss = 1;
  auto const train_with = [&]<class Rule>(Rule const& rule) {
    if constexpr (ds::has_loss<Rule>) train<float>(rule, ds::loss_at{&loss});
    else train<float>(rule);
  };
  std::apply([&](auto const&... row) { (train_with(row.rule), ...); }, rows);
}

void of_every_rule() {
  of_every_rule(test::chain_rows);
  of_every_rule(test::core_rows);
  of_every_rule(test::free_rows);
  of_every_rule(test::more_rows);
  of_every_rule(test::optax_rows);
  of_every_rule(test::torch_rows);
}

void of_matrices() {
  train<float>(ds::adamw{}, ds::matrices{ds::muon{}});
  train<float>(ds::adamw{}, ds::matrices{ds::shampoo{}});
  train<float>(ds::adamw{}, ds::matrices{ds::soap{}});
}

void of_ranks() {
  ds::comm::threads world{1, std::chrono::seconds(1)};
  auto comm = world.rank(0);
  train<float>(ds::adamw{}, ds::sharded{comm});
  train<float>(ds::adamw{}, ds::replicated{comm, ds::overlap{}});
}
#endif
