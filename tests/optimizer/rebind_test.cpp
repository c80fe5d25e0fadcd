// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Parameters whose memory moves between steps: rebind() changes no bit, and the old memory is left alone.
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/sam.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/sgd.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "support/ranks.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ds = descent;
using test::message;

namespace {

struct tensor {
  std::string name;
  std::int64_t rows, columns;
  int group;
};
std::vector<tensor> const tensors{{"w", 60, 3, 0}, {"none", 0, 1, 0}, {"b", 5, 1, 1}, {"v", 4500, 1, 0}};

/// Values and gradients of all tensors, from element `shift` of their memory on, so that packets are aligned or not.
template <class T> struct memory {
  std::vector<T> value, gradient;
  std::size_t shift;

  explicit memory(std::size_t shift) : value(5000, T(1.f)), gradient(5000), shift(shift) {}
  memory(memory const& from, std::size_t to) : memory(to) {
    std::copy_n(from.value.begin() + std::ptrdiff_t(from.shift), 4900, value.begin() + std::ptrdiff_t(shift));
    std::copy_n(from.gradient.begin() + std::ptrdiff_t(from.shift), 4900, gradient.begin() + std::ptrdiff_t(shift));
  }
  ds::parameters<T> list(bool backwards = false) {
    ds::parameters<T> all;
    auto const add = [&](tensor const& t, std::size_t at) {
      all.add(t.name, value.data() + at, gradient.data() + at, ds::shape{t.rows, t.columns}, ds::group{t.group});
    };
    std::vector<std::pair<tensor const*, std::size_t>> places;
    std::size_t at = shift;
    for (tensor const& t : tensors) places.emplace_back(&t, at), at += std::size_t(t.rows * t.columns);
    if (backwards) std::reverse(places.begin(), places.end());
    for (auto const& [t, place] : places) add(*t, place);
    return all;
  }
  void backward(int t) {
    for (std::size_t i = 0; i < 4900; ++i) {
      T& g = gradient[shift + i];
      g = T(float(g) + float(int((i * 37 + std::size_t(t) * 101) % 257) - 128) / 256);
    }
  }
  bool same_values(memory const& other) const {
    return std::memcmp(&value[shift], &other.value[other.shift], 4685 * sizeof(T)) == 0;
  }
};

/// Trains twins; the memory of one moves before each step. What it leaves is filled with a number that must stay.
template <class T, class Make> void moves(Make const& make) {
  memory<T> fixed(0);
  auto now = std::make_unique<memory<T>>(0);
  auto still = make(fixed.list()), moving = make(now->list());
  std::vector<std::unique_ptr<memory<T>>> left;
  for (int t = 1; t <= 8; ++t) {
    auto next = std::make_unique<memory<T>>(*now, std::size_t(t * 3 % 8));
    std::fill(now->value.begin(), now->value.end(), T(-7.f));
    std::fill(now->gradient.begin(), now->gradient.end(), T(-7.f));
    left.push_back(std::exchange(now, std::move(next)));
    moving.rebind(now->list(t % 2 == 0));
    fixed.backward(t), now->backward(t);
    still.step(), moving.step();
    CHECK(now->same_values(fixed));
  }
  CHECK(still.report().step == moving.report().step);
  CHECK(still.gradient_norm() == moving.gradient_norm());
  auto const is_filler = [](T x) { return float(x) == -7; };
  for (auto const& old : left) {
    CHECK(std::ranges::all_of(old->value, is_filler));
    CHECK(std::ranges::all_of(old->gradient, is_filler));
  }
}

}  // namespace

TEST_CASE("rebind: memory that moves before each step, with a master, a norm, micro-batches and an average") {
  moves<ds::half>([](auto const& list) {
    return ds::optimizer{list, ds::adamw{.lr = 0.01}, ds::master<float>{}, ds::clip_norm{1},
                         ds::accumulate{2}, ds::zero_grad{}, ds::ema{.decay = 0.5}};
  });
}

TEST_CASE("rebind: the memory of each rank moves, replicated and sharded") {
  ranks::on_both(2, [](auto&, auto const& policy) {
    moves<float>(
        [&](auto const& list) { return ds::optimizer{list, ds::sgd{.momentum = 0.5}, ds::zero_grad{}, policy}; });
  });
}

TEST_CASE("rebind: what is not the same parameters is refused, and the next step uses the old memory") {
  memory<float> m(0), other(1);
  ds::optimizer opt{m.list(), ds::adamw{}, ds::sam{}, ds::ema{.decay = 0.5}};
  auto const refused = [&](auto const& change) {
    ds::parameters<float> const all = other.list();
    ds::parameters<float> list;
    for (auto x : all.views())
      if (change(x))
        list.add(x.name, x.value, x.gradient, ds::shape{x.count / x.columns, x.columns}, ds::group{x.group});
    return message([&] { opt.rebind(list); });
  };
  CHECK(refused([](auto& x) { return x.name != "b"; }) == "rebind: the optimizer has 4 parameters, the list has 3");
  CHECK(refused([](auto& x) { return x.name == "b" ? x.name = "c", true : true; }) ==
        "rebind: parameter 'b' is not in the list");
  CHECK(refused([](auto& x) { return x.columns == 3 ? x.columns = 2, true : true; }) ==
        "rebind: parameter 'w' has 180 elements in rows of 3, in the list 180 in rows of 2");
  CHECK(refused([](auto& x) { return x.name == "b" ? x.count = 4, true : true; }) ==
        "rebind: parameter 'b' has 5 elements in rows of 1, in the list 4 in rows of 1");
  CHECK(refused([](auto& x) { return x.name == "b" ? x.group = 0, true : true; }) ==
        "rebind: parameter 'b' is in group 1, in the list in group 0");
  CHECK(refused([](auto& x) { return x.name == "b" ? --x.value, true : true; }) ==
        "the value of 'w' overlaps the value of 'b' in memory");
  CHECK(refused([](auto& x) { return x.name == "v" ? x.gradient = reinterpret_cast<float*>(64), true : true; }) ==
        "parameter 'v': its gradient is not host memory: there is none at 0x40; for device memory use the backend "
        "cuda{stream}");
  m.backward(1);
  opt.swap_average();
  CHECK(message([&] { opt.rebind(other.list()); }).starts_with("rebind() between two calls of swap_average()"));
  opt.swap_average();
  opt.ascend();
  CHECK(message([&] { opt.rebind(other.list()); }).starts_with("rebind() after ascend()"));
  auto const before = other.value;
  opt.step();
  CHECK(other.value == before);
  CHECK(m.value[0] != 1);
}

TEST_CASE("const gradients are only read: steps take them from memory that cannot be written") {
  constexpr std::size_t n = 70;
  void* const page = ::mmap(nullptr, n * sizeof(float), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  float* const at = static_cast<float*>(page);
  for (std::size_t i = 0; i < n; ++i) at[i] = float(i) / 64 - 0.5f;
  std::vector<float> same(at, at + n);
  REQUIRE(::mprotect(page, n * sizeof(float), PROT_READ) == 0);
  float const* const gradient = at;

  auto const list = [&](std::vector<float>& value, auto const&... g) {
    ds::parameters<float> params;
    params.add("w", value, g...);
    return params;
  };
  auto const trained = [&](auto... g) {
    return [&list, g...](auto const&... policies) {
      std::vector<float> value(n, 1);
      ds::optimizer opt{list(value, g...), ds::adamw{}, policies...};
      for (int i = 0; i < 4; ++i) {
        if constexpr (requires { opt.ascend(); }) opt.ascend();
        opt.step();
      }
      CHECK(opt.report().applied);
      return value;
    };
  };
  auto const constant = trained(std::span(gradient, n));
  auto const plain = trained(std::span(same));
  auto const equal = [&](auto const&... policies) { CHECK(constant(policies...) == plain(policies...)); };
  equal(ds::clip_norm{0.1}, ds::accumulate{2});
  equal(ds::sam{});
  ranks::with_ranks(2, [&](auto& comm) { equal(ds::replicated{comm}); });

  std::vector<float> value(n, 1), other(n, 1), whole(n);
  std::string const is_const = "parameter 'w': its gradient is const, but zero_grad{} writes it";
  auto const shared = list(value, std::span(gradient, n));
  CHECK(message([&] { ds::optimizer(shared, ds::sgd{}, ds::zero_grad{}); }) == is_const);
  ds::optimizer zeroes{list(value, std::span(whole)), ds::sgd{}, ds::zero_grad{}};
  CHECK(message([&] { zeroes.rebind(shared); }) == is_const);
  CHECK(message([&] { static_cast<void>(zeroes.gathered(shared)); }) == is_const);
  ds::optimizer opt{list(value, std::span(whole)), ds::sgd{}, ds::static_loss_scale{2}};
  opt.rebind(shared);
  auto const refused = [&](std::string const& call, auto const& f) {
    CHECK(message(f) == call + " writes gradients, and that of 'w' is const");
  };
  refused("zero_grad()", [&] { opt.zero_grad(); });
  refused("unscale()", [&] { opt.unscale(); });
  refused("transform_gradients()", [&] { opt.transform_gradients([](float g) { return g; }); });
  opt.rebind(list(value, std::span(whole)));
  opt.zero_grad();

  ds::parameters<float> pointers;
  pointers.add("w", value.data(), gradient, n);
  pointers.add("matrix", other.data(), gradient, ds::shape{n / 10, 10});
  CHECK_FALSE(pointers.views()[1].writes);
  ds::parameters<ds::mixed<float, double>> several;
  several.add("w", value.data(), gradient, n);
  CHECK_FALSE(several.views()[0].writes);
  ::munmap(page, n * sizeof(float));
}
