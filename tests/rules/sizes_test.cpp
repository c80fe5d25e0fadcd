// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "support/all_rules.hpp"
#include "support/larger.hpp"
#include "support/oracle.hpp"
#include "support/sizes.hpp"
#include "support/ulp.hpp"

#include <descent/cost.hpp>
#include <descent/engine/step/packet.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>
#include <vector>

using namespace test;
namespace ds = descent;

namespace {

/// The largest distance of the values from the oracle's. All are below 2, where an ulp of float is 1.2e-7.
template <class Value> double distance(problem<Value> const& p, auto const& truth) {
  double most = 0;
  for (std::size_t k = 0; k < p.value.size(); ++k)
    for (std::size_t i = 0; i < p.value[k].size(); ++i)
      most = test::larger(most, std::abs(double(p.value[k][i]) - truth.tensors[k].p[i]));
  return most;
}

/// Steps of one optimizer in float against the oracle.
template <class Rule>
double distance_after(int steps, Rule const& rule, std::vector<std::size_t> const& sizes) {
  problem<float> p(sizes);
  oracle truth(rule, p);
  auto opt = optimizer_of(p.parameters(), rule);
  for (int t = 1; t <= steps; ++t) {
    p.set_gradients(t);
    truth.take_gradients(p);
    opt.step();
    truth.step();
  }
  return distance(p, truth);
}

constexpr double three_steps = 3e-7;  // rounding of values, and of steps, which are much smaller

}  // namespace

TEST_CASE("every rule: sizes 0, 1 and around packets and chunks") {
  each_rule([](auto const& row) {
    for (std::size_t n : edge_sizes) {
      INFO(row.name, ", ", n, " elements");
      CHECK(distance_after(3, row.rule, {n}) <= three_steps);
    }
  });
}

TEST_CASE("every rule: empty tensors first, in the middle and last, or all") {
  each_rule([](auto const& row) {
    INFO(row.name);
    CHECK(distance_after(3, row.rule, tensor_sizes) <= three_steps);
    CHECK(distance_after(3, row.rule, {0, 0}) == 0);
    CHECK(distance_after(3, row.rule, {}) == 0);
  });
}

TEST_CASE("every rule: 100 steps in float") {
  each_rule([](auto const& row) {
    INFO(row.name);
    CHECK(distance_after(100, row.rule, {21, 3}) <= 1e-5);
  });
}

TEST_CASE("every rule: 1,000 tensors, one of each family: 10,000") {
  std::vector<std::size_t> sizes;
  for (std::size_t k = 0; k < 10'000; ++k) sizes.push_back(k % 13);
  each_rule([&](auto const& row) {
    INFO(row.name, ", ", sizes.size(), " tensors");
    CHECK(distance_after(3, row.rule, sizes) <= three_steps);
    sizes.resize(1'000);
  });
}

namespace {

/// A tensor that starts `offset` elements into 16-byte aligned memory, with elements around it that must not change.
template <class T> struct placed {
  static constexpr std::size_t margin = 16;
  std::size_t offset, count;
  T* memory;

  placed(std::size_t offset, std::size_t count)
      : offset(offset), count(count), memory(static_cast<T*>(::operator new(room() * sizeof(T), align))) {
    for (std::size_t i = 0; i < room(); ++i) memory[i] = ds::narrow<T>(0.375);
  }
  placed(placed const&) = delete;
  ~placed() { ::operator delete(memory, align); }

  T* data() { return memory + margin + offset; }
  bool margins_untouched() const {
    for (std::size_t i = 0; i < room(); ++i)
      if ((i < margin + offset || i >= margin + offset + count) && ds::widen<double>(memory[i]) != 0.375) return false;
    return true;
  }

 private:
  static constexpr std::align_val_t align{64};
  std::size_t room() const { return 2 * margin + packet + count; }
};

/// The values after two steps, with value and gradient at these offsets.
template <class Value, class Gradient, class Rule, class... Ps>
std::vector<Value> stepped(Rule const& rule, std::size_t value_at, std::size_t gradient_at, Ps... policies) {
  std::size_t const n = 2 * packet + 3;
  placed<Value> value(value_at, n);
  placed<Gradient> grad(gradient_at, n);
  for (std::size_t i = 0; i < n; ++i) value.data()[i] = ds::narrow<Value>(start(0, i));
  ds::parameters<Value, Gradient> list;
  list.add("x", value.data(), grad.data(), n);
  auto opt = optimizer_of(list, rule, policies...);
  for (int t = 1; t <= 2; ++t) {
    for (std::size_t i = 0; i < n; ++i) grad.data()[i] = ds::narrow<Gradient>(gradient(0, i, t));
    opt.step();
  }
  CHECK(value.margins_untouched());
  CHECK(grad.margins_untouched());
  return {value.data(), value.data() + n};
}

}  // namespace

TEST_CASE("every rule: any misalignment of values and gradients gives the same bits") {
  each_rule([](auto const& row) {
    auto const aligned = stepped<float, float>(row.rule, 0, 0);
    for (std::size_t v = 0; v < packet; ++v)
      for (std::size_t g = 0; g < packet; ++g) {
        INFO(row.name, ", value at ", v, ", gradient at ", g);
        CHECK(same_bits(stepped<float, float>(row.rule, v, g), aligned));
      }
  });
}

TEST_CASE("any misalignment of 16-bit values and gradients gives the same bits") {
  ds::adamw const rule{.lr = 0.02};
  auto const narrow = stepped<ds::half, ds::bfloat16>(rule, 0, 0, ds::states<ds::bfloat16>{});
  auto const exact = stepped<ds::bfloat16, ds::half>(rule, 0, 0, ds::master<float>{}, ds::states<ds::half, float>{});
  for (std::size_t v = 0; v < packet; ++v)
    for (std::size_t g = 0; g < packet; ++g) {
      INFO("value at ", v, ", gradient at ", g);
      CHECK(same_bits(stepped<ds::half, ds::bfloat16>(rule, v, g, ds::states<ds::bfloat16>{}), narrow));
      CHECK(same_bits(stepped<ds::bfloat16, ds::half>(rule, v, g, ds::master<float>{}, ds::states<ds::half, float>{}),
                      exact));
    }
}

TEST_CASE("counts beyond 2^32: chunks, offsets and memory, with sizes that nobody allocates") {
  std::int64_t const huge = 5'000'000'000, big = 2'200'000'003, arena = 5'000'000'000;
  static_assert(huge > std::int64_t{1} << 32 && big > std::int64_t{1} << 31 && arena % 64 == 0);
  auto const address = [](std::uintptr_t at) { return reinterpret_cast<float*>(at << 36); };
  ds::parameters<float> list;
  list.add("huge", address(1), address(2), huge);
  list.add("empty", address(3), address(4), 0);
  list.add("big", address(5), address(6), big);
  list.add("one", address(7), address(8), 1);
  ds::detail::layout<float, float> const where(list);

  CHECK(where.elements == huge + big + 1);
  CHECK(where.tensors[2].arena == arena);
  CHECK(where.tensors[3].arena == arena + (big + 63) / 64 * 64);
  CHECK(where.arena == where.tensors[3].arena + 64);

  std::vector<std::int64_t> next(4);  // the first element of each tensor that no chunk has covered yet
  std::int64_t wrong = 0;
  for (std::int64_t c = 0; c < where.chunks(); ++c) {
    auto const t = std::size_t(where.tensor_of_chunk[std::size_t(c)]);
    auto const span = ds::detail::span_of(c, where.tensors[t]);
    wrong += span.begin != next[t] || span.size <= 0 || span.size > int(chunk);
    next[t] += span.size;
  }
  CHECK(wrong == 0);
  CHECK(next == std::vector<std::int64_t>{huge, 0, big, 1});

  auto const m = ds::memory(list, ds::adamw{}, ds::states<float, ds::bfloat16>{}, ds::master<double>{});
  CHECK(m.bytes == where.arena * (8 + 4 + 2));
  CHECK(m.parameters == huge + big + 1);
}

TEST_CASE("an update beyond element 2^32 reaches the right memory") {
  using plan = ds::detail::plan<ds::half, ds::bfloat16, ds::adam, ds::states<ds::half>>;
  std::int64_t const at = (std::int64_t{1} << 32) + 40;
  std::size_t const bytes = (std::size_t(at) + 4096) * 2;
  std::vector<void*> streams;  // only address space: touched pages become memory
  for (int i = 0; i < 4; ++i)
    streams.push_back(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (std::find(streams.begin(), streams.end(), MAP_FAILED) == streams.end()) {
    auto* const value = static_cast<ds::half*>(streams[0]);
    auto* const grad = static_cast<ds::bfloat16*>(streams[1]);
    auto* const m = static_cast<ds::half*>(streams[2]);
    auto* const v = static_cast<ds::half*>(streams[3]);
    for (std::int64_t i : {std::int64_t{40}, at}) grad[i] = ds::narrow<ds::bfloat16>(1.f);
    auto const unit = ds::detail::narrowed<ds::adam, float>(ds::adam{.lr = 0.5}.at(1), 1, false);
    ds::detail::update_packet<plan, float>({value, grad, value, {m, v}, {}}, at, {8, true}, 1.f, unit.terms);
    CHECK(ds::widen<float>(value[at]) == -0.5f);
    CHECK(ds::widen<float>(m[at]) > 0);
    CHECK(ds::widen<float>(v[at]) > 0);
    CHECK(ds::widen<float>(value[40]) == 0);
    CHECK(ds::widen<float>(m[40]) == 0);
    CHECK(ds::widen<float>(v[40]) == 0);
  } else {
    MESSAGE("not tried: there is no address space for it");
  }
  for (void* p : streams)
    if (p != MAP_FAILED) munmap(p, bytes);
}
