// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Laws of what a step does around its rule: loss scale, clipping, accumulation, averages, skips, frozen groups, and the
// order of calls.
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/cautious_decay.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/polyak.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/transforms/chain.hpp>
#include <descent/policies/loss_at.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/schedules/warmup.hpp>
#include <descent/training/loss_scaler.hpp>
#include <descent/training/qk_clip.hpp>

#include <doctest/doctest.h>

#include "support/larger.hpp"
#include "support/message.hpp"
#include "support/own_policies.hpp"
#include "support/problem.hpp"
#include "support/sizes.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

using namespace test;
namespace ds = descent;
using ds::half, ds::bfloat16;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();
std::vector<std::size_t> const sizes{3, 0, chunk + 9, 21};

template <class T> std::vector<T> copy(std::span<T const> x) { return {x.begin(), x.end()}; }
template <class T> bool all_zero(std::vector<std::vector<T>> const& tensors) {
  for (auto const& x : tensors)
    for (T one : x)
      if (ds::widen<double>(one) != 0) return false;
  return true;
}

/// The norm of the gradients divided by `scale`, over the tensors that count.
template <class G>
double l2_norm(std::vector<std::vector<G>> const& gradients, double scale, std::function<bool(std::size_t)> counts) {
  double sum = 0;
  for (std::size_t k = 0; k < gradients.size(); ++k)
    for (G g : gradients[k])
      if (counts(k)) sum += std::pow(ds::widen<double>(g) / scale, 2);
  return std::sqrt(sum);
}
auto const every = [](std::size_t) { return true; };

/// Adds the gradients of examples, each times a scale, as micro-batches whose losses are sums over examples do.
void add_gradients(problem<float>& p, int t, int first_example, int examples, float scale = 1) {
  for (std::size_t k = 0; k < p.grad.size(); ++k)
    for (std::size_t i = 0; i < p.grad[k].size(); ++i)
      for (int e = first_example; e < first_example + examples; ++e)
        p.grad[k][i] += scale * float(gradient(k, i, 1000 * t + e));
}

}  // namespace

// ---- loss scale -----------------------------------------------------------------------------------------------------

TEST_CASE("the result does not depend on the loss scale, bit for bit") {
  auto const train = [](auto rule, double scale) {
    problem<float> p(sizes);
    p.group = {0, 0, 1, 1};
    ds::optimizer opt{p.parameters(),
                      rule,
                      ds::static_loss_scale{scale},
                      ds::clip_norm{0.5},
                      ds::clip_value{0x1p-8},
                      ds::zero_grad{},
                      ds::ema{.decay = 0.5}};
    std::vector<double> numbers;
    for (int t = 1; t <= 6; ++t) {
      p.set_gradients(t, scale);
      numbers.push_back(opt.gradient_norm());
      opt.step();
      CHECK(opt.report().applied);
      numbers.push_back(opt.report().grad_norm);
      numbers.push_back(opt.report().clip_factor);
    }
    CHECK(numbers.back() < 1);
    for (auto const& x : p.value) numbers.insert(numbers.end(), x.begin(), x.end());
    return numbers;
  };
  for (double scale : {0x1p8, 0x1p16}) {
    CAPTURE(scale);
    CHECK(train(ds::adamw{}, scale) == train(ds::adamw{}, 1));
    CHECK(train(ds::lamb{}, scale) == train(ds::lamb{}, 1));
  }
}

TEST_CASE("unscale() then step() equals step(), bit for bit: it divides once and finds what is not finite") {
  problem<float> p(sizes), q(sizes);
  ds::dynamic_loss_scale const policy{.init = 0x1p16, .interval = 2};
  ds::optimizer a{p.parameters(), ds::adamw{}, policy, ds::clip_norm{1}};
  ds::optimizer b{q.parameters(), ds::adamw{}, policy, ds::clip_norm{1}};
  for (int t = 1; t <= 9; ++t) {
    CHECK(a.loss_scale() == b.loss_scale());
    p.set_gradients(t, a.loss_scale());
    q.set_gradients(t, b.loss_scale());
    bool const good = t % 3 != 0, by_itself = t % 4 == 0;  // without unscale(), after steps with it
    if (!good) p.grad[2][chunk] = q.grad[2][chunk] = float(t == 3 ? infinity : t == 6 ? -infinity : not_a_number);
    double const scale = b.loss_scale();
    auto const moments = copy(b.state("tensor2", 0));
    if (!by_itself) b.unscale();
    if (good && !by_itself) CHECK(q.grad[2][5] == float(gradient(2, 5, t)));
    CHECK(b.loss_scale() == scale);
    a.step();
    b.step();
    CHECK(a.report().applied == good);
    CHECK(b.report().applied == good);
    CHECK((b.report().grad_norm == a.report().grad_norm || !good));
    CHECK(same_bits(p.value, q.value));
    CHECK(same_bits(copy(b.state("tensor2", 0)), moments) == !good);
    if (!good) CHECK(b.loss_scale() == scale / 2);
  }
}

TEST_CASE("gradients that are overwritten after unscale() have their loss scale again") {
  ds::loss_scaler scaler{ds::dynamic_loss_scale{.init = 1024}};
  auto const check = [](auto scale) {
    problem<float> p(sizes), q(sizes);
    ds::optimizer plain{p.parameters(), ds::sgd{}};
    ds::optimizer opt{q.parameters(), ds::sgd{}, scale};
    auto const save_and_load = [&] { opt.load([](auto const&, auto elements) { return elements; }); };
    int t = 1;
    auto const same = [&](auto const& write_anew) {
      q.set_gradients(7 + t, 1024);
      opt.unscale();
      write_anew();
      p.set_gradients(t), q.set_gradients(t, 1024);
      if (t == 1) opt.unscale();  // not a second time for this step
      plain.step(), opt.step();
      ++t;
      CHECK(same_bits(p.value, q.value));
    };
    same([&] { opt.zero_grad(); });
    if constexpr (requires { scale.init; }) {
      same([&] { opt.zero_grad(); });
      same(save_and_load);
      opt.unscale();
      CHECK(message([&] { opt.gathered(q.parameters()); }) ==
            "gathered() between unscale() and step(): new gradients have their loss scale");
    }
  };
  check(ds::dynamic_loss_scale{.init = 1024});
  check(ds::shared_loss_scale{scaler});
}

TEST_CASE("several optimizers on one scale: the bad one alone skips, the scale halves once") {
  problem<float> p(sizes), q(sizes);
  ds::loss_scaler scaler{ds::dynamic_loss_scale{.init = 1024, .interval = 2}};
  ds::optimizer a{p.parameters(), ds::sgd{}, ds::shared_loss_scale{scaler}};
  ds::optimizer b{q.parameters(), ds::adamw{}, ds::shared_loss_scale{scaler}};
  struct iteration {
    bool bad_a, bad_b;
    double scale_after;
  };
  for (auto [bad_a, bad_b, after] :
       {iteration{true, false, 512}, iteration{false, true, 256}, iteration{true, true, 128},
        iteration{false, false, 128}, iteration{false, false, 256}}) {
    double const scale = scaler.loss_scale();
    p.set_gradients(1, scale);
    q.set_gradients(1, scale);
    if (bad_a) p.grad[0][2] = float(infinity);
    if (bad_b) q.grad[3][20] = float(not_a_number);
    auto const before_a = p.value, before_b = q.value;
    a.step();
    CHECK(scaler.loss_scale() == scale);  // the second one has the scale of the first
    b.step();
    CHECK(a.report().applied == !bad_a);
    CHECK(b.report().applied == !bad_b);
    CHECK(same_bits(p.value, before_a) == bad_a);
    CHECK(same_bits(q.value, before_b) == bad_b);
    CHECK(scaler.loss_scale() == scale);
    scaler.update();
    CHECK(scaler.loss_scale() == after);
    CHECK(a.loss_scale() == after);
    CHECK(b.report().loss_scale == after);
    CHECK(*scaler.loss_scale_pointer() == float(after));
    CHECK(a.loss_scale_pointer() == b.loss_scale_pointer());
  }
}

TEST_CASE("last_report() has the scale of a loss_scaler") {
  problem<float> p(sizes);
  ds::loss_scaler scaler{ds::dynamic_loss_scale{.init = 1024, .interval = 1}};
  ds::optimizer opt{p.parameters(), ds::sgd{}, ds::shared_loss_scale{scaler}};
  CHECK(opt.last_report().loss_scale == 1024);
  p.set_gradients(1, 1024);
  opt.step();
  CHECK(opt.last_report().loss_scale == 1024);
  scaler.update();
  CHECK(opt.last_report().loss_scale == opt.report().loss_scale);
}

TEST_CASE("iterations that only accumulate leave a shared scale alone") {
  problem<float> p(sizes);
  ds::loss_scaler scaler{ds::dynamic_loss_scale{.init = 8, .interval = 1}};
  ds::optimizer opt{p.parameters(), ds::sgd{}, ds::shared_loss_scale{scaler}, ds::accumulate{3}};
  p.set_gradients(1, 8);
  for (double after : {8, 8, 16, 16, 16, 32}) {
    opt.step();
    scaler.update();
    CHECK(scaler.loss_scale() == after);
  }
}

TEST_CASE("training that does not recover is reported after as many skips as patience asks for, not before") {
  auto const skips_until_stuck = [](auto& opt, auto& p) {
    p.grad[0][0] = float(not_a_number);
    for (int n = 1; n <= 100; ++n) {
      opt.step();
      CHECK(opt.report().skipped >= n);
      if (opt.report().why.find("training is not recovering") != std::string::npos) return n;
    }
    return 0;
  };
  problem<float> p(sizes);
  ds::optimizer at_floor{p.parameters(), ds::sgd{}, ds::dynamic_loss_scale{.init = 2, .min = 2}};
  ds::optimizer above{p.parameters(), ds::sgd{}, ds::dynamic_loss_scale{.init = 8, .min = 2}};
  ds::optimizer fixed{p.parameters(), ds::sgd{}, ds::static_loss_scale{.scale = 8, .patience = 3}};
  ds::optimizer none{p.parameters(), ds::sgd{}, ds::skip_nonfinite{}};
  CHECK(skips_until_stuck(at_floor, p) == 20);
  CHECK(skips_until_stuck(above, p) == 22);  // 8 to 4 to 2, and 20 there
  CHECK(skips_until_stuck(fixed, p) == 3);
  CHECK(skips_until_stuck(none, p) == 20);
  CHECK(at_floor.loss_scale() == 2);
  p.set_gradients(1);
  at_floor.step(), none.step();
  CHECK(at_floor.report().why == "");
  CHECK(skips_until_stuck(at_floor, p) == 20);
  CHECK(skips_until_stuck(none, p) == 20);
}

// ---- clipping and norms ---------------------------------------------------------------------------------------------

TEST_CASE("clip_value does not hide non-finite gradients from the skip") {
  for (double bad : {not_a_number, infinity, -infinity}) {
    CAPTURE(bad);
    problem<float> p(sizes);
    ds::optimizer opt{p.parameters(), ds::sgd{.lr = 1}, ds::clip_value{0.25}, ds::skip_nonfinite{}};
    p.set_gradients(1);
    p.grad[2][chunk + 8] = float(bad);
    auto const before = p.value;
    opt.step();
    CHECK(!opt.report().applied);
    CHECK(same_bits(p.value, before));
    p.set_gradients(1);
    opt.step();
    for (std::size_t i = 0; i < 21; ++i) {
      float const g = float(gradient(3, i, 1));
      CHECK(p.value[3][i] == before[3][i] - (g > 0.25f ? 0.25f : g < -0.25f ? -0.25f : g));
    }
  }
}

TEST_CASE("gradient_norm() of all, of a group and of a tensor is the norm in double, as in report()") {
  auto const check = [](auto gradient_type, auto policy, double (*power)(double), double (*root)(double),
                        bool largest) {
    using G = decltype(gradient_type);
    problem<float, G> p(sizes);
    p.group = {0, 1, 1, 2};
    ds::optimizer opt{p.parameters(), ds::sgd{}, policy, ds::static_loss_scale{128}};
    auto const wanted = [&](std::vector<std::size_t> const& tensors) {
      double sum = 0;
      for (std::size_t k : tensors)
        for (G g : p.grad[k]) {
          double const x = power(ds::widen<double>(g) / 128);
          sum = largest ? std::fmax(sum, x) : sum + x;
        }
      return root(sum);
    };
    auto const near = [](double x) { return doctest::Approx(x).epsilon(1e-13); };
    opt.freeze(2);
    for (int t : {1, 2}) {  // never the gradients of the step before
      p.set_gradients(t, 128);
      p.grad[3][4] = ds::narrow<G>(float(not_a_number));  // in the frozen group
      auto const before = p.grad;
      double const all = opt.gradient_norm();
      CHECK(all == near(wanted({0, 1, 2})));
      CHECK(opt.gradient_norm(ds::group{0}) == near(wanted({0})));
      CHECK(opt.gradient_norm(ds::group{1}) == near(wanted({2})));
      CHECK(std::isnan(opt.gradient_norm(ds::group{2})));
      CHECK(opt.gradient_norm("tensor2") == near(wanted({2})));
      CHECK(opt.gradient_norm("tensor1") == 0);
      CHECK(same_bits(p.grad, before));
      opt.step();
      CHECK(opt.report().grad_norm == all);
      CHECK(opt.report().step == t);
    }
    p.set_gradients(3, 128);
    CHECK(opt.gradient_norm(ds::group{2}) == near(wanted({3})));  // frozen or not
    CHECK(opt.gradient_norm("tensor3") == near(wanted({3})));
    CHECK(opt.gradient_norm() == near(wanted({0, 1, 2})));  // and it stays frozen
    opt.freeze(2, false);
    CHECK(opt.gradient_norm() == near(wanted({0, 1, 2, 3})));
    CHECK(message([&] { opt.gradient_norm(ds::group{3}); }) == "there is no group 3: groups are 0 to 2");
    CHECK(message([&] { opt.gradient_norm("w"); }).find("'w'") != std::string::npos);
  };
  auto const identity = [](double x) { return x; };
  auto const square = [](double x) { return x * x; };
  auto const root = [](double x) { return std::sqrt(x); };
  auto const size = [](double x) { return std::abs(x); };
  check(float{}, ds::clip_norm{1}, square, root, false);
  check(half{}, ds::clip<ds::norm::l1, ds::scope::tensor>{1}, size, identity, false);
  check(double{}, ds::clip<ds::norm::inf, ds::scope::group>{1}, size, identity, true);
}

TEST_CASE("gradient_norm() during an accumulation is that of the micro-batches so far") {
  problem<float> p(sizes);
  ds::optimizer opt{p.parameters(), ds::sgd{}, ds::accumulate{3}, ds::static_loss_scale{4}, ds::skip_nonfinite{}};
  for (auto& x : p.grad) std::fill(x.begin(), x.end(), 0.f);
  add_gradients(p, 1, 0, 1, 4);
  CHECK(opt.gradient_norm() == doctest::Approx(l2_norm(p.grad, 4, every)).epsilon(1e-13));
  opt.step(2);
  CHECK(opt.gradient_norm() == doctest::Approx(l2_norm(p.grad, 8, every)).epsilon(1e-13));
  add_gradients(p, 1, 1, 3, 4);
  opt.step(3);
  CHECK(opt.gradient_norm() == doctest::Approx(l2_norm(p.grad, 20, every)).epsilon(1e-13));
}

TEST_CASE("double gradients whose squares overflow are clipped, not skipped") {
  problem<double> p({3, chunk + 9});
  ds::optimizer opt{p.parameters(), ds::sgd{.lr = 1}, ds::clip_norm{1}};
  p.set_gradients(1);
  p.grad[0][1] = 3e200;
  p.grad[1][chunk] = -4e200;
  p.grad[1][7] = 1e-200;
  auto const before = p.value;
  CHECK(opt.gradient_norm() == doctest::Approx(5e200).epsilon(1e-13));
  opt.step();
  CHECK(opt.report().applied);
  CHECK(opt.report().grad_norm == doctest::Approx(5e200).epsilon(1e-13));
  CHECK(opt.report().clip_factor == doctest::Approx(2e-201).epsilon(1e-13));
  CHECK(p.value[0][1] == doctest::Approx(before[0][1] - 0.6).epsilon(1e-13));
  CHECK(p.value[1][chunk] == doctest::Approx(before[1][chunk] + 0.8).epsilon(1e-13));
  CHECK(p.value[0][0] == before[0][0]);
}

TEST_CASE("a gradient that is not finite is found at any place, by every norm") {
  auto const check = [](auto gradient_type, auto policy) {
    using G = decltype(gradient_type);
    problem<float, G> p({11, 0, 2 * packet * 256 + 70});  // more than a chunk: lanes, packets and tails of all kinds
    ds::optimizer opt{p.parameters(), ds::sgd{}, policy};
    p.set_gradients(1);
    std::size_t found = 0, wrong = 0, places = 0;
    for (std::size_t k : {0u, 2u})
      for (std::size_t i = 0; i < p.grad[k].size(); i += i > 600 && i < 4000 ? 37 : 1, ++places) {
        G const good = p.grad[k][i];
        p.grad[k][i] = ds::narrow<G>(float(i % 3 == 0 ? not_a_number : i % 3 == 1 ? infinity : -infinity));
        opt.step();
        found += !opt.report().applied;
        wrong += opt.report().why != "the gradient of '" + p.name(k) + "' is not finite" &&
                 opt.report().why.find("'" + p.name(k) + "' is not finite; training") == std::string::npos;
        p.grad[k][i] = good;
      }
    CHECK(found == places);
    CHECK(wrong == 0);
    opt.step();
    CHECK(opt.report().applied);
  };
  check(float{}, ds::skip_nonfinite{});
  check(half{}, ds::clip<ds::norm::inf>{1});
  check(double{}, ds::clip<ds::norm::inf, ds::scope::tensor>{1});
  check(bfloat16{}, ds::clip<ds::norm::l1, ds::scope::group>{1});
  check(double{}, ds::clip<ds::norm::l1>{1});
  check(double{}, ds::clip_adaptive{});
}

TEST_CASE("diagnose() names every tensor with a bad gradient, and is empty after a good step") {
  problem<half> p(sizes);
  p.group = {0, 0, 0, 1};
  ds::optimizer opt{p.parameters(), ds::sgd{}, ds::dynamic_loss_scale{.init = 4}};
  p.set_gradients(1, 4);
  opt.step();
  CHECK(opt.diagnose().empty());
  p.set_gradients(2, 4);
  double const norm = l2_norm(p.grad, 1, [](std::size_t k) { return k == 3; });
  p.grad[0][1] = ds::narrow<half>(infinity);
  p.grad[2][chunk] = ds::narrow<half>(not_a_number);
  opt.step();
  auto const all = opt.diagnose();
  REQUIRE(all.size() == 4);
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(all[k].name == p.name(k));
    CHECK(all[k].finite == (k == 1 || k == 3));
  }
  CHECK(all[1].norm == 0);
  CHECK(all[3].norm == doctest::Approx(norm).epsilon(1e-13));
  CHECK(!std::isfinite(all[0].norm));
  CHECK(std::isnan(all[2].norm));
  p.set_gradients(3, 2);
  opt.step();
  CHECK(opt.report().applied);
  CHECK(opt.diagnose().empty());
}

TEST_CASE("diagnose() is empty where nothing was measured, and filled by gradient_norm()") {
  problem<float> p(sizes);
  ds::optimizer opt{p.parameters(), ds::sgd{}};
  CHECK(opt.diagnose().empty());
  p.set_gradients(1);
  p.grad[3][0] = float(infinity);
  CHECK(opt.gradient_norm() == infinity);
  auto const all = opt.diagnose();
  REQUIRE(all.size() == 4);
  CHECK(!all[3].finite);
  CHECK(all[2].finite);
}

TEST_CASE("transform_gradients sees the true gradients, and what it leaves alone keeps its bits") {
  problem<half> p(sizes);
  ds::optimizer opt{p.parameters(), ds::sgd{.lr = 1}, ds::static_loss_scale{0x1p16}};
  for (std::size_t k = 0; k < p.grad.size(); ++k)
    for (std::size_t i = 0; i < p.grad[k].size(); ++i) {
      auto const bits = std::uint16_t(i * 13 + k);  // finite numbers of all kinds, also subnormal ones
      p.grad[k][i] = std::bit_cast<half>(std::uint16_t((bits & 0x7c00) == 0x7c00 ? bits & 0x83ff : bits));
    }
  auto const before = p.grad;
  opt.transform_gradients([](auto g) { return g; });
  CHECK(same_bits(p.grad, before));
  p.set_gradients(1, 0x1p12);  // true: up to 2^-4
  opt.transform_gradients([](auto g) {
    using Real = decltype(g);
    return ds::select(g > Real(0x1p-6f), Real(0x1p-6f), g);
  });
  std::size_t limited = 0, wrong = 0;
  for (std::size_t k = 0; k < p.grad.size(); ++k)
    for (std::size_t i = 0; i < p.grad[k].size(); ++i) {
      double const g = gradient(k, i, 1) * 0x1p12;
      limited += g > 0x1p10;
      wrong += ds::widen<double>(p.grad[k][i]) != std::fmin(g, 0x1p10);
    }
  CHECK(limited > 1000);
  CHECK(wrong == 0);
}

// ---- accumulation ---------------------------------------------------------------------------------------------------

TEST_CASE("micro-batches of any number and size equal the whole batch, bit for bit where the sums are exact") {
  // Each update has 16 examples, whose gradients are summed; weights are numbers of examples.
  auto const train = [](std::vector<std::vector<int>> const& splits, int n, bool flushes) {
    problem<float> p(sizes);
    ds::optimizer opt{p.parameters(),           ds::adamw{},
                      ds::accumulate{n},        ds::clip_norm{2},
                      ds::zero_grad{},          ds::learning_rate(ds::linear{.from = 0.1, .to = 0, .steps = 10}),
                      ds::static_loss_scale{16}};
    for (int t = 1; t <= 6; ++t) {
      int example = 0;
      for (int size : splits[std::size_t(t) % splits.size()]) {
        add_gradients(p, t, example, size, 16);
        example += size;
        auto const memory = p.grad;
        auto const values = p.value;
        opt.step(size);
        if (example == 16 && !flushes) break;
        CHECK(!opt.report().applied);
        CHECK(opt.report().step == t - 1);
        CHECK(opt.report().skipped == 0);
        CHECK(same_bits(p.grad, memory));
        CHECK(same_bits(p.value, values));
      }
      CHECK(example == 16);
      if (flushes) opt.flush();
      CHECK(opt.report().applied);
      CHECK(opt.report().step == t);
      CHECK(all_zero(p.grad));
    }
    return p.value;
  };
  auto const big = train({{16}}, 1, false);
  CHECK(same_bits(train({{4, 4, 4, 4}}, 4, false), big));
  CHECK(same_bits(train({{5, 1, 10}}, 3, false), big));
  CHECK(same_bits(train({{1, 15}, {8, 8}, {13, 3}}, 2, false), big));
  CHECK(same_bits(train({{7, 9}}, 3, true), big));  // n does not divide the number of micro-batches
  CHECK(same_bits(train({{16}, {2, 2, 12}}, 100, true), big));  // never full
}

TEST_CASE("equal micro-batches of mean losses need no weight, and flush() updates with those so far") {
  problem<double> p(sizes), q(sizes);
  ds::optimizer a{p.parameters(), ds::sgd{.lr = 1}, ds::accumulate{4}};
  ds::optimizer b{q.parameters(), ds::sgd{.lr = 1}};
  a.flush();  // nothing is pending, so nothing happens
  CHECK(a.report().step == 0);
  CHECK(same_bits(p.value, q.value));
  int waiting = 0;
  for (int t = 1; t <= 6; ++t) {  // 4, then 2 and a flush
    for (std::size_t k = 0; k < sizes.size(); ++k)
      for (std::size_t i = 0; i < sizes[k]; ++i)
        p.grad[k][i] = (waiting ? p.grad[k][i] : 0) + gradient(k, i, t), q.grad[k][i] = p.grad[k][i];
    a.step();
    ++waiting;
    CHECK(a.report().applied == (waiting == 4));
    if (waiting < 4) CHECK(a.report().why == "gradients are being accumulated, " + std::to_string(waiting) + " so far");
    if (t == 6) a.flush();
    if (waiting < 4 && t < 6) continue;
    for (auto& x : q.grad)
      for (double& g : x) g *= 1.0 / waiting;
    waiting = 0;
    b.step();
    CHECK(a.report().applied);
    CHECK(same_bits(p.value, q.value));
  }
  CHECK(a.report().step == 2);
}

TEST_CASE("a bad micro-batch skips only its update, and the loss scale changes only between updates") {
  problem<float> p(sizes);
  ds::optimizer opt{p.parameters(), ds::sgd{}, ds::accumulate{2}, ds::dynamic_loss_scale{.init = 8, .interval = 1},
                    ds::zero_grad{}};
  auto const before = p.value;
  p.set_gradients(1, 8);
  p.grad[3][1] = float(infinity);
  opt.step();
  CHECK(opt.loss_scale() == 8);
  opt.step();
  CHECK(!opt.report().applied);
  CHECK(opt.report().skipped == 1);
  CHECK(opt.loss_scale() == 4);
  CHECK(same_bits(p.value, before));
  CHECK(all_zero(p.grad));
  p.set_gradients(1, 4);
  opt.step();
  CHECK(opt.loss_scale() == 4);
  opt.step();
  CHECK(opt.loss_scale() == 8);
  CHECK(opt.report().applied);
  CHECK(opt.report().step == 1);
}

// ---- averages -------------------------------------------------------------------------------------------------------

TEST_CASE("swap_average() twice changes no bit, and training continues as if it had not been called") {
  auto const train = [](bool swaps, auto... policies) {
    problem<half> p(sizes);
    ds::optimizer opt{p.parameters(), ds::adamw{.lr = 0.05}, ds::ema{.decay = 0.75}, policies...};
    for (int t = 1; t <= 5; ++t) {
      p.set_gradients(t);
      opt.step();
      if (!swaps) continue;
      auto const before = p.value;
      opt.swap_average();
      CHECK(!same_bits(p.value, before));
      std::size_t wrong = 0;
      for (std::size_t k = 0; k < sizes.size(); ++k)
        for (std::size_t i = 0; i < sizes[k]; ++i) {
          half const rounded = ds::narrow<half>(opt.average(p.name(k))[i]);
          wrong += std::memcmp(&p.value[k][i], &rounded, sizeof rounded) != 0;
        }
      CHECK(wrong == 0);
      opt.swap_average();
      CHECK(same_bits(p.value, before));
    }
    return p.value;
  };
  CHECK(same_bits(train(true), train(false)));
  CHECK(same_bits(train(true, ds::master<float>{}), train(false, ds::master<float>{})));
  CHECK(same_bits(train(true, ds::stochastic_rounding{3}), train(false, ds::stochastic_rounding{3})));
  auto const beside = [&](bool swaps) { return train(swaps, ds::master<float>{}, ds::stochastic_values{3}); };
  CHECK(same_bits(beside(true), beside(false)));
}

TEST_CASE("averages follow their formulas") {
  std::size_t const steps = 12;
  auto const worst = [&](auto policy, auto const& formula) {  // formula(all values of an element, update, its average)
    problem<double> p(sizes);
    ds::optimizer opt{p.parameters(), ds::sgd{.lr = 0.25}, policy};
    std::vector<std::vector<double>> history{p.value[2]};
    double most = 0;
    for (std::size_t t = 1; t <= steps; ++t) {
      p.set_gradients(int(t));
      opt.step();
      history.push_back(p.value[2]);
      for (std::size_t i = 0; i < sizes[2]; ++i) {
        auto const x = [&](std::size_t step) { return history[step][i]; };
        most = test::larger(most, std::abs(opt.average("tensor2")[i] - formula(x, t)));
      }
    }
    CHECK(history[steps] != history[0]);
    return most;
  };
  auto const ema_of = [](double decay, std::size_t start, bool corrected) {
    return [=](auto const& x, std::size_t t) {
      if (t <= start) return x(t);
      double sum = corrected ? 0 : std::pow(decay, double(t - start)) * x(start), weights = sum;
      weights = corrected ? 0 : 1;
      for (std::size_t s = start + 1; s <= t; ++s) {
        double const w = (1 - decay) * std::pow(decay, double(t - s));
        sum += w * x(s);
        if (corrected) weights += w;  // 1 - decay^k
      }
      return sum / weights;
    };
  };
  auto const mean_of = [](std::size_t start, std::size_t every) {
    return [=](auto const& x, std::size_t t) {
      if (t <= start) return x(t);
      double sum = 0, n = 0;
      for (std::size_t s = start; s <= t; s += every) sum += x(s), ++n;
      return sum / n;
    };
  };
  CHECK(worst(ds::ema{.decay = 0.75}, ema_of(0.75, 0, false)) < 1e-14);
  CHECK(worst(ds::ema{.decay = 0.9, .start = 4}, ema_of(0.9, 4, false)) < 1e-14);
  CHECK(worst(ds::ema{.decay = 0.9, .bias_corrected = true}, ema_of(0.9, 0, true)) < 1e-14);
  CHECK(worst(ds::ema{.decay = 0.75, .start = 3, .bias_corrected = true}, ema_of(0.75, 3, true)) < 1e-14);
  CHECK(worst(ds::swa{.start = 1, .every = 1}, mean_of(1, 1)) < 1e-14);
  CHECK(worst(ds::swa{.start = 4, .every = 3}, mean_of(4, 3)) < 1e-14);
}

TEST_CASE("lookahead follows its formula, and its fast weights continue from the slow ones") {
  problem<double> p(sizes);
  double const lr = 0.25, alpha = 0.25;
  ds::optimizer opt{p.parameters(), ds::sgd{.lr = lr}, ds::lookahead{.k = 3, .alpha = alpha}};
  auto fast = p.value, slow = p.value;
  for (int t = 1; t <= 10; ++t) {
    p.set_gradients(t);
    opt.step();
    double most = 0;
    for (std::size_t k = 0; k < sizes.size(); ++k)
      for (std::size_t i = 0; i < sizes[k]; ++i) {
        fast[k][i] -= lr * gradient(k, i, t);
        if (t % 3 == 0) fast[k][i] = slow[k][i] += alpha * (fast[k][i] - slow[k][i]);
        most = test::larger(most, std::abs(p.value[k][i] - fast[k][i]));
        most = test::larger(most, std::abs(opt.slow(p.name(k))[i] - slow[k][i]));
      }
    CHECK(most < 1e-14);
  }
}

TEST_CASE("user-defined policies follow their formulas") {
  problem<double> p(sizes);
  test::bounded_pull const pull;
  ds::optimizer opt{p.parameters(), ds::sgd{.lr = 0.25}, pull, test::late_mean{}};
  auto fast = p.value, slow = p.value, mean = p.value;
  std::vector<std::vector<double>> b;
  for (auto const& x : fast) b.emplace_back(x.size());
  for (int t = 1; t <= 10; ++t) {
    p.set_gradients(t);
    opt.step();
    double most = 0;
    for (std::size_t k = 0; k < sizes.size(); ++k)
      for (std::size_t i = 0; i < sizes[k]; ++i) {
        fast[k][i] -= 0.25 * gradient(k, i, t);
        if (t % 2 == 0) {
          b[k][i] = 0.5 * b[k][i] + 0.5 * (fast[k][i] - slow[k][i]);
          fast[k][i] = slow[k][i] += std::min(std::max(b[k][i], -0.01), 0.01);
        }
        mean[k][i] += 3 / double(t + 2) * (fast[k][i] - mean[k][i]);
        most = test::larger(most, std::abs(p.value[k][i] - fast[k][i]));
        most = test::larger(most, std::abs(opt.slow(p.name(k))[i] - slow[k][i]));
        most = test::larger(most, std::abs(opt.average(p.name(k))[i] - mean[k][i]));
        most = test::larger(most, std::abs(opt.outer_momentum(p.name(k))[i] - b[k][i]));
      }
    CHECK(most < 1e-14);
  }
}

template <class Rule, class... Ps> void keeps_its_bits(Rule const& rule, Ps const&... policies) {
  problem<float> p(sizes), q(sizes);
  ds::optimizer with{p.parameters(), rule, policies..., test::unchanged{}};
  ds::optimizer without{q.parameters(), rule, policies...};
  for (int t = 1; t <= 5; ++t) {
    p.set_gradients(t), q.set_gradients(t);
    with.step(), without.step();
    CHECK(p.value == q.value);
  }
}
TEST_CASE("a policy around the update that changes nothing leaves the bits of rules of every ability") {
  keeps_its_bits(ds::lamb{}, ds::clip_norm{1});  // sums of the state
  keeps_its_bits(ds::dog{});  // sums and memory
  keeps_its_bits(ds::prodigy{}, ds::ema{.decay = 0.5});  // sums of the memory
  keeps_its_bits(ds::nadam{}, ds::learning_rate(ds::linear{0.1, 0.2, 4}));  // memory alone
  keeps_its_bits(ds::chain{ds::gradient_noise{}, ds::sgd{.momentum = 0.5}});  // random normals
  double const loss = 2;
  keeps_its_bits(ds::polyak{}, ds::loss_at{&loss});
}

/// Compares policies around the momentum update of sgd with a loop that calls change(p, g, next) for each tensor.
template <class Change, class... Ps> void is_around(Change const& change, Ps const&... policies) {
  problem<double> p(sizes);
  double const mu = 0.75;
  auto const rate = [](std::int64_t t) { return t == 3 ? 0 : 0.5 / double(t + 1); };  // after t updates
  ds::optimizer opt{p.parameters(), ds::sgd{.momentum = mu}, ds::learning_rate(rate), policies...};
  auto want = p.value;
  std::vector<std::vector<double>> b(sizes.size());
  for (int t = 1; t <= 8; ++t) {
    p.set_gradients(t);
    opt.step();
    double most = 0;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      std::vector<double> g(sizes[k]), next = want[k];
      b[k].resize(sizes[k]);
      for (std::size_t i = 0; i < sizes[k]; ++i) {
        g[i] = gradient(k, i, t);
        next[i] -= rate(t - 1) * (b[k][i] = mu * b[k][i] + g[i]);
      }
      change(rate(t - 1), want[k], g, next);
      want[k] = next;
      for (std::size_t i = 0; i < sizes[k]; ++i) most = test::larger(most, std::abs(p.value[k][i] - want[k][i]));
    }
    CHECK(most < 1e-14);
  }
  CHECK(opt.report().step == 8);
}
void keep_what_agrees(double, std::vector<double> const& p, std::vector<double> const& g, std::vector<double>& next) {
  for (std::size_t i = 0; i < p.size(); ++i)
    if (!((p[i] - next[i]) * g[i] > 0)) next[i] = p[i];
}
void bound(double lr, std::vector<double> const& p, std::vector<double> const&, std::vector<double>& next) {
  double uu = 0;
  for (std::size_t i = 0; i < p.size(); ++i) uu += (next[i] - p[i]) * (next[i] - p[i]);
  double const rms = p.empty() ? 0 : std::sqrt(uu / double(p.size()));
  for (std::size_t i = 0; i < p.size(); ++i)
    if (rms > 0.5 * lr) next[i] = p[i] + 0.5 * lr / rms * (next[i] - p[i]);
}

TEST_CASE("policies of a user around the update see p, g and the updated p, in the order given") {
  is_around(keep_what_agrees, test::agreeing{});
  is_around(bound, test::bounded_update{.most = 0.5});
  auto const then = [](auto const& first, auto const& second) {
    return [=](double lr, auto const& p, auto const& g, auto& next) { first(lr, p, g, next), second(lr, p, g, next); };
  };
  is_around(then(keep_what_agrees, bound), test::agreeing{}, test::bounded_update{.most = 0.5});
  is_around(then(bound, keep_what_agrees), test::bounded_update{.most = 0.5}, test::agreeing{});
}

TEST_CASE("cautious_decay decays where the update and the parameter have the same sign, or none with at_zero") {
  for (bool const at_zero : {false, true}) {
    CAPTURE(at_zero);
    int decayed = 0, left = 0, still = 0;
    auto const decay = [&](double lr, auto const& p, auto const&, auto& next) {
      for (std::size_t i = 0; i < p.size(); ++i) {
        double const u = p[i] - next[i];
        if (lr > 0) ++(u == 0 ? still : u * p[i] > 0 ? decayed : left);
        if (at_zero ? u * p[i] >= 0 : u * p[i] > 0) next[i] -= lr * 0.25 * p[i];
      }
    };
    ds::cautious_decay const policy{.weight_decay = 0.25, .at_zero = at_zero};
    is_around(decay, policy);
    is_around(  // agreeing leaves some elements: u = 0
        [&](double lr, auto const& p, auto const& g, auto& next) {
          keep_what_agrees(lr, p, g, next), decay(lr, p, g, next);
        },
        test::agreeing{}, policy);
    CHECK(std::min({decayed, left, still}) > 1000);
  }
}
TEST_CASE("cautious_decay sees the signs of updates whose product with p underflows, and refuses a negative decay") {
  for (float const sign : {1.f, -1.f}) {
    float p = 1e-22f, gradient = sign * 2e-24f;  // u = 1e-24, u p = 1e-46
    ds::parameters<float> list;
    list.add("p", &p, &gradient, 1);
    ds::optimizer opt{list, ds::sgd{.lr = 0.5}, ds::cautious_decay{.weight_decay = 0.5}};
    opt.step();
    CHECK(double(p) / 1e-22 == doctest::Approx(sign > 0 ? 0.74 : 1.01).epsilon(1e-6));
    CHECK(message([&] { ds::optimizer(list, ds::sgd{}, ds::cautious_decay{.weight_decay = -1}); }) ==
          "cautious_decay: weight_decay must be finite and at least 0, is -1");
  }
}

TEST_CASE("outer is Nesterov's SGD on the distance of K updates, and without momentum it is lookahead") {
  problem<double> p(sizes), q(sizes), r(sizes);
  double const lr = 0.25, outer_lr = 0.7, mu = 0.9;
  ds::optimizer opt{p.parameters(), ds::sgd{.lr = lr}, ds::outer{.every = 3, .lr = outer_lr, .momentum = mu}};
  ds::optimizer plain{q.parameters(), ds::sgd{.lr = lr}, ds::outer{.every = 2, .lr = 0.25, .momentum = 0}};
  ds::optimizer look{r.parameters(), ds::sgd{.lr = lr}, ds::lookahead{.k = 2, .alpha = 0.25}};
  auto fast = p.value, slow = p.value, momentum = p.value;
  for (auto& one : momentum) std::fill(one.begin(), one.end(), 0.0);
  for (int t = 1; t <= 13; ++t) {
    p.set_gradients(t), q.set_gradients(t), r.set_gradients(t);
    opt.step(), plain.step(), look.step();
    double most = 0;
    for (std::size_t k = 0; k < sizes.size(); ++k)
      for (std::size_t i = 0; i < sizes[k]; ++i) {
        fast[k][i] -= lr * gradient(k, i, t);
        if (t % 3 == 0) {  // as torch.optim.SGD(nesterov=True) on the gradient slow - fast
          double const g = slow[k][i] - fast[k][i];
          momentum[k][i] = mu * momentum[k][i] + g;
          fast[k][i] = slow[k][i] -= outer_lr * (g + mu * momentum[k][i]);
        }
        most = test::larger(most, std::abs(p.value[k][i] - fast[k][i]));
        most = test::larger(most, std::abs(opt.outer_momentum(p.name(k))[i] + momentum[k][i]));
      }
    CHECK(most < 1e-14);
    CHECK(q.value == r.value);
  }
}

/// Compares with the authors' steps around the optimizer without the policy: its values are moved ahead before the
/// gradients, which follow the values, and the rule starts there. rate(t) is the lr of step t by its maximum.
template <class Value, class Rate, class... Rest>
void leads_by_its_formula(double tolerance, Rate const& rate, Rest const&... rest) {
  problem<Value> p(sizes), q(sizes);
  ds::ema_nesterov const how{.lookahead = 0.75, .momentum = 0.8, .start = 2, .until = 50};
  ds::optimizer ahead{p.parameters(), rest..., how};
  ds::optimizer plain{q.parameters(), rest...};
  auto x = q.value;
  std::vector<std::vector<double>> b(sizes.size());
  for (std::size_t k = 0; k < sizes.size(); ++k) b[k].resize(sizes[k]);
  auto const backward = [](problem<Value>& of) {
    for (std::size_t k = 0; k < sizes.size(); ++k)
      for (std::size_t i = 0; i < sizes[k]; ++i) of.grad[k][i] = Value(1 + i % 3) / 8 * (of.value[k][i] - Value(0.5));
  };
  double most = 0;
  for (int t = 0; t < 60; ++t) {
    double const beta = t >= 2 && t < 50 ? 0.75 * rate(t) : 0;
    for (std::size_t k = 0; k < sizes.size(); ++k)
      for (std::size_t i = 0; i < sizes[k]; ++i) {
        q.value[k][i] = Value(double(x[k][i]) + beta * b[k][i]);
        most = test::larger(most, std::abs(double(p.value[k][i]) - double(q.value[k][i])));
      }
    backward(p), backward(q);
    ahead.step(), plain.step();
    for (std::size_t k = 0; k < sizes.size(); ++k)
      for (std::size_t i = 0; i < sizes[k]; ++i) {
        b[k][i] = 0.8 * b[k][i] + 0.2 * (double(q.value[k][i]) - double(x[k][i]));
        x[k][i] = q.value[k][i];
        std::string const name = p.name(k);
        most = test::larger(most, std::abs(double(ahead.slow(name)[i]) - double(x[k][i])));
        most = test::larger(most, std::abs(double(ahead.outer_momentum(name)[i]) - b[k][i]));
        most = test::larger(most, std::abs(double(ahead.average(name)[i]) - double(plain.average(name)[i])));
      }
  }
  CHECK(most < tolerance);
}

TEST_CASE("ema_nesterov takes gradient and step ahead of the parameters, by the authors' steps") {
  auto const constant = [](int) { return 1.; };
  leads_by_its_formula<double>(1e-13, constant, ds::sgd{.lr = 0.25, .momentum = 0.9, .weight_decay = 0.1},
                               ds::ema{.decay = 0.5});
  // Sums and clipping read the point ahead, too. The rate of the next step counts.
  ds::warmup<ds::cosine> const rates{.steps = 10, .then = {.peak = 0.1, .floor = 0.01, .steps = 30}};
  leads_by_its_formula<float>(2e-6, [&](int t) { return rates(t) / 0.1; }, ds::lamb{}, ds::learning_rate(rates),
                              ds::clip_adaptive{0.01}, ds::swa{.start = 1, .every = 2});
}

TEST_CASE("ema_nesterov accelerates: with curvatures from 1e-3 to 1, and a momentum of 0") {
  auto const steps = [](auto... how) {
    problem<double> p({10});
    ds::optimizer opt{p.parameters(), ds::sgd{.lr = 1}, how...};
    std::fill(p.value[0].begin(), p.value[0].end(), 1.);
    opt.reload_values();
    double loss = 1;
    int t = 0;
    for (; t < 10000 && loss >= 1e-6; ++t) {
      loss = 0;
      for (std::size_t i = 0; i < 10; ++i) {
        double const h = 1e-3 * std::pow(1000., double(i) / 9);
        p.grad[0][i] = h * p.value[0][i];
        loss += 0.5 * p.grad[0][i] * p.value[0][i];
      }
      if (loss >= 1e-6) opt.step();
    }
    return t;
  };
  CHECK(steps() == 3108);  // one more than the authors' steps in NumPy: the loss is that of the values before the step
  CHECK(steps(ds::ema_nesterov{}) == 1316);
  CHECK(steps(ds::ema_nesterov{.lookahead = 0.9, .momentum = 0}) == 292);
}

TEST_CASE("ema_nesterov starts at the masters of the point ahead, not at rounded values") {
  problem<half> p(sizes);
  problem<float> q(sizes);
  auto const how = ds::ema_nesterov{.momentum = 0.5};
  ds::optimizer opt{p.parameters(), ds::sgd{.lr = 0.25, .weight_decay = 0.25}, ds::master<float>{}, how};
  ds::optimizer same{q.parameters(), ds::sgd{.lr = 0.25, .weight_decay = 0.25}, how};
  for (int t = 1; t <= 5; ++t) {
    p.set_gradients(t), q.set_gradients(t);
    opt.step(), same.step();
  }
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    CHECK(copy(opt.master(p.name(k))) == q.value[k]);
    CHECK(copy(opt.slow(p.name(k))) == copy(same.slow(p.name(k))));
    for (std::size_t i = 0; i < sizes[k]; ++i) CHECK(p.value[k][i] == ds::narrow<half>(q.value[k][i]));
  }
}

TEST_CASE("ema_nesterov follows the learning rate: its schedule, the plateau, a rate set by hand, or none") {
  auto const factor = [](double lr, auto const& between, auto... policies) {
    problem<double> p({1});
    p.value[0][0] = 0;
    ds::optimizer opt{p.parameters(), ds::sgd{.lr = lr}, policies...};
    p.grad[0][0] = -1;
    between(opt);
    opt.step();
    double const x = opt.slow("tensor0")[0];
    return (p.value[0][0] - x) / x;
  };
  auto const none = [](auto&) {};
  ds::ema_nesterov const how{.lookahead = 1, .momentum = 0};
  ds::ema_nesterov fixed = how, of_four = how;
  fixed.follows_lr = false;
  of_four.max_lr = 4;
  ds::linear const falls{.from = 2, .to = 1, .steps = 4};
  CHECK(factor(2, none, how) == doctest::Approx(1));
  CHECK(factor(2, none, of_four) == doctest::Approx(0.5));
  CHECK(factor(8, none, of_four) == doctest::Approx(1));  // at most 1
  CHECK(factor(9, none, how, ds::learning_rate(falls)) == doctest::Approx(1.75 / 2));
  CHECK(factor(9, none, how, ds::vary<&ds::sgd::lr>(falls)) == doctest::Approx(1.75 / 2));
  CHECK(factor(3, none, how, ds::scale_learning_rate(falls)) == doctest::Approx(1.75 / 2));
  CHECK(factor(9, none, how, ds::learning_rate(ds::warmup<ds::linear>{.steps = 8, .then = falls})) ==
        doctest::Approx(0.25));
  CHECK(factor(9, none, fixed, ds::learning_rate(falls)) == doctest::Approx(1));
  CHECK(factor(9, none, of_four, ds::learning_rate(falls)) == doctest::Approx(1.75 / 4));
  CHECK(factor(2, [](auto& opt) { opt.group(0).lr = 1; }, how) == doctest::Approx(0.5));
  auto const reduce = [](auto& opt) {
    for (double metric : {1., 2.}) opt.observe(metric);
  };
  CHECK(factor(2, reduce, how, ds::on_plateau{{.factor = 0.5, .patience = 0}}) == doctest::Approx(0.5));
  CHECK(factor(9, none, of_four, ds::learning_rate([](std::int64_t) { return 1.; })) == doctest::Approx(0.25));
}

TEST_CASE("lookahead, outer and ema_nesterov continue from values that the caller has set") {
  problem<float> p(sizes);
  auto const pulled = [&](auto const& how) {
    ds::optimizer opt{p.parameters(), ds::sgd{.lr = 0.5}, how, ds::master<double>{}};
    for (auto& all : p.value) std::fill(all.begin(), all.end(), 5.f);
    opt.reload_values();
    for (auto& all : p.grad) std::fill(all.begin(), all.end(), 0.f);
    opt.step();
    for (std::size_t k = 0; k < sizes.size(); ++k)
      for (std::size_t i = 0; i < sizes[k]; ++i) {
        CHECK(p.value[k][i] == 5);
        CHECK(opt.slow(p.name(k))[i] == 5);
      }
  };
  pulled(ds::lookahead{.k = 1});
  pulled(ds::outer{.every = 1});

  ds::optimizer opt{p.parameters(), ds::sgd{.lr = 0.5}, ds::ema_nesterov{.momentum = 0}, ds::master<double>{}};
  p.set_gradients(1);
  opt.step();
  for (auto& all : p.value) std::fill(all.begin(), all.end(), 2.f);
  opt.reload_values();
  p.set_gradients(2);
  opt.step();
  for (std::size_t k = 0; k < sizes.size(); ++k)
    for (std::size_t i = 0; i < sizes[k]; ++i) {
      double const d = -0.5 * double(p.grad[k][i]);
      CHECK(opt.slow(p.name(k))[i] == 2 + d);
      CHECK(p.value[k][i] == float(2 + d + 0.5 * d));
    }
}

// ---- frozen groups, skips, zeroing, groups --------------------------------------------------------------------------

TEST_CASE("a frozen group is untouched by everything that a step does, and its gradients count nowhere") {
  problem<half> p(sizes);
  p.group = {0, 0, 1, 0};
  ds::optimizer opt{p.parameters(),       ds::adamw{.lr = 0.1},    ds::master<float>{},
                    ds::states<half>{},   ds::ema{.decay = 0.5},   ds::lookahead{.k = 2},
                    ds::zero_grad{},      ds::clip_norm{100},      ds::clip_value{0.5},
                    ds::gradient_noise{}, ds::stochastic_values{}, ds::dynamic_loss_scale{.init = 1}};
  p.set_gradients(1);
  opt.step();
  auto const kept = [&] {
    std::vector<std::vector<float>> all{copy(opt.master("tensor2")), copy(opt.average("tensor2")),
                                        copy(opt.slow("tensor2"))};
    for (std::size_t s : {0u, 1u}) {
      all.emplace_back();
      for (half x : opt.state("tensor2", s)) all.back().push_back(ds::widen<float>(x));
    }
    for (half x : p.value[2]) all.back().push_back(ds::widen<float>(x));
    return all;
  };
  opt.freeze(1);
  auto const before = kept();
  for (int t = 2; t <= 7; ++t) {
    p.set_gradients(t);
    p.grad[2][7] = ds::narrow<half>(not_a_number);
    if (t == 4) p.grad[0][0] = ds::narrow<half>(infinity);
    auto const gradients = p.grad[2];
    double const norm = l2_norm(p.grad, opt.loss_scale(), [](std::size_t k) { return k != 2; });
    opt.step();
    CHECK(opt.report().applied == (t != 4));
    if (t != 4) CHECK(opt.report().grad_norm == doctest::Approx(norm).epsilon(1e-13));
    CHECK(same_bits(kept(), before));
    CHECK(same_bits(p.grad[2], gradients));
    CHECK(all_zero(std::vector{p.grad[0], p.grad[3]}));
  }
  opt.freeze(1, false);
  p.set_gradients(8);
  opt.step();
  CHECK(!same_bits(kept(), before));
  CHECK(all_zero(p.grad));
}

TEST_CASE("zero_grad{} zeroes after applied and skipped steps, and without it a step writes no gradient") {
  problem<half> p(sizes), q(sizes);
  ds::optimizer zeroes{p.parameters(), ds::adamw{}, ds::zero_grad{}, ds::dynamic_loss_scale{.init = 2}};
  ds::optimizer leaves{q.parameters(), ds::adamw{}, ds::dynamic_loss_scale{.init = 2}, ds::clip_norm{0.1}};
  for (int t = 1; t <= 4; ++t) {
    p.set_gradients(t);
    if (t % 2) p.grad[2][chunk] = ds::narrow<half>(not_a_number);
    q.grad = p.grad;
    auto const before = q.grad;
    zeroes.step(), leaves.step();
    CHECK(zeroes.report().applied == (t % 2 == 0));
    CHECK(all_zero(p.grad));
    CHECK(same_bits(q.grad, before));
  }
  leaves.zero_grad();
  CHECK(all_zero(q.grad));
}

TEST_CASE("scale_rows() multiplies blocks of rows of values, masters and slow weights, and nothing else") {
  constexpr std::size_t rows = 6, columns = chunk / 4 + 3, n = rows * columns;  // blocks end within packets
  float const logits[] = {50, 400, 200};
  float const factors[] = {1, 0.5f, float(std::sqrt(0.5))};
  auto const scaled = [&](std::span<float const> now, std::vector<float> const& before) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) wrong += now[i] != before[i] * factors[i * 3 / n];
    return wrong == 0;
  };
  std::vector<float> w(n), g(n), b(5, 1), h(5);
  for (std::size_t i = 0; i < n; ++i) w[i] = float(start(1, i)), g[i] = float(gradient(1, i, 1));
  ds::parameters<float> params;
  params.add("w", w.data(), g.data(), ds::shape{rows, columns});
  params.add("b", b.data(), h.data(), 5);
  ds::optimizer opt{params, ds::sgd{.lr = 0.01, .momentum = 0.9}, ds::lookahead{}, ds::ema{}};
  opt.step();
  auto const before = w, slow = copy(opt.slow("w")), m = copy(opt.state("w", 0)), average = copy(opt.average("w"));
  opt.scale_rows("w", logits, 3, ds::qk_clip{});
  CHECK(scaled(w, before));
  CHECK(scaled(opt.slow("w"), slow));
  CHECK((same_bits(copy(opt.state("w", 0)), m) && same_bits(copy(opt.average("w")), average)));
  CHECK(b == std::vector<float>(5, 1));

  std::vector<bfloat16> narrow(n), narrow_g(n);
  for (std::size_t i = 0; i < n; ++i) narrow[i] = ds::narrow<bfloat16>(w[i]), narrow_g[i] = ds::narrow<bfloat16>(g[i]);
  ds::parameters<bfloat16> half;
  half.add("w", narrow.data(), narrow_g.data(), ds::shape{rows, columns});
  ds::optimizer mixed{half, ds::sgd{.lr = 0.01, .momentum = 0.9}, ds::master<float>{}};
  mixed.step();
  auto const master = copy(mixed.master("w"));
  mixed.scale_rows("w", logits, 3, ds::qk_clip{});
  CHECK(scaled(mixed.master("w"), master));
  std::size_t apart = 0;
  for (std::size_t i = 0; i < n; ++i)
    apart += ds::widen<float>(narrow[i]) != ds::widen<float>(ds::narrow<bfloat16>(mixed.master("w")[i]));
  CHECK(apart == 0);

  float const broken[] = {std::numeric_limits<float>::infinity(), float(NAN), 99};
  auto const same = w;
  opt.scale_rows("w", broken, 3, ds::qk_clip{});
  CHECK(same_bits(w, same));
  auto const refused = [&](float const* s, std::int64_t count, ds::qk_clip const& f) {
    return test::message([&] { opt.scale_rows("w", s, count, f); });
  };
  CHECK(refused(logits, 4, {}) == "scale_rows of 'w': the 6 rows must be a multiple of count, which is 4");
  CHECK(refused(logits, 0, {}) == "scale_rows of 'w': count must be at least 1, is 0");
  CHECK(refused(nullptr, 3, {}) == "scale_rows of 'w': s is null, but there must be 3 elements");
  CHECK(refused(logits, 3, {.tau = 0}) == "qk_clip: tau must be finite and above 0, is 0");
  auto const throws_later = [](double s) { return s == 200 ? throw std::runtime_error("no") : 2.0; };
  CHECK_THROWS_WITH_AS(opt.scale_rows("w", logits, 3, throws_later), "no", std::runtime_error);
  CHECK(refused(logits, 3, {.exponent = 2}) == "qk_clip: exponent must be in [0, 1], is 2");
  CHECK(same_bits(w, same));
}

TEST_CASE("reload_values() rebuilds the masters from the values and changes nothing else") {
  problem<bfloat16> p(sizes), q(sizes), r(sizes);
  ds::optimizer a{p.parameters(), ds::adamw{.lr = 0.01}, ds::master<float>{}, ds::ema{}};
  ds::optimizer b{q.parameters(), ds::adamw{.lr = 0.01}, ds::master_remainder{}, ds::ema{}};
  ds::optimizer c{r.parameters(), ds::adamw{.lr = 0.01}, ds::master<double>{}, ds::ema{}};
  auto const train = [&](auto& opt, auto& x) {
    for (int t = 1; t <= 3; ++t) x.set_gradients(t), opt.step();
    auto const m = copy(opt.state("tensor2", 0)), average = copy(opt.average("tensor2"));
    for (std::size_t i = 0; i < sizes[2]; ++i) x.value[2][i] = ds::narrow<bfloat16>(float(start(7, i)));
    auto const loaded = x.value;
    opt.reload_values();
    CHECK(same_bits(x.value, loaded));
    CHECK(same_bits(copy(opt.state("tensor2", 0)), m));
    CHECK(same_bits(copy(opt.average("tensor2")), average));
    opt.group(0).lr = 0;
    x.set_gradients(4);
    opt.step();
    CHECK(same_bits(x.value, loaded));
    return loaded;
  };
  auto const loaded = train(a, p);
  train(b, q), train(c, r);
  for (std::size_t i = 0; i < sizes[2]; ++i) {
    CHECK(a.master("tensor2")[i] == ds::widen<float>(loaded[2][i]));
    CHECK(b.remainder("tensor2")[i] == 0);
  }
}

TEST_CASE("commit_groups() takes what is valid and refuses the rest as a whole") {
  problem<float> p(sizes);
  p.group = {0, 0, 1, 0};
  ds::optimizer opt{p.parameters(), ds::sgd{.lr = 0.5}};
  opt.commit_groups();
  opt.group(0).lr = 0.25;
  opt.group(1).lr = -1;
  CHECK(message([&] { opt.commit_groups(); }) == "group 1: sgd: lr must be finite and at least 0, is -1");
  p.set_gradients(1);
  auto const before = p.value;
  CHECK(message([&] { opt.step(); }) == "group 1: sgd: lr must be finite and at least 0, is -1");
  CHECK(same_bits(p.value, before));
  CHECK(opt.report().step == 0);
  opt.group(1).lr = 0.125;
  opt.group(1).momentum = 0.9;
  CHECK(message([&] { opt.commit_groups(); }) ==
        "group 1: momentum = 0.9 needs the state 'b', which no group needed at construction, so it was not allocated");
  opt.group(1).momentum = 0;
  opt.commit_groups();
  opt.step();
  CHECK(p.value[0][1] == before[0][1] - 0.25f * p.grad[0][1]);
  CHECK(p.value[2][1] == before[2][1] - 0.125f * p.grad[2][1]);
}

// ---- reports and the order of calls ---------------------------------------------------------------------------------

TEST_CASE("last_report() is report() on the host, after every kind of call") {
  problem<float> p(sizes);
  ds::optimizer opt{
      p.parameters(),    ds::adamw{},        ds::learning_rate(ds::linear{.from = 1, .to = 0, .steps = 9}),
      ds::accumulate{2}, ds::clip_norm{0.5}, ds::dynamic_loss_scale{.init = 4, .interval = 2}};
  auto const same = [&] {
    auto const a = opt.report(), b = opt.last_report();
    bool const norms = a.grad_norm == b.grad_norm || (std::isnan(a.grad_norm) && std::isnan(b.grad_norm));
    return norms && a.step == b.step && a.skipped == b.skipped && a.applied == b.applied && a.why == b.why &&
           a.learning_rate == b.learning_rate && a.loss_scale == b.loss_scale && a.clip_factor == b.clip_factor;
  };
  CHECK(same());
  CHECK(opt.report().why == "no step was taken yet");
  for (int t = 1; t <= 9; ++t) {
    p.set_gradients(t, opt.loss_scale());
    if (t > 6) p.grad[0][0] = float(not_a_number);
    opt.step();
    CHECK(same());
  }
  CHECK(opt.report().skipped == 1);
  CHECK(opt.report().step == 3);
  opt.flush();
  CHECK(same());
}

TEST_CASE("calls in a wrong order are refused with the right order, and change nothing") {
  problem<float> p(sizes);
  ds::loss_scaler scaler{ds::dynamic_loss_scale{.init = 4}};
  CHECK(message([&] { scaler.update(); }) ==
        "loss scale: update() without a step(); call backward, step() of every optimizer, then update() once");
  ds::optimizer opt{p.parameters(), ds::sgd{}, ds::shared_loss_scale{scaler}, ds::ema{}};
  p.set_gradients(1, 4);
  opt.step();
  auto const before = p.value;
  CHECK(message([&] { opt.step(); }) ==
        "step() twice without update() of the loss scale; the order is backward, step() of each "
        "optimizer, update()");
  CHECK(message([&] { opt.unscale(); }) ==
        "unscale() after step(); the order is backward, unscale(), step(), update()");
  CHECK(same_bits(p.value, before));
  scaler.update();
  CHECK(message([&] { scaler.update(); }).starts_with("loss scale: update() without a step()"));
  opt.unscale();
  auto const gradients = p.grad;
  CHECK(message([&] { opt.unscale(); }) ==
        "unscale() was already called for this step; the order is backward, unscale(), step()");
  CHECK(same_bits(p.grad, gradients));
  opt.swap_average();
  CHECK(message([&] { opt.step(); }) == "step() between two calls of swap_average(): the values are the averages now");
  opt.swap_average();
  CHECK(same_bits(p.value, before));
  CHECK(opt.report().step == 1);
  opt.step();
  CHECK(opt.report().step == 2);
}

TEST_CASE("weights are refused without accumulate, and where they are not finite and at least 0") {
  problem<float> p(sizes);
  ds::optimizer plain{p.parameters(), ds::sgd{}};
  ds::optimizer waits{p.parameters(), ds::sgd{}, ds::accumulate{2}};
  CHECK(message([&] { plain.step(2); }) == "step: a weight needs the policy accumulate{n}, replicated or sharded");
  CHECK(message([&] { plain.step(0); }) == "step: a weight needs the policy accumulate{n}, replicated or sharded");
  CHECK(message([&] { waits.step(-1); }) == "step: weight must be finite and at least 0, is -1");
  CHECK(message([&] { waits.step(infinity); }) == "step: weight must be finite and at least 0, is inf");
  CHECK(message([&] { waits.step(not_a_number); }).starts_with("step: weight must be finite and at least 0"));
  CHECK(plain.report().step == 0);
  waits.step(1);
  CHECK(waits.report().why == "gradients are being accumulated, 1 so far");
  CHECK(message([&] { ds::optimizer{p.parameters(), ds::sgd{}, ds::accumulate{0}}; }) ==
        "accumulate: n must be at least 1, is 0");
}

TEST_CASE("update() with a new scale keeps what counts towards the next growth, as GradScaler does") {
  std::vector<float> w(8, 1.f), g(8, 1.f);
  ds::parameters<float> params;
  params.add("w", w.data(), g.data(), w.size());
  ds::loss_scaler scaler{ds::dynamic_loss_scale{.init = 64, .interval = 3}};
  ds::optimizer opt{params, ds::sgd{}, ds::shared_loss_scale{scaler}};
  CHECK(message([&] { scaler.update(8); }).find("update() without a step()") != std::string::npos);
  opt.step(), scaler.update();
  opt.step(), scaler.update(8);
  CHECK(scaler.loss_scale() == 8);
  CHECK(scaler.state().good == 1);
  opt.step(), scaler.update();
  opt.step(), scaler.update();
  CHECK(scaler.loss_scale() == 16);
  auto const saved = scaler.state();
  opt.step(), scaler.update(2);
  scaler.set_state(saved);
  CHECK(scaler.loss_scale() == 16);
}
