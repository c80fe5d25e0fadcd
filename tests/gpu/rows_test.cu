// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "support.cuh"

#include <descent/average.hpp>
#include <descent/clip.hpp>
#include <descent/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/rounding.hpp>
#include <descent/rows.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/schedule_free_adamw.hpp>
#include <descent/schedules/linear.hpp>
#include <descent/vary.hpp>
#include <descent/zero_grad.hpp>

/// Selected rows and rows that come and go, on a device: as on the host, to the bit.

using namespace test;
using ds::bfloat16;

namespace {

constexpr std::int64_t rows = 70;

std::vector<std::uint8_t> mask_at(int t) {
  std::vector<std::uint8_t> mask(rows);
  for (std::size_t r = 0; r < rows; ++r) mask[r] = noise(r, 50 + unsigned(t)) > 0.2f;
  return mask;
}
template <class T> std::vector<T> numbers(std::int64_t n, std::uint64_t seed) {
  std::vector<T> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = ds::narrow<T>(noise(i, seed));
  return x;
}

template <class T> bool same(std::vector<T> const& a, std::vector<T> const& b) {
  if (a.size() != b.size()) return false;
  if constexpr (contracted) {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (std::abs(number(a[i]) - number(b[i])) > std::ldexp(4.0, 1 - digits<T>)) return false;
    return true;
  }
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// A matrix on the host and its twin on the device.
template <class Value> struct pair_of_tables {
  std::int64_t columns, shift;
  stream const& s;
  std::vector<Value> value = numbers<Value>(rows * columns + shift, 1), gradient = value;
  device_vector<Value> device_value{value, s}, device_gradient{gradient, s};

  ds::parameters<Value> host(std::int64_t n = rows) {
    ds::parameters<Value> all;
    all.add("w", value.data() + shift, gradient.data() + shift, ds::shape{n, columns});
    return all;
  }
  ds::parameters<Value> device(std::int64_t n = rows) {
    ds::parameters<Value> all;
    all.add("w", device_value.data() + shift, device_gradient.data() + shift, ds::shape{n, columns});
    return all;
  }
  void backward(int t) {
    auto const fresh = numbers<Value>(rows * columns + shift, 100 + std::uint64_t(t));
    std::copy(fresh.begin(), fresh.end(), gradient.begin());
    device_gradient.put(gradient, s);
  }
};

template <class Value, class Rule, class... Ps> void agrees(std::int64_t columns, int shift, Rule rule, Ps... policies) {
  CAPTURE(columns);
  CAPTURE(shift);
  stream s;
  pair_of_tables<Value> x{columns, shift, s};
  ds::optimizer on_host{x.host(), rule, policies...};
  ds::optimizer on_device{x.device(), rule, policies..., ds::cuda{s}};
  device_vector<std::uint8_t> mask(mask_at(0), s);
  on_device.select_rows("w", mask.data());
  std::vector<std::uint8_t> here;
  for (int t = 0; t < 4; ++t) {
    x.backward(t);
    here = mask_at(t);
    mask.put(here, s);
    on_host.select_rows("w", here.data());
    on_host.step();
    on_device.step();
    REQUIRE(same(x.device_value.get(s), x.value));
    REQUIRE(same(x.device_gradient.get(s), x.gradient));
  }
  if constexpr ((std::is_same_v<Ps, ds::masked_rows<ds::row_step::own>> || ...)) {
    auto const view = on_host.row_updates("w");
    CHECK(from_device(on_device.row_updates("w").data(), rows, s) == std::vector<std::int32_t>(view.begin(), view.end()));
  }
  CHECK(on_device.report().applied);
  if (on_device.report().grad_norm == on_device.report().grad_norm)
    CHECK(on_device.report().grad_norm == doctest::Approx(on_host.report().grad_norm).epsilon(1e-14));
}

}  // namespace

TEST_CASE("selected rows are updated as on the host") {
  // rows within a packet, of one packet, across packets and across chunks
  using shapes = std::vector<std::pair<std::int64_t, int>>;
  for (auto const& [columns, shift] : shapes{{1, 1}, {3, 0}, {8, 0}, {40, 1}, {130, 0}}) {
    agrees<float>(columns, shift, ds::adam{.lr = 0.1}, ds::masked_rows{}, ds::zero_grad{});
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
  stream s;
  pair_of_tables<float> x{5, 0, s};
  ds::optimizer on_host{x.host(), ds::adam{}, ds::masked_rows<ds::row_step::own>{}};
  ds::optimizer on_device{x.device(), ds::adam{}, ds::masked_rows<ds::row_step::own>{}, ds::cuda{s}};
  device_vector<std::uint8_t> mask(mask_at(0), s);
  on_device.select_rows("w", mask.data());
  graph const step(s, [&] { on_device.step(); });
  CHECK(step.nodes == 3);  // control, rows, update
  std::vector<std::uint8_t> here;
  for (int t = 0; t < 4; ++t) {
    x.backward(t);
    here = mask_at(t);
    mask.put(here, s);
    on_host.select_rows("w", here.data());
    on_host.step();
    step.launch(s);
    REQUIRE(same(x.device_value.get(s), x.value));
  }
}

TEST_CASE("a list in device memory selects; what is no row is left out; the first one is refused in a capture") {
  stream s;
  pair_of_tables<float> x{5, 0, s};
  ds::optimizer on_host{x.host(), ds::adam{}, ds::masked_rows{}};
  ds::optimizer on_device{x.device(), ds::adam{}, ds::masked_rows{}, ds::cuda{s}};
  std::vector<std::int64_t> const list{3, 69, -1, 12, 3};
  device_vector<std::int64_t> const there(list, s);
  device_vector<std::int64_t> const wrong({3, 70, 12, std::int64_t{1} << 40, 69}, s);
  std::string why;
  graph const none(s, [&] {
    try {
      on_device.select_rows("w", there.data(), 5);
    } catch (std::logic_error const& e) {
      why = e.what();
    }
  });
  CHECK(why ==
        "the first select_rows() by a list waits for the stream, which is capturing: call it after the graph has run");
  on_host.select_rows("w", list.data(), 5);
  on_device.select_rows("w", there.data(), 5);
  on_host.step();
  on_device.step();
  CHECK(same(x.device_value.get(s), x.value));
  on_device.select_rows("w", wrong.data(), 5);
  on_host.step();
  on_device.step();
  CHECK(same(x.device_value.get(s), x.value));
}

TEST_CASE("gathered takes rows along as on the host") {
  auto const holds = []<class Rule, class... Ps>(Rule rule, Ps... policies) {
    stream s;
    pair_of_tables<float> x{5, 0, s}, y{5, 1, s};
    ds::optimizer on_host{x.host(), rule, policies...};
    ds::optimizer on_device{x.device(), rule, policies..., ds::cuda{s}};
    for (int t = 0; t < 4; ++t) {
      x.backward(t);
      on_host.step();
      on_device.step();
    }
    std::vector<std::int64_t> from(rows - 9);
    for (std::size_t r = 0; r < from.size(); ++r) from[r] = r % 7 == 0 ? -1 : std::int64_t((r * 37) % rows);
    device_vector<std::int64_t> const there(from, s);
    auto host_now = on_host.gathered(y.host(rows - 9), {{"w", from.data()}});
    auto device_now = on_device.gathered(y.device(rows - 9), {{"w", there.data()}});
    CHECK(device_now.last_report().step == 4);
    for (int t = 0; t < 3; ++t) {
      y.backward(t);
      host_now.step();
      device_now.step();
      REQUIRE(same(y.device_value.get(s), y.value));
      CHECK(device_now.last_report().step == 4 + t);  // that of the step before
    }
    from[4] = rows;
    device_vector<std::int64_t> const bad(from, s);
    CHECK_THROWS_WITH_AS(on_device.gathered(y.device(rows - 9), {{"w", bad.data()}}),
                         "rows of 'w': row 4 would come from row 70, allowed are 0 to 69, or -1 for a new one",
                         std::invalid_argument);
  };
  holds(ds::adam{.lr = 0.1});
  holds(ds::adamw{}, ds::ema{}, ds::lookahead{.k = 2}, ds::masked_rows<ds::row_step::own>{});
  holds(ds::novograd{}, ds::clip_norm{1});
  holds(ds::schedule_free_adamw{});
}
