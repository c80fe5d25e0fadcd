// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/engine/host/chunk_pass.hpp>
#include <descent/engine/step/packet.hpp>
#include <descent/engine/step/plan.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/storage.hpp>

#include <doctest/doctest.h>

#include "support/all_rules.hpp"
#include "support/problem.hpp"
#include "support/sizes.hpp"
#include "support/ulp.hpp"

#include <array>
#include <cmath>
#include <iterator>
#include <limits>

/// Eight floats at once against one after another: the same bits for any numbers. This needs a compiler that does not
/// fuse multiply-add, as for x86-64 without further flags. Any two NaNs count as the same.

using namespace test;
namespace ds = descent;
namespace dt = descent::detail;

namespace {

/// Numbers that arithmetic treats specially.
float special(std::size_t i) {
  using limits = std::numeric_limits<float>;
  float const all[] = {0.f,
                       -0.f,
                       limits::infinity(),
                       -limits::infinity(),
                       limits::quiet_NaN(),
                       limits::denorm_min(),
                       -limits::denorm_min(),
                       limits::min(),
                       3e-39f,
                       limits::max(),
                       -limits::max(),
                       65504.f,
                       65519.f,
                       65520.f,
                       6e-8f,
                       3e-8f,
                       2.98e-8f,
                       1.f,
                       1.00390625f,
                       1.01171875f,
                       -1e-30f,
                       1e30f};
  return all[i % std::size(all)];
}

constexpr std::size_t n = 22 * 22 + 3;  // every pair of special numbers and part of a packet

/// All streams of one tensor.
template <class Plan> struct streams {
  static constexpr std::size_t slots = Plan::slots;
  std::array<typename Plan::value, n> value;
  std::array<typename Plan::gradient, n> gradient;
  std::array<typename Plan::master_or_value, n> master;
  std::array<std::array<typename Plan::template slot<0>, n>, slots> slot;

  explicit streams(bool specials) {
    for (std::size_t i = 0; i < n; ++i) {
      float const p = specials ? special(i) : float(noise(0, i, 0));
      value[i] = ds::narrow<typename Plan::value>(p);
      gradient[i] = ds::narrow<typename Plan::gradient>(specials ? special(i / 22) : float(noise(1, i, 0)));
      master[i] = ds::narrow<typename Plan::master_or_value>(p);
      for (std::size_t s = 0; s < slots; ++s)
        slot[s][i] = ds::narrow<typename Plan::template slot<0>>(specials ? special(i / 22 + i + s)
                                                                          : float(std::abs(noise(2 + s, i, 0))));
    }
  }

  dt::buffers<Plan> buffers() {
    dt::buffers<Plan> x{value.data(), gradient.data(), nullptr, {}, {}};
    if constexpr (Plan::has_master) x.master = master.data();
    else x.master = value.data();
    for (std::size_t s = 0; s < slots; ++s) x.slot[s] = slot[s].data();
    return x;
  }
};

template <class Plan> struct body {
  dt::buffers<Plan> x;
  dt::unit_terms<typename Plan::rule, float> u;
  bool start;

  template <class Real> void operator()(std::int64_t) const {
    typename Plan::rule::template terms<Real> k{};
    for (std::size_t i = 0; i < sizeof(u.terms) / sizeof(float); ++i)
      reinterpret_cast<Real*>(&k)[i] = Real(reinterpret_cast<float const*>(&u.terms)[i]);
    for (int i = 0; i < int(n); i += int(packet)) {
      int const left = int(n) - i;
      dt::packet_extent const e =
          left < int(packet) ? dt::packet_extent{left, false} : dt::packet_extent{int(packet), true};
      if (start) dt::start_packet<Plan, Real>(x, i, e, {});
      else dt::update_packet<Plan, Real>(x, i, e, Real(u.factor), k);
    }
  }
};

template <class T> std::size_t differences(std::array<T, n> const& a, std::array<T, n> const& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; ++i) count += !same(a[i], b[i]);
  return count;
}

template <class Rule> auto third_terms(Rule const& rule) {
  if constexpr (requires { rule.at(3); }) {
    return rule.at(3);
  } else {
    typename Rule::memory memory;
    for (int t = 1; t < 3; ++t) rule.at(t, memory);
    return rule.at(3, memory);
  }
}

template <class Value, class Gradient, class State, class... Master, class Rule>
void compare(row<Rule> const& row) {
  using plan = dt::plan<Value, Gradient, Rule, ds::states<State>, ds::clip_norm, ds::master<Master>...>;
  static_assert(std::is_same_v<typename plan::real, float>);
  for (bool start : {false, true})
    for (bool specials : {false, true}) {
      INFO(row.name, ": value ", format_of<Value>.name, ", gradient ", format_of<Gradient>.name, ", state ",
           format_of<State>.name, ", master ", plan::has_master, ", special ", specials, ", start ", start);
      streams<plan> one(specials), eight(specials);
      auto const u = dt::narrowed<Rule, float>(third_terms(row.rule), 0.75, false);
      body<plan> const of_one{one.buffers(), u, start}, of_eight{eight.buffers(), u, start};
      dt::chunk_pass<float, body<plan>>{&of_one, false}(0);
      dt::chunk_pass<float, body<plan>>{&of_eight, true}(0);
      CHECK(differences(one.value, eight.value) == 0);
      CHECK(differences(one.master, eight.master) == 0);
      for (std::size_t s = 0; s < plan::slots; ++s) CHECK(differences(one.slot[s], eight.slot[s]) == 0);
    }
}

}  // namespace

TEST_CASE("every rule: packs of eight floats give the same bits as one float after the other") {
  if (!dt::has_lanes()) {
    MESSAGE("not tried: this processor has no AVX2");
    return;
  }
  each_rule([](auto const& row) {
    compare<float, float, float>(row);
    compare<float, ds::bfloat16, ds::half>(row);
    compare<ds::half, ds::half, ds::bfloat16>(row);
    compare<ds::bfloat16, float, ds::half>(row);
    compare<ds::half, ds::bfloat16, float, float>(row);
    compare<ds::bfloat16, ds::half, ds::bfloat16, ds::half>(row);
    compare<float, ds::half, float, ds::bfloat16>(row);
  });
}
