// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/threads.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_at.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/sam.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adagrad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/polyak.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/choose.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/training/loss_scaler.hpp>
#include <descent/transforms/chain.hpp>
#include <descent/transforms/parts.hpp>

#include <doctest/doctest.h>
#include "support/computing.hpp"
#include "support/files.hpp"
#include "support/ranks.hpp"

#include <array>
#include <cfenv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// Ranks that disagree about the training setup: all get the same message, whatever differs, before any value changes.

namespace ds = descent;

namespace {

constexpr int team = 3, odd = 1;

/// The training setup of one rank: two tensors by default.
struct start {
  std::vector<float> value = std::vector<float>(64, 0), gradient = std::vector<float>(64, 1);
  ds::parameters<float> list;
  std::size_t used = 0;

  void add(std::string const& name, std::size_t rows, std::size_t columns = 1, int group = 0) {
    list.add(name, value.data() + used, gradient.data() + used, ds::shape{std::int64_t(rows), std::int64_t(columns)},
             ds::group{group});
    used += rows * columns;
  }
  ds::parameters<float> usual() {
    add("a", 4, 5), add("b", 7, 1, 1);
    return list;
  }
};

/// make(comm, whether this rank is the odd one, start) constructs an optimizer. All ranks must get the same message:
/// the first difference, which contains `says`, and which ranks have what.
template <class Make> void differ(std::string const& says, Make const& make) {
  INFO(says);
  ds::comm::threads world{team, std::chrono::seconds(60)};
  std::vector<start> starts(team);
  for (int r = 0; r < team; ++r) starts[std::size_t(r)].value[0] = float(r);
  auto const thrown =
      ranks::on_ranks(world, [&](auto& comm) { make(comm, comm.rank() == odd, starts[std::size_t(comm.rank())]); });
  auto const& text = thrown[0];
  CHECK(thrown == std::vector<std::string>(team, text));
  CHECK(text.starts_with("ranks disagree about the training setup: "));
  CHECK(text.find(says) != std::string::npos);
  CHECK(text.find(" (rank 0, 2); ") != std::string::npos);
  CHECK(text.ends_with(" (rank 1)"));
  CHECK(text.find("descent::detail") == std::string::npos);
  for (int r = 0; r < team; ++r) CHECK(starts[std::size_t(r)].value[0] == float(r));
}

/// The same if a rule and policies of the same types are made from the number that differs.
template <class Policies> void policies_differ(std::string const& says, double x, double y, Policies const& policies) {
  differ(says, [&](auto& comm, bool is_odd, start& s) {
    auto const params = s.usual();
    auto const build = [&](auto const& rule, auto... more) {
      ds::optimizer opt{params, rule, more..., ds::replicated{comm}};
    };
    policies(build, is_odd ? y : x);
  });
}

/// The layout of one rank differs.
template <class Layout> void layouts_differ(std::string const& says, Layout const& layout) {
  differ(says, [&](auto& comm, bool is_odd, start& s) {
    layout(s, is_odd);
    ds::optimizer opt{s.list, ds::adamw{}, ds::sharded{comm}};
  });
}

}  // namespace

TEST_CASE("trap 30: parameters that differ: name, order, size, shape, group, number") {
  layouts_differ("parameter 0 'a'", [](start& s, bool is) { s.add(is ? "x" : "a", 4); });
  layouts_differ("parameter 0 'a'", [](start& s, bool is) { s.add(is ? "b" : "a", 4), s.add(is ? "a" : "b", 4); });
  layouts_differ("setup: parameter 0 'a' of 4 elements in 1 columns, types 0, group 0 (rank 0, 2); "
                 "parameter 0 'a' of 5 elements in 1 columns, types 0, group 0 (rank 1)",
                 [](start& s, bool is) { s.add("a", is ? 5 : 4); });
  layouts_differ("'a' of 12 elements in 4 columns", [](start& s, bool is) { s.add("a", is ? 4 : 3, is ? 3 : 4); });
  layouts_differ("2 groups", [](start& s, bool is) { s.add("a", 4, 1, !is); });
  layouts_differ("parameter 1 'b' of 4 elements in 1 columns, types 0, group 1",
                 [](start& s, bool is) { s.add("a", 4, 1, 1), s.add("b", 4, 1, !is), s.add("c", 1, 1, 0); });
  layouts_differ("2 parameters (rank 0, 2); 3 parameters", [](start& s, bool is) {
    s.usual();
    if (is) s.add("c", 1);
  });
  layouts_differ("1 parameters (rank 0, 2); 0 parameters", [](start& s, bool is) {
    if (!is) s.add("a", 4);
  });
}

TEST_CASE("trap 30: types that differ: of values, rule, policies, sums over ranks; the message has all of the name") {
  differ("half", [](auto& comm, bool is, start& s) {
    std::vector<ds::half> p(4), g(4);
    ds::parameters<ds::half> other;
    other.add("a", p.data(), g.data(), 4);
    s.add("a", 4);
    if (is) ds::optimizer{other, ds::adamw{}, ds::replicated{comm}};
    else ds::optimizer{s.list, ds::adamw{}, ds::replicated{comm}};
  });
  differ("adam", [](auto& comm, bool is, start& s) {
    if (is) ds::optimizer{s.usual(), ds::adam{}, ds::replicated{comm}};
    else ds::optimizer{s.usual(), ds::adamw{}, ds::replicated{comm}};
  });
  differ("clip_value", [](auto& comm, bool is, start& s) {
    if (is) ds::optimizer{s.usual(), ds::adam{}, ds::replicated{comm}};
    else ds::optimizer{s.usual(), ds::adam{}, ds::clip_value{1}, ds::replicated{comm}};
  });
  differ("ordered_sum", [](auto& comm, bool is, start& s) {
    if (is) ds::optimizer{s.usual(), ds::adam{}, ds::replicated{comm}};
    else ds::optimizer{s.usual(), ds::adam{}, ds::replicated{comm, ds::ordered_sum{}}};
  });
  differ("sharded", [](auto& comm, bool is, start& s) {
    if (is) ds::optimizer{s.usual(), ds::adam{}, ds::replicated{comm}};
    else ds::optimizer{s.usual(), ds::adam{}, ds::sharded{comm}};
  });
}

TEST_CASE(
    "trap 30: hyperparameters that differ: of rules, also those that show only in sums, losses or the state's start") {
  policies_differ("lr of group 0 is 0.1 (rank 0, 2); lr of group 0 is 0.2 (rank 1)", 0.1, 0.2,
                  [](auto build, double x) { build(ds::adamw{.lr = x}); });
  policies_differ("beta1 of group 0 is 0.9 (rank 0, 2); beta1 of group 0 is 0.8 (rank 1)", 0.9, 0.8,
                  [](auto build, double x) { build(ds::adamw{.beta1 = x}); });
  policies_differ("weight_decay of group 0 is 0 (", 0, 0.1,
                  [](auto build, double x) { build(ds::sgd{.weight_decay = x}); });
  policies_differ("nesterov of group 0 is false (", 0, 1,
                  [](auto build, double x) { build(ds::sgd{.momentum = 0.5, .nesterov = x > 0}); });
  policies_differ("max_ratio of group 0 is 10 (", 10, 20,
                  [](auto build, double x) { build(ds::lamb{.max_ratio = x}); });
  policies_differ("initial of group 0 is 0.5 (", 0.5, 1,
                  [](auto build, double x) { build(ds::adagrad{.initial = x}); });
  policies_differ("centered of group 0 is false (", 0, 1,
                  [](auto build, double x) { build(ds::rmsprop{.centered = x > 0}); });
  static float loss = 1;
  policies_differ("lr of group 0 is 1 (", 1, 2,
                  [](auto build, double x) { build(ds::polyak{.lr = x}, ds::loss_at{&loss}); });
}

TEST_CASE("ranks agree on equal numbers in different floating-point modes") {
  ranks::with_ranks(2, [&](auto& comm) {
    ranks::model<float> m;
    test::computing const as(comm.rank() == 0 ? FE_TONEAREST : FE_DOWNWARD, false);
    CHECK_NOTHROW((ds::optimizer{m.list(), ds::sgd{.lr = 0.3}, ds::clip_norm{0.3}, ds::replicated{comm}}));
  });
}

TEST_CASE("trap 30: hyperparameters that differ: of policies") {
  auto const check = [](std::string const& says, double x, double y, auto const& policy) {
    policies_differ(says, x, y, [&](auto build, double z) { build(ds::sgd{}, policy(z)); });
  };
  check("max of clip_norm is 1 (", 1, 2, [](double x) { return ds::clip_norm{x}; });
  check("eps of clip_norm is 0 (", 0, 1e-6, [](double x) { return ds::clip_norm{1, x}; });
  check("c of clip_adaptive is 0.5 (", 0.5, 1, [](double x) { return ds::clip_adaptive{x}; });
  check("c of clip_value is 1 (", 1, 2, [](double x) { return ds::clip_value{x}; });
  check("n of accumulate is 2 (", 2, 4, [](double x) { return ds::accumulate{int(x)}; });
  check("decay of ema is 0.5 (", 0.5, 0.75, [](double x) { return ds::ema{.decay = x}; });
  check("start of ema is 5000 (", 5000, 6000, [](double x) { return ds::ema{.start = int(x)}; });
  check("every of swa is 7 (", 7, 8, [](double x) { return ds::swa{.start = 2000000, .every = int(x)}; });
  check("k of lookahead is 7 (", 7, 9, [](double x) { return ds::lookahead{.k = int(x)}; });
  check("every of outer is 7 (", 7, 9, [](double x) { return ds::outer{.every = int(x)}; });
  check("momentum of outer is 0.5 (", 0.5, 0.25, [](double x) { return ds::outer{.momentum = x}; });
  check("start of ema_nesterov is 7000 (", 7000, 9000, [](double x) { return ds::ema_nesterov{.start = int(x)}; });
  check("seed of gradient_noise is 1 (", 1, 2, [](double x) { return ds::gradient_noise{.seed = unsigned(x)}; });
  check("gamma of gradient_noise is 0.5 (", 0.5, 0.55, [](double x) { return ds::gradient_noise{.gamma = x}; });
  check("init of dynamic_loss_scale is 4 (", 4, 8, [](double x) { return ds::dynamic_loss_scale{.init = x}; });
  check("scale of static_loss_scale is 4 (", 4, 8, [](double x) { return ds::static_loss_scale{x}; });
  check("interval of dynamic_loss_scale is 100 (", 100, 200,
        [](double x) { return ds::dynamic_loss_scale{.interval = int(x)}; });
  check("patience of dynamic_loss_scale is 10 (", 10, 20,
        [](double x) { return ds::dynamic_loss_scale{.patience = int(x)}; });
  check("follows_lr of ema_nesterov is false (", 0, 1,
        [](double x) { return ds::ema_nesterov{.follows_lr = x > 0, .max_lr = 0}; });
  check("rho of sam is 0.5 (", 0.5, 1, [](double x) { return ds::sam{.rho = x}; });
  check("settings.patience of on_plateau is 3 (", 3, 4, [](double x) { return ds::on_plateau{{.patience = int(x)}}; });
  auto const falls = [](double x) { return ds::learning_rate(ds::step{1, 0.5, int(x)}); };
  check("every of the schedule of lr is 5 (", 5, 6, falls);
  check("every of the schedule of lr is 2000000 (", 2000000, 2000001, falls);

  differ("seed of stochastic_rounding is 3 (", [](auto& comm, bool is, start&) {
    std::vector<ds::bfloat16> p(4), g(4);
    ds::parameters<ds::bfloat16> list;
    list.add("a", p.data(), g.data(), 4);
    ds::optimizer{list, ds::sgd{}, ds::stochastic_rounding{is ? 4u : 3u}, ds::replicated{comm}};
  });
  differ("shared loss scale 2", [](auto& comm, bool is, start& s) {
    ds::loss_scaler scaler{ds::dynamic_loss_scale{.init = is ? 4.0 : 2.0}};
    ds::optimizer{s.usual(), ds::sgd{}, ds::shared_loss_scale{scaler}, ds::replicated{comm}};
  });
  differ("1.value of the schedule of lr is 3 (", [](auto& comm, bool is, start& s) {
    ds::optimizer{s.usual(), ds::sgd{}, ds::learning_rate(ds::per_group{ds::constant{1}, ds::constant{is ? 2.0 : 3.0}}),
                  ds::replicated{comm}};
  });
  differ("terms of group 1, update 1", [](auto& comm, bool is, start& s) {
    auto const user_function = [lr = is ? 2.0 : 3.0](std::int64_t) { return lr; };
    ds::optimizer{s.usual(), ds::sgd{}, ds::learning_rate(ds::per_group{ds::constant{1}, user_function}),
                  ds::replicated{comm}};
  });
}

TEST_CASE("trap 30: versions of the library that differ are reported first; the version is that of the build") {
  differ("descent 0.1.0 (rank 0, 2); descent 0.2.0 (rank 1)", [](auto& comm, bool is, start&) {
    std::uint64_t number = 0;
    throw std::invalid_argument(ds::detail::difference_in(
        comm, {std::string("descent ") + (is ? "0.2.0" : "0.1.0"), is ? "more" : "less"}, number));
  });
  using plan = ds::detail::optimizer_traits<float, float, ds::sgd>::plan;
  start s;
  ds::detail::layout<float, float> const where(s.usual());
  ds::detail::plain_vector<ds::group_entry<ds::sgd>> groups(2);
  groups[1].number = 1;
  auto const facts = ds::detail::facts_of<plan>(where, groups, plan::policies{});
  CHECK(facts[0] == std::string("descent ") + ds::version);
  std::ifstream file(test::tests_dir() + "/../meson.build");
  std::string const build{std::istreambuf_iterator<char>(file), {}};
  CHECK(build.find(std::string("version: '") + ds::version + "'") != std::string::npos);
}

namespace {

/// A schedule whose fields cannot be read.
struct with_hidden_end {
  explicit with_hidden_end(std::int64_t t) : end_(t) {}
  DESCENT_HD double operator()(std::int64_t t) const { return t < end_ ? 1 : 0; }

 private:
  std::int64_t end_;
};

}  // namespace

TEST_CASE("schedules without fields that can be read are compared at some updates, as the documentation says") {
  policies_differ("terms of group 0, update 100:", 50, 5000,
                  [](auto build, double x) { build(ds::sgd{}, ds::learning_rate(with_hidden_end(std::int64_t(x)))); });
  ranks::with_ranks(2, [](auto& comm) {
    start s;
    ds::optimizer opt{s.usual(), ds::sgd{}, ds::learning_rate(with_hidden_end(2000000 + comm.rank())),
                      ds::replicated{comm}};
    opt.step();
  });
}

namespace {

/// The numbers in x, and whether these are all of it.
template <class T> std::pair<std::vector<double>, bool> numbers_in(T const& x) {
  std::vector<double> all;
  bool const whole = ds::detail::each_number(x, [&](auto number) { all.push_back(double(number)); });
  return {all, whole};
}
struct with_arrays {
  bool b = true;
  std::array<float, 3> a{1, 2, 3};
  double const* pointer = nullptr;
  ds::scope over = ds::scope::tensor;
  ds::l1 nested{7};
};
struct of_a_base : ds::sgd { double more = 1; };
struct with_plain_array {
  double x[2] = {1, 2};
  float y = 3;
};
struct with_secrets {
  double a = 1;
  with_secrets() {}

 private:
  [[maybe_unused]] double b = 2;
};

}  // namespace

TEST_CASE("every number of an aggregate is found, in its arrays, rules inside and a chain's parts, or it says so") {
  using all = std::pair<std::vector<double>, bool>;
  CHECK(numbers_in(ds::sgd{0.5, 0.25, 0, 2, true, false}) == all{{0.5, 0.25, 0, 2, 1, 0}, true});
  CHECK(numbers_in(with_arrays{}) == all{{1, 1, 2, 3, double(ds::scope::tensor), 7}, true});
  CHECK(numbers_in(with_plain_array{}) == all{{1, 2, 3}, true});
  CHECK(numbers_in(ds::chain{ds::l2{0.5}, ds::l2{0.25}, ds::sgd{}}) == all{{0.5, 0.25, 1e-3, 0, 0, 0, 0, 0}, true});
  CHECK(numbers_in(ds::rmsprop{}).second);
  CHECK(numbers_in(ds::lamb{}).second);
  CHECK_FALSE(numbers_in(of_a_base{}).second);
  CHECK_FALSE(numbers_in(with_secrets{}).second);
}

TEST_CASE("fields of a rule that change no term before the last compared update are reported at the start") {
  differ("lr of group 0 is 0.001 (", [](auto& comm, bool is_odd, start& s) {
    // the schedule overrides lr
    ds::optimizer opt{s.usual(), ds::adamw{.lr = is_odd ? 2e-3 : 1e-3}, ds::learning_rate(ds::constant{1}),
                      ds::replicated{comm}};
  });
}

TEST_CASE("agree: every rank names the parameter, its part and the ranks that differ; broadcast() repairs it") {
  ranks::with_ranks(team, [](auto& comm) {
    ranks::model<ds::half> m(0, {4099, 1, 0, 7});
    ds::optimizer opt{
        m.list(), ds::adamw{}, ds::master<float>{}, ds::ema{.decay = 0.5}, ds::lookahead{.k = 2}, ds::replicated{comm}};
    m.set(0, comm.rank(), comm.rank() + 1);
    opt.agree();
    opt.step();
    opt.agree();
    auto const check = [&](std::string const& what, auto const& change) {
      INFO(what);
      if (comm.rank() == odd) change();
      auto const before = m.value;
      std::string const why = ranks::thrown<std::invalid_argument>([&] { opt.agree(); });
      CHECK(why.starts_with("ranks have diverged: " + what + " "));
      CHECK(why.find(" (rank 0, 2); " + what + " ") != std::string::npos);
      CHECK(why.ends_with(" (rank 1)"));
      for (std::size_t t = 0; t < before.size(); ++t)
        for (std::size_t i = 0; i < before[t].size(); ++i)
          CHECK(ds::widen<float>(m.value[t][i]) == ds::widen<float>(before[t][i]));
      opt.broadcast();
      opt.agree();
    };
    auto const with_last = [](auto const& view, double by) {
      std::vector one(view.begin(), view.end());
      one.back() += decltype(one.back() + 0)(by);
      return one;
    };
    check("value of 'w3'", [&] { m.value[3][6] = ds::narrow<ds::half>(9.0); });
    check("value of 'w0'", [&] { std::swap(m.value[0][0], m.value[0][4098]); });
    check("state m of 'w0'", [&] { opt.template set_state<0>("w0", with_last(opt.template state<0>("w0"), 1e-7)); });
    check("state v of 'w3'", [&] { opt.template set_state<1>("w3", with_last(opt.template state<1>("w3"), 1)); });
    check("master of 'w0'", [&] { opt.set_master("w0", with_last(opt.master("w0"), 1e-6)); });
    check("average of 'w1'", [&] { opt.set_average("w1", with_last(opt.average("w1"), 1)); });
    check("slow of 'w3'", [&] { opt.set_slow("w3", with_last(opt.slow("w3"), 1)); });
    check("beta2 of group 1 is", [&] { opt.group(1).beta2 = 0.5; });
    check("t is", [&] { opt.set_step(7); });
    opt.step();
    CHECK(opt.report().step == 2);
  });
}

TEST_CASE("agree_every: before every n-th update all ranks report a difference with nothing changed") {
  auto const run = [](auto const& policy_of) {
    ranks::with_ranks(team, [&](auto& comm) {
      ranks::model<float> m;
      ds::optimizer opt{m.list(), ds::sgd{.lr = 0.5}, ds::accumulate{2}, policy_of(comm)};
      m.set(0, comm.rank(), comm.rank() + 1);
      opt.step(), opt.step();
      if (comm.rank() == odd) m.value[0][3] += 1;
      auto const before = m.value;
      opt.step();
      std::string const why = ranks::thrown<std::invalid_argument>([&] { opt.step(); });
      CHECK(why.starts_with("ranks have diverged: value of 'w0' "));
      CHECK(why.ends_with(" (rank 1)"));
      CHECK(m.value == before);
      CHECK(opt.report().step == 1);
      opt.step();
      CHECK(opt.report().step == 2);
    });
  };
  run([](auto& comm) { return ds::replicated{comm, ds::agree_every{2}}; });
  run([](auto& comm) { return ds::sharded{comm, ds::agree_every{2}}; });
  differ("agree_every of replicated is 2 (rank 0, 2); agree_every of replicated is 3 (",
         [](auto& comm, bool is_odd, start& s) {
           ds::optimizer opt{s.usual(), ds::sgd{}, ds::replicated{comm, ds::agree_every{is_odd ? 3 : 2}}};
         });
  ranks::with_ranks(1, [](auto& comm) {
    start s;
    CHECK_THROWS_WITH_AS((ds::optimizer{s.usual(), ds::sgd{}, ds::replicated{comm, ds::agree_every{0}}}),
                         "agree_every: updates must be above 0, is 0", std::invalid_argument);
  });
}
