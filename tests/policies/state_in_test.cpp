// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// State in the caller's memory: the same bits as in the optimizer's, a run that goes on from it, and lists that do not
// fit are refused.
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/memory_from.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/state_in.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "support/ranks.hpp"

#include <cstring>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

namespace ds = descent;
using test::message;

namespace {

constexpr std::size_t w = 4500, b = 21;

struct model {
  std::vector<ds::bfloat16> value = std::vector<ds::bfloat16>(w + b, ds::bfloat16(1.f)), gradient = value;
  ds::parameters<ds::bfloat16> list() {
    ds::parameters<ds::bfloat16> p;
    p.add("w", value.data(), gradient.data(), w);
    p.add("none", value.data(), gradient.data(), 0);
    p.add("b", value.data() + w, gradient.data() + w, b);
    return p;
  }
  void backward(int t) {
    for (std::size_t i = 0; i < gradient.size(); ++i)
      gradient[i] = ds::bfloat16(float(int((i * 37 + std::size_t(t) * 101) % 257) - 128) / 256);
  }
  bool operator==(model const& other) const {
    return std::memcmp(value.data(), other.value.data(), value.size() * 2) == 0;
  }
};

/// Tensors of a caller, at odd addresses, between guards.
struct callers {
  std::vector<float> m = room(), v = room(), master = room(), average = room();
  ds::state_memory list;
  static std::vector<float> room() { return std::vector<float>(w + b + 5, -7.f); }

  callers() {
    for (auto const& [piece, memory] :
         {std::pair("state.m", &m), {"state.v", &v}, {"master", &master}, {"average", &average}}) {
      list.add(std::string("w.") + piece, memory->data() + 1);
      list.add(std::string("b.") + piece, std::span(memory->data() + w + 3, b));
      list.add(std::string("none.") + piece, static_cast<float*>(nullptr));
    }
  }
  bool guards_stay() const {
    for (auto const* x : {&m, &v, &master, &average})
      for (std::size_t i : {std::size_t(0), w + 1, w + 2, w + b + 3, w + b + 4})
        if ((*x)[i] != -7) return false;
    return true;
  }
};

template <class... Ps> auto make(model& of, Ps const&... policies) {
  return ds::optimizer{of.list(), ds::adamw{.lr = 0.01}, ds::master<float>{}, ds::ema{.decay = 0.5}, policies...};
}
template <class T> std::vector<T> copy(std::span<T const> x) { return {x.begin(), x.end()}; }

}  // namespace

TEST_CASE("state_in: state in the caller's memory has the bits of the optimizer's own, and nothing beside it changes") {
  model plain, ours;
  callers memory;
  auto own = make(plain);
  auto in = make(ours, ds::state_in{&memory.list}, ds::memory_from{std::pmr::null_memory_resource()});
  CHECK(in.memory().bytes == 0);
  for (int t = 1; t <= 5; ++t) {
    plain.backward(t), ours.backward(t);
    own.step(), in.step();
  }
  CHECK(ours == plain);
  for (std::string const name : {"w", "b", "none"}) {
    CHECK(copy(in.state<0>(name)) == copy(own.state<0>(name)));
    CHECK(copy(in.state<1>(name)) == copy(own.state<1>(name)));
    CHECK(copy(in.master(name)) == copy(own.master(name)));
    CHECK(copy(in.average(name)) == copy(own.average(name)));
  }
  CHECK(in.state<0>("w").data() == memory.m.data() + 1);
  CHECK(memory.guards_stay());
}

TEST_CASE("state_in: a run resumes, bit for bit, from memory that has its contents") {
  model one, two;
  callers memory, others;
  auto through = make(one, ds::state_in{&memory.list});
  for (int t = 1; t <= 3; ++t) one.backward(t), through.step();
  two.value = one.value;
  others.m = memory.m, others.v = memory.v, others.master = memory.master, others.average = memory.average;
  auto on = make(two, ds::state_in{.where = &others.list, .initialized = true});
  on.set_step(3);
  for (int t = 4; t <= 6; ++t) {
    one.backward(t), two.backward(t);
    through.step(), on.step();
  }
  CHECK(one == two);
  CHECK(memory.master == others.master);
  auto const before = two.value;
  on.swap_average();
  for (std::size_t i = 0; i < w; ++i)
    CHECK(ds::widen<float>(two.value[i]) == ds::widen<float>(ds::bfloat16(others.average[i + 1])));
  on.swap_average();
  CHECK(std::memcmp(before.data(), two.value.data(), before.size() * 2) == 0);
}

TEST_CASE("state_in: a new optimizer for each step over the caller's tensors equals one for all steps") {
  std::vector<float> value(70, 1.f), gradient(70), m(70), v(70), at_once = value;
  ds::parameters<float> params, all;
  params.add("w", value, gradient), all.add("w", at_once, gradient);
  ds::optimizer whole{all, ds::adamw{}};
  for (std::int64_t step = 0; step < 4; ++step) {
    for (std::size_t i = 0; i < 70; ++i) gradient[i] = float(i) / 70 - float(step) / 8;
    // snippet: state_in
    ds::state_memory list;
    list.add("w.state.m", m).add("w.state.v", v);  // vectors, spans, pointers
    ds::optimizer opt{params, ds::adamw{}, ds::state_in{.where = &list, .initialized = step > 0}};
    opt.set_step(step);
    opt.step();
    // end
    whole.step();
  }
  CHECK(value == at_once);
}

TEST_CASE("state_in: a list may have only some pieces, and broadcast() between ranks reaches them") {
  model plain, ours;
  callers memory;
  ds::state_memory some;
  some.add("w.state.v", memory.v.data()).add("b.state.v", memory.v.data() + w).add("none.state.v", memory.v.data());
  auto own = make(plain);
  auto in = make(ours, ds::state_in{&some});
  plain.backward(1), ours.backward(1);
  own.step(), in.step();
  CHECK(ours == plain);
  CHECK(in.memory().bytes + std::int64_t(4 * ((w + 63) / 64 * 64 + 64)) == own.memory().bytes);
  ranks::with_ranks(2, [](auto& comm) {
    model each;
    callers its;
    auto opt = make(each, ds::state_in{&its.list}, ds::replicated{comm});
    each.backward(1), opt.step();
    if (comm.rank() == 1) its.m[5] = 3, its.average[w + 4] = 9;
    CHECK(message([&] { opt.agree(); }).starts_with("ranks have diverged: "));
    opt.broadcast(0);
    opt.agree();
    CHECK(its.m[5] != 3);
    CHECK(its.guards_stay());
  });
}

TEST_CASE("state_in: lists that do not fit are refused before anything is written") {
  model of;
  callers memory;
  auto const before = memory.m;
  auto const refused = [&](auto const& change, bool initialized = false) {
    ds::state_memory list;
    for (auto const& e : memory.list.entries())
      if (change(e)) list.add(e.name, static_cast<float*>(e.at));
    return message([&] { make(of, ds::state_in{.where = &list, .initialized = initialized}); });
  };
  auto const without = [](std::string const& name) { return [name](auto const& e) { return e.name != name; }; };
  CHECK(refused(without("b.state.v")) == "state_in: 'none.state.v' is in the list, 'b.state.v' is not");
  for (bool const initialized : {false, true})  // as save() names them
    CHECK(refused([](auto const& e) { return !e.name.starts_with("none."); }, initialized) == "");
  memory.m = before;
  CHECK(refused(without("b.state.v"), true) == "state_in: it is initialized, but 'b.state.v' is not in the list");
  auto const with = [&](std::string const& name, auto* at) {
    ds::state_memory list = memory.list;
    list.add(name, at);
    return message([&] { make(of, ds::state_in{&list}); });
  };
  CHECK(with("w.slow", memory.m.data()) == "state_in: 'w.slow' is not a piece of this optimizer");
  CHECK(with("w.master", memory.m.data()) == "state_in: 'w.master' is in the list twice");
  auto const alone = [&](std::string const& name, auto const&... at) {
    ds::state_memory list;
    list.add(name, at...);
    return message([&] { make(of, ds::state_in{&list}); });
  };
  CHECK(alone("w.master", static_cast<double*>(nullptr)) ==
        "state_in: 'w.master' is stored in float, the list has double");
  CHECK(alone("w.master", std::span(memory.m)) == "state_in: 'w.master' has 4500 elements, in the list 4526");
  CHECK(alone("w.master", static_cast<float*>(nullptr)) ==
        "state_in: 'w.master' is null, but there must be 4500 elements");
  CHECK(alone("w.master", reinterpret_cast<float*>(64)).starts_with("state_in: 'w.master' is not host memory"));
  CHECK(message([&] {
          ds::state_memory list;
          for (std::string const name : {"w.master", "none.master", "b.master"})
            list.add(name, name == "w.master" ? reinterpret_cast<float*>(of.gradient.data()) : memory.master.data());
          make(of, ds::state_in{&list});
        }) == "the gradient of 'w' overlaps 'w.master' in memory");
  CHECK(message([&] { make(of, ds::state_in{}); }) == "state_in: the pointer to the list must not be null");
  CHECK(memory.m == before);
}

TEST_CASE("set_master() rounds the value from the master, of that parameter only") {
  model of;
  auto opt = make(of);
  std::vector<float> master(b);
  for (std::size_t i = 0; i < b; ++i) master[i] = 1 + float(i) / 1000;
  of.value[3] = ds::bfloat16(2.f);  // not its master, which only reload_values() would change
  auto const before = of.value;
  opt.set_master("b", master);
  CHECK(copy(opt.master("b")) == master);
  for (std::size_t i = 0; i < b; ++i)
    CHECK(ds::widen<float>(of.value[w + i]) == ds::widen<float>(ds::bfloat16(master[i])));
  CHECK(std::memcmp(of.value.data(), before.data(), w * 2) == 0);
}
