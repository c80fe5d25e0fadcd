// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Every rule of a family does the same on the device as on the host: bit for bit, except for library functions.
#define DESCENT_SEPARATE_ARRAYS  // a memory checker sees accesses beyond each array
#include "support.cuh"

#include <descent/policies/clip.hpp>
#include <descent/policies/loss_at.hpp>

#include "support/row.hpp"

#include <limits>
#include <tuple>

// Two programs with similar compile times: DESCENT_PART is 1 or 2. Without it, one program has all families.
#if DESCENT_PART != 2
#include "support/rows_core.hpp"
#include "support/rows_optax.hpp"
#include "support/rows_torch.hpp"
#endif
#if DESCENT_PART != 1
#include "support/rows_chain.hpp"
#include "support/rows_free.hpp"
#include "support/rows_more.hpp"
#endif

namespace {

/// A tail, an unaligned tensor, an empty one, two groups. Only rules with sums see that tensors have chunks.
template <class Rule>
std::vector<test::tensor> const model{
    {(descent::has_sums<Rule> ? 4096 : 0) + 203}, {3, 1}, {0}, {117, 0, 1, 3}, {64, 1}};

/// A loss that host and device can read.
struct shared_loss {
  float* at;
  explicit shared_loss(float f) {
    test::cuda(cudaMallocHost(&at, sizeof(float)));
    *at = f;
  }
  ~shared_loss() { cudaFreeHost(at); }
  shared_loss(shared_loss const&) = delete;
};

template <class Rule> auto make_twins(Rule const& rule, [[maybe_unused]] shared_loss const& f) {
  if constexpr (descent::has_loss<Rule>)
    return test::twins_of<float>(model<Rule>, rule, descent::skip_nonfinite{}, descent::loss_at{f.at});
  else return test::twins_of<float>(model<Rule>, rule, descent::skip_nonfinite{});
}

template <class Rule> void steps_alike(test::row<Rule> const& row) {
  INFO(row.name);
  shared_loss const f{0.5f};
  auto both = make_twins(row.rule, f);
  for (int t = 1; t <= 5; ++t) {
    both.x.new_gradients(std::uint64_t(t));
    if (t == 3) both.x.gradient_of(1, 2) = std::numeric_limits<float>::infinity();
    if (t == 4) both.each([](auto& opt) { opt.freeze(1); });
    both.step();
  }
  if constexpr (test::same_bits_on_device<Rule>) {
    both.expect_same();
  } else {
    CHECK(both.x.furthest() <= 1e-6);  // values are below 2
    CHECK(both.host.report().step == both.device.report().step);
  }
}
template <class... Rules> void all_steps_alike(std::tuple<test::row<Rules>...> const& family) {
  std::apply([](auto const&... rows) { (steps_alike(rows), ...); }, family);
}

}  // namespace

TEST_CASE("every rule: four steps on the device are those on the host, with a skip and a frozen group") {
#if DESCENT_PART != 2
  all_steps_alike(test::core_rows);
  all_steps_alike(test::torch_rows);
  all_steps_alike(test::optax_rows);
#endif
#if DESCENT_PART != 1
  all_steps_alike(test::free_rows);
  all_steps_alike(test::more_rows);
  all_steps_alike(test::chain_rows);
#endif
}
