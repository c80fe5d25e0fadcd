// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Everything that an optimizer owns can be read and restored, and the run continues from there to the bit.
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/rows.hpp>
#include <descent/policies/storage.hpp>
#include <descent/presets/amp.hpp>
#include <descent/rules/adagrad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/transforms/chain.hpp>
#include <descent/transforms/parts.hpp>

#include <doctest/doctest.h>
#include "support/counted.hpp"
#include "support/message.hpp"
#include "support/own_policies.hpp"
#include "support/ranks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ds = descent;
using ds::half, ds::bfloat16;

namespace {

std::string const names[] = {"W", "b"};

/// A rule that does not name its state.
struct unnamed_momentum {
  double lr = 0.1;

  template <class Real> struct state { Real b; };
  template <class Real> struct terms { Real lr; };
  DESCENT_HD terms<double> at(std::int64_t) const { return {lr}; }
  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.b = g + s.b;
    return p - k.lr * s.b;
  }
};

template <class Value> struct model {
  std::vector<Value> values[2]{std::vector<Value>(300), std::vector<Value>(5)};
  std::vector<Value> gradients[2]{std::vector<Value>(300), std::vector<Value>(5)};

  model() {
    for (auto& v : values)
      for (std::size_t i = 0; i < v.size(); ++i) v[i] = ds::narrow<Value>(std::sin(1.7f * float(i + 1)));
  }
  ds::parameters<Value> parameters(bool turned = false) {
    ds::parameters<Value> p;
    if (turned) p.add(names[1], values[1].data(), gradients[1].data(), 5, ds::group{1});
    p.add(names[0], values[0].data(), gradients[0].data(), ds::shape{60, 5});
    if (!turned) p.add(names[1], values[1].data(), gradients[1].data(), 5, ds::group{1});
    return p;
  }
  void backward(int t, float scale) {
    for (int k = 0; k < 2; ++k)
      for (std::size_t i = 0; i < gradients[k].size(); ++i)
        gradients[k][i] = ds::narrow<Value>(
            scale * (0.1f * ds::widen<float>(values[k][i]) + 0.01f * std::cos(float(t) * 3.1f + float(i) * 0.7f)));
  }
  bool same(model const& o) const {
    for (int k = 0; k < 2; ++k)
      if (std::memcmp(values[k].data(), o.values[k].data(), values[k].size() * sizeof(Value)) != 0) return false;
    return true;
  }
};

template <class Opt, class Value> void train(Opt& opt, model<Value>& m, int from, int to) {
  for (int t = from; t <= to; ++t) m.backward(t, float(opt.loss_scale())), opt.step();
}

/// Fourteen steps in one run, and in two with everything restored between them, through vectors as from a file.
template <class Value, class Make, class Restore> void goes_on(Make const& make, Restore const& restore) {
  model<Value> a;
  auto first = make(a);
  train(first, a, 1, 7);
  model<Value> b = a;
  auto second = make(b), without = make(b);
  restore(first, second);
  second.set_step(first.report().step);
  without.set_step(first.report().step);
  train(first, a, 8, 14);
  model<Value> c = b;
  train(second, b, 8, 14);
  CHECK(a.same(b));
  b = c;
  train(without, b, 8, 14);
  CHECK_FALSE(a.same(b));  // so restoring was needed
}

template <class T> std::vector<std::remove_const_t<T>> copy(std::span<T> x) { return {x.begin(), x.end()}; }

// snippet: saved
using file = std::map<std::string, std::vector<std::byte>>;

file saved(auto const& opt) {
  file all;
  opt.save([&](std::string const& name, auto elements) {
    all[name].resize(elements.size_bytes());
    std::memcpy(all[name].data(), elements.data(), elements.size_bytes());  // on a GPU cudaMemcpy, cudaMemcpyDefault
  });
  return all;
}

void load(auto& opt, file const& all) {
  auto const piece = [&]<class T>(std::string const& name, std::span<T const>) {
    auto const& bytes = all.at(name);
    if (bytes.size() % sizeof(T) != 0)
      throw std::invalid_argument("'" + name + "' has " + std::to_string(bytes.size()) + " bytes, no multiple of " +
                                  std::to_string(sizeof(T)));
    std::vector<T> elements(bytes.size() / sizeof(T));  // load() compares their number
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(elements)).begin());
    return elements;  // or a span of memory that is there already
  };
  std::vector<std::string> names;
  for (auto const& [name, bytes] : all) names.push_back(name);
  opt.load(piece, names);  // refuses a file in which pieces are missing, or left over
}
// end
std::vector<std::string> names_in(file const& all) {
  std::vector<std::string> names;
  for (auto const& [name, _] : all) names.push_back(name);
  return names;
}

/// A run saved as a whole continues to the bit, and its pieces have these names.
template <class Value, class Make> void goes_on_from_file(Make const& make, std::vector<std::string> const& pieces) {
  goes_on<Value>(make, [&](auto const& from, auto& to) {
    auto const all = saved(from);
    CHECK(names_in(all) == pieces);
    load(to, all);
    CHECK(saved(to) == all);
  });
}

}  // namespace

TEST_CASE("checkpoint: masters, state, averages, slow weights, outer momentum and scale are restored bit for bit") {
  goes_on<half>(
      [](model<half>& m) {
        return ds::optimizer{m.parameters(), ds::adamw{.lr = 1e-2}, ds::master<float>{}, ds::states<float, bfloat16>{},
                             ds::ema{.decay = 0.9}, ds::outer{.every = 3},
                             ds::dynamic_loss_scale{.init = 64, .interval = 5}, ds::clip_norm{1}};
      },
      [](auto const& from, auto& to) {
        for (auto const& name : names) {
          to.set_master(name, copy(from.master(name)));
          to.template set_state<0>(name, copy(from.template state<0>(name)));
          to.template set_state<1>(name, from.template state<1>(name));
          to.set_average(name, copy(from.average(name)));
          to.set_slow(name, copy(from.slow(name)));
          to.set_outer_momentum(name, copy(from.outer_momentum(name)));
          CHECK(copy(to.average(name)) == copy(from.average(name)));
        }
        to.set_scale_state(from.scale_state());
      });
}

TEST_CASE("checkpoint: parameters behind the values are restored bit for bit") {
  goes_on<half>(
      [](model<half>& m) {
        return ds::optimizer{m.parameters(), ds::adamw{.lr = 1e-2}, ds::master<float>{}, ds::ema_nesterov{.start = 1}};
      },
      [](auto const& from, auto& to) {
        for (auto const& name : names) {
          to.set_master(name, copy(from.master(name)));
          to.template set_state<0>(name, copy(from.template state<0>(name)));
          to.template set_state<1>(name, copy(from.template state<1>(name)));
          to.set_slow(name, copy(from.slow(name)));
          to.set_outer_momentum(name, copy(from.outer_momentum(name)));
        }
      });
}

TEST_CASE("checkpoint: a remainder is restored bit for bit") {
  goes_on<bfloat16>(
      [](model<bfloat16>& m) { return ds::optimizer{m.parameters(), ds::sgd{.lr = 1e-2}, ds::master_remainder{}}; },
      [](auto const& from, auto& to) {
        for (auto const& name : names) to.set_remainder(name, copy(from.remainder(name)));
      });
}

TEST_CASE("checkpoint: a rule's memory for each group, each tensor and the model is restored") {
  auto const state = [](auto const& from, auto& to) {
    for (auto const& name : names) to.template set_state<0>(name, copy(from.template state<0>(name)));
  };
  SUBCASE("nadam, a number for each group") {
    goes_on<float>([](model<float>& m) { return ds::optimizer{m.parameters(), ds::nadam{}}; },
                   [&](auto const& from, auto& to) {
                     state(from, to);
                     for (auto const& name : names) to.template set_state<1>(name, from.template state<1>(name));
                     CHECK(from.rule_memory().size() == 2);
                     to.set_rule_memory(copy(from.rule_memory()));
                   });
  }
  SUBCASE("novograd, a norm for each tensor") {
    goes_on<float>([](model<float>& m) { return ds::optimizer{m.parameters(), ds::novograd{}}; },
                   [&](auto const& from, auto& to) { state(from, to), to.set_rule_memory(from.rule_memory()); });
  }
  SUBCASE("dog, which has its start besides") {
    goes_on<float>([](model<float>& m) { return ds::optimizer{m.parameters(), ds::dog{.reps = 1e-3}}; },
                   [&](auto const& from, auto& to) { state(from, to), to.set_rule_memory(from.rule_memory()); });
  }
}

TEST_CASE("checkpoint: the counts of rows are restored") {
  goes_on<float>(
      [](model<float>& m) { return ds::optimizer{m.parameters(), ds::adam{}, ds::masked_rows<ds::row_step::own>{}}; },
      [](auto const& from, auto& to) {
        for (auto const& name : names) {
          to.template set_state<0>(name, from.template state<0>(name));
          to.template set_state<1>(name, from.template state<1>(name));
          to.set_row_updates(name, copy(from.row_updates(name)));
        }
      });
}

TEST_CASE("checkpoint: another number of elements is refused, with the name and both numbers, and nothing is touched") {
  model<half> m;
  ds::optimizer opt{m.parameters(), ds::nadam{}, ds::master<float>{}, ds::ema{}};
  train(opt, m, 1, 2);
  std::vector<float> const saved(299);
  auto const before = copy(opt.master("W"));
  auto const says = [](auto const& f, std::string const& sentence) {
    CHECK_THROWS_WITH_AS(f(), sentence.c_str(), std::invalid_argument);
  };
  says([&] { opt.set_master("W", saved); }, "set_master of 'W': there are 300 elements, got 299");
  says([&] { opt.set_average("W", saved); }, "set_average of 'W': there are 300 elements, got 299");
  says([&] { opt.set_state<1>("W", saved); }, "set_state of 'W': there are 300 elements, got 299");
  says([&] { opt.set_rule_memory(std::vector<ds::nadam::memory>(3)); }, "set_rule_memory: there are 2 elements, got 3");
  says([&] { opt.set_master("V", saved); }, "there is no parameter 'V'");
  CHECK(copy(opt.master("W")) == before);
}

TEST_CASE("checkpoint: save() and load() resume any optimizer bit for bit") {
  SUBCASE("half, rounded at random from masters; averages, slow weights and a loss scale") {
    goes_on_from_file<half>(
        [](model<half>& m) {
          return ds::optimizer{
              m.parameters(),        ds::adamw{.lr = 1e-2}, ds::amp::O2{},           ds::swa{.start = 3, .every = 2},
              ds::lookahead{.k = 3}, ds::clip_norm{1},      ds::stochastic_values{2}};
        },
        {"W.average", "W.master", "W.slow", "W.state.m", "W.state.v", "b.average", "b.master", "b.slow", "b.state.m",
         "b.state.v", "loss_scale", "made_by", "step"});
  }
  SUBCASE("a count") {
    goes_on_from_file<bfloat16>(
        [](model<bfloat16>& m) {
          ds::chain const rule{ds::gradient_trace{}, test::mean_descent{}};
          ds::optimizer opt{m.parameters(), rule, ds::states<bfloat16, half>{}};  // of sum and b
          CHECK(opt.template state<2>("W").size_bytes() == 600);
          return opt;
        },
        {"W.state.n", "W.state.sum", "W.state.trace", "b.state.n", "b.state.sum", "b.state.trace", "made_by", "step"});
  }
  SUBCASE("policies of a user") {
    goes_on_from_file<float>(
        [](model<float>& m) {
          return ds::optimizer{m.parameters(), ds::sgd{.lr = 1e-2}, test::bounded_pull{}, test::late_mean{}};
        },
        {"W.average", "W.outer", "W.slow", "b.average", "b.outer", "b.slow", "made_by", "step"});
  }
  SUBCASE("a remainder, and a member of the state that this setting does not store") {
    goes_on_from_file<bfloat16>(
        [](model<bfloat16>& m) {
          return ds::optimizer{m.parameters(), ds::rmsprop{.lr = 1e-2}, ds::master_remainder{},
                               ds::gradient_noise{.eta = 0.1}};
        },
        {"W.remainder", "W.state.v", "b.remainder", "b.state.v", "made_by", "step"});
  }
  SUBCASE("stochastic rounding, a chain, a plateau") {
    goes_on_from_file<bfloat16>(
        [](model<bfloat16>& m) {
          return ds::optimizer{m.parameters(), ds::chain{ds::gradient_trace{.decay = 0.5}, ds::adam{.lr = 1e-2}},
                               ds::stochastic_rounding{}, ds::on_plateau{}};
        },
        {"W.state.m", "W.state.trace", "W.state.v", "b.state.m", "b.state.trace", "b.state.v", "made_by", "plateau",
         "step"});
  }
  SUBCASE("a rule that remembers, with sums and a start") {
    goes_on_from_file<float>([](model<float>& m) { return ds::optimizer{m.parameters(), ds::prodigy{.d0 = 1e-3}}; },
                             {"W.state.m", "W.state.p0", "W.state.s", "W.state.v", "b.state.m", "b.state.p0",
                              "b.state.s", "b.state.v", "made_by", "memory", "step"});
  }
  SUBCASE("rows that count their own updates") {
    goes_on_from_file<float>(
        [](model<float>& m) { return ds::optimizer{m.parameters(), ds::adam{}, ds::masked_rows<ds::row_step::own>{}}; },
        {"W.row_updates", "W.state.m", "W.state.v", "b.row_updates", "b.state.m", "b.state.v", "made_by", "step"});
  }
}

namespace {

/// Its memory has the type, and its state the name, of the other.
struct same_types {
  double lr = 0.1;

  template <class Real> struct state { Real memory; };
  template <class Real> struct terms { Real lr; };
  using memory = double;
  static constexpr char const* slots[] = {"memory"};

  terms<double> at(std::int64_t, memory& rate) const { return {lr * (rate += 1)}; }
  template <class Real> static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.memory = s.memory + g;
    return p - k.lr * s.memory;
  }
};

}  // namespace

TEST_CASE("checkpoint: a refused run leaves a state that has the type and the name of the rule's memory") {
  model<double> a;
  ds::optimizer opt{a.parameters(), same_types{}};
  train(opt, a, 1, 5);
  file const good = saved(opt);
  train(opt, a, 6, 7);
  opt.set_rule_memory(std::vector(2, std::numeric_limits<double>::infinity()));
  file const diverged = saved(opt);
  load(opt, good);
  CHECK_THROWS_AS(load(opt, diverged), std::invalid_argument);
  CHECK(saved(opt) == good);
}

TEST_CASE("checkpoint: a run is judged by the rule memory that it brings, not by the present one") {
  model<float> a;
  ds::optimizer opt{a.parameters(), ds::prodigy{.d0 = 1e-3}};
  train(opt, a, 1, 5);
  file const good = saved(opt);
  opt.set_rule_memory(std::vector(2, ds::prodigy::memory{1e39, 0}));  // not finite in float
  file const diverged = saved(opt);
  load(opt, good);
  CHECK(saved(opt) == good);
  CHECK_THROWS_AS(load(opt, diverged), std::invalid_argument);
  CHECK(saved(opt) == good);
}

TEST_CASE("checkpoint: load() finds pieces by name, whatever the order of parameters") {
  auto const check = [](auto rule) {
    model<float> a;
    ds::optimizer first{a.parameters(), rule};
    train(first, a, 1, 5);
    model<float> b = a;
    ds::optimizer second{b.parameters(true), rule};
    load(second, saved(first));
    train(first, a, 6, 9), train(second, b, 6, 9);
    CHECK(a.same(b));
  };
  check(ds::adamw{});
  check(ds::nadam{});
  check(ds::novograd{});  // keeps a norm of each tensor
}

TEST_CASE("checkpoint: of a thousand parameters, in another order too, each gets its own pieces") {
  int const count = 1000;
  std::vector<float> w(count), dw(count);
  auto const in_order = [&](bool turned) {
    ds::parameters<float> p;
    for (int i = 0; i < count; ++i) {
      int const k = turned ? count - 1 - i : i;
      p.add("layer." + std::to_string(k) + ".bias", &w[std::size_t(k)], &dw[std::size_t(k)], 1);
    }
    return p;
  };
  for (int i = 0; i < count; ++i) dw[std::size_t(i)] = float(i + 1);
  ds::sgd const rule{.lr = 0, .momentum = 0.5};
  ds::optimizer first{in_order(false), rule}, second{in_order(true), rule};
  first.step();
  load(second, saved(first));
  for (int i = 0; i < count; ++i) CHECK(second.state("layer." + std::to_string(i) + ".bias", "b")[0] == float(i + 1));
  auto cut = saved(first);
  std::erase_if(cut, [](auto const& piece) { return piece.first.starts_with("layer.12"); });
  cut["layer.9"] = cut.at("step");
  CHECK(test::message<std::exception>([&] { load(second, cut); }) ==
        "load: missing: 'layer.129.bias.state.b', 'layer.128.bias.state.b', 'layer.127.bias.state.b', "
        "'layer.126.bias.state.b', 'layer.125.bias.state.b', 'layer.124.bias.state.b', 'layer.123.bias.state.b', "
        "'layer.122.bias.state.b', 'layer.121.bias.state.b', 'layer.120.bias.state.b', 'layer.12.bias.state.b', left "
        "over: 'layer.9'");
  std::erase_if(cut, [](auto const& piece) { return piece.first.starts_with("layer.5"); });
  CHECK(test::message<std::exception>([&] { load(second, cut); }).find(" and 102 more, left") != std::string::npos);
  CHECK_THROWS_WITH_AS(second.state("layer.1000.bias", "b"), "there is no parameter 'layer.1000.bias'",
                       std::invalid_argument);
}

TEST_CASE("checkpoint: tensors of two types, of which one is its own master, and of no element") {
  std::vector<half> w(40, half(0.5f)), dw(40);
  std::vector<float> b(7, 0.25f), db(7);
  auto const list = [](auto& w, auto& dw, auto& b, auto& db) {
    ds::parameters<ds::mixed<half, float>> p;
    p.add("w", w.data(), dw.data(), w.size());
    p.add("none", static_cast<half*>(nullptr), static_cast<half*>(nullptr), 0);
    p.add("b", b.data(), db.data(), b.size());
    return p;
  };
  auto const go_on = [](auto& opt, auto& dw, auto& db, int from, int to) {
    for (int t = from; t <= to; ++t) {
      for (std::size_t i = 0; i < dw.size(); ++i) dw[i] = half(0.01f * float(t) * float(i % 5));
      for (std::size_t i = 0; i < db.size(); ++i) db[i] = 0.02f * float(t) * float(i % 3);
      opt.step();
    }
  };
  ds::optimizer first{list(w, dw, b, db), ds::adamw{.lr = 1e-2}, ds::master<float>{}, ds::ema{.decay = 0.5}};
  go_on(first, dw, db, 1, 3);
  auto v = w, dv = dw;
  auto c = b, dc = db;
  ds::optimizer second{list(v, dv, c, dc), ds::adamw{.lr = 1e-2}, ds::master<float>{}, ds::ema{.decay = 0.5}};
  auto const all = saved(first);
  CHECK(names_in(all) == std::vector<std::string>{"b.average", "b.master", "b.state.m", "b.state.v", "made_by", "step",
                                                  "w.average", "w.master", "w.state.m", "w.state.v"});
  load(second, all);
  go_on(first, dw, db, 4, 6), go_on(second, dv, dc, 4, 6);
  CHECK(std::memcmp(v.data(), w.data(), w.size() * sizeof(half)) == 0);
  CHECK(c == b);
  CHECK(saved(second) == saved(first));
}

TEST_CASE("checkpoint: each rank saves and loads what it owns, all or its own shard") {
  ranks::on_both(2, [](auto&, auto policy) {
    auto const make = [&](model<half>& m) {
      return ds::optimizer{m.parameters(), ds::adamw{.lr = 1e-2}, ds::master<float>{}, ds::clip_norm{1}, policy};
    };
    model<half> a;
    auto first = make(a);
    train(first, a, 1, 5);
    model<half> b = a;
    auto second = make(b);
    auto const all = saved(first);
    CHECK(all.at("made_by").size() == std::string("adamw, state float, master float").size());  // nothing about ranks
    load(second, all);
    train(first, a, 6, 9), train(second, b, 6, 9);
    CHECK(a.same(b));
  });
}

TEST_CASE("checkpoint: load() changes nothing when a piece is missing, too short or out of range") {
  model<half> m;
  ds::optimizer opt{m.parameters(), ds::adamw{.lr = 1e-2}, ds::amp::O2{}, ds::on_plateau{}};
  train(opt, m, 1, 4);
  auto const good = saved(opt);
  train(opt, m, 5, 6);
  auto const before = saved(opt);
  auto const says = [&](file const& all, std::string const& sentence) {
    auto const said = test::message<std::exception>([&] { load(opt, all); });
    CHECK(said.find(sentence) != std::string::npos);
    CHECK(saved(opt) == before);
  };
  auto const with = [&](std::string const& name, auto const& x) {
    file all = good;
    auto const bytes = std::as_bytes(std::span(x));
    all.at(name).assign(bytes.begin(), bytes.end());
    return all;
  };
  file others = good;
  others["step 2"] = good.at("step");
  says(others, "load: left over: 'step 2'");
  others.erase("step 2"), others.erase("b.state.v");
  says(others, "load: missing: 'b.state.v'");
  others["V.state.v"] = good.at("W.state.v");
  says(others, "load: missing: 'b.state.v', left over: 'V.state.v'");
  others.erase("made_by");
  says(others, "load: missing: 'made_by', 'b.state.v', left over: 'V.state.v'");
  for (auto const& [name, piece] : good)
    for (std::size_t const size = piece.size();
         std::size_t n : {std::size_t(0), std::size_t(1), size / 2, size - 1, size + 1, size + 4, 2 * size}) {
      file cut = good;
      cut[name].resize(n);
      bool const text = name == "made_by", numbers = name.ends_with("master") || name.find(".state") != name.npos;
      std::size_t const element = text ? 1 : numbers ? 4 : size;
      says(cut, n % element != 0 ? "'" + name + "' has " + std::to_string(n) + " bytes, no multiple of "
                : text           ? "load: the run was saved by '"
                                 : "load: '" + name + "': there are " + std::to_string(size / element));
    }
  says(with("b.master", std::vector<float>(4)), "load: 'b.master': there are 5 elements, got 4");
  for (std::int64_t const t : {std::int64_t(-1), std::numeric_limits<std::int64_t>::max()})
    says(with("step", std::vector{t}), "set_step: the step must be in [0, 2^62], is " + std::to_string(t));
  auto const scale = [&](auto const& change, std::string const& sentence) {
    auto s = opt.scale_state();
    change(s);
    says(with("loss_scale", std::vector{s}), "loss scale: " + sentence);
    CHECK(test::message<std::exception>([&] { opt.set_scale_state(s); }) == "loss scale: " + sentence);
  };
  constexpr int most = std::numeric_limits<int>::max();
  scale([](auto& s) { s.scale = -1; }, "the scale must be above 0 and, like its inverse, finite in float, is -1");
  scale([](auto& s) { s.scale = 0.5f; }, "the scale must be in [1, 1.67772e+07], is 0.5");
  scale([](auto& s) { s.scale = 1e30f; }, "the scale must be in [1, 1.67772e+07], is 1e+30");
  scale([](auto& s) { s.good = most; }, "the count of clean steps must be in [0, 2000], is 2147483647");
  scale([](auto& s) { s.good = -1; }, "the count of clean steps must be in [0, 2000], is -1");
  scale([](auto& s) { s.left = -5; }, "the count of overflows left must be in [0, 1], is -5");
  scale([](auto& s) { s.left = 2; }, "the count of overflows left must be in [0, 1], is 2");
  scale([](auto& s) { s.stuck = -1; }, "the count of skips in a row must be at least 0, is -1");
  auto plateau = opt.plateau();
  plateau.bad = -1;
  says(with("plateau", std::vector{plateau}), "set_plateau: the count of bad metrics must be in [0, 2^62], is -1");
  load(opt, good);
  CHECK(saved(opt) == good);
}

TEST_CASE("checkpoint: what another rule has saved is refused, with both names, though names and sizes fit") {
  model<float> m;
  auto const text = [](auto const& opt) {
    auto const bytes = saved(opt).at("made_by");
    return std::string(reinterpret_cast<char const*>(bytes.data()), bytes.size());
  };
  ds::optimizer adam{m.parameters(), ds::adam{}};
  auto const refuses = [&](auto&& other, std::string const& name) {
    CHECK(text(other) == name);
    auto const before = saved(other);
    std::string const sentence = "load: the run was saved by 'adam, state float', this optimizer is '" + name + "'";
    CHECK(test::message<std::exception>([&] { load(other, saved(adam)); }) == sentence);
    CHECK(saved(other) == before);
  };
  refuses(ds::optimizer{m.parameters(), ds::adamw{}}, "adamw, state float");
  refuses(ds::optimizer{m.parameters(), ds::adagrad{}}, "adagrad, state float");
  refuses(ds::optimizer{m.parameters(), ds::adam{}, ds::states<float, bfloat16>{}}, "adam, state float and bfloat16");
  refuses(ds::optimizer{m.parameters(), ds::adam{}, ds::swa{}, ds::lookahead{}, ds::on_plateau{}},
          "adam, state float, swa float, lookahead float, on_plateau");
  refuses(ds::optimizer{m.parameters(), ds::chain{ds::gradient_trace{}, ds::normalize<>{}, ds::adam{}}},
          "chain<gradient_trace, normalize, adam>, state float");

  ds::optimizer clipped{m.parameters(), ds::adam{.lr = 0.5}, ds::clip_norm{1}, ds::learning_rate(ds::constant{1})};
  load(clipped, saved(adam));  // policies without state may differ
  auto const as_it_is = [&]<class T>(std::string const& name, std::span<T const> there) {
    return name == "made_by" ? std::vector<T>(there.begin(), there.end()) : std::vector<T>(there.size(), T(1));
  };
  ds::optimizer adamw{m.parameters(), ds::adamw{}};
  adamw.load(as_it_is);  // on purpose
  CHECK(adamw.state("W", "m")[299] == 1);
}

TEST_CASE("checkpoint: members of the state without a name of their own are saved by number") {
  model<float> m;
  ds::optimizer twice{m.parameters(), ds::chain{ds::gradient_trace{}, ds::gradient_trace{}, ds::sgd{.momentum = 0.9}}};
  std::vector<std::string> names;
  twice.save([&](std::string const& name, auto) { names.push_back(name); });
  CHECK(names == std::vector<std::string>{"made_by", "step", "W.state.b", "W.state.1", "W.state.2", "b.state.b",
                                          "b.state.1", "b.state.2"});
  ds::optimizer unnamed{m.parameters(), unnamed_momentum{}};
  CHECK(names_in(saved(unnamed)) == std::vector<std::string>{"W.state.0", "b.state.0", "made_by", "step"});
}

TEST_CASE("checkpoint: counts of rows below 0 are refused, one by one and as a whole") {
  model<float> m;
  ds::optimizer opt{m.parameters(), ds::adam{}, ds::masked_rows<ds::row_step::own>{}};
  std::vector<std::int32_t> const counts{3, 0, -1, 2, 2};
  CHECK_THROWS_WITH_AS(opt.set_row_updates("b", counts),
                       "set_row_updates of 'b': the count of row 2 must be at least 0, is -1", std::invalid_argument);
  auto all = saved(opt);
  std::ranges::copy(std::as_bytes(std::span(counts)), all.at("b.row_updates").begin());
  CHECK_THROWS_WITH_AS(load(opt, all), "load: 'b.row_updates': the count of row 2 must be at least 0, is -1",
                       std::invalid_argument);
  opt.set_row_updates("b", std::vector<std::int32_t>(5, std::numeric_limits<std::int32_t>::max()));
  train(opt, m, 1, 2);
  CHECK(opt.row_updates("b")[0] == std::numeric_limits<std::int32_t>::max());
}

TEST_CASE("checkpoint: what is half done is not saved") {
  model<float> m;
  ds::optimizer opt{m.parameters(), ds::sgd{.lr = 1e-2}, ds::accumulate{3}, ds::ema{}};
  auto const nothing = [](auto const&, auto) {};
  auto const keeps = [](auto const&, auto x) { return x; };
  train(opt, m, 1, 2);
  CHECK_THROWS_WITH_AS(opt.save(nothing), "save() while micro-batches wait for their update: 2", std::logic_error);
  CHECK_THROWS_WITH_AS(opt.load(keeps), "load() while micro-batches wait for their update: 2", std::logic_error);
  train(opt, m, 3, 3);
  opt.save(nothing), opt.load(keeps);
  opt.swap_average();
  CHECK_THROWS_AS(opt.save(nothing), std::logic_error);
  opt.swap_average();
  opt.save(nothing);
}
