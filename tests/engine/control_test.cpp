// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Every transition of the control block, against a model written here from the documentation alone.
#include <descent/engine/step/terms.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

namespace ds = descent;
using ds::detail::plan, ds::control_block, ds::group_entry;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double no_number = std::numeric_limits<double>::quiet_NaN();
constexpr double tiny = std::numeric_limits<double>::denorm_min();
constexpr double huge = std::numeric_limits<double>::max();

/// A rule whose terms are its fields.
struct probe {
  double lr = 0.5, decay = 0.25, other = 3;
  template <class Real> struct state {};
  template <class Real> struct terms { Real lr, decay, other, t; };
  terms<double> at(std::int64_t t) const { return {lr, decay, other, double(t)}; }
  template <class Real> static Real update(Real p, Real, state<Real>&, terms<Real> const&) { return p; }
};
static_assert(ds::update_rule<probe>);

/// The same without a learning rate.
struct no_lr {
  double rate = 0.5;
  template <class Real> struct state {};
  template <class Real> struct terms { Real rate; };
  terms<double> at(std::int64_t) const { return {rate}; }
  template <class Real> static Real update(Real p, Real, state<Real>&, terms<Real> const&) { return p; }
};

/// A rule whose terms are its sums and the number of calls that asked for them.
template <ds::scope Over> struct counting {
  double lr = 0.5;
  template <class Real> struct state {};
  template <class Real> struct terms { Real lr, a, b, t, calls; };
  template <class Real> struct sums { Real a, b; };
  struct memory { double calls = 0; };
  static constexpr ds::scope sums_over = Over;
  template <class Real> static sums<Real> sum(Real p, Real g, terms<Real> const&) { return {p, g}; }
  terms<double> at(std::int64_t t) const { return {lr, 0, 0, double(t), 0}; }
  terms<double> at(std::int64_t t, sums<double> const& total, memory& old) const {
    old.calls += 1;
    return {lr, total.a, total.b, double(t), old.calls};
  }
  template <class Real> static Real update(Real p, Real, state<Real>&, terms<Real> const&) { return p; }
};
static_assert(ds::has_memory<counting<ds::scope::tensor>>);

/// A schedule that makes a shifted step visible.
struct table {
  double first;
  double operator()(std::int64_t step) const { return first + 0.125 * double(step * step); }
};

template <class Rule, class... Ps> struct machine {
  using plan_type = plan<float, float, Rule, Ps...>;
  typename plan_type::policies policies;
  Rule rule;
  control_block c{};

  explicit machine(Rule r, Ps... ps) : policies{ps...}, rule(r) {}
  void call(double squares) {
    ds::detail::decide<plan_type>(c, policies, {}, {squares});
    if (c.applied) ds::detail::advance<plan_type>(c, rule, policies);
  }
};

/// The promises of decide().
struct model {
  bool measures, clips;
  double max = inf;
  std::int64_t step = 0, skipped = 0;
  double norm = 0, clip = 1, lr = 0;
  bool applied = false;

  void call(double squares, double scheduled_lr) {
    if (measures) norm = std::sqrt(squares);
    applied = !measures || std::isfinite(squares);
    if (!applied) {
      skipped += 1;
      return;
    }
    clip = clips && norm > max ? max / norm : 1;
    lr = scheduled_lr;
    step += 1;
  }
  bool equals(control_block const& c) const {
    auto const same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    return c.step == step && c.skipped == skipped && c.applied == applied && same(c.grad_norm, norm) &&
           c.clip == clip && c.factor == clip && c.learning_rate == lr;
  }
};

double const squares[] = {0.,  tiny, 1e-300, 0.25, 1 - 0x1p-53, 1.,   1 + 0x1p-52, 2.,        4.,
                          16., 1e6,  1e300,  huge, inf,         -inf, no_number,   -no_number};

/// All pairs of calls, on squared norms of every kind.
template <class... Ps> void check_every_pair(bool measures, bool clips, double max, Ps... ps) {
  for (double first : squares)
    for (double second : squares) {
      machine m(probe{}, ps...);
      model expected{measures, clips, max};
      for (double x : {first, second}) {
        m.call(x);
        expected.call(x, 0.5);
        CAPTURE(first);
        CAPTURE(second);
        CHECK(expected.equals(m.c));
      }
    }
}

/// A shared loss scale without its owner.
struct shared_by_hand {
  ds::shared_scale* shared;
  using policy_kind = ds::kind::loss_scale;
};

/// The same machine with gradients of type G, its own loss scale and calls of every kind.
template <class G, class... Ps> struct whole {
  using plan_type = plan<G, G, probe, Ps...>;
  typename plan_type::policies policies;
  control_block c;

  explicit whole(Ps... ps) : policies{ps...}, c(ds::detail::start_of<plan_type>(policies)) {}
  void call(ds::detail::norm_totals const& totals, ds::step_call const& call = {}) {
    ds::loss_scale_state scale = c.scale;
    if constexpr (plan_type::shares_scale)
      scale = static_cast<typename plan_type::loss_scale const&>(policies).shared->state;
    ds::detail::decide<plan_type>(c, policies, scale, totals, call);
    ds::detail::rescale<plan_type>(c, policies);
    if (c.applied) ds::detail::advance<plan_type>(c, probe{}, policies);
  }
  double norm(ds::detail::norm_totals const& totals) const { return ds::detail::norm_from<plan_type>(totals); }
  double factor(ds::detail::norm_totals const& totals, double inverse) const {
    return ds::detail::clip_factor<plan_type>(policies, totals, inverse);
  }
  auto terms(std::int64_t t) const { return ds::detail::find_step_terms<plan_type>(probe{}, policies, t); }
};
template <class G, class... Ps> whole<G, Ps...> whole_of(Ps... ps) { return whole<G, Ps...>(ps...); }

}  // namespace

TEST_CASE("a fresh control block has taken no step and multiplies gradients by one") {
  control_block const c{};
  CHECK(c.step == 0);
  CHECK(c.skipped == 0);
  CHECK(c.bad_chunk == -1);
  CHECK(!c.applied);
  CHECK(c.clip == 1);
  CHECK(c.factor == 1);
}

TEST_CASE("every transition and every pair of transitions is the model's") {
  check_every_pair(false, false, inf);
  check_every_pair(true, false, inf, ds::skip_nonfinite{});
  for (double max : {1., 2., 0.5, 1e-3, 1e200, tiny, inf}) {
    check_every_pair(true, true, max, ds::clip_norm{max});
    check_every_pair(true, true, max, ds::clip_norm{max}, ds::skip_nonfinite{});
    check_every_pair(true, true, max, ds::skip_nonfinite{}, ds::clip_norm{max});
  }
}

TEST_CASE("the clip factor is exactly max / norm above max and exactly one up to it") {
  machine m(probe{}, ds::clip_norm{2.0});
  struct {
    double squares, factor;
  } const rows[] = {{0, 1}, {1, 1}, {4, 1}, {16, 0.5}, {64, 0.25}, {9, 2. / 3}, {100, 0.2}, {0x1p1000, 0x1p-499}};
  for (auto const& row : rows) {
    m.call(row.squares);
    CHECK(m.c.clip == row.factor);
    CHECK(m.c.factor == row.factor);
    CHECK(m.c.grad_norm == std::sqrt(row.squares));
  }
  double const above = std::nextafter(2.0, 3.0);  // the first norm that is clipped
  CHECK(ds::clip_norm{2.0}.factor(above) == 2.0 / above);
  CHECK(ds::clip_norm{2.0}.factor(above) < 1);
  CHECK(ds::clip_norm{2.0}.factor(std::nextafter(2.0, 1.0)) == 1);
}

TEST_CASE("without a read-only pass no sum is looked at and every step applies") {
  machine m(probe{});
  for (double x : squares) m.call(x);
  CHECK(m.c.step == std::int64_t(std::size(squares)));
  CHECK(m.c.skipped == 0);
  CHECK(m.c.clip == 1);
}

TEST_CASE("rules with sums measure, so they skip") {
  machine m(counting<ds::scope::tensor>{});
  m.call(no_number);
  CHECK(!m.c.applied);
  m.call(9);
  CHECK(m.c.applied);
  CHECK(m.c.grad_norm == 3);
  CHECK(m.c.clip == 1);
}

TEST_CASE(
    "all sequences of five clipped, unclipped and skipped steps follow the model and its "
    "schedules") {
  auto const lr = ds::learning_rate(table{1});
  auto const decay = ds::vary<&probe::decay>(table{7});
  double const calls[] = {16, 0.25, inf, no_number};
  std::vector<group_entry<probe>> const groups = {{probe{}}, {probe{9, 9, 5}}, {probe{9, 9, 6}, true}};
  for (int sequence = 0; sequence < 4 * 4 * 4 * 4 * 4; ++sequence) {
    machine m(probe{}, ds::clip_norm{1.0}, lr, decay);
    model expected{true, true, 1.0};
    bool good = true;
    for (int i = 0, rest = sequence; i < 5; ++i, rest /= 4) {
      double const x = calls[rest % 4];
      std::int64_t const before = expected.step;
      m.call(x);
      expected.call(x, table{1}(before));
      good = good && expected.equals(m.c);
      if (!expected.applied) continue;
      for (auto const& g : groups) {  // the terms of this update, with the schedules before it
        auto const u = ds::detail::terms_of<decltype(m)::plan_type>(g, m.policies, m.c.step, nullptr, 0);
        good = good && u.terms.lr == float(table{1}(before)) && u.terms.decay == float(table{7}(before)) &&
               u.terms.other == float(g.rule.other) && u.terms.t == float(before + 1) && u.frozen == g.frozen;
      }
    }
    CAPTURE(sequence);
    CHECK(good);
  }
}

TEST_CASE("a skipped step keeps what the last update did and changes only its own three fields") {
  machine m(probe{}, ds::clip_norm{1.0});
  m.call(16);
  control_block const before = m.c;
  m.call(inf);
  CHECK(m.c.skipped == before.skipped + 1);
  CHECK(m.c.grad_norm == inf);
  CHECK(!m.c.applied);
  CHECK(m.c.step == before.step);
  CHECK(m.c.clip == before.clip);
  CHECK(m.c.factor == before.factor);
  CHECK(m.c.learning_rate == before.learning_rate);
}

TEST_CASE("the place of a bad gradient is forgotten by the next update") {
  machine m(probe{}, ds::skip_nonfinite{});
  m.call(no_number);
  m.c.bad_chunk = 17;  // found by the backend
  m.call(1);
  CHECK(m.c.bad_chunk == -1);
}

TEST_CASE("the reported learning rate is group 0's field, or its schedule at the step") {
  machine plain(probe{.lr = 0.75});
  plain.call(0);
  CHECK(plain.c.learning_rate == 0.75);
  auto const lr = ds::learning_rate(ds::linear{.from = 1, .to = 0, .steps = 4});
  machine m(probe{}, lr);
  for (double expected : {1., 0.75, 0.5, 0.25, 0., 0.}) {
    m.call(0);
    CHECK(m.c.learning_rate == expected);
  }
  machine none(no_lr{});
  none.call(0);
  CHECK(none.c.learning_rate == 0);
  CHECK(none.c.step == 1);
}

TEST_CASE("a schedule replaces the field it names and no other, in every group") {
  auto const other = ds::vary<&probe::other>(table{2});
  machine m(probe{}, other);
  probe const r = ds::detail::scheduled(probe{0.1, 0.2, 0.3}, m.policies, 3);
  CHECK(r.lr == 0.1);
  CHECK(r.decay == 0.2);
  CHECK(r.other == table{2}(3));
  probe const unknown = ds::detail::unscheduled(probe{0.1, 0.2, 0.3}, m.policies);
  CHECK(unknown.lr == 0.1);
  CHECK(unknown.decay == 0.2);
  for (double like : {0.0, 0.3, 1.0}) CHECK(unknown.other != like);
}

TEST_CASE("the step count is 64 bits wide") {
  machine m(probe{}, ds::skip_nonfinite{});
  m.c.step = (std::int64_t{1} << 40) - 1;
  m.c.skipped = std::int64_t{1} << 33;
  m.call(1);
  CHECK(m.c.step == std::int64_t{1} << 40);
  m.call(no_number);
  CHECK(m.c.skipped == (std::int64_t{1} << 33) + 1);
  using wide = plan<double, double, probe>;
  group_entry<probe> const g{probe{}};
  CHECK(ds::detail::terms_of<wide>(g, wide::policies{}, m.c.step, nullptr, 0).terms.t == 0x1p40);
}

TEST_CASE("terms are computed in double and rounded once, and are exact where anything is double") {
  group_entry<probe> const g{probe{0.1, 1. / 3, 1 + 0x1p-40}};
  using narrow = plan<float, float, probe>;
  auto const f = ds::detail::terms_of<narrow>(g, narrow::policies{}, 1, nullptr, 0);
  CHECK(f.terms.lr == 0.1f);
  CHECK(f.terms.decay == float(1. / 3));
  CHECK(f.terms.other == 1.f);
  using wide = plan<float, double, probe>;
  auto const d = ds::detail::terms_of<wide>(g, wide::policies{}, 1, nullptr, 0);
  CHECK(d.terms.decay == 1. / 3);
  CHECK(d.terms.other == 1 + 0x1p-40);
}

TEST_CASE("sums over a tensor reach the terms in order, and a frozen tensor's memory stays") {
  using rule = counting<ds::scope::tensor>;
  using plan_type = plan<float, double, rule>;
  rule::memory first, second, frozen;
  double const totals[] = {2, -1, -1, 5, -1, -1};  // a, b at a stride of 3
  group_entry<rule> const g{rule{0.75}}, ice{rule{0.75}, true};
  for (int t = 1; t <= 3; ++t) {
    auto const u = ds::detail::terms_of<plan_type>(g, plan_type::policies{}, t, totals, 3, &first, 0);
    CHECK(u.terms.lr == 0.75);
    CHECK(u.terms.a == 2);
    CHECK(u.terms.b == 5);
    CHECK(u.terms.t == t);
    CHECK(u.terms.calls == t);
    CHECK(!u.frozen);
    CHECK(ds::detail::terms_of<plan_type>(ice, plan_type::policies{}, t, totals, 3, &frozen, 0).frozen);
  }
  CHECK(frozen.calls == 0);
  CHECK(second.calls == 0);
  CHECK(first.calls == 3);
}

TEST_CASE("sums over the model continue in the memory of a frozen group, to which they do not belong") {
  using rule = counting<ds::scope::model>;
  using plan_type = plan<float, double, rule>;
  rule::memory memory;
  double const totals[] = {2, 5};
  group_entry<rule> const ice{rule{}, true};
  auto const u = ds::detail::terms_of<plan_type>(ice, plan_type::policies{}, 1, totals, 1, &memory, 0);
  CHECK(u.frozen);
  CHECK(memory.calls == 1);
}

TEST_CASE("schedules reach rules with sums, before the sums and after them") {
  auto const lr = ds::learning_rate(table{1});
  using rule = counting<ds::scope::tensor>;
  using plan_type = plan<float, double, rule, std::remove_const_t<decltype(lr)>>;
  plan_type::policies const policies{lr};
  group_entry<rule> const g{rule{9}};
  rule::memory memory;
  double const totals[] = {0, 0};
  for (std::int64_t t = 1; t < 5; ++t) {
    CHECK(ds::detail::terms_for_sums<plan_type>(g, policies, t, &memory, 0).terms.lr == table{1}(t - 1));
    CHECK(ds::detail::terms_of<plan_type>(g, policies, t, totals, 1, &memory, 0).terms.lr == table{1}(t - 1));
  }
}

TEST_CASE("rules with sums but no memory get their sums: LAMB's trust ratio, DoG's first radius") {
  using of_lamb = plan<float, double, ds::lamb>;
  double const norms[] = {9, 4};
  ds::detail::no_memory nothing;
  group_entry<ds::lamb> const l{ds::lamb{.lr = 0.5}};
  CHECK(ds::detail::terms_of<of_lamb>(l, of_lamb::policies{}, 1, norms, 1, &nothing, 0).terms.rate == 0.5 * 3 / 2);
  using of_dog = plan<float, double, ds::dog>;
  double const sums[] = {0, 4, 9};
  ds::dog::memory memory;
  group_entry<ds::dog> const d{ds::dog{.lr = 1, .reps = 0.25, .eps = 12}};
  CHECK(ds::detail::terms_of<of_dog>(d, of_dog::policies{}, 1, sums, 1, &memory, 0).terms.rate == 0.25 * 4 / 4);
  CHECK(memory.r == 1);
  CHECK(memory.G == 4);
}

TEST_CASE("what a step does is decided by types: passes, launches and arithmetic") {
  using bare = plan<float, float, probe>;
  using clip = plan<ds::half, float, probe, ds::clip_norm>;
  using sums = plan<float, float, ds::lamb>;
  using both = plan<float, float, ds::lamb, ds::clip_norm, ds::states<double>>;
  CHECK(std::tuple(bare::measures, bare::norm_first, bare::launches) == std::tuple(false, false, 2));
  CHECK(std::tuple(clip::measures, clip::norm_first, clip::launches) == std::tuple(true, false, 3));
  CHECK(std::tuple(sums::measures, sums::norm_first, sums::launches) == std::tuple(true, false, 3));
  CHECK(std::tuple(both::measures, both::norm_first, both::launches) == std::tuple(true, true, 5));
  CHECK(std::is_same_v<clip::real, float>);
  CHECK(std::is_same_v<both::real, double>);
  CHECK(std::is_same_v<plan<ds::half, ds::half, probe, ds::master<double>>::real, double>);
  CHECK(std::is_same_v<plan<ds::half, double, probe>::real, double>);
}

TEST_CASE("norm, clip factor and eps are of the true gradient; the loss scale moves by every judged step") {
  auto m = whole_of<float>(ds::dynamic_loss_scale{.init = 8, .interval = 2}, ds::clip_norm{.max = 2, .eps = 1});
  CHECK(m.c.scale.scale == 8);
  m.call({24. * 24});  // a norm of 3
  CHECK(m.c.grad_norm == 3);
  CHECK(m.c.clip == 0.5);
  CHECK(m.c.factor == 0.5 / 8);
  CHECK(m.c.scale.good == 1);
  m.call({inf});
  CHECK(m.c.scale.scale == 4);
  CHECK(m.c.step == 1);
  CHECK(m.c.skipped_in_row == 1);
  CHECK(m.c.factor == 0.5 / 8);
  m.call({4});  // 1/2, which eps does not bring above max
  CHECK(m.c.grad_norm == 0.5);
  CHECK(m.c.factor == 0.25);
  CHECK(m.c.skipped_in_row == 0);
  m.c.unscaled = true;  // the caller has unscaled the gradients
  m.call({9});
  CHECK(m.c.grad_norm == 3);
  CHECK(m.c.factor == 0.5);
  CHECK(!m.c.unscaled);
  CHECK(m.c.scale.scale == 8);
  m.c.unscaled = true;
  m.call({no_number});
  CHECK(!m.c.unscaled);  // a skip ends this, too
  CHECK(m.c.scale.scale == 4);
  CHECK(m.c.step == 3);
  CHECK(m.c.skipped == 2);
  CHECK(m.c.calls == 5);
}

TEST_CASE("micro-batches: the divisor is the sum of the weights, and every update starts again from none") {
  auto m = whole_of<float>(ds::accumulate{3}, ds::dynamic_loss_scale{.init = 4, .interval = 1, .min = 1},
                           ds::skip_nonfinite{}, ds::learning_rate(table{1}));
  auto const waits = [&](double weight, int batches, double sum) {
    m.call({inf}, {weight});  // nothing was measured
    CHECK(m.c.waiting);
    CHECK(!m.c.applied);
    CHECK(m.c.batches == batches);
    CHECK(m.c.weight == sum);
  };
  auto const updated = [&](std::int64_t step, double norm, double factor) {
    CHECK(m.c.applied);
    CHECK(!m.c.waiting);
    CHECK(m.c.step == step);
    CHECK(m.c.learning_rate == table{1}(step - 1));
    CHECK(m.c.grad_norm == norm);
    CHECK(m.c.factor == factor);
    CHECK(m.c.batches == 0);
    CHECK(m.c.weight == 0);
  };
  m.call({1}, {.flush = true});  // nothing to flush
  CHECK(m.c.waiting);
  CHECK(m.c.batches == 0);
  waits(2, 1, 2);
  waits(3, 2, 5);
  CHECK(m.c.scale.scale == 4);
  m.call({1600}, {5});
  updated(1, 1, 1. / 40);
  CHECK(m.c.scale.scale == 8);
  waits(0.5, 1, 0.5);
  m.call({64}, {.flush = true});
  updated(2, 2, 0.25);
  CHECK(m.c.scale.scale == 16);
  waits(1, 1, 1);
  waits(1, 2, 2);
  m.call({inf}, {6});  // a skip discards its micro-batches, too
  CHECK(!m.c.applied);
  CHECK(!m.c.waiting);
  CHECK(m.c.batches == 0);
  CHECK(m.c.weight == 0);
  CHECK(m.c.step == 2);
  CHECK(m.c.skipped == 1);
  CHECK(m.c.scale.scale == 8);
  waits(1, 1, 1);
  waits(1, 2, 2);
  m.call({1024}, {2});
  updated(3, 1, 1. / 32);
}

TEST_CASE("the weights of micro-batches divide without a loss scale as well, and no update looks beyond n") {
  auto m = whole_of<float>(ds::accumulate{2}, ds::clip_norm{.max = 1});
  for (int t = 1; t <= 3; ++t) {
    m.call({}, {3});
    CHECK(m.c.waiting);
    m.call({256}, {1});
    CHECK(m.c.step == t);
    CHECK(m.c.grad_norm == 4);
    CHECK(m.c.clip == 0.25);
    CHECK(m.c.factor == 0.0625);
  }
}

TEST_CASE("totals become norms: L2 with large elements apart, L1 with its scale, the largest as it is") {
  auto const l2 = whole_of<double>(ds::clip_norm{1});
  CHECK(l2.norm({25}) == 5);
  CHECK(l2.norm({0, 0x1p-200}) == 0x1p500);           // (2^500 2^-600)^2
  CHECK(l2.norm({0x1p1000, 0x1p-200}) == 0x1p500 * std::sqrt(2.0));
  CHECK(whole_of<double>(ds::clip<ds::norm::l1>{1}).norm({0x1p-63}) == 2);
  CHECK(whole_of<float>(ds::clip<ds::norm::l1>{1}).norm({9}) == 9);
  CHECK(whole_of<float>(ds::clip<ds::norm::inf>{1}).norm({9}) == 9);
  using totals = ds::detail::norm_totals;
  CHECK(totals{huge, huge}.finite());
  for (double bad : {inf, -inf, no_number}) {
    CHECK(!totals{bad, 0}.finite());
    CHECK(!totals{0, bad}.finite());
    CHECK(totals{0, 0, bad}.finite());  // parameters do not skip a step
  }
}

TEST_CASE("groups and tensors that are clipped by themselves leave the model's factor alone") {
  auto m = whole_of<float>(ds::clip<ds::norm::l2, ds::scope::group>{.max = 2}, ds::static_loss_scale{4});
  m.call({1600});
  CHECK(m.c.grad_norm == 10);
  CHECK(m.c.clip == 1);
  CHECK(m.c.factor == 0.25);
  CHECK(m.factor({1600}, 0.25) == 0.2);
  CHECK(m.factor({64}, 0.25) == 1);
  auto const agc = whole_of<float>(ds::clip_adaptive{.c = 0.5, .eps = 2}, ds::static_loss_scale{4});
  CHECK(agc.factor({64 * 16, 0, 16}, 0.25) == 0.25);  // 0.5 * 4 / 8
  CHECK(agc.factor({64 * 16, 0, 0}, 0.25) == 0.125);  // 0.5 * eps / 8
  CHECK(agc.factor({16, 0, 0}, 0.25) == 1);
}

TEST_CASE("the terms of update t: the average's weights, lookahead's pull, noise of update t - 1, seeds") {
  auto const of = [](auto policy) { return whole_of<double>(policy); };
  auto const plain = of(ds::ema{.decay = 0.75, .start = 2});
  auto const corrected = of(ds::ema{.decay = 0.5, .start = 1, .bias_corrected = true});
  auto const mean = of(ds::swa{.start = 2, .every = 3});
  double const plain_takes[] = {1, 1, 0.25, 0.25}, corrected_takes[] = {1, 1, 1 / 1.5, 0.5 / 0.875},
               mean_takes[] = {1, 1, 0, 0, 0.5, 0, 0, 1. / 3, 0};
  for (int t = 1; t <= 9; ++t) {
    CAPTURE(t);
    if (t <= 4) {
      CHECK(plain.terms(t).of<ds::ema>().take == plain_takes[t - 1]);
      CHECK(plain.terms(t).of<ds::ema>().keep == 1 - plain_takes[t - 1]);
      CHECK(corrected.terms(t).of<ds::ema>().take == corrected_takes[t - 1]);
    }
    CHECK(mean.terms(t).of<ds::swa>().take == mean_takes[t - 1]);
    CHECK(mean.terms(t).of<ds::swa>().keep == 1 - mean_takes[t - 1]);
    CHECK(of(ds::lookahead{.k = 3, .alpha = 0.25}).terms(t).of<ds::lookahead>().alpha == (t % 3 == 0 ? 0.25 : 0));
  }
  ds::gradient_noise const noise{.eta = 4, .gamma = 2, .seed = 99};
  auto const k = whole_of<float>(noise, ds::stochastic_rounding{77}, ds::clip_value{0.5}).terms(2);
  CHECK(k.of<ds::gradient_noise>().deviation == 1);  // 2 / (1 + 1)
  CHECK(k.noise_seed == 99);
  CHECK(k.rounding_seed == 77);
  CHECK(k.of<ds::clip_value>().c == 0.5);
  CHECK(k.t == 2);
}

TEST_CASE("a shared scale: overflows of one iteration lower it once; an iteration that nobody judged does not count") {
  ds::dynamic_loss_scale const policy{.init = 64, .interval = 2};
  ds::shared_scale s{policy.start()};
  auto a = whole_of<float>(shared_by_hand{&s}), b = whole_of<float>(shared_by_hand{&s});
  auto waits = whole_of<float>(shared_by_hand{&s}, ds::accumulate{2}, ds::skip_nonfinite{});
  struct {
    bool bad_a, bad_b;
    float after;
    int good;
  } const rows[] = {{false, false, 64, 1}, {true, false, 32, 0}, {false, true, 16, 0},
                    {true, true, 8, 0}, {false, false, 8, 1}, {false, false, 16, 0}};
  for (auto const& row : rows) {
    float const before = s.state.scale;
    a.call({row.bad_a ? inf : 0});
    CHECK(a.c.applied == !row.bad_a);
    b.call({row.bad_b ? inf : double(before) * before});
    CHECK((row.bad_b || b.c.grad_norm == 1));
    CHECK(s.state.scale == before);
    ds::detail::update_shared(s, policy);
    CHECK(s.state.scale == row.after);
    CHECK(s.state.good == row.good);
  }
  ds::detail::update_shared(s, policy);
  waits.call({inf});
  ds::detail::update_shared(s, policy);
  CHECK(s.state.scale == 16);
  CHECK(s.state.good == 0);
  waits.call({0});
  ds::detail::update_shared(s, policy);
  CHECK(s.state.good == 1);
}
