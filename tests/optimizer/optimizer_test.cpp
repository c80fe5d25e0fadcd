// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The optimizer's interface: what it reports about itself, and how it handles invalid requests.
#include <descent/cost.hpp>
#include <descent/optimizer/detail/engine.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/gradient_ahead.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/rows.hpp>
#include <descent/policies/sam.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/schedules/vary.hpp>

#include "support/message.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace ds = descent;
using test::message;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// Five tensors in two groups, one of them empty.
template <class T> struct model {
  std::vector<T> w = std::vector<T>(200, T(1.f)), g = std::vector<T>(200, T(0.5f));
  ds::parameters<T> params;
  model() {
    params.add("a", w.data(), g.data(), 7);
    params.add("none", static_cast<T*>(nullptr), static_cast<T*>(nullptr), 0);
    params.add("b", w.data() + 10, g.data() + 10, 100, ds::group{1});
    params.add("c", w.data() + 110, g.data() + 110, 64);
  }
};

using plain = ds::detail::plan<float, float, ds::adamw>;
static_assert(ds::detail::engine<ds::host<>::engine<plain>, plain>);

bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("state is found by name, by number and by type, with the parameter's length") {
  model<double> m;
  ds::optimizer opt{m.params, ds::adamw{.beta1 = 0.5, .beta2 = 0.75}};
  opt.step();
  for (auto const& v : m.params.views()) {
    auto const n = std::size_t(v.count);
    CHECK(opt.state(v.name, "m").size() == n);
    CHECK(opt.state(v.name, "v").size() == n);
    CHECK(opt.state(v.name, 0).data() == opt.state(v.name, "m").data());
    CHECK(opt.state(v.name, 1).data() == opt.state(v.name, "v").data());
    CHECK(opt.state<0>(v.name).data() == opt.state(v.name, "m").data());
    CHECK(opt.state<1>(v.name).data() == opt.state(v.name, "v").data());
  }
  for (char const* name : {"a", "b", "c"}) {
    CHECK(std::ranges::all_of(opt.state(name, "m"), [](double x) { return x == 0.25; }));
    CHECK(std::ranges::all_of(opt.state(name, "v"), [](double x) { return x == 0.0625; }));
  }
  CHECK(message([&] { opt.state("d", "m"); }) == "there is no parameter 'd'");
  CHECK(message([&] { opt.state<0>("d"); }) == "there is no parameter 'd'");
  CHECK(message([&] { opt.state("a", "u"); }) == "state of 'a': the rule has no member 'u'");
  CHECK(message([&] { opt.state("a", 2); }) == "state of 'a': the rule has 2 members of state, asked for number 2");
}

TEST_CASE("states may have a type each, and a master copy is exact") {
  model<ds::half> m;
  ds::optimizer opt{m.params, ds::adamw{.beta1 = 0.5}, ds::states<ds::bfloat16, float>{}, ds::master<float>{}};
  opt.step();
  CHECK(std::is_same_v<decltype(opt.state<0>("a")), std::span<ds::bfloat16 const>>);
  CHECK(std::is_same_v<decltype(opt.state<1>("a")), std::span<float const>>);
  CHECK(float(opt.state<0>("b")[99]) == 0.25f);
  CHECK(opt.state<1>("none").empty());
  CHECK(opt.master("a").size() == 7);
  CHECK(opt.master("none").empty());
  CHECK(std::abs(opt.master("c")[63] - 0.999f) < 1e-4);
  CHECK(float(m.w[110]) == float(ds::half(opt.master("c")[0])));
  CHECK(message([&] { opt.master("d"); }) == "there is no parameter 'd'");

  auto const owned = opt.memory();
  std::int64_t const arena = 64 + 128 + 64;  // each tensor starts at a multiple of 64
  REQUIRE(owned.buffers.size() == 3);
  CHECK(owned.buffers[0].name == "master (float)");
  CHECK(owned.buffers[1].name == "state m (bfloat16)");
  CHECK(owned.buffers[2].name == "state v (float)");
  CHECK(owned.buffers[0].bytes == 4 * arena);
  CHECK(owned.buffers[1].bytes == 2 * arena);
  CHECK(owned.bytes == 10 * arena);
  CHECK(owned.parameters == 171);
  CHECK(owned.bytes_per_parameter() == double(10 * arena) / 171);
  // traffic: gradient 2, master read and written 8, value 2, states read and written 12
  CHECK(opt.bytes_per_parameter() == 2 + 8 + 2 + 12);

  auto const before = ds::memory(m.params, ds::adamw{}, ds::states<ds::bfloat16, float>{}, ds::master<float>{});
  CHECK(before.bytes == owned.bytes);
  CHECK(before.parameters == owned.parameters);
  REQUIRE(before.buffers.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(before.buffers[i].name == owned.buffers[i].name);
    CHECK(before.buffers[i].bytes == owned.buffers[i].bytes);
  }

  std::string const text = opt.explain();
  CHECK(contains(text, "171 parameters in 4 tensors, after 1 update, on host, "));
  CHECK(contains(text, "storage: value half, gradient half, master float, arithmetic float\n"));
  CHECK(contains(text, "memory: 2560 bytes, 14.97 per parameter\n  master (float): 1024 bytes\n"
                       "  state m (bfloat16): 512 bytes\n  state v (float): 1024 bytes\n"));
  CHECK(contains(text, "step: 1 update\ntraffic: 24 bytes per parameter\n"));
  CHECK(contains(text, "gradients are not checked: add skip_nonfinite\n"));
  CHECK(contains(text, "the update starts at the masters: call reload_values() after something else has written "));
  CHECK(contains(text, "group 0: 71 parameters in 3 tensors ('a', 'none', 'c')\n"));
  CHECK(contains(text, "group 1: 100 parameters in 1 tensor ('b')\n"));
  opt.freeze(1);
  CHECK(contains(opt.explain(), "group 1: 100 parameters in 1 tensor ('b'), frozen\n"));
}

TEST_CASE("explain counts the passes that the policies and the rule ask for") {
  model<double> m;
  ds::optimizer clip{m.params, ds::lion{}, ds::clip_norm{1.0}, ds::host<ds::cpp>{}};
  CHECK(contains(clip.explain(), "on host, cpp\n"));
  CHECK(contains(clip.explain(), "step: 1 read-only pass and 1 update\n"));
  CHECK(contains(clip.explain(), "traffic: 8 bytes per parameter before the update, 40 in it\n"));
  CHECK(contains(clip.explain(), "a gradient that is not finite skips the step\n"));
  ds::optimizer both{m.params, ds::lamb{}, ds::clip_norm{1.0}};
  CHECK(contains(both.explain(), "step: 2 read-only passes and 1 update\n"));
  CHECK(contains(both.explain(), "traffic: 40 bytes per parameter before the update, 56 in it\n"));
  CHECK(both.bytes_per_parameter() == 96);
  ds::optimizer dog{m.params, ds::dog{}};  // only the sums read p0
  CHECK(contains(dog.explain(), "traffic: 24 bytes per parameter before the update, 24 in it\n"));
}

TEST_CASE("report tells what the last call did: before any, after a step, after a skip, after the next") {
  model<float> m;
  ds::optimizer opt{m.params, ds::sgd{.lr = 0.5}, ds::clip_norm{1.0}};
  auto r = opt.report();
  CHECK(r.text() == "step 0: not applied, no step was taken yet");
  CHECK(r.step == 0);
  CHECK(r.skipped == 0);
  CHECK(!r.applied);
  CHECK(r.why == "no step was taken yet");
  CHECK(r.clip_factor == 1);

  opt.step();
  double const norm = std::sqrt(171 * 0.25);
  r = opt.report();
  CHECK(r.step == 1);
  CHECK(r.applied);
  CHECK(r.why.empty());
  CHECK(r.learning_rate == 0.5);
  CHECK(r.grad_norm == norm);
  CHECK(r.clip_factor == 1 / norm);
  CHECK(r.text() == "step 1: applied, lr 0.5, norm 6.53835, clip factor 0.152944");

  for (auto [at, name] : {std::pair{6, "a"}, {10, "b"}, {109, "b"}, {110, "c"}, {173, "c"}}) {
    m.g[std::size_t(at)] = std::numeric_limits<float>::quiet_NaN();
    auto const w = m.w;
    opt.step();
    CHECK(w == m.w);
    CHECK(opt.report().why == "the gradient of '" + std::string(name) + "' is not finite");
    m.g[std::size_t(at)] = 0.5f;
  }
  m.g[20] = std::numeric_limits<float>::infinity();
  m.g[120] = -std::numeric_limits<float>::infinity();
  opt.step();
  r = opt.report();
  CHECK(r.step == 1);
  CHECK(r.skipped == 6);
  CHECK(!r.applied);
  CHECK(r.why == "the gradient of 'b' is not finite");  // the first one
  CHECK(r.grad_norm == inf);
  CHECK(r.learning_rate == 0.5);
  CHECK(r.clip_factor == 1 / norm);
  CHECK(r.text() == "step 1: not applied, the gradient of 'b' is not finite, 6 skipped so far");

  m.g[20] = m.g[120] = 0.5f;
  opt.step();
  CHECK(opt.report().step == 2);
  CHECK(opt.report().skipped == 6);
  CHECK(opt.report().applied);
  CHECK(opt.report().why.empty());
}

TEST_CASE("a report has no norm where none is measured") {
  model<double> m;
  ds::optimizer opt{m.params, ds::sgd{}};
  m.g[0] = inf;  // nothing checks it
  opt.step();
  CHECK(std::isnan(opt.report().grad_norm));
  CHECK(opt.report().applied);
  CHECK(opt.report().text() == "step 1: applied, lr 0.001");
}

TEST_CASE("a group starts as a copy of the rule and may then differ; others do not exist") {
  model<double> m;
  ds::optimizer opt{m.params, ds::sgd{.lr = 0.25}};
  CHECK(opt.group(0).lr == 0.25);
  CHECK(opt.group(1).lr == 0.25);
  opt.group(1).lr = 0.5;
  CHECK(opt.group(0).lr == 0.25);
  opt.step();
  CHECK(m.w[0] == 1 - 0.25 * 0.5);
  CHECK(m.w[10] == 1 - 0.5 * 0.5);
  CHECK(m.w[110] == 1 - 0.25 * 0.5);
  CHECK(opt.report().learning_rate == 0.25);
  for (int index : {-1, 2, 1000}) {
    std::string const want = "there is no group " + std::to_string(index) + ": groups are 0 to 1";
    CHECK(message([&] { opt.group(index); }) == want);
    CHECK(message([&] { opt.freeze(index); }) == want);
  }
}

TEST_CASE("a group out of range throws at the step, changes nothing, and can be put right") {
  model<double> m;
  ds::optimizer opt{m.params, ds::adamw{.lr = 0.25}};
  opt.step();
  auto const w = m.w;
  opt.group(1).beta1 = 1.5;
  for (int twice = 0; twice < 2; ++twice)
    CHECK(message([&] { opt.step(); }) == "group 1: adamw: beta1 must be in [0, 1), is 1.5");
  CHECK(w == m.w);
  CHECK(opt.report().step == 1);
  CHECK(opt.report().skipped == 0);
  opt.group(1).beta1 = 0.9;
  opt.step();
  CHECK(opt.report().step == 2);
  CHECK(w != m.w);
}

TEST_CASE("state that no group needs is not allocated, and cannot be asked for later") {
  model<double> m;
  ds::optimizer opt{m.params, ds::sgd{.lr = 0.25}};
  CHECK(opt.memory().bytes == 0);
  CHECK(opt.memory().buffers.empty());
  CHECK(opt.memory().bytes_per_parameter() == 0);
  CHECK(ds::memory(m.params, ds::sgd{}).bytes == 0);
  CHECK(ds::memory(m.params, ds::sgd{.momentum = 0.9}).bytes == 256 * 8);
  CHECK(opt.state("a", "b").empty());
  CHECK(opt.bytes_per_parameter() == 8 + 16);
  opt.step();
  auto const w = m.w;
  opt.group(1).momentum = 0.9;
  for (int twice = 0; twice < 2; ++twice)
    CHECK(
        message([&] { opt.step(); }) ==
        "group 1: momentum = 0.9 needs the state 'b', which no group needed at construction, so it was not allocated");
  CHECK(w == m.w);
  CHECK(opt.report().step == 1);
  opt.group(1).momentum = 0;
  opt.step();
  CHECK(opt.report().step == 2);
  CHECK(m.w[0] == 1 - 2 * 0.25 * 0.5);
}

TEST_CASE("a scheduled field counts as needed, whatever its first value") {
  model<double> m;
  ds::optimizer opt{m.params, ds::sgd{}, ds::vary<&ds::sgd::momentum>(ds::constant{0.5})};
  CHECK(opt.memory().bytes == 256 * 8);
  CHECK(ds::memory(m.params, ds::sgd{}, ds::vary<&ds::sgd::momentum>(ds::constant{0})).bytes == 256 * 8);
  opt.step();
  opt.step();
  CHECK(opt.state("a", "b")[0] == 0.75);
}

TEST_CASE("some optional state: RMSprop keeps what it uses") {
  model<double> m;
  CHECK(ds::memory(m.params, ds::rmsprop{}).bytes == 256 * 8);
  CHECK(ds::memory(m.params, ds::rmsprop{.momentum = 0.5}).bytes == 2 * 256 * 8);
  CHECK(ds::memory(m.params, ds::rmsprop{.centered = true}).buffers[1].name == "state g_ (double)");
  CHECK(ds::memory(m.params, ds::rmsprop{.momentum = 0.5, .centered = true}).bytes == 3 * 256 * 8);
}

TEST_CASE("an optimizer moves with all it has, and using what is left of it is an error that says so") {
  model<double> m;
  ds::optimizer first{m.params, ds::adamw{}};
  first.step();
  auto* const state = first.state("a", "m").data();
  ds::optimizer second{std::move(first)};
  CHECK(second.state("a", "m").data() == state);
  second.step();
  CHECK(second.report().step == 2);
  std::string const gone = "this optimizer was moved from";
  CHECK(message([&] { first.step(); }) == gone);
  CHECK(message([&] { first.report(); }) == gone);
  CHECK(message([&] { first.zero_grad(); }) == gone);
  CHECK(message([&] { first.group(0); }) == gone);
  CHECK(message([&] { first.freeze(0); }) == gone);
  CHECK(message([&] { first.state("a", "m"); }) == gone);
  CHECK(message([&] { first.state<1>("a"); }) == gone);
  CHECK(message([&] { first.explain(); }) == gone);

  model<double> other;
  ds::optimizer third{other.params, ds::adamw{}};
  first = std::move(third);  // it can be used again
  first.step();
  CHECK(first.report().step == 1);
  CHECK(message([&] { third.step(); }) == gone);
  CHECK(!std::is_copy_constructible_v<decltype(first)>);
}

TEST_CASE("a member that needs a policy, or an ability of the rule, is there with it and not without") {
  auto const there = []<class... Ps>(auto rule, Ps... policies) {
    using O = decltype(ds::optimizer{std::declval<ds::parameters<float> const&>(), rule, policies...});
    return std::array{requires(O& o) { o.observe(0.5); }, requires(O& o, float const* at) { o.observe(at); },
                      requires(O& o) { o.plateau(); }, requires(O& o) { o.set_plateau({}); },
                      requires(O& o) { o.ascend(); }, requires(O& o) { o.move_ahead(); },
                      requires(O& o) { o.swap_average(); }, requires(O& o) { o.flush(); },
                      requires(O& o) { o.rule_memory(); }, requires(O& o) { o.set_rule_memory(o.rule_memory()); }};
  };
  using members = std::array<bool, 10>;
  CHECK(there(ds::adamw{}) == members{});
  CHECK(there(ds::adamw{}, ds::on_plateau{}) == members{true, true, true, true});
  CHECK(there(ds::adamw{}, ds::sam{}) == members{0, 0, 0, 0, true});
  CHECK(there(ds::sgd{}, ds::gradient_ahead{}) == members{0, 0, 0, 0, 0, true});
  CHECK(there(ds::adamw{}, ds::ema{}) == members{0, 0, 0, 0, 0, 0, true});
  CHECK(there(ds::adamw{}, ds::accumulate{}) == members{0, 0, 0, 0, 0, 0, 0, true});
  CHECK(there(ds::dog{}) == members{0, 0, 0, 0, 0, 0, 0, 0, true, true});

  auto const shown = []<class... Ps>(auto rule, Ps... policies) {
    using list = ds::parameters<float>;
    using O = decltype(ds::optimizer{std::declval<list const&>(), rule, policies...});
    using name = std::string const;
    return std::array{
        requires(O& o, name& w) { o.master(w); }, requires(O& o, name& w) { o.set_master(w, o.master(w)); },
        requires(O& o, name& w) { o.average(w); }, requires(O& o, name& w) { o.slow(w); },
        requires(O& o, name& w) { o.remainder(w); }, requires(O& o, name& w) { o.row_updates(w); },
        requires(O& o, name& w) { o.select_rows(w, nullptr); }, requires(O& o) { o.set_scale_state({}); },
        requires(O& o) { o.unscale(); }, requires(O& o, list& params) { o.gathered(params); },
        requires(O& o) { o.agree(); }, requires(O& o) { o.broadcast(); }, requires(O& o) { o.ready(0); },
        requires(O& o) { o.matrix_rule(); }, requires(O& o, name& w) { o.template state<0>(w); },
        requires(O& o, name& w) { o.template state<2>(w); }};
  };
  using more = std::array<bool, 16>;
  CHECK(shown(ds::adamw{}) == more{0, 0, 0, 0, 0, 0, 0, 0, 0, true, 0, 0, 0, 0, true});
  CHECK(shown(ds::sgd{}, ds::master<double>{}, ds::ema{}, ds::lookahead{}) ==
        more{true, true, true, true, 0, 0, 0, 0, 0, true, 0, 0, 0, 0, true});
  CHECK(shown(ds::sgd{}, ds::masked_rows<ds::row_step::own>{}, ds::dynamic_loss_scale{}) ==
        more{0, 0, 0, 0, 0, true, true, true, true, true, 0, 0, 0, 0, true});
  CHECK(shown(ds::sgd{}, ds::accumulate{}, ds::dynamic_loss_scale{}) ==
        more{0, 0, 0, 0, 0, 0, 0, true, 0, true, 0, 0, 0, 0, true});
}

TEST_CASE("an optimizer and a list of parameters stay as they are when they are moved to themselves") {
  model<double> m, like;
  ds::optimizer opt{m.params, ds::adamw{}, ds::clip<ds::norm::l2, ds::scope::group>{}},
      still{like.params, ds::adamw{}, ds::clip<ds::norm::l2, ds::scope::group>{}};
  for (int n = 0; n < 2; ++n) {
    auto& same = opt;
    opt = std::move(same);
    opt.group(1).lr = still.group(1).lr = 0.25;
    opt.step(), still.step();
  }
  CHECK(opt.report().step == 2);
  CHECK(m.w == like.w);
  CHECK(opt.state("b", "v").size() == 100);

  auto& list = m.params;
  m.params = std::move(list);
  CHECK(m.params.views().size() == 4);
  CHECK(message([&] { m.params.add("a", &m.w[190], &m.g[190], 1); }) ==
        "parameter 'a': there is already a parameter of this name");
}

TEST_CASE("many tensors in many groups: step, explain() and diagnose() look at each tensor once") {
  // A search of all tensors or chunks for each group or tensor would be up to 10^10 operations in each of the three.
  constexpr int tensors = 100000, groups = 65536;
  std::vector<double> w(tensors, 1), g(tensors, 3);
  ds::parameters<double> params;
  for (int i = 0; i < tensors; ++i)
    params.add("t" + std::to_string(i), &w[std::size_t(i)], &g[std::size_t(i)], 1, ds::group{i % groups});
  ds::optimizer opt{params, ds::adamw{.beta1 = 0.5}, ds::clip<ds::norm::l2, ds::scope::group>{}};
  opt.step();
  auto const first_moment = [&](int i) { return opt.state("t" + std::to_string(i), "m")[0]; };
  double const of_two = 3 / std::sqrt(18.0);
  CHECK(opt.report().clip_factor == doctest::Approx(of_two / 3));
  for (int i : {0, tensors - groups - 1, groups, tensors - 1}) CHECK(first_moment(i) == doctest::Approx(of_two / 2));
  for (int i : {tensors - groups, groups - 1}) CHECK(first_moment(i) == doctest::Approx(0.5));
  std::string const text = opt.explain();
  CHECK(contains(text, "group 1: 2 parameters in 2 tensors ('t1', 't65537')\n"));
  CHECK(contains(text, "group 65535: 1 parameter in 1 tensor ('t65535')\n"));
  g[5] = std::nan("");
  opt.step();
  auto const all = opt.diagnose();
  REQUIRE(all.size() == tensors);
  CHECK((!all[5].finite && all[4].finite && all[4].norm == 3 && all[tensors - 1].norm == 3));
}

TEST_CASE("zero_grad zeroes all gradients and nothing else") {
  model<float> m;
  ds::optimizer opt{m.params, ds::sgd{}};
  auto const w = m.w;
  opt.zero_grad();
  CHECK(w == m.w);
  for (std::size_t i = 0; i < 200; ++i) {
    bool const ours = i < 7 || (i >= 10 && i < 174);
    CHECK(m.g[i] == (ours ? 0.f : 0.5f));
  }
}

TEST_CASE("no parameters, or only empty ones, step fine") {
  ds::parameters<double> none, empty;
  empty.add("e", static_cast<double*>(nullptr), static_cast<double*>(nullptr), 0);
  for (auto const* params : {&none, &empty}) {
    ds::optimizer opt{*params, ds::lamb{}, ds::clip_norm{1.0}, ds::master<double>{}};
    opt.zero_grad();
    opt.step();
    CHECK(opt.report().step == 1);
    CHECK(opt.report().applied);
    CHECK(opt.report().grad_norm == 0);
    CHECK(opt.memory().bytes == 0);
    CHECK(opt.memory().bytes_per_parameter() == 0);
    CHECK(contains(opt.explain(), "0 parameters in "));
  }
}

TEST_CASE("values may be infinite or not numbers at construction; they spoil no other value") {
  model<double> m;
  m.w[0] = inf;
  m.w[1] = std::numeric_limits<double>::quiet_NaN();
  ds::optimizer opt{m.params, ds::sgd{.lr = 0.5}, ds::skip_nonfinite{}, ds::master<double>{}};
  CHECK(opt.master("a")[0] == inf);
  opt.step();
  CHECK(opt.report().applied);
  CHECK(!std::isfinite(m.w[0]));
  CHECK(std::isnan(m.w[1]));
  CHECK(m.w[2] == 0.75);
}
