// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/packet.hpp>
#include <descent/policies/storage.hpp>

#include <doctest/doctest.h>

#include "all_rules.hpp"
#include "larger.hpp"
#include "oracle.hpp"
#include "ulp.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// One rule in combinations of storage types, value x gradient x state x (no master or one), with the function that
/// both backends call for each packet, compared with the rule in double.
namespace test {

template <class Rule> struct combination {
  using terms = typename Rule::template terms<double>;
  format value, gradient, exact, state;  // exact: the master, or the value
  bool has_master, in_float;
  void (*update)(void* value, void const* gradient, void* exact, void* const* slots, int n, terms const&);

  std::string name() const {
    return "value " + value.name + ", gradient " + gradient.name + ", master " + (has_master ? exact.name : "none") +
           ", state " + state.name;
  }
};

/// Stores a number that the type holds exactly.
inline void put(format const& f, void* p, std::size_t i, double x) {
  if (f == format_of<double>) static_cast<double*>(p)[i] = x;
  else if (f == format_of<float>) static_cast<float*>(p)[i] = float(x);
  else if (f == format_of<descent::half>) static_cast<descent::half*>(p)[i] = descent::narrow<descent::half>(x);
  else static_cast<descent::bfloat16*>(p)[i] = descent::narrow<descent::bfloat16>(x);
}

template <class Plan>
void update_packets(void* value, void const* gradient, void* exact, void* const* slots, int n,
                    typename Plan::rule::template terms<double> const& k) {
  using rule = typename Plan::rule;
  using real = typename Plan::real;
  descent::detail::buffers<Plan> x{static_cast<typename Plan::value*>(value),
                                   static_cast<typename Plan::gradient*>(const_cast<void*>(gradient)),
                                   static_cast<typename Plan::master_or_value*>(exact),
                                   {},
                                   {}};
  for (std::size_t s = 0; s < Plan::slots; ++s) x.slot[s] = slots[s];
  auto const unit = descent::detail::narrowed<rule, real>(k, 1, false);
  for (int i = 0; i < n; i += 8)
    descent::detail::update_packet<Plan, real>(x, i, {n - i < 8 ? n - i : 8, n - i >= 8}, real(1), unit.terms);
}

/// The storage types, which the numbers below stand for.
using storage_types = std::tuple<double, float, descent::half, descent::bfloat16>;

/// The finite field of four elements, for choosing combinations in which any two types meet.
constexpr int twice(int x) { return x == 0 ? 0 : x % 3 + 1; }

struct chosen_types { int value, gradient, state, master; };  // -1: no master

/// Every combination without a master and every one without a double. Of those with a double and a master, only enough
/// that any three of the four choices meet, to limit compile time; there the arithmetic is the oracle's. If `every` is
/// false, enough that any two meet, with and without a master.
template <bool Every> constexpr auto chosen_combinations() {
  constexpr auto all = [](auto f) {
    for (int v = 0; v < 4; ++v)
      for (int g = 0; g < 4; ++g)
        for (int s = 0; s < 4; ++s) {
          bool const meet = s == (v ^ g);
          if (Every || meet) f(chosen_types{v, g, s, -1});
          for (int m = 0; m < 4; ++m) {
            bool const thorough = (v && g && s && m) || (v + g + s + m) % 4 == 0;
            if (Every ? thorough : meet && m == (v ^ twice(g))) f(chosen_types{v, g, s, m});
          }
        }
  };
  constexpr std::size_t count = [all] {
    std::size_t n = 0;
    all([&](chosen_types) { ++n; });
    return n;
  }();
  std::array<chosen_types, count> chosen{};
  std::size_t n = 0;
  all([&](chosen_types c) { chosen[n++] = c; });
  return chosen;
}

template <class Rule, int Value, int Gradient, int State, int Master> combination<Rule> combine() {
  using value = std::tuple_element_t<Value, storage_types>;
  using gradient = std::tuple_element_t<Gradient, storage_types>;
  using state = std::tuple_element_t<State, storage_types>;
  using plan = typename decltype([] {
    if constexpr (Master < 0)
      return std::type_identity<descent::detail::plan<value, gradient, Rule, descent::states<state>>>{};
    else
      return std::type_identity<descent::detail::plan<value, gradient, Rule, descent::states<state>,
                                                      descent::master<std::tuple_element_t<Master, storage_types>>>>{};
  }())::type;
  return {format_of<value>,    format_of<gradient>, format_of<typename plan::master_or_value>,
          format_of<state>,    plan::has_master,    std::is_same_v<typename plan::real, float>,
          update_packets<plan>};
}

template <class Rule> std::vector<combination<Rule>> storage_product() {
  static constexpr auto chosen = chosen_combinations<in_every_storage<Rule>>();
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return std::vector<combination<Rule>>{
        combine<Rule, chosen[I].value, chosen[I].gradient, chosen[I].state, chosen[I].master>()...};
  }(std::make_index_sequence<chosen.size()>());
}

/// The worst results of a run.
struct worst_seen {
  double ulps = 0;     // of one step, from what was stored before it
  double drift = 0;    // after all steps, from the rule that ran in double all the time
  bool casts = true;   // whether the value was always the rounded master
  bool stayed = true;  // whether memory beyond the last element is unchanged
};

constexpr std::size_t run_length = 13;  // elements: a packet and a part of one
constexpr int run_steps = 1000;

/// The initial members of the state.
template <class Rule> std::vector<double> first_state(Rule const& rule, double p) {
  oracle<Rule> o{rule};
  o.add({p});
  auto const* s = reinterpret_cast<double const*>(o.tensors[0].s.data());
  return {s, s + descent::detail::members<Rule::template state>};
}

/// Runs one combination. `ran` is the rule in double after the same steps.
template <class Rule>
worst_seen run(Rule const& rule, combination<Rule> const& c, oracle<Rule> const& ran) {
  constexpr std::size_t n = run_length, room = 16;
  constexpr std::size_t slots = descent::detail::members<Rule::template state>;
  oracle<Rule> from_stored(rule);
  from_stored.add(std::vector<double>(n));
  auto& x = from_stored.tensors[0];
  auto const member = [&](std::size_t i, std::size_t s) -> double& { return reinterpret_cast<double*>(&x.s[i])[s]; };

  struct stream { alignas(16) std::byte bytes[8 * room]; };  // of any type
  stream value[1], gradients[1], master[1], slot[slots + 1];
  void* stored[slots + 1] = {};
  stream* const exact = c.has_master ? master : value;
  for (std::size_t s = 0; s < slots; ++s) {
    stored[s] = slot + s;
    if constexpr (descent::has_optional_state<Rule>)
      if (!rule.uses(s)) stored[s] = nullptr;
  }
  for (std::size_t i = 0; i < room; ++i) {
    put(c.value, value, i, start(0, i));
    put(c.exact, exact, i, start(0, i));
    for (std::size_t s = 0; s < slots; ++s) put(c.state, slot + s, i, first_state(rule, start(0, i))[s]);
  }

  worst_seen seen;
  for (int t = 1; t <= run_steps; ++t) {
    double before[n], state_before[n][slots + 1];
    for (std::size_t i = 0; i < n; ++i) {
      x.p[i] = before[i] = c.exact.get(exact, i);
      x.g[i] = gradient(0, i, t);
      for (std::size_t s = 0; s < slots; ++s)
        member(i, s) = state_before[i][s] = stored[s] ? c.state.get(slot + s, i) : 0;
    }
    for (std::size_t i = 0; i < room; ++i) put(c.gradient, gradients, i, gradient(0, i, t));
    from_stored.step();
    c.update(value, gradients, exact, stored, int(n), from_stored.used[0]);

    auto const near = [&](format const& f, double got, double expected, double old) {
      seen.ulps = std::max(seen.ulps, ulps(f, got, rounded(f, expected), old));
    };
    for (std::size_t i = 0; i < n; ++i) {
      double const p = c.exact.get(exact, i);
      near(c.exact, p, x.p[i], before[i]);
      seen.casts &= c.value.get(value, i) == rounded(c.value, p);
      for (std::size_t s = 0; s < slots; ++s)
        if (stored[s]) near(c.state, c.state.get(slot + s, i), member(i, s), state_before[i][s]);
    }
  }

  for (std::size_t i = 0; i < n; ++i)
    seen.drift = larger(seen.drift, std::abs(c.exact.get(exact, i) - ran.tensors[0].p[i]));
  for (std::size_t i = n; i < room; ++i)
    seen.stayed &= c.exact.get(exact, i) == start(0, i) && c.value.get(value, i) == start(0, i);
  for (std::size_t i = n; i < room; ++i)
    for (std::size_t s = 0; s < slots; ++s)
      seen.stayed &= c.state.get(slot + s, i) == rounded(c.state, first_state(rule, start(0, i))[s]);
  return seen;
}

/// How far 1000 steps may end from the rule in double; values stay below 2 and move by 0.02 to 2. A step of about half
/// an ulp of the stored value is lost or doubled: with 16 bits and no wider master, the rule can only be required to
/// stay near. A 16-bit state errs by its own rounding.
inline double most_drift(format const& exact, format const& state) {
  if (exact == format_of<descent::bfloat16>) return 0.75;
  if (exact == format_of<descent::half>) return 0.25;
  if (state == format_of<descent::bfloat16>) return 0.02;
  if (state == format_of<descent::half>) return 0.005;
  if (exact == format_of<float>) return 2e-5;
  return state == format_of<float> ? 1e-6 : 1e-12;
}

/// All settings of a rule in all combinations of types.
template <class Rule> void check_storage() {
  auto const combinations = storage_product<Rule>();
  CHECK(combinations.size() >= (in_every_storage<Rule> ? 4 * 4 * 4 + 3 * 3 * 3 * 3 : 32));
  bool is_in_list = false;
  each_setting<Rule>([&](auto const& row) {
    is_in_list = true;
    oracle<Rule> ran(row.rule);
    std::vector<double> p;
    for (std::size_t i = 0; i < run_length; ++i) p.push_back(start(0, i));
    ran.add(p);
    auto& x = ran.tensors[0];
    for (int t = 1; t <= run_steps; ++t) {
      for (std::size_t i = 0; i < run_length; ++i) x.g[i] = gradient(0, i, t);
      ran.step();
    }
    for (auto const& c : combinations) {
      INFO(row.name, ": ", c.name());
      worst_seen const seen = run(row.rule, c, ran);
      CHECK(seen.ulps <= (c.in_float ? most_ulps<Rule> : 1));
      CHECK(seen.drift <= most_drift(c.exact, c.state));
      CHECK(seen.casts);
      CHECK(seen.stayed);
    }
  });
  CHECK(is_in_list);
}

}  // namespace test
