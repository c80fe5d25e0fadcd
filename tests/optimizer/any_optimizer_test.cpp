// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// any_optimizer does what the optimizer in it does, refuses what that cannot do, and can be chosen at run time.
#include <descent/any_optimizer.hpp>
#include <descent/matrices/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/optimizer/find_nonfinite.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/muon.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/transforms/chain.hpp>
#include <descent/transforms/parts.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "support/problem.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ds = descent;
using namespace test;

namespace {

using file = std::map<std::string, std::vector<std::byte>>;
file saved(ds::any_optimizer const& opt) {
  file all;
  opt.save([&](std::string const& name, ds::any_elements const& x) {
    auto const* const first = static_cast<std::byte const*>(x.data);
    all[name].assign(first, first + x.bytes());
  });
  return all;
}

problem<ds::half> two_groups() {
  problem<ds::half> p({100, 9});
  p.group = {0, 1};
  return p;
}
auto make(problem<ds::half>& p) {
  return ds::optimizer{p.parameters(),   ds::adamw{.lr = 0.01}, ds::master<float>{}, ds::dynamic_loss_scale{.init = 8},
                       ds::clip_norm{1}, ds::ema{.decay = 0.5}, ds::on_plateau{},    ds::accumulate{2}};
}

/// A rule whose field has a name that the library does not know.
struct sign_descent {
  double width = 0.5;
  template <class F> void each_field(F const& f) { f("width", width); }
  template <class Real> struct state {};
  template <class Real> struct terms { Real width; };
  terms<double> at(std::int64_t) const { return {width}; }
  template <class Real> static Real update(Real p, Real g, state<Real>&, terms<Real> const& k) {
    using ds::sign;
    return p - k.width * sign(g);
  }
};

}  // namespace

TEST_CASE("any_optimizer does what the optimizer in it does, bit for bit") {
  auto p = two_groups(), q = two_groups();
  auto typed = make(p);
  ds::any_optimizer any{make(q)};
  CHECK(any.groups() == 2);
  CHECK(any.explain() == typed.explain());
  CHECK(any.memory().bytes == typed.memory().bytes);
  CHECK(any.bytes_per_parameter() == typed.bytes_per_parameter());
  CHECK(any.loss_scale() == 8);
  CHECK(*any.loss_scale_pointer() == 8);

  auto const each_step = [&](int t, double weight) {
    p.set_gradients(t), q.set_gradients(t);
    if (t == 4) p.grad[1][3] = q.grad[1][3] = ds::half(INFINITY);
    typed.step(weight), any.step(weight);
  };
  typed.group(1).weight_decay = 0.5, any.set(1, "weight_decay", 0.5);
  CHECK(any.get(1, "weight_decay") == 0.5);
  CHECK(any.get(0, "weight_decay") == 0.01);
  for (int t = 1; t <= 5; ++t) each_step(t, t);
  CHECK(any.gradient_norm() == typed.gradient_norm());
  CHECK(any.gradient_norm(ds::group{1}) == typed.gradient_norm(ds::group{1}));
  CHECK(any.gradient_norm("tensor1") == typed.gradient_norm("tensor1"));
  typed.flush(), any.flush();
  typed.observe(1.0), any.observe(1.0);
  typed.freeze(1), any.freeze(1);
  typed.set_step(40), any.set_step(40);
  for (int t = 6; t <= 9; ++t) each_step(t, 1);
  CHECK(same_bits(p.value, q.value));
  CHECK(!same_bits(p.value, two_groups().value));

  auto const a = typed.report(), b = any.report(), late = any.last_report();
  CHECK((a.step == b.step && a.step == 42 && a.skipped == 1 && b.skipped == 1));
  CHECK((a.grad_norm == b.grad_norm && a.clip_factor == b.clip_factor && late.step == b.step));
  CHECK(any.scale_state().scale == typed.scale_state().scale);
  CHECK(any.diagnose().size() == typed.diagnose().size());

  typed.swap_average(), any.swap_average();
  CHECK(same_bits(p.value, q.value));
  typed.swap_average(), any.swap_average();
  typed.zero_grad(), any.zero_grad();
  CHECK(same_bits(p.grad, q.grad));
  typed.reload_values(), any.reload_values();
  each_step(10, 1), each_step(11, 1);
  CHECK(same_bits(p.value, q.value));
}

TEST_CASE("any_optimizer saves, loads and moves: a run resumes bit for bit") {
  auto p = two_groups();
  ds::any_optimizer first{make(p)};
  for (int t = 1; t <= 4; ++t) p.set_gradients(t), first.step();
  auto q = p, moved = p;
  auto const all = saved(first);
  auto const read = [&](std::string const& name, ds::any_elements const&) { return ds::any_answer(all.at(name)); };
  std::vector<std::string> names;
  for (auto const& [name, bytes] : all) names.push_back(name);

  ds::any_optimizer second{make(q)};
  second.load(read, names);
  second.rebind(moved.parameters());
  auto const go_on = [](auto& opt, auto& x) {
    for (int t = 5; t <= 8; ++t) x.set_gradients(t), opt.step();
  };
  go_on(first, p), go_on(second, moved);
  CHECK(same_bits(p.value, moved.value));
  CHECK(!same_bits(p.value, q.value));

  second.load([&](std::string const& name, ds::any_elements const& x) {
    CHECK(x.bytes() == all.at(name).size());
    if (name == "tensor0.master") CHECK((x.type == ds::element_type::f32 && x.size == 4 && x.count == 100));
    if (name == "made_by") CHECK(x.type == ds::element_type::text);
    if (name == "step") CHECK((x.type == ds::element_type::i64 && x.count == 1));
    return ds::any_answer(all.at(name).data(), x.bytes());  // not copied
  });
  CHECK(saved(second) == all);

  auto const refused = [&](auto const& change) {
    file broken = all;
    change(broken);
    std::vector<std::string> names_of_broken;
    for (auto const& [name, bytes] : broken) names_of_broken.push_back(name);
    return message<std::invalid_argument>([&] {
      second.load([&](std::string const& name, ds::any_elements const&) { return ds::any_answer(broken.at(name)); },
                  names_of_broken);
    });
  };
  CHECK(refused([](file& f) { f["tensor1.state.m"].pop_back(); }) ==
        "load: 'tensor1.state.m' has 35 bytes, no multiple of 4");
  CHECK(refused([](file& f) { f["tensor1.state.m"].resize(32); }) ==
        "load: 'tensor1.state.m': there are 9 elements, got 8");
  CHECK(refused([](file& f) { f.erase("step"), f["stop"]; }) == "load: missing: 'step', left over: 'stop'");
  std::vector<std::byte> room(64);
  CHECK(message<std::invalid_argument>([&] {
          second.load([&](std::string const& name, ds::any_elements const& x) {
            if (name == "step") return ds::any_answer(room.data() + 1, x.bytes());
            return ds::any_answer(all.at(name));
          });
        }) == "load: 'step' must be aligned to 8 bytes");
  CHECK(saved(second) == all);

  problem<float> other({100, 9});
  CHECK(message<std::invalid_argument>([&] { second.rebind(other.parameters()); }) ==
        "parameter 'tensor0': the list has no values of float with gradients of float");

  ds::parameters<ds::half> read_only;
  for (std::size_t k = 0; k < 2; ++k)
    read_only.add(p.name(k), p.value[k].data(), std::as_const(p.grad[k]).data(), p.value[k].size(), ds::group{int(k)});
  second.rebind(read_only);
  CHECK(message<std::logic_error>([&] { second.zero_grad(); }) ==
        "zero_grad() writes gradients, and that of 'tensor0' is const");
}

TEST_CASE("any_optimizer refuses what the optimizer in it cannot do, and says what is missing") {
  problem<float> p({8});
  ds::any_optimizer opt{ds::optimizer{p.parameters(), ds::sgd{}}};
  auto const says = [&](auto const& call) { return message([&] { call(opt); }); };
  CHECK(says([](auto& o) { o.flush(); }) == "flush(): give the policy accumulate{n}");
  CHECK(says([](auto& o) { o.swap_average(); }) ==
        "swap_average(): there is no average: give the policy ema{} or swa{}");
  CHECK(says([](auto& o) { o.values_changed(); }) ==
        "values_changed(): needs master<M>, and values that are the masters rounded to nearest");
  CHECK(says([](auto& o) { o.ascend(); }) == "ascend(): give the policy sam{}");
  CHECK(says([](auto& o) { o.move_ahead(); }) == "move_ahead(): give the policy gradient_ahead{}");
  CHECK(says([](auto& o) { o.ready(0); }).starts_with("ready(): "));
  CHECK(says([](auto& o) { o.select_rows("tensor0", nullptr); }).starts_with("select_rows(): "));
  CHECK(says([](auto& o) { o.observe(1.0); }).starts_with("observe(): "));
  CHECK(says([](auto& o) { o.unscale(); }).starts_with("unscale(): "));
  CHECK(says([](auto& o) { o.set_scale_state({}); }).starts_with("set_scale_state(): "));
  CHECK(says([](auto& o) { o.broadcast(); }).starts_with("broadcast(): "));
  CHECK(says([](auto& o) { o.agree(); }).starts_with("agree(): "));
  CHECK(says([](auto& o) { o.step(&o); }) == "step(stream): the host has no streams");

  CHECK(says([](auto& o) { o.get(1, "lr"); }) == "there is no group 1: groups are 0 to 0");
  CHECK(says([](auto& o) { o.get(0, "rate"); }) ==
        "the rule has no field 'rate'; it has lr, momentum, dampening, weight_decay, nesterov, decoupled");
  CHECK(says([](auto& o) { o.set(0, "nesterov", 2); }) == "the field 'nesterov' must be 0 or 1, is 2");
  opt.set(0, "lr", -1);
  CHECK(says([](auto& o) { o.commit_groups(); }).starts_with("group 0: sgd: lr must be "));
  opt.set(0, "lr", 1);

  using type = ds::optimizer<float, float, ds::sgd>;
  CHECK(opt.target<type>()->state("tensor0", "b").empty());
  CHECK(opt.target<ds::optimizer<float, float, ds::adamw>>() == nullptr);
  ds::any_optimizer other = std::move(opt);
  CHECK((other && !opt));
  CHECK(says([](auto& o) { o.step(); }) == "any_optimizer: it is empty, or was moved from");
  CHECK(opt.target<type>() == nullptr);
}

TEST_CASE("fields by name: of the matrix rule, of the parts of a chain, of your own rule") {
  std::vector<float> w(6, 1.f), g(6, 1.f);
  ds::parameters<float> params;
  params.add("w", w.data(), g.data(), ds::shape{2, 3});
  ds::any_optimizer opt{ds::optimizer{params, ds::adamw{}, ds::matrices{ds::muon{.lr = 0.5}}}};
  CHECK(opt.get(0, "matrix.lr") == 0.5);
  opt.set(0, "matrix.ns_steps", 3);
  opt.set(0, "lr", 0.25);
  CHECK((opt.get(0, "matrix.ns_steps") == 3 && opt.get(0, "matrix.lr") == 0.5 && opt.get(0, "lr") == 0.25));
  CHECK(message([&] { opt.set(0, "matrix.ns_steps", 2.5); }) ==
        "the field 'ns_steps' must be a whole number in [-2147483647, 2147483647], is 2.5");
  auto const names = opt.fields();
  for (std::string const& name : names) CHECK(opt.allowed(name).text != std::string("any number"));
  CHECK((names.front() == "lr" && names.back() == "matrix.eps2"));

  ds::chain chain{ds::l2{0.125}, ds::l2{0.25}, ds::adamw{.weight_decay = 0.5}};
  CHECK(ds::get_field(chain, "0.weight_decay") == 0.125);
  CHECK(ds::get_field(chain, "weight_decay") == 0.5);
  ds::set_field(chain, "1.weight_decay", 2);
  CHECK((chain.get<1>().weight_decay == 2 && chain.get<0>().weight_decay == 0.125));

  sign_descent rule;
  ds::set_field(rule, "width", 0.75);
  CHECK(rule.width == 0.75);
  CHECK(message([&] { ds::get_field(rule, "lr"); }) == "the rule has no field 'lr'; it has width");
}

// snippet: chosen
struct settings {
  bool sgd = false, master = false;
  double lr = 1e-3, clip = 0;
};

ds::any_optimizer make(ds::parameters<ds::bfloat16> const& params, settings const& s) {
  std::variant<ds::adamw, ds::sgd> rule;
  if (s.sgd) rule = ds::sgd{.lr = s.lr};
  else rule = ds::adamw{.lr = s.lr};
  return ds::choose([&](auto... all) { return ds::any_optimizer{ds::optimizer{params, all...}}; }, rule,
                    ds::when(s.master, ds::master<float>{}), ds::clip_norm{s.clip > 0 ? s.clip : 1e300});
}
// end

TEST_CASE("choose() makes the optimizer of the policies that are wanted") {
  auto const count = [](auto const&... all) { return int(sizeof...(all)); };
  using rule = std::variant<std::monostate, ds::adamw, ds::sgd>;
  CHECK(ds::choose(count) == 0);
  CHECK(ds::choose(count, ds::when(false, ds::master<float>{}), rule{}) == 0);
  CHECK(ds::choose(count, ds::when(true, ds::master<float>{}), rule{}, ds::clip_norm{}) == 2);
  CHECK(ds::choose([](auto const& one, auto const&... rest) { return one.lr + double(sizeof...(rest)); },
                   std::variant<ds::sgd, ds::adamw>(ds::adamw{.lr = 0.5}), std::optional(ds::clip_norm{})) == 1.5);

  problem<ds::bfloat16> p({8});
  auto const bytes = [&](settings const& s) { return make(p.parameters(), s).memory().bytes; };
  CHECK(bytes({.master = true}) - bytes({}) == 64 * 4);
  CHECK(bytes({.sgd = true}) == 0);
  p.set_gradients(1);
  auto opt = make(p.parameters(), {.lr = 0.5, .clip = 0.25});
  opt.step();
  CHECK(opt.report().clip_factor < 1);
  CHECK(opt.report().learning_rate == 0.5);
}

TEST_CASE("any_optimizer tells whether values were changed beside their masters") {
  std::array<float, 1> p{1}, g{1};
  ds::parameters<float> list;
  list.add("w", p.data(), g.data(), 1);
  ds::any_optimizer opt{ds::optimizer{list, ds::sgd{}, ds::master<double>{}}};
  opt.step();
  CHECK(!opt.values_changed());
  p[0] = 5;
  CHECK(opt.values_changed());
  opt.reload_values();
  CHECK(!opt.values_changed());
}

TEST_CASE("find_nonfinite() names each tensor with NaN or infinities, the first of them, and how many") {
  auto p = two_groups();
  ds::optimizer opt = make(p);
  auto const found = [](auto const& of) {
    std::string all;
    for (auto const& x : ds::find_nonfinite(of))
      all += x.name + " " + std::to_string(x.first) + " " + std::to_string(x.count) + ", ";
    return all;
  };
  CHECK(found(opt) == "");
  std::string const a = p.name(0), b = p.name(1);
  p.value[0][99] = ds::narrow<ds::half>(1e9), p.value[0][7] = ds::narrow<ds::half>(std::nan(""));
  std::vector<float> v(9, std::numeric_limits<float>::max());
  v[2] = -std::numeric_limits<float>::infinity();
  opt.set_state<1>(b, v);
  CHECK(found(opt) == a + " 7 2, " + b + ".state.v 2 1, ");
  // An update narrows masters, which are finite, to values again.
  v[2] = 1;
  opt.set_state<1>(b, v);
  opt.step(), opt.step();
  CHECK(found(opt) == "");

  std::vector<float> master(100, 1);
  master[1] = std::numeric_limits<float>::quiet_NaN();
  opt.set_master(a, master);
  CHECK(found(ds::any_optimizer(std::move(opt))) == a + " 1 1, " + a + ".master 1 1, ");
}
