// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Every rule of a family does on the device what it does on the host: bit for bit, but for functions of the library.
#include "support.cuh"

// Two programs that take about the same time to compile; without DESCENT_PART one of all rules.
#if DESCENT_PART == 1
#define DESCENT_RULE_FAMILY std::tuple_cat(core_rows, torch_rows, optax_rows)
#elif DESCENT_PART == 2
#define DESCENT_RULE_FAMILY std::tuple_cat(free_rows, more_rows, chain_rows)
#endif
#include "support/all_rules.hpp"

namespace {

/// A tail, a tensor that is not aligned, an empty one, two groups. Only rules with sums see that tensors have chunks.
template <class Rule>
std::vector<test::tensor> const model{
    {(descent::has_sums<Rule> ? 4096 : 0) + 203}, {3, 1}, {0}, {117, 0, 1, 3}, {64, 1}};

/// A loss that host and device reach.
struct shared_loss {
  float* at;
  explicit shared_loss(float f) {
    test::cuda(cudaMallocHost(&at, sizeof(float)));
    *at = f;
  }
  ~shared_loss() { cudaFreeHost(at); }
  shared_loss(shared_loss const&) = delete;
};

template <class Rule> auto twins_of(test::tensors<float>& x, Rule const& rule, [[maybe_unused]] shared_loss const& f) {
  if constexpr (descent::has_loss<Rule>)
    return test::twins{x, rule, descent::skip_nonfinite{}, descent::loss_at{f.at}};
  else return test::twins{x, rule, descent::skip_nonfinite{}};
}

}  // namespace

TEST_CASE("every rule: four steps on the device are those on the host, with a skip and a frozen group") {
  test::each_rule([]<class Rule>(test::row<Rule> const& row) {
    INFO(row.name);
    test::stream s;
    test::tensors<float> x{model<Rule>, s};
    shared_loss const f{0.5f};
    auto both = twins_of(x, row.rule, f);
    for (int t = 1; t <= 5; ++t) {
      x.new_gradients(std::uint64_t(t));
      if (t == 3) x.gradient_of(1, 2) = std::numeric_limits<float>::infinity();
      if (t == 4) both.host.freeze(1), both.device.freeze(1);
      both.step();
    }
    if constexpr (test::same_bits_on_device<Rule>) {
      both.expect_same();
    } else {
      auto const device = x.device_value.get(s);
      double furthest = 0;
      for (std::size_t i = 0; i < device.size(); ++i)
        furthest = std::max(furthest, std::abs(double(device[i]) - double(x.value[i])));
      CHECK(furthest <= 1e-6);  // values are below 2
      CHECK(both.host.report().step == both.device.report().step);
    }
  });
}
