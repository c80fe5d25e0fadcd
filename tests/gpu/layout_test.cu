// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "support.cuh"

#include <descent/clip.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/storage.hpp>

namespace {

constexpr std::int64_t chunk = descent::detail::chunk_size;

/// AdamW with a pass for the norm, two steps, in one storage.
template <class Value> void same_on_device(std::vector<test::tensor> const& list) {
  test::stream s;
  test::tensors<Value> x{list, s};
  auto const check = [](auto both) {
    both.steps(2);
    both.expect_same();
    test::expect_same(both.host.report().grad_norm, both.device.report().grad_norm, "norm");
  };
  if constexpr (std::is_same_v<Value, float>)
    check(test::twins{x, descent::adamw{}, descent::clip_norm{1}});
  else check(test::twins{x, descent::adamw{}, descent::clip_norm{1}, descent::master<float>{}});
}

}  // namespace

TEST_CASE_TEMPLATE("tensors of every awkward size are updated, and nothing beside them", Value,
                   float, descent::half) {
  for (std::int64_t const size :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, std::int64_t{8}, std::int64_t{9},
        chunk - 1, chunk, chunk + 1, 2 * chunk + 5}) {
    CAPTURE(size);
    same_on_device<Value>({{size}});
    same_on_device<Value>({{9}, {size}, {7}});
  }
}

TEST_CASE_TEMPLATE("values and gradients may lie anywhere, together or not", Value, float,
                   descent::half) {
  std::vector<test::tensor> list;
  for (int value = 0; value < 8; ++value)
    for (int gradient = 0; gradient < 8; ++gradient)
      list.push_back({std::int64_t(9 + 8 * value + gradient), 0, value, gradient});
  for (int shift = 1; shift < 8; ++shift) list.push_back({chunk + 9 - shift, 0, shift, 8 - shift});
  same_on_device<Value>(list);
}

TEST_CASE_TEMPLATE("empty tensors may be first, in the middle, last, or all there is", Value, float,
                   descent::half) {
  same_on_device<Value>({{0}, {0}, {5}, {0}, {chunk + 3}, {0}, {0}});
  same_on_device<Value>({{0}, {0}});
  same_on_device<Value>({});
}

TEST_CASE("ten thousand tensors take three launches") {
  std::vector<test::tensor> list;
  for (int t = 0; t < 10'000; ++t) list.push_back({t % 5, 0, t % 3, t % 7});
  test::stream s;
  test::tensors<float> x{list, s};
  test::twins both{x, descent::adamw{}, descent::clip_norm{1}};
  auto const before = descent::detail::launches;
  both.steps(1);
  CHECK(descent::detail::launches - before == 3);
  both.expect_same();
}
