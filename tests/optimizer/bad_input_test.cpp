// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Hyperparameters and memory that the optimizer refuses, each with its message; a refusal changes nothing.
#include <descent/core/fields.hpp>
#include <descent/cost.hpp>
#include <descent/data/distributed_sampler.hpp>
#include <descent/minimizers/esgd.hpp>
#include <descent/minimizers/lbfgs.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rows.hpp>
#include <descent/policies/sam.hpp>
#include <descent/presets/schedules.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/training/large_batch.hpp>

#include "support/message.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ds = descent;
using test::message;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
double const no_number = std::numeric_limits<double>::quiet_NaN();

/// The optimizer's message for this rule and these policies; checks that its parameter has not changed.
template <class Rule, class... Ps> std::string refusal(Rule rule, Ps... policies) {
  std::vector<double> w(3, 1.0), g(3, 0.5);
  ds::parameters<double> params;
  params.add("w", w.data(), g.data(), 3);
  std::string const what = message([&] { ds::optimizer opt{params, rule, policies...}; });
  CHECK(w == std::vector<double>(3, 1.0));
  CHECK(g == std::vector<double>(3, 0.5));
  CHECK(params.views().size() == 1);
  return what;
}

/// Gives one field of a rule several values in turn; the message names rule, field, range and value.
template <class Rule> struct field {
  char const* rule;
  char const* name;
  double Rule::* member;
  Rule base{};

  void refuses(char const* allowed, std::vector<double> const& values) const {
    for (double x : values) {
      Rule r = base;
      r.*member = x;
      CHECK(message([&] { ds::check_rule<double>(r); }) ==
            std::string(rule) + ": " + name + " must be " + allowed + ", is " + ds::detail::number(x));
    }
  }
  void accepts(std::vector<double> const& values) const {
    for (double x : values) {
      Rule r = base;
      r.*member = x;
      CHECK(message([&] { ds::check_rule<double>(r); }) == "");
    }
  }
  void nonnegative() const {
    refuses("finite and at least 0", {-1e-30, -1, inf, -inf, no_number});
    accepts({0, 1e-300, 1, 1e300});
  }
  void positive() const {
    refuses("finite and above 0", {0, -1e-30, -1, inf, -inf, no_number});
    accepts({1e-300, 1, 1e300});
  }
  void fraction() const {
    refuses("in [0, 1)", {-1e-30, 1, 1.5, inf, -inf, no_number});
    accepts({0, 0.5, 1 - 0x1p-53});
  }
};

}  // namespace

TEST_CASE("every rule accepts its defaults") {
  auto const accepts = [](auto const& rule) { CHECK(message([&] { ds::check_rule<double>(rule); }) == ""); };
  auto const all = [&](auto... rules) { (accepts(rules), ...); };
  all(ds::adam{}, ds::adamw{}, ds::dog{}, ds::lamb{}, ds::lars{}, ds::lion{}, ds::rmsprop{}, ds::sgd{});
}

TEST_CASE("adam, adamw, lamb: ranges of every field") {
  auto const check = [](auto rule, char const* name) {
    using R = decltype(rule);
    field<R>{name, "lr", &R::lr}.nonnegative();
    field<R>{name, "beta1", &R::beta1}.fraction();
    field<R>{name, "beta2", &R::beta2}.fraction();
    field<R>{name, "eps", &R::eps}.positive();
    field<R>{name, "weight_decay", &R::weight_decay}.nonnegative();
  };
  check(ds::adam{}, "adam");
  check(ds::adamw{}, "adamw");
  check(ds::lamb{}, "lamb");
}

TEST_CASE("lion, rmsprop, dog: ranges of every field") {
  field<ds::lion>{"lion", "lr", &ds::lion::lr}.nonnegative();
  field<ds::lion>{"lion", "beta1", &ds::lion::beta1}.fraction();
  field<ds::lion>{"lion", "beta2", &ds::lion::beta2}.fraction();
  field<ds::lion>{"lion", "weight_decay", &ds::lion::weight_decay}.nonnegative();
  field<ds::rmsprop>{"rmsprop", "lr", &ds::rmsprop::lr}.nonnegative();
  field<ds::rmsprop>{"rmsprop", "alpha", &ds::rmsprop::alpha}.fraction();
  field<ds::rmsprop>{"rmsprop", "eps", &ds::rmsprop::eps}.positive();
  field<ds::rmsprop>{"rmsprop", "weight_decay", &ds::rmsprop::weight_decay}.nonnegative();
  field<ds::rmsprop>{"rmsprop", "momentum", &ds::rmsprop::momentum}.nonnegative();
  field<ds::dog>{"dog", "lr", &ds::dog::lr}.nonnegative();
  field<ds::dog>{"dog", "reps", &ds::dog::reps}.nonnegative();
  field<ds::dog>{"dog", "weight_decay", &ds::dog::weight_decay}.nonnegative();
  field<ds::dog>{"dog", "eps", &ds::dog::eps}.refuses("finite and above 0", {0, -1, inf, no_number});
}

TEST_CASE("sgd, lars: ranges of every field, alone and together") {
  field<ds::sgd>{"sgd", "lr", &ds::sgd::lr}.nonnegative();
  field<ds::sgd>{"sgd", "momentum", &ds::sgd::momentum}.nonnegative();
  field<ds::sgd>{"sgd", "weight_decay", &ds::sgd::weight_decay}.nonnegative();
  field<ds::sgd>{"sgd", "dampening", &ds::sgd::dampening}.refuses("finite", {inf, -inf, no_number});
  field<ds::sgd>{"sgd", "dampening", &ds::sgd::dampening}.accepts({-1, 0, 0.5, 2});
  ds::sgd const nesterov{.momentum = 0.9, .nesterov = true};
  field<ds::sgd>{"sgd", "momentum", &ds::sgd::momentum, nesterov}.refuses("above 0 with nesterov", {0});
  field<ds::sgd>{"sgd", "dampening", &ds::sgd::dampening, nesterov}.refuses("0 with nesterov", {0.1, -0.1});
  field<ds::lars>{"lars", "lr", &ds::lars::lr}.nonnegative();
  field<ds::lars>{"lars", "momentum", &ds::lars::momentum}.nonnegative();
  field<ds::lars>{"lars", "weight_decay", &ds::lars::weight_decay}.nonnegative();
  field<ds::lars>{"lars", "trust", &ds::lars::trust}.nonnegative();
  field<ds::lars>{"lars", "eps", &ds::lars::eps}.nonnegative();
  ds::lars const ahead{.nesterov = true};
  field<ds::lars>{"lars", "momentum", &ds::lars::momentum, ahead}.refuses("above 0 with nesterov", {0});
}

TEST_CASE("the optimizer checks rule and policies at construction") {
  CHECK(refusal(ds::sgd{}) == "");
  CHECK(refusal(ds::sgd{.lr = -1}) == "sgd: lr must be finite and at least 0, is -1");
  CHECK(refusal(ds::sgd{.lr = no_number}) == "sgd: lr must be finite and at least 0, is nan");
  CHECK(refusal(ds::sgd{}, ds::clip_norm{0}) == "clip_norm: max must be above 0, is 0");
  CHECK(refusal(ds::sgd{}, ds::clip_norm{-2}) == "clip_norm: max must be above 0, is -2");
  CHECK(refusal(ds::sgd{}, ds::clip_norm{no_number}) == "clip_norm: max must be above 0, is nan");
  CHECK(refusal(ds::sgd{}, ds::clip_norm{inf}) == "");  // only measures, never clips
}

TEST_CASE("overlapping parameters are refused at construction") {
  std::vector<double> x(20, 1.0);
  ds::parameters<double> params;
  params.add("w", x.data(), x.data() + 4, 5);
  std::string const want = "the value of 'w' overlaps the gradient of 'w' in memory";
  CHECK(message([&] { ds::optimizer opt{params, ds::sgd{}}; }) == want);
  CHECK(message([&] { ds::memory(params, ds::sgd{}); }) == want);
  CHECK(x == std::vector<double>(20, 1.0));

  // With one gradient for two values, zero_grad{}, unscale() and transform_gradients() would do everything twice.
  ds::parameters<double> one_gradient;
  one_gradient.add("a", x.data(), x.data() + 10, 5);
  one_gradient.add("b", x.data() + 5, x.data() + 10, 5, ds::group{1});
  std::string const shared = "the gradient of 'a' overlaps the gradient of 'b' in memory";
  CHECK(message([&] { ds::optimizer opt{one_gradient, ds::sgd{}}; }) == shared);
}

TEST_CASE("any integer: what takes one either counts right or says what is allowed, and nothing overflows") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(), least = -most - 1, one = 1;
  constexpr int most_int = std::numeric_limits<int>::max(), least_int = -most_int - 1;
  std::int64_t const numbers[] = {least, -1, 0, 1, one << 31, one << 48, (one << 48) + 1, one << 60, most};

  auto* const far = reinterpret_cast<double*>(one << 45);  // nothing is mapped there
  auto const memory_of = [&](std::int64_t count, int tensors) {
    ds::parameters<double> params;
    for (int i = 0; i < tensors; ++i) params.add(std::to_string(i), far, far, count);
    return message([&] { ds::memory(params, ds::adam{}); });
  };
  std::string const too_many = "parameters: the elements of all together must be at most 2^48, is ";
  CHECK(memory_of(one << 60, 1) == too_many + std::to_string(one << 60));
  CHECK(memory_of(one << 60, 20) == too_many + std::to_string(one << 60));
  CHECK(memory_of(one << 47, 3) == too_many + std::to_string(3 * (one << 47)));

  for (std::int64_t size : numbers)
    for (std::int64_t consumed : numbers)
      for (bool drop : {false, true}) {
        ds::distributed_sampler const s{
            .size = size, .ranks = most_int, .uneven = drop ? ds::uneven::drop : ds::uneven::pad};
        bool const fits = size >= 0 && size <= one << 48 && consumed >= 0 && consumed <= size;
        std::int64_t n = -1;
        CHECK(message([&] { n = s.count(consumed); }).empty() == fits);
        if (!fits) continue;
        CHECK(n == (size - consumed) / most_int + (!drop && (size - consumed) % most_int != 0));
        for (std::int64_t batch : numbers)
          CHECK(message([&] { s.batches(batch, drop, consumed); }).empty() == (batch >= 1));
        CHECK(s.batches(most, false, consumed) == (n > 0));
      }
  CHECK(message([] { ds::distributed_sampler{.size = 10}.count(25); }) ==
        "distributed_sampler: consumed must be in [0, size], is 25");
  CHECK(message([] { ds::distributed_sampler{.size = 10, .ranks = 0}.count(); }) ==
        "distributed_sampler: ranks must be at least 1, is 0");
  CHECK(message([] { ds::random_order(most, 0); }) ==
        "random_order: n must be in [0, 2^48], is " + std::to_string(most));
  CHECK(ds::distributed_sampler{.size = 3}.indices(most) != ds::distributed_sampler{.size = 3}.indices(least));

  for (std::int64_t micro : numbers)
    for (std::int64_t ranks : numbers)
      for (std::int64_t n : numbers) {
        bool const fits = micro >= 1 && micro < one << 31 && ranks >= 1 && ranks < one << 31 && n >= 1;
        std::int64_t batch = 0;
        std::string const said = message([&] { batch = ds::whole_batch(micro, ranks, n); });
        CHECK(said.empty() == (fits && n <= (one << 62) / (micro * ranks)));
        if (said.empty()) CHECK(batch == micro * ranks * n);
      }
  CHECK(message([] { ds::whole_batch(8, 1, most); }) ==
        "whole_batch: accumulated must be so that the batch is at most 2^62, is " + std::to_string(most));
  for (std::int64_t samples : numbers)
    for (std::int64_t batch : numbers) {
      CHECK(message([&] { ds::updates_in(0.25, samples, batch); }).empty() == (samples > 0 && batch > 0));
      CHECK(message([&] { ds::ghost_parts(samples, batch); }).empty() == (samples >= 0 && batch > 0));
    }
  CHECK(ds::ghost_parts(most, 2) == most / 2 + 1);
  for (std::int64_t steps : numbers)
    CHECK(message([&] { ds::preset::optax::warmup_cosine_decay_schedule(0, 1, steps, least); }) != "");
  for (double pct : {-1., 2., 1e300, no_number}) {
    std::string const sentence = "_onecycle_schedule: pct_start must be in [0, 1], is " + ds::detail::number(pct);
    CHECK(message([&] { ds::preset::optax::linear_onecycle_schedule(most / 2, 1, pct); }) == "linear" + sentence);
    CHECK(message([&] { ds::preset::optax::cosine_onecycle_schedule(most / 2, 1, pct); }) == "cosine" + sentence);
  }

  std::vector<double> w(3, 1.0), g(3, 0.5);
  ds::parameters<double> params;
  params.add("w", w.data(), g.data(), 3);
  ds::optimizer opt{params, ds::sgd{.lr = 0.5}, ds::accumulate{most_int}, ds::lookahead{.k = most_int},
                    ds::swa{.start = most, .every = most}, ds::masked_rows{}};
  opt.set_step(one << 62);
  opt.step(), opt.step();
  g.assign(3, 2.0);
  opt.flush();
  CHECK(w == std::vector<double>(3, 0.5));
  std::int64_t const rows[] = {least, most};
  for (std::int64_t count : {least, -one, (one << 48) + 1, most})
    CHECK(message([&] { opt.select_rows("w", rows, count); }) ==
          "select_rows: count must be in [0, 2^48], is " + std::to_string(count));
  CHECK(message([&] { opt.select_rows("w", rows, 2); }) ==
        "select_rows: row number 1 of the list is " + std::to_string(most) + ", but there are 3 rows");
  for (int group : {least_int, -1, 1, most_int}) {
    CHECK(message([&] { opt.group(group); }).starts_with("there is no group " + std::to_string(group)));
    CHECK(message([&] { params.add("x", w.data(), g.data(), 1, ds::group{group + (group == 1) * 65535}); }) != "");
  }
  CHECK(message([&] { opt.state("w", std::size_t(-1)); }) != "");
  for (int n : {least_int, -1, 0, 1, 65537, most_int}) {
    bool const some = n >= 1, few = some && n <= 65536;
    CHECK(message([&] { ds::esgd{.population = n, .parents = 1, .elite = 1}.check(); }).empty() == few);
    CHECK(message([&] { ds::esgd{.offspring = n}.check(); }).empty() == few);
    CHECK(message([&] { ds::esgd{.generations = n}.check(); }).empty() == some);
    CHECK(message([&] { ds::lbfgs{.history = n, .max_iterations = n, .max_evaluations = n}.check(); }).empty() == some);
    CHECK(message([&] { ds::check_rule<float>(ds::accumulate{n}); }).empty() == some);
    CHECK(message([&] { ds::check_rule<float>(ds::lookahead{.k = n}); }).empty() == some);
    CHECK(message([&] { ds::check_rule<float>(ds::outer{.every = n}); }).empty() == some);
  }
  for (double x : {-1.0, 0.0, 1.0, 1e-60, 1e300, HUGE_VAL, double(NAN)}) {
    CHECK(message([&] { ds::check_rule<float>(ds::outer{.lr = x}); }).empty() == (x == 1));
    CHECK(message([&] { ds::check_rule<float>(ds::outer{.momentum = x}); }).empty() == (x == 0 || x == 1e-60));
    CHECK(message([&] { ds::check_rule<float>(ds::ema_nesterov{.momentum = x}); }).empty() == (x == 0 || x == 1e-60));
    CHECK(message([&] { ds::check_rule<float>(ds::ema_nesterov{.lookahead = x}); }).empty() == (x >= 0 && x < 1e38));
    CHECK(message([&] { ds::check_rule<float>(ds::ema_nesterov{.max_lr = x}); }).empty() == (x >= 0 && x < 1e38));
  }
}

TEST_CASE("ema_nesterov: the largest learning rate is given if it is not known") {
  std::vector<float> x(3), g(3);
  ds::parameters<float> params;
  params.add("w", x.data(), g.data(), 3);
  auto const refused = [&](ds::ema_nesterov const& how, auto const& rule, auto... more) {
    return message([&] { ds::optimizer{params, rule, how, more...}; });
  };
  std::string const unknown =
      "ema_nesterov: max_lr must be the largest learning rate, which is not known here (or follows_lr off), is 0";
  auto const any = ds::learning_rate([](std::int64_t) { return 0.5; });
  CHECK(refused({}, ds::sgd{.lr = 0.5}) == "");
  CHECK(refused({}, ds::sgd{.lr = 0}) == unknown);
  CHECK(refused({}, ds::sgd{.lr = 0.5}, any) == unknown);
  CHECK(refused({.max_lr = 0.5}, ds::sgd{.lr = 0.5}, any) == "");
  CHECK(refused({.follows_lr = false}, ds::sgd{.lr = 0.5}, any) == "");
  CHECK(refused({.follows_lr = false, .max_lr = 1}, ds::sgd{.lr = 0.5}) ==
        "ema_nesterov: max_lr must be 0 without follows_lr, is 1");
}

#if defined(__linux__)
TEST_CASE(
    "memory that the host cannot read is refused, at its first byte and at its last, never "
    "touched") {
  std::size_t const page = 65536;  // at least one page
  auto* const there =
      static_cast<std::byte*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(static_cast<void*>(there) != MAP_FAILED);
  REQUIRE(mprotect(there + page, page, PROT_NONE) == 0);  // as if it were device memory
  auto* const edge = reinterpret_cast<double*>(there + page);
  std::vector<double> w(100, 1.0), g(100, 0.5);
  auto const refused = [](double* value, double* gradient, int count) {
    ds::parameters<double> params;
    params.add("w", value, gradient, count);
    return message([&] {
      ds::optimizer opt{params, ds::sgd{.lr = 0.5}};
      opt.step();
    });
  };
  std::string const its = "parameter 'w': its ";
  auto const none = [&](double* p) {
    return " is not host memory: there is none at " + ds::detail::in_hex(p) +
           "; for device memory use the backend cuda{stream}";
  };
  auto const ends = [&](double* p) { return ds::detail::in_hex(p) + " on, but the memory there ends before"; };
  CHECK(refused(edge, g.data(), 100) == its + "value" + none(edge));
  CHECK(refused(edge - 10, g.data(), 100) == its + "value has 100 elements, 800 bytes from " + ends(edge - 10));
  CHECK(refused(w.data(), edge, 1) == its + "gradient" + none(edge));
  CHECK(refused(w.data(), edge - 10, 11) == its + "gradient has 11 elements, 88 bytes from " + ends(edge - 10));
  CHECK(w == std::vector<double>(100, 1.0));
  CHECK(refused(edge - 10, g.data(), 10) == "");  // up to the edge
  CHECK(refused(edge, edge, 0) == "");            // nothing is there
  CHECK(edge[-1] == -0.25);
  munmap(there, 2 * page);
}
#endif

namespace {

/// What the optimizer says of a policy where everything is of type Real.
template <class Real, class Policy> std::string refusal_in(Policy const& policy) {
  return message([&] { ds::detail::optimizer_traits<Real, Real, ds::sgd, Policy>::check({policy}); });
}

/// Every field that a policy lists takes the ends of its interval, and no number beyond, in this arithmetic.
template <class Real, class Policy> void takes_its_intervals() {
  constexpr double most = std::numeric_limits<Real>::max(), least = std::numeric_limits<Real>::min();
  for (auto const& range : Policy::ranges) {
    ds::interval const& allowed = range.allowed;
    double const in_real[] = {inf, -inf, 0, 1, -1, 1e-60, 1e-30, 1e30, 1e39, 1e300, most, least,
                              std::nextafter(least, 0), std::numeric_limits<double>::denorm_min(), no_number};
    std::vector<double> all(std::begin(in_real), std::end(in_real));
    for (double const end : {allowed.low, allowed.high})
      for (double const to : {-inf, end, inf}) all.push_back(std::nextafter(end, to));
    for (double const x : all) {
      Policy policy{};
      if (range.real) policy.*range.real = x;
      else if (x != std::floor(x) || std::abs(x) > 1e9) continue;
      else if (range.whole) policy.*range.whole = int(x);
      else policy.*range.large = std::int64_t(x);
      CAPTURE(ds::detail::rule_name<Policy>() + ": " + range.name(policy) + " = " + ds::detail::printed("%.17g", x));
      bool const in = (allowed.above ? x > allowed.low : x >= allowed.low) &&
                      (allowed.below ? x < allowed.high : x <= allowed.high || (x == inf && allowed.infinite));
      Real const y = Real(x);  // what the update reads
      bool const usable =
          (std::abs(y) <= Real(most) || allowed.infinite) && !(allowed.above && allowed.low == 0 && y < Real(least));
      std::string const why = refusal_in<Real>(policy);
      CAPTURE(why);
      CHECK(why.empty() == (in && usable && (x < inf || allowed.infinite)));
      CHECK(
          (why.empty() || why.starts_with(ds::detail::rule_name<Policy>() + ": " + range.name(policy) + " must be ")));
      CHECK((why.empty() || why.ends_with(", is " + ds::detail::refused_number(x))));
    }
  }
}
template <class... Policies> void each_takes_its_intervals() {
  (takes_its_intervals<float, Policies>(), ...);
  (takes_its_intervals<double, Policies>(), ...);
}

}  // namespace

TEST_CASE("policies: every number takes its interval in the type of the arithmetic, and nothing else") {
  each_takes_its_intervals<ds::clip_norm, ds::clip<ds::norm::inf, ds::scope::tensor>, ds::clip_adaptive, ds::clip_value,
                           ds::gradient_noise, ds::sam, ds::accumulate, ds::ema, ds::swa, ds::lookahead, ds::outer,
                           ds::ema_nesterov, ds::dynamic_loss_scale, ds::static_loss_scale>();
  CHECK(refusal_in<float>(ds::clip_norm{1e-60}) ==
        "clip_norm: max must be above 0 in float, at least 1.17549e-38, is 1e-60");
  CHECK(refusal_in<double>(ds::clip_norm{1e-60}) == "");
  CHECK(refusal_in<float>(ds::sam{1e300}) == "sam: rho must be finite in float, is 1e+300");
}

TEST_CASE("calls between two swaps name themselves, and a number that is too large for a field its limits") {
  std::array<float, 1> w{1}, g{1};
  ds::parameters<float> list;
  list.add("w", w.data(), g.data(), 1);
  ds::optimizer opt{list, ds::sgd{}, ds::accumulate{2}, ds::ema{}};
  opt.swap_average();
  CHECK(message([&] { opt.flush(); }).starts_with("flush() between two calls of swap_average()"));
  CHECK(message([&] { opt.step(); }).starts_with("step() between two calls of swap_average()"));
  struct counted { int every = 1; } rule;
  CHECK(message([&] { ds::set_field(rule, "every", 4e9); }) ==
        "the field 'every' must be a whole number in [-2147483647, 2147483647], is 4e+09");
  CHECK(rule.every == 1);
}
