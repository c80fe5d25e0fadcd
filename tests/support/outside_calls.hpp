// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/optimizer.hpp>
#include <descent/policies/gradient_factor_at.hpp>
#include <descent/policies/loss_at.hpp>
#include <descent/policies/memory_from.hpp>
#include <descent/policies/rows.hpp>
#include <descent/policies/state_in.hpp>
#include <descent/rules/polyak.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/training/qk_clip.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

/// Every call and constructor that takes an address, as a table: each with one address that can be replaced.
namespace test {

namespace ds = descent;

/// Memory of a backend, all of it valid: a parameter "w" of 4 x 3 floats, and what calls take.
struct outside_places {
  float *w, *g, *w2, *g2;  // 12 elements each, of two parameters
  float *state, *number;   // 12 elements and one
};

struct outside_call {
  std::string name;
  std::int64_t elements, size;  // of an element, which is its alignment
  bool takes_null;   // null says: nothing
  void* in_use;      // where the address may not be, as steps write there; null if it may be anywhere
  std::function<void(void*)> with;
};

/// Resource: a class whose member `at` is what allocate() returns.
template <class Resource, class... Backend>
std::vector<outside_call> outside_calls(outside_places const& x, Backend... backend) {
  auto const list = [](float* w, float* g) {
    ds::parameters<float> params;
    params.add("w", w, g, ds::shape{4, 3});
    return params;
  };
  auto const plain = [=] {
    return ds::optimizer{list(x.w, x.g), ds::sgd{.momentum = 0.5}, ds::on_plateau{}, ds::masked_rows{}, backend...};
  };
  auto const given = [=](ds::state_memory const& memory, float* w, float* g) {
    return ds::optimizer{list(w, g), ds::sgd{.momentum = 0.5}, ds::state_in{&memory, true}, backend...};
  };
  auto const pointed = [=](float const* loss, float const* factor) {
    return ds::optimizer{list(x.w, x.g), ds::polyak{}, ds::loss_at{loss}, ds::gradient_factor_at{factor}, backend...};
  };
  auto const moved = [=](float* w, float* g) { plain().rebind(list(w, g)); };
  auto const loaded = [=](auto const& answer) {
    auto opt = plain();
    opt.load([&](std::string const& name, auto elements) {
      using element = std::remove_const_t<typename decltype(elements)::value_type>;
      using span = std::span<element const>;
      if constexpr (std::is_same_v<element, float>)
        if (name == "w.state.b") return span(static_cast<float const*>(answer), elements.size());
      return span(elements.data(), elements.size());
    });
  };
  using i32 = std::int32_t;
  using i64 = std::int64_t;
  auto const as = []<class T>(std::type_identity<T>, void* p) { return static_cast<T*>(p); };
  constexpr std::type_identity<float> f;
  return {
      {"add: value", 12, 4, false, x.g + 2,
       [=](void* p) { ds::optimizer{list(as(f, p), x.g), ds::sgd{}, backend...}; }},
      {"add: gradient", 12, 4, false, x.w + 2,
       [=](void* p) { ds::optimizer{list(x.w, as(f, p)), ds::sgd{}, backend...}; }},
      {"rebind: value", 12, 4, false, x.g2 + 2, [=](void* p) { moved(as(f, p), x.g2); }},
      {"rebind: gradient", 12, 4, false, x.w2 + 2, [=](void* p) { moved(x.w2, as(f, p)); }},
      {"state_in", 12, 4, false, x.g + 2,
       [=](void* p) {
         ds::state_memory memory;
         memory.add("w.state.b", as(f, p));
         given(memory, x.w, x.g);
       }},
      {"rebind: value beside state_in", 12, 4, false, x.state + 2,
       [=](void* p) {
         ds::state_memory memory;
         memory.add("w.state.b", x.state);
         given(memory, x.w2, x.g2).rebind(list(as(f, p), x.g2));
       }},
      {"loss_at", 1, 4, false, x.w + 2, [=](void* p) { pointed(as(f, p), x.number); }},
      {"gradient_factor_at", 1, 4, false, x.w + 2, [=](void* p) { pointed(x.number, as(f, p)); }},
      {"observe", 1, 4, false, x.w + 2, [=](void* p) { plain().observe(as(f, p)); }},
      {"scale_rows", 2, 4, false, x.w + 2, [=](void* p) { plain().scale_rows("w", as(f, p), 2, ds::qk_clip{}); }},
      {"select_rows: mask", 4, 1, true, x.w + 2,
       [=](void* p) { plain().select_rows("w", static_cast<std::uint8_t const*>(p)); }},
      {"select_rows: int32", 2, 4, false, x.w + 2,
       [=](void* p) { plain().select_rows("w", static_cast<i32 const*>(p), 2); }},
      {"select_rows: int64", 1, 8, false, x.w + 2,
       [=](void* p) { plain().select_rows("w", static_cast<i64 const*>(p), 1); }},
      {"gathered", 4, 8, false, nullptr,
       [=](void* p) { static_cast<void>(plain().gathered(list(x.w2, x.g2), {{"w", static_cast<i64 const*>(p)}})); }},
      {"set_state", 12, 4, false, nullptr,
       [=](void* p) { plain().template set_state<0>("w", std::span<float const>(as(f, p), 12)); }},
      {"load", 12, 1, false, nullptr, [=](void* p) { loaded(p); }},
      {"memory_from", 1, 128, false, nullptr,
       [=](void* p) {
         Resource from{p};
         ds::optimizer{list(x.w, x.g), ds::sgd{.momentum = 0.5}, ds::memory_from{&from}, backend...};
       }},
  };
}

}  // namespace test
