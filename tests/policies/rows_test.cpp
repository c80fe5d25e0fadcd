// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/cost.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/rows.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/presets/rules.hpp>
#include <descent/rules/adagrad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamax.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/amsgrad.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/radam.hpp>
#include <descent/rules/schedule_free_adamw.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/sm3.hpp>
#include <descent/rules/yogi.hpp>
#include <descent/schedules/choose.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>
#include <support/reference.hpp>

#include <doctest/doctest.h>

#include "support/larger.hpp"
#include "support/message.hpp"
#include "support/own_policies.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

/// Selected rows, rows that count their own updates, rows that are added and removed.

namespace ds = descent;
using ds::half, ds::bfloat16;

namespace {

/// A matrix of hashed numbers, different for each seed.
template <class T> std::vector<T> numbers(std::int64_t n, unsigned seed) {
  std::vector<T> x(static_cast<std::size_t>(n));
  std::uint32_t state = seed * 2654435761u + 12345;
  for (T& one : x) {
    state = state * 1664525u + 1013904223u;
    one = ds::narrow<T>(double(std::int32_t(state)) / 2147483648.0);
  }
  return x;
}

/// Whether row r is selected at step t: about a third of them.
bool wanted(std::int64_t r, int t) { return (std::uint32_t(r * 7 + t * 13) * 2654435761u >> 16) % 3 == 0; }

std::vector<std::uint8_t> mask_at(std::int64_t rows, int t) {
  std::vector<std::uint8_t> mask(std::size_t(rows), 0);
  for (std::int64_t r = 0; r < rows; ++r) mask[std::size_t(r)] = wanted(r, t) ? 255 : 0;
  return mask;
}

template <class T> bool same_bits(T const* a, T const* b, std::int64_t n) {
  return n == 0 || std::memcmp(a, b, std::size_t(n) * sizeof(T)) == 0;
}

/// An optimizer of one matrix, shifted by some elements so that its packets are unaligned.
template <class Value, class Gradient = Value> struct table {
  std::int64_t rows, columns;
  int shift;
  std::vector<Value> value = numbers<Value>(rows * columns + shift, 1);
  std::vector<Gradient> gradient = numbers<Gradient>(rows * columns + shift, 2);

  Value* p() { return value.data() + shift; }
  Gradient* g() { return gradient.data() + shift; }
  ds::parameters<Value, Gradient> list(ds::group group = {}) {
    ds::parameters<Value, Gradient> all;
    all.add("w", p(), g(), ds::shape{rows, columns}, group);
    return all;
  }
  void backward(int t) {
    auto const fresh = numbers<Gradient>(rows * columns + shift, 100 + unsigned(t));
    std::copy(fresh.begin(), fresh.end(), gradient.begin());
  }
};

/// After a step with a mask, selected rows equal those of an optimizer without a mask that started from the same state;
/// the others are unchanged. Its state is restored by hand.
template <class Value, class Gradient, class Rule, class... Ps>
void follows_the_mask(std::int64_t rows, std::int64_t columns, int shift, Rule rule, Ps... policies) {
  CAPTURE(rows);
  CAPTURE(columns);
  CAPTURE(shift);
  table<Value, Gradient> a{rows, columns, shift}, b{rows, columns, shift};
  ds::optimizer some{a.list(), rule, ds::masked_rows{}, policies...};
  ds::optimizer all{b.list(), rule, policies...};
  using optimizer = decltype(all);
  for (int t = 0; t < 6; ++t) {
    a.backward(t);
    b.backward(t);
    b.value = a.value;
    auto const before = a.value;
    auto const gradients = a.gradient;
    std::vector<std::vector<float>> states;
    for (std::size_t s = 0; s < 2; ++s) {
      auto const view = some.state("w", s);
      states.emplace_back(view.begin(), view.end());
    }
    all.template set_state<0>("w", std::span<float const>(states[0]));
    all.template set_state<1>("w", std::span<float const>(states[1]));
    auto const mask = mask_at(rows, t);
    some.select_rows("w", mask.data());
    some.step();
    all.step();
    for (std::int64_t r = 0; r < rows; ++r) {
      bool const in = mask[std::size_t(r)] != 0;
      std::int64_t const at = r * columns;
      CAPTURE(r);
      REQUIRE(same_bits(a.p() + at, (in ? b.p() : before.data() + shift) + at, columns));
      for (std::size_t s = 0; s < 2; ++s) {
        float const* const other = in ? all.state("w", s).data() : states[s].data();
        REQUIRE(same_bits(some.state("w", s).data() + at, other + at, columns));
      }
      Gradient const* const g = (in ? b.gradient.data() : gradients.data()) + shift + at;
      REQUIRE(same_bits(a.g() + at, g, columns));
    }
  }
  static_assert(std::is_class_v<optimizer>);
}

}  // namespace

TEST_CASE("rows that are not selected keep every bit, the selected ones are updated as without a mask") {
  for (std::int64_t columns : {1, 2, 3, 7, 8, 16, 33})
    for (std::int64_t rows : {0, 1, 5, 300})
      for (int shift : {0, 1}) {
        follows_the_mask<float, float>(rows, columns, shift, ds::adam{.lr = 0.1, .weight_decay = 0.1});
        follows_the_mask<bfloat16, float>(rows, columns, shift, ds::adamw{}, ds::stochastic_rounding{.seed = 3});
        follows_the_mask<half, half>(rows, columns, shift, ds::adamw{}, ds::states<float>{}, ds::zero_grad{},
                                     ds::clip_value{0.5});
        follows_the_mask<float, half>(rows, columns, shift, ds::adam{}, ds::gradient_noise{.eta = 0.1, .seed = 7});
      }
}

TEST_CASE("masters, remainders, averages and slow weights of rows that are not selected stay") {
  auto const stays = []<class... Ps>(auto const& view, Ps... policies) {
    table<bfloat16, float> a{40, 5, 0};
    ds::optimizer opt{a.list(), ds::adam{.lr = 0.1}, ds::masked_rows{}, policies...};
    for (int t = 0; t < 4; ++t) {
      auto const span = view(opt);
      std::vector before(span.begin(), span.end());
      auto const mask = mask_at(40, t);
      opt.select_rows("w", mask.data());
      a.backward(t);
      opt.step();
      for (std::size_t r = 0; r < 40; ++r) {
        bool const same = same_bits(before.data() + r * 5, span.data() + r * 5, 5);
        REQUIRE(same == !mask[r]);
      }
    }
  };
  stays([](auto& opt) { return opt.master("w"); }, ds::master<float>{});
  stays([](auto& opt) { return opt.remainder("w"); }, ds::master_remainder{});
  stays([](auto& opt) { return opt.average("w"); }, ds::ema{.decay = 0.5});
  stays([](auto& opt) { return opt.slow("w"); }, ds::lookahead{.k = 1});
}

/// Copies every other row of `from`, and selects these.
static std::vector<std::uint8_t> copy_even_rows(table<float>& from, table<float>& to) {
  std::vector<std::uint8_t> mask(10, 0);
  for (std::int64_t r = 0; r < 5; ++r) {
    mask[std::size_t(2 * r)] = 1;
    std::copy_n(from.p() + 8 * r, 4, to.p() + 4 * r);
    std::copy_n(from.g() + 8 * r, 4, to.g() + 4 * r);
  }
  return mask;
}

TEST_CASE("a gradient in a row that is not selected counts in no norm and skips no step") {
  table<float> a{10, 4, 0}, b{5, 4, 0};
  auto const mask = copy_even_rows(a, b);
  a.g()[5] = std::numeric_limits<float>::quiet_NaN();
  a.g()[15] = std::numeric_limits<float>::infinity();
  ds::optimizer few{a.list(), ds::lamb{}, ds::masked_rows{}, ds::clip_norm{0.5}};
  ds::optimizer all{b.list(), ds::lamb{}, ds::clip_norm{0.5}};
  few.select_rows("w", mask.data());
  CHECK(few.gradient_norm() == doctest::Approx(all.gradient_norm()).epsilon(1e-14));
  CHECK(few.diagnose().empty());
  few.step();
  all.step();
  CHECK(few.report().applied);
  CHECK(few.report().clip_factor < 1);
  CHECK(few.report().grad_norm == doctest::Approx(all.report().grad_norm).epsilon(1e-14));
  for (std::int64_t i = 0; i < 20; ++i) CHECK(a.p()[i / 4 * 8 + i % 4] == doctest::Approx(b.p()[i]).epsilon(1e-6));

  few.select_rows("w", nullptr);  // all rows, including the bad ones
  few.step();
  CHECK_FALSE(few.report().applied);
}

TEST_CASE("a policy around the update sums over selected rows only") {
  table<float> a{10, 4, 0}, b{5, 4, 0};
  auto const mask = copy_even_rows(a, b);
  for (std::int64_t i = 0; i < 40; ++i)
    if (i % 8 >= 4) a.g()[i] *= 100;  // which would shorten the update of all
  ds::optimizer few{a.list(), ds::sgd{.lr = 0.5}, ds::masked_rows{}, test::bounded_update{.most = 0.125}};
  ds::optimizer all{b.list(), ds::sgd{.lr = 0.5}, test::bounded_update{.most = 0.125}};
  auto const before = a.value;
  few.select_rows("w", mask.data());
  few.step();
  all.step();
  for (std::int64_t i = 0; i < 20; ++i) CHECK(a.p()[i / 4 * 8 + i % 4] == doctest::Approx(b.p()[i]).epsilon(1e-6));
  for (std::int64_t i = 0; i < 40; ++i)
    if (i % 8 >= 4) CHECK(a.p()[i] == before[std::size_t(i)]);
}

TEST_CASE("a skipped step sets the gradients of selected rows to zero, and of no others") {
  table<float> a{6, 3, 0};
  a.g()[0] = std::numeric_limits<float>::infinity();
  ds::optimizer opt{a.list(), ds::adam{}, ds::masked_rows{}, ds::skip_nonfinite{}, ds::zero_grad{}};
  bool const mask[] = {true, false, false, true, true, false};
  opt.select_rows("w", mask);
  auto const before = a.gradient;
  opt.step();
  CHECK_FALSE(opt.report().applied);
  for (std::size_t i = 0; i < 18; ++i) CHECK(a.g()[i] == (mask[i / 3] ? 0 : before[i]));
}

TEST_CASE("a list selects the rows that a mask would; negative numbers are ignored, duplicates count once") {
  auto const listed = []<class Index>(Index) {
    table<float> a{9, 3, 0}, b{9, 3, 0};
    ds::optimizer one{a.list(), ds::adam{}, ds::masked_rows{}}, two{b.list(), ds::adam{}, ds::masked_rows{}};
    std::vector<std::uint8_t> const mask{0, 1, 0, 0, 1, 0, 0, 0, 1};
    std::vector<Index> const list{8, -1, 1, 4, 1, -7};
    one.select_rows("w", mask.data());
    two.select_rows("w", list.data(), 6);
    one.step();
    two.step();
    CHECK(a.value == b.value);
    CHECK(a.value != table<float>{9, 3, 0}.value);

    auto const before = b.value;
    two.select_rows("w", list.data(), 0);  // no rows
    two.step();
    CHECK(b.value == before);
  };
  listed(std::int32_t{});
  listed(std::int64_t{});
}

TEST_CASE("bad selections are refused and change nothing") {
  table<float> a{9, 3, 0};
  ds::optimizer opt{a.list(), ds::adam{}, ds::masked_rows{}};
  std::vector<std::int32_t> const list{3, 9};
  CHECK_THROWS_WITH_AS(opt.select_rows("w", list.data(), 2),
                       "select_rows: row number 1 of the list is 9, but there are 9 rows", std::invalid_argument);
  CHECK_THROWS_WITH_AS(opt.select_rows("w", list.data(), -2), "select_rows: count must be in [0, 2^48], is -2",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(opt.select_rows("v", nullptr), "there is no parameter 'v'", std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      opt.select_rows("w", reinterpret_cast<std::uint8_t const*>(8)),
      "select_rows of 'w': the mask is not host memory: there is none at 0x8; for device memory use the "
      "backend cuda{stream}",
      std::invalid_argument);
  table<float> b{9, 3, 0};
  ds::optimizer all{b.list(), ds::adam{}};
  opt.step();
  all.step();
  CHECK(a.value == b.value);
}

TEST_CASE("preset::torch::SparseAdam on selected rows is torch.optim.SparseAdam, for 100 steps") {
  namespace reference = test::reference;
  auto const cases = reference::read_goldens("values_sparse.txt");
  REQUIRE(cases.size() == 2);
  auto const follows = [&]<class Value>(Value, double epsilon) {
    for (auto const& golden : cases) {
      CAPTURE(golden.line);
      auto rule = ds::preset::torch::SparseAdam();
      rule.lr = std::stod(golden.options.at("lr"));
      rule.beta1 = std::stod(golden.options.at("beta1"));
      rule.beta2 = std::stod(golden.options.at("beta2"));
      rule.eps = std::stod(golden.options.at("eps"));
      reference::tensors<Value> p{{{5, 1}, {1, 1}, {3, 4}}};
      std::vector<std::uint8_t> mask[3];
      for (std::size_t k = 0; k < 3; ++k) mask[k].resize(std::size_t(p.of[k].rows));
      ds::optimizer opt{p.list(), rule, ds::masked_rows{}};
      for (std::size_t k = 0; k < 3; ++k) opt.select_rows(std::to_string(k), mask[k].data());
      auto next = golden.steps.begin();
      for (int t = 1; t <= 100; ++t) {
        p.backward(t);
        for (std::size_t k = 0; k < 3; ++k)
          for (std::size_t r = 0; r < mask[k].size(); ++r) mask[k][r] = (5 * std::size_t(t) + 3 * r + k) % 4 != 0;
        opt.step();
        for (; next != golden.steps.end() && next->step == t; ++next)
          for (std::size_t i = 0; i < next->values.size(); ++i)
            REQUIRE(p(next->tensor, i) == doctest::Approx(next->values[i]).epsilon(epsilon).scale(1));
      }
      CHECK(next == golden.steps.end());
    }
  };
  follows(0.0, 1e-13);
  follows(0.f, 2e-6);
}

TEST_CASE("rows with their own step equal one optimizer each, which steps when the row is selected") {
  auto const holds = []<class Value>(Value, std::int64_t columns, auto rule, auto schedule) {
    CAPTURE(columns);
    constexpr std::int64_t rows = 30;
    table<Value> a{rows, columns, 0}, b{rows, columns, 0};
    ds::optimizer opt{a.list(), rule, ds::masked_rows<ds::row_step::own>{}, schedule};
    using alone = ds::optimizer<Value, Value, decltype(rule)>;
    std::vector<alone> one;
    for (std::int64_t r = 0; r < rows; ++r) {
      ds::parameters<Value> row;
      row.add("w", b.p() + r * columns, b.g() + r * columns, columns);
      one.emplace_back(row, rule);
    }
    std::vector<std::int32_t> updates(rows, 0);
    for (int t = 0; t < 25; ++t) {
      a.backward(t);
      b.backward(t);
      auto const mask = mask_at(rows, t);
      opt.select_rows("w", mask.data());
      opt.step();
      for (std::size_t r = 0; r < rows; ++r)
        if (mask[r]) {
          if constexpr (!std::is_same_v<decltype(schedule), ds::zero_grad>)
            one[r].group(0).lr = schedule.schedule(t);  // the step count that all share
          one[r].step();
          ++updates[r];
        }
      REQUIRE(same_bits(a.p(), b.p(), rows * columns));
    }
    CHECK(std::vector<std::int32_t>(opt.row_updates("w").begin(), opt.row_updates("w").end()) == updates);
    CHECK(opt.report().step == 25);
  };
  for (std::int64_t columns : {1, 3, 8, 20, 200}) {  // 200: rows in two chunks
    holds(0.f, columns, ds::adam{.lr = 0.01, .weight_decay = 0.1}, ds::learning_rate(ds::linear{0.1, 0.001, 30}));
    holds(0.0, columns, ds::radam{.lr = 0.01}, ds::learning_rate(ds::linear{0.1, 0.001, 30}));
    holds(bfloat16{}, columns, ds::adamw{.lr = 0.01}, ds::learning_rate(ds::linear{0.1, 0.001, 30}));
  }
}

TEST_CASE("rows do not count an update that is skipped, nor one of a frozen group") {
  table<float> a{4, 2, 0};
  ds::optimizer opt{a.list(), ds::adam{}, ds::masked_rows<ds::row_step::own>{}, ds::skip_nonfinite{}};
  auto const updates = [&] { return opt.row_updates("w")[0]; };
  opt.step();
  CHECK(updates() == 1);
  a.g()[0] = std::numeric_limits<float>::infinity();
  opt.step();
  CHECK(updates() == 1);
  a.backward(1);
  opt.freeze(0);
  opt.step();
  CHECK(updates() == 1);
  opt.freeze(0, false);
  opt.step();
  CHECK(updates() == 2);
}

TEST_CASE("sparse gradients: each step sees three of sixty features, and least squares still finds its solution") {
  auto const finds = []<class Value, class Rule, class... Ps>(Value, Rule rule, double within, Ps... policies) {
    constexpr std::size_t features = 60;
    std::vector<Value> w(features), g(features);
    std::vector<double> const solution = numbers<double>(features, 7);
    ds::parameters<Value> list;
    list.add("w", w.data(), g.data(), ds::shape{features, 1});
    ds::optimizer opt{list, rule, policies...};
    auto const weight = [&](std::size_t i) {
      if constexpr ((std::is_same_v<Ps, ds::master<float>> || ...)) return double(opt.master("w")[i]);
      else return ds::widen<double>(w[i]);
    };
    std::uint32_t state = 1;
    for (int t = 0; t < 10000; ++t) {
      std::int32_t rows[3];
      double x[3], error = 0;
      for (int k = 0; k < 3; ++k) {
        state = state * 1664525u + 1013904223u;
        rows[k] = std::int32_t(20 * k + int(state >> 8) % 20);  // three that differ
        state = state * 1664525u + 1013904223u;
        x[k] = (state >> 31 ? 1 : -1) * (1 + double(state >> 8 & 0xffff) / 0x10000);
        error += x[k] * (weight(std::size_t(rows[k])) - solution[std::size_t(rows[k])]);
      }
      for (int k = 0; k < 3; ++k) g[std::size_t(rows[k])] = ds::narrow<Value>(error * x[k]);  // all others are stale
      opt.select_rows("w", rows, 3);
      opt.step();
    }
    double furthest = 0;
    for (std::size_t i = 0; i < features; ++i) furthest = test::larger(furthest, std::abs(weight(i) - solution[i]));
    CHECK(furthest < within);
  };
  ds::masked_rows<> const shared;
  ds::masked_rows<ds::row_step::own> const own;
  auto const falling = ds::learning_rate(ds::cosine{.peak = 0.05, .steps = 10000});
  auto adam = ds::preset::torch::SparseAdam();
  finds(0.0, ds::sgd{.lr = 0.05}, 1e-12, shared);
  finds(0.f, ds::sgd{.lr = 0.05}, 1e-5, shared);
  finds(0.0, ds::adagrad{.lr = 0.5}, 1e-9, shared);
  finds(0.f, ds::adagrad{.lr = 0.5}, 1e-5, shared);
  finds(0.0, adam, 1e-4, shared, falling);
  finds(0.f, adam, 1e-4, shared, falling);
  finds(0.f, ds::adam{}, 1e-4, own, falling);
  // The other rules that docs/optimizers/ recommends for sparse or rare gradients.
  auto const recommended = [&](auto rule, double rate) {
    auto const down = ds::learning_rate(ds::cosine{.peak = rate, .steps = 10000});
    finds(0.0, rule, 1e-4, shared, down);
    finds(0.f, rule, 1e-4, shared, down);
    finds(0.f, rule, 1e-4, own, down);
    finds(bfloat16{}, rule, 1e-2, own, down, ds::master<float>{});
    finds(half{}, rule, 1e-3, shared, down, ds::master<float>{});
  };
  recommended(ds::yogi{}, 0.05);
  recommended(ds::adamax{}, 0.1);
  recommended(ds::amsgrad{}, 0.05);
  recommended(ds::sm3{}, 0.5);
  finds(bfloat16{}, ds::adam{}, 1e-2, own, falling, ds::master<float>{});
  finds(half{}, ds::adagrad{.lr = 0.5}, 1e-3, shared, ds::master<float>{});
}

TEST_CASE("memory: the memory of row counts is known beforehand") {
  table<float> a{40, 5, 0};
  auto const m = ds::memory(a.list(), ds::adam{}, ds::masked_rows<ds::row_step::own>{});
  CHECK(m.bytes == ds::memory(a.list(), ds::adam{}).bytes + 4 * 40);
  CHECK(ds::memory(a.list(), ds::adam{}, ds::masked_rows{}).bytes == ds::memory(a.list(), ds::adam{}).bytes);
}

TEST_CASE("gathered: rows that are removed, added and moved take their states along") {
  auto const holds = []<class Value, class Rule, class... Ps>(Value, std::int64_t columns, Rule rule, Ps... policies) {
    CAPTURE(columns);
    // Each row is compared with an optimizer of its own, which moves with the row.
    table<Value> a{6, columns, 0};
    std::vector<std::int64_t> const from{4, -1, 0, 5, -1, 2, 1};
    auto const rows = std::int64_t(from.size());
    table<Value> b{rows, columns, 1};
    ds::optimizer opt{a.list(), rule, policies...};
    for (int t = 0; t < 5; ++t) {
      a.backward(t);
      opt.step();
    }
    for (std::int64_t r = 0; r < rows; ++r)
      if (from[std::size_t(r)] >= 0) std::copy_n(a.p() + from[std::size_t(r)] * columns, columns, b.p() + r * columns);

    auto now = opt.gathered(b.list(), {{"w", from.data()}});
    CHECK(now.report().step == 5);
    CHECK(opt.state("w", 0).size() == std::size_t(6 * columns));
    table<Value> c{rows, columns, 0};  // the same by hand
    std::copy_n(b.p(), rows * columns, c.p());
    ds::optimizer other{c.list(), rule, policies...};
    other.set_step(5);
    std::vector<std::vector<float>> states(2);
    for (std::size_t s = 0; s < 2; ++s) {
      states[s].assign(std::size_t(rows * columns), 0);
      for (std::int64_t r = 0; r < rows; ++r)
        if (from[std::size_t(r)] >= 0)
          std::copy_n(opt.state("w", s).data() + from[std::size_t(r)] * columns, columns,
                      states[s].data() + r * columns);
    }
    other.template set_state<0>("w", std::span<float const>(states[0]));
    other.template set_state<1>("w", std::span<float const>(states[1]));
    for (int t = 5; t < 8; ++t) {
      b.backward(t);
      std::copy_n(b.g(), rows * columns, c.g());
      now.step();
      other.step();
      REQUIRE(same_bits(b.p(), c.p(), rows * columns));
    }
  };
  for (std::int64_t columns : {1, 3, 8, 3000}) {
    holds(0.f, columns, ds::adam{.lr = 0.1});
    holds(bfloat16{}, columns, ds::adamw{.lr = 0.1}, ds::states<float>{}, ds::skip_nonfinite{});
  }
}

TEST_CASE("gathered: masters, averages, slow weights, remainders and row counts are kept") {
  table<bfloat16, float> a{5, 3, 0}, b{4, 3, 0};
  std::vector<std::int64_t> const from{3, 0, -1, 4};
  ds::optimizer opt{a.list(), ds::adam{.lr = 0.1}, ds::masked_rows<ds::row_step::own>{}, ds::master<float>{},
                    ds::ema{.decay = 0.9}, ds::lookahead{.k = 2}};
  for (int t = 0; t < 5; ++t) {
    auto const mask = mask_at(5, t);
    opt.select_rows("w", mask.data());
    a.backward(t);
    opt.step();
  }
  for (std::int64_t r = 0; r < 4; ++r)
    if (from[std::size_t(r)] >= 0) std::copy_n(a.p() + from[std::size_t(r)] * 3, 3, b.p() + r * 3);
  auto now = opt.gathered(b.list(), {{"w", from.data()}});
  for (std::size_t r = 0; r < 4; ++r) {
    CAPTURE(r);
    auto const source = from[r];
    if (source < 0) {
      CHECK(now.row_updates("w")[r] == 0);
      for (std::size_t j = 0; j < 3; ++j) {
        CHECK(now.master("w")[r * 3 + j] == ds::widen<float>(b.p()[r * 3 + j]));
        CHECK(now.average("w")[r * 3 + j] == ds::widen<float>(b.p()[r * 3 + j]));
        CHECK(now.state("w", 0)[r * 3 + j] == 0);
      }
      continue;
    }
    auto const at = std::size_t(source);
    CHECK(now.row_updates("w")[r] == opt.row_updates("w")[at]);
    CHECK(same_bits(now.master("w").data() + r * 3, opt.master("w").data() + at * 3, 3));
    CHECK(same_bits(now.average("w").data() + r * 3, opt.average("w").data() + at * 3, 3));
    CHECK(same_bits(now.slow("w").data() + r * 3, opt.slow("w").data() + at * 3, 3));
  }
  table<bfloat16, float> c{5, 3, 0};
  ds::optimizer joined{c.list(), ds::sgd{.lr = 1e-4}, ds::master_remainder{}};
  joined.step();
  std::vector<std::int64_t> const turned{4, 3, 2, 1, 0};
  auto const turned_round = joined.gathered(c.list(), {{"w", turned.data()}});
  for (std::size_t r = 0; r < 5; ++r)
    CHECK(same_bits(turned_round.remainder("w").data() + r * 3, joined.remainder("w").data() + (4 - r) * 3, 3));
}

TEST_CASE("gathered: groups, schedules, loss scale and the memory of rules are kept; parameters come and go") {
  table<float> a{4, 2, 0}, b{3, 2, 0}, fresh{2, 2, 0}, gone{7, 1, 0};
  ds::parameters<float> before, after;
  before.add("w", a.p(), a.g(), ds::shape{4, 2}, ds::group{1});
  before.add("gone", gone.p(), gone.g(), 7);
  after.add("new", fresh.p(), fresh.g(), 4);
  after.add("w", b.p(), b.g(), ds::shape{3, 2}, ds::group{1});
  ds::optimizer opt{before, ds::schedule_free_adamw{}, ds::dynamic_loss_scale{.init = 8}};
  opt.group(1).lr = 0.25;
  opt.group(0).lr = 0.125;
  for (int t = 0; t < 3; ++t) opt.step();
  std::vector<std::int64_t> const from{1, 3, 0};
  auto now = opt.gathered(after, {{"w", from.data()}});
  CHECK(now.group(0).lr == 0.125);
  CHECK(now.group(1).lr == 0.25);
  CHECK(now.loss_scale() == opt.loss_scale());
  CHECK(now.report().step == 3);
  a.g()[0] = b.g()[0] = std::numeric_limits<float>::infinity();
  now.step();
  CHECK(now.loss_scale() == 4);
  CHECK(opt.loss_scale() == 8);
  // c = w / sum of all w in update 4 is 1/4 only if the sum moved along
  b.backward(9);
  double const y = b.p()[0], z = now.state("w", 0)[0], g = b.g()[0] / 4;
  now.step();
  double const v = now.state("w", 1)[0], u = g / (std::sqrt(v / (1 - std::pow(0.999, 4))) + 1e-8);
  CHECK(b.p()[0] == doctest::Approx(y + 0.25 * (z - y) - 0.25 * (1 - 0.9 * 0.75) * u).epsilon(1e-5));
}

TEST_CASE("gathered: what does not fit is refused with a message, and nothing is lost") {
  table<float> a{4, 2, 0}, b{3, 2, 0};
  ds::optimizer opt{a.list(), ds::adam{}};
  opt.step();
  std::vector<std::int64_t> const from{0, 4, 1}, low{0, -2, 1}, good{0, 1, 2};
  auto const refused = [&](auto const& list, std::vector<ds::row_source> const& rows) {
    return test::message([&] { opt.gathered(list, rows); });
  };
  CHECK(refused(b.list(), {{"w", from.data()}}) ==
        "rows of 'w': row 1 would come from row 4, allowed are 0 to 3, or -1 for a new one");
  CHECK(refused(b.list(), {{"w", low.data()}}) ==
        "rows of 'w': row 1 would come from row -2, allowed are 0 to 3, or -1 for a new one");
  CHECK(refused(b.list(), {}) == "parameter 'w': it had 4 rows and has 3: say where each comes from");
  CHECK(refused(b.list(), {{"v", good.data()}}) == "there is no parameter 'v'");
  CHECK(refused(b.list(), {{"w", nullptr}}) == "rows of 'w': the pointer must not be null");
  CHECK(refused(b.list(), {{"w", good.data()}, {"w", good.data()}}) == "rows of 'w': they are named twice");
  auto const* const nowhere = reinterpret_cast<std::int64_t const*>(8);
  CHECK(
      refused(b.list(), {{"w", nowhere}}) ==
      "rows of 'w': the list is not host memory: there is none at 0x8; for device memory use the backend cuda{stream}");
  table<float> wide{4, 3, 0};
  CHECK(refused(wide.list(), {{"w", good.data()}}) == "parameter 'w': it had 2 columns and has 3");
  ds::optimizer averaged{a.list(), ds::adam{}, ds::ema{}};
  averaged.swap_average();
  CHECK_THROWS_WITH_AS(averaged.gathered(a.list()), "gathered() between two calls of swap_average()", std::logic_error);
  ds::optimizer other{a.list(), ds::adam{}};
  other.group(0).beta1 = 2;
  CHECK_THROWS_WITH_AS(other.gathered(a.list()), "group 0: adam: beta1 must be in [0, 1), is 2", std::invalid_argument);
  ds::optimizer grouped{a.list(), ds::adam{}, ds::learning_rate(ds::per_group{ds::constant{1e-3}})};
  table<float> c{4, 2, 0};
  ds::parameters<float> two = a.list();
  two.add("v", c.p(), c.g(), 8, ds::group{1});
  CHECK_THROWS_AS(grouped.gathered(two), std::invalid_argument);
  CHECK(opt.report().step == 1);
  auto same = opt.gathered(a.list());
  CHECK(same_bits(same.state("w", 1).data(), opt.state("w", 1).data(), 8));
}
