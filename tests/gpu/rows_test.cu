// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Selected rows, and rows that are added and removed, on a device: the same as on the host, to the bit.
#include "support.cuh"

#include <descent/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/rows.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/schedule_free_adamw.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>

using namespace test;
using ds::bfloat16;

namespace {

constexpr std::int64_t rows = 70;

std::vector<std::uint8_t> mask_at(int t) {
  std::vector<std::uint8_t> mask(rows);
  for (std::size_t r = 0; r < rows; ++r) mask[r] = noise(r, 50 + unsigned(t)) > 0.2f;
  return mask;
}

/// A matrix, shifted by some elements.
std::vector<tensor> table(std::int64_t columns, int shift = 0, std::int64_t n = rows) {
  return {{n * columns, 0, shift, shift, columns}};
}

template <class Value, class Rule, class... Ps>
void agrees(std::int64_t columns, int shift, Rule rule, Ps... policies) {
  CAPTURE(columns);
  CAPTURE(shift);
  auto both = twins_of<Value>(table(columns, shift), rule, policies...);
  auto& s = both.s;
  device_vector<std::uint8_t> mask(mask_at(0), s);
  both.device.select_rows("w0", mask.data());
  std::vector<std::uint8_t> here;
  for (int t = 0; t < 4; ++t) {
    both.x.new_gradients(std::uint64_t(t));
    here = mask_at(t);
    mask.put(here, s);
    both.host.select_rows("w0", here.data());
    both.step();
    both.expect_same();
  }
  if constexpr ((std::is_same_v<Ps, ds::masked_rows<ds::row_step::own>> || ...)) {
    auto const view = both.host.row_updates("w0");
    CHECK(from_device(both.device.row_updates("w0").data(), rows, s) ==
          std::vector<std::int32_t>(view.begin(), view.end()));
  }
  CHECK(both.device.report().applied);
}

}  // namespace

TEST_CASE("selected rows are updated as on the host") {
  // rows within a packet, of one packet, across packets and across chunks
  using shapes = std::vector<std::pair<std::int64_t, int>>;
  for (auto const& [columns, shift] : shapes{{1, 1}, {3, 0}, {8, 0}, {40, 1}, {130, 0}}) {
    agrees<float>(columns, shift, ds::adam{.lr = 0.1}, ds::masked_rows{}, ds::zero_grad{}, ds::accumulate{2});
    agrees<float>(columns, 1 - shift, ds::adam{.lr = 0.1}, ds::masked_rows<ds::row_step::own>{}, ds::skip_nonfinite{},
                  ds::learning_rate(ds::linear{0.1, 0.01, 5}));
  }
  for (auto const& [columns, shift] : shapes{{3, 1}, {8, 0}, {130, 0}}) {
    agrees<bfloat16>(columns, shift, ds::adamw{.lr = 0.1}, ds::masked_rows{}, ds::stochastic_rounding{.seed = 1},
                     ds::clip_norm{0.5}, ds::ema{});
    agrees<float>(columns, 1 - shift, ds::lamb{}, ds::masked_rows{}, ds::clip_norm{0.5});
  }
}

TEST_CASE("a graph follows the mask, and rows count in it") {
  auto both = twins_of<float>(table(5), ds::adam{}, ds::masked_rows<ds::row_step::own>{});
  auto& s = both.s;
  device_vector<std::uint8_t> mask(mask_at(0), s);
  both.device.select_rows("w0", mask.data());
  graph const step(s, [&] { both.device.step(); });
  CHECK(step.nodes == 3);  // control, rows, update
  std::vector<std::uint8_t> here;
  for (int t = 0; t < 4; ++t) {
    both.x.new_gradients(std::uint64_t(t)), both.x.send_gradients();
    here = mask_at(t);
    mask.put(here, s);
    both.host.select_rows("w0", here.data());
    both.host.step();
    step.launch(s);
    both.expect_same();
  }
}

TEST_CASE("a list in device memory selects; what is no row is left out; the first one is refused in a capture") {
  auto both = twins_of<float>(table(5), ds::adam{}, ds::masked_rows{});
  auto& s = both.s;
  std::vector<std::int64_t> const list{3, 69, -1, 12, 3};
  device_vector<std::int64_t> const there(list, s);
  device_vector<std::int64_t> const wrong({3, 70, 12, std::int64_t{1} << 40, 69}, s);
  graph const none(s, [&] {
    CHECK_THROWS_WITH_AS(both.device.select_rows("w0", there.data(), 5),
                         "the first select_rows() by a list allocates memory, and the stream is capturing: call it "
                         "once before the capture",
                         std::logic_error);
  });
  both.host.select_rows("w0", list.data(), 5);
  both.device.select_rows("w0", there.data(), 5);
  both.step();
  both.expect_same();
  both.device.select_rows("w0", wrong.data(), 5);
  both.step();
  both.expect_same();
}

TEST_CASE("gathered takes rows along as on the host") {
  auto const holds = []<class Rule, class... Ps>(Rule rule, Ps... policies) {
    auto both = twins_of<float>(table(5), rule, policies...);
    tensors<float> y{table(5, 1, rows - 9), both.s};
    both.steps(4);
    std::vector<std::int64_t> from(rows - 9);
    for (std::size_t r = 0; r < from.size(); ++r) from[r] = r % 7 == 0 ? -1 : std::int64_t((r * 37) % rows);
    device_vector<std::int64_t> const there(from, both.s);
    auto host_now = both.host.gathered(y.on_host(), {{"w0", from.data()}});
    both.s.wait();
    if (in_software()) cudasim_reset_counters();
    auto device_now = both.device.gathered(y.on_device(), {{"w0", there.data()}});
    if (in_software()) {
      CHECK(cudasim_count("allocations") == 2);  // on the device, and pinned
      CHECK(cudasim_count("synchronisations") == 1);
    }
    CHECK(device_now.last_report().step == 4);
    for (int t = 0; t < 3; ++t) {
      y.new_gradients(std::uint64_t(t)), y.send_gradients();
      host_now.step();
      device_now.step();
      y.expect_same();
      CHECK(device_now.last_report().step == 4 + t);  // the report of the step before
    }
    from[4] = rows;
    device_vector<std::int64_t> const bad(from, both.s);
    CHECK_THROWS_WITH_AS(both.device.gathered(y.on_device(), {{"w0", bad.data()}}),
                         "rows of 'w0': row 4 would come from row 70, allowed are 0 to 69, or -1 for a new one",
                         std::invalid_argument);
  };
  holds(ds::adam{.lr = 0.1});
  holds(ds::adamw{}, ds::ema{}, ds::lookahead{.k = 2}, ds::masked_rows<ds::row_step::own>{});
  holds(ds::novograd{}, ds::clip_norm{1});
  holds(ds::schedule_free_adamw{});
}
