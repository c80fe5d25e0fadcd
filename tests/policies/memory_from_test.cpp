// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// An optimizer whose memory comes from the caller's resource: all that memory() lists, freed as it was taken, the same
// bits, and nothing lost where there is no more.
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/memory_from.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"

#include <cstddef>
#include <cstring>
#include <map>
#include <memory_resource>
#include <new>
#include <utility>
#include <vector>

namespace ds = descent;

namespace {

/// Knows what it has given, and gives no more than `most` bytes.
class counted : public std::pmr::memory_resource {
 public:
  std::size_t most = std::size_t(-1), bytes = 0;
  int calls = 0, wrong = 0;

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    if (bytes + size > most) throw std::bad_alloc();
    void* const p = std::pmr::new_delete_resource()->allocate(size, alignment);
    std::memset(p, 0xcd, size);
    given_[p] = {size, alignment};
    bytes += size, ++calls;
    return p;
  }
  void do_deallocate(void* p, std::size_t size, std::size_t alignment) override {
    auto const known = given_.find(p);
    if (known == given_.end() || known->second != std::pair(size, alignment)) ++wrong;
    else given_.erase(known);
    bytes -= size;
    std::pmr::new_delete_resource()->deallocate(p, size, alignment);
  }
  bool do_is_equal(memory_resource const& other) const noexcept override { return this == &other; }

  std::map<void*, std::pair<std::size_t, std::size_t>> given_;
};

struct model {
  std::vector<ds::half> value = std::vector<ds::half>(5000, ds::half(1.f)), gradient = value;
  ds::parameters<ds::half> list() {
    ds::parameters<ds::half> p;
    p.add("a", value.data(), gradient.data(), 4500);
    p.add("b", value.data() + 4500, gradient.data() + 4500, 500);
    return p;
  }
};
template <class... Ps> auto make(model& m, Ps const&... policies) {
  return ds::optimizer{m.list(), ds::adamw{.lr = 0.01}, ds::master<float>{}, ds::ema{.decay = 0.5}, policies...};
}

}  // namespace

TEST_CASE("memory_from: every buffer comes from the resource and goes back to it, and no bit depends on it") {
  counted resource;
  model plain, ours;
  auto a = make(plain);
  {
    auto b = make(ours, ds::memory_from{&resource});
    CHECK(resource.calls == 4);  // m, v, master, average
    CHECK(std::int64_t(resource.bytes) >= b.memory().bytes);
    CHECK(std::int64_t(resource.bytes) < b.memory().bytes + 4 * 64 * 2 * 4);  // tensors are padded to 64 elements
    for (int t = 0; t < 3; ++t) a.step(), b.step();
    for (int i = 0; i < 2; ++i) a.swap_average(), b.swap_average();
    CHECK(resource.calls == 5);  // the saved values
    CHECK(std::memcmp(plain.value.data(), ours.value.data(), 5000 * sizeof(ds::half)) == 0);
    auto const moved = std::move(b);
    CHECK(resource.bytes > 0);
  }
  CHECK(resource.bytes == 0);
  CHECK(resource.wrong == 0);
}

TEST_CASE("memory_from: what an exhausted resource throws is passed on, and nothing is lost or changed") {
  model m;
  for (std::size_t most : {0, 20'000, 30'000, 50'000}) {
    counted resource;
    resource.most = most;
    CHECK_THROWS_AS(make(m, ds::memory_from{&resource}), std::bad_alloc);
    CHECK(resource.bytes == 0);
  }
  counted resource;
  auto opt = make(m, ds::memory_from{&resource});
  opt.step();
  auto const before = m.value;
  resource.most = resource.bytes;
  CHECK_THROWS_AS(opt.swap_average(), std::bad_alloc);
  CHECK(std::memcmp(m.value.data(), before.data(), before.size() * sizeof(ds::half)) == 0);
  opt.step();
  CHECK(opt.report().step == 2);
}

TEST_CASE("memory_from: null is refused") {
  model m;
  CHECK(test::message([&] { make(m, ds::memory_from<counted>{}); }) == "memory_from: the pointer must not be null");
}
