// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Addresses that come from outside: null, misaligned, overlapping, out of reach. gpu/outside_test.cu does the same on a
// device.
#include <descent/adapters/dlpack.hpp>
#include <descent/minimizers/esgd.hpp>
#include <descent/minimizers/lbfgs.hpp>

#include "support/message.hpp"
#include "support/outside_calls.hpp"

#include <doctest/doctest.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

namespace ds = descent;
using test::message;

namespace {

struct resource {
  void* at;
  void* allocate(std::size_t, std::size_t) const { return at; }
  void deallocate(void*, std::size_t, std::size_t) const {}
};

struct arrays {
  std::vector<float> w = std::vector<float>(12, 1.f), g = w, w2 = w, g2 = w, state = w, number = {1.f};
  test::outside_places places() { return {w.data(), g.data(), w2.data(), g2.data(), state.data(), number.data()}; }
  bool untouched() const {
    auto const is_one = [](float x) { return x == 1; };
    for (auto const* each : {&w, &g, &w2, &g2, &state, &number})
      if (!std::all_of(each->begin(), each->end(), is_one)) return false;
    return true;
  }
};

/// Two pages, of which only the first can be accessed.
struct edge {
  static constexpr std::size_t page = 65536;  // at least one
  std::byte* at =
      static_cast<std::byte*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  edge() { REQUIRE(mprotect(at + page, page, PROT_NONE) == 0); }
  ~edge() { munmap(at, 2 * page); }
};

}  // namespace

TEST_CASE("an address from outside is refused with a sentence if it is null, misaligned, overlapping or out of reach") {
  arrays x;
  edge const pages;
  for (auto const& call : test::outside_calls<resource>(x.places())) {
    CAPTURE(call.name);
    auto const said = [&](void* p) { return message([&] { call.with(p); }); };
    auto const has = [](std::string const& text, char const* word) { return text.find(word) != text.npos; };
    if (call.name == "memory_from") CHECK_THROWS_AS(call.with(nullptr), std::bad_alloc);
    else if (call.name != "load") CHECK(has(said(nullptr), "null") == !call.takes_null);  // no elements are no answer
    alignas(128) char room[1024] = {};
    if (call.size > 1) CHECK(has(said(room + call.size / 2), "must be aligned to "));
    if (call.in_use) CHECK(has(said(call.in_use), "overlaps"));
    std::string const far = said(pages.at + edge::page);
    CHECK(has(far, "is not host memory: there is none at 0x"));
    CHECK(has(far, "for device memory use the backend cuda{stream}"));
    std::byte* const last = pages.at + edge::page - call.size;
    if (call.elements > 1) CHECK(has(said(last), "but the memory there ends before"));
    CHECK(x.untouched());
    if (call.in_use) CHECK(said(pages.at) == "");
  }
}

TEST_CASE("new addresses may not overlap with what the optimizer owns, or what it reads at each step") {
  arrays x;
  std::uint8_t const mask[4] = {1, 0, 1, 0};
  auto const list = [](float* w, float* g) {
    ds::parameters<float> params;
    params.add("w", w, g, ds::shape{4, 3});
    return params;
  };
  ds::optimizer opt{list(x.w.data(), x.g.data()), ds::sgd{.momentum = 0.5}, ds::masked_rows{},
                    ds::gradient_factor_at{x.number.data()}};
  auto const refused = [&](float* w) { return message([&] { opt.rebind(list(w, x.g2.data())); }); };
  CHECK(refused(const_cast<float*>(opt.state<0>("w").data())).find("overlaps what the optimizer owns in memory") !=
        std::string::npos);
  opt.select_rows("w", reinterpret_cast<std::uint8_t const*>(x.w2.data() + 6));
  CHECK(refused(x.w2.data()) == "select_rows of 'w': the mask overlaps the value of 'w' in memory");
  opt.select_rows("w", mask);
  CHECK(refused(x.w2.data()) == "");
  x.g2.assign(12, 1.f);
  opt.step();
  CHECK(x.w == std::vector<float>(12, 1.f));
  CHECK(x.w2[0] < 1);
  CHECK(message([&] { opt.select_rows("w", reinterpret_cast<std::uint8_t const*>(x.w2.data())); }).find("overlaps") !=
        std::string::npos);
  CHECK(message([&] { opt.select_rows("w", reinterpret_cast<std::uint8_t const*>(x.w.data())); }) == "");
}

TEST_CASE("a count that is too large is reported in bytes; minimizers and DLPack check addresses in the same way") {
  edge const pages;
  arrays x;
  auto* const last = reinterpret_cast<float*>(pages.at + edge::page) - 3;
  ds::parameters<float> params;
  params.add("w", last, x.g.data(), 12);
  auto const ends = [](std::string const& said) {
    return said.starts_with("parameter 'w': its value has 12 elements, 48 bytes from 0x") &&
           said.ends_with(" on, but the memory there ends before");
  };
  CHECK(ends(message([&] { ds::optimizer opt{params, ds::sgd{}}; })));
  CHECK(ends(message([&] { ds::lbfgs_optimizer opt{params, ds::lbfgs{}}; })));
  CHECK(ends(message([&] { ds::esgd_optimizer opt{params, std::vector{ds::sgd{}}, ds::esgd{}}; })));

  std::int64_t const shape[] = {4, 3};
  struct tensor {
    void* data;
    struct { int device_type, device_id; } device;
    int ndim;
    struct { std::uint8_t code, bits; std::uint16_t lanes; } dtype;
    std::int64_t const* shape;
    std::int64_t const* strides;
    std::uint64_t byte_offset;
  } const there{x.w.data(), {1, 0}, 2, {2, 32, 1}, shape, nullptr, 0},
      null{nullptr, {1, 0}, 2, {2, 32, 1}, shape, nullptr, 64};
  ds::parameters<float> from;
  CHECK(message([&] { ds::add_dlpack(from, "w", there, null); }) ==
        "parameter 'w': the gradient is null, but there must be 12 elements");
  CHECK(message([&] { ds::add_dlpack(from, "w", null, there); }) ==
        "parameter 'w': the value is null, but there must be 12 elements");
}
