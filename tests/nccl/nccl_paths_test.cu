// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/gradient_ahead.hpp>
#include <descent/policies/loss_at.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/maximize.hpp>
#include <descent/policies/noise.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/sam.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/polyak.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/schedule_free_adamw.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/training/loss_scaler.hpp>

#include "nccl/side.cuh"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

/// Each member function, policy and kind of parameter on devices of several ranks: the bits of one process on the host
/// with the sum of the gradients, or what the documentation says instead. ranks/paths_test.cpp tests hosts.

namespace ds = descent;
using ds::half, ds::bfloat16;
using ranks::has, test::joined;
using namespace side_by_side;

namespace {

/// What most cases train with: few optimizers, which take most of the compile time.
template <class Train, class Policy>
void same_as_usual(trial<float> const& m, Train const& train, Policy policy, double loss_scale = 1) {
  m.same(train, policy, ds::adamw{}, ds::clip_norm{0.5}, ds::ema{.decay = 0.5},
         ds::dynamic_loss_scale{.init = loss_scale});
}
template <class Train> void both_as_usual(trial<float> const& m, Train const& train, double loss_scale = 1) {
  same_as_usual(m, train, ds::replicated{m.comm}, loss_scale);
  same_as_usual(m, train, ds::sharded{m.comm}, loss_scale);
}

}  // namespace

// ---- parameters ----------------------------------------------------------------------------------------------------

TEST_CASE("pointers without alignment, no elements, no parameters, fewer chunks than ranks") {
  joined comm;
  auto const train = [](auto& opt, auto& at) {
    steps(opt, at);
    opt.swap_average(), at.look();
    opt.swap_average(), at.look();
  };
  auto const check = [&](tensors const& list) {
    trial<float> const m{comm, list};
    both_as_usual(m, train);
    same_as_usual(m, train, ds::sharded{comm, ds::ordered_sum{}});
  };
  check({{4099, 0, 1, 1}, {1, 1, 1, 0}, {0, 0, 1, 1}, {7, 0, 3, 1}, {4096, 1, 0, 2}});
  check({});
  check({{0}, {0, 1}});
  check({{5}});
  check({{0}, {3}, {2, 1}});
}

TEST_CASE("tensors of several types: gradients go over the wire in float") {
  using two = ds::mixed<half, float>;
  joined comm;
  test::stream s;
  auto const check = [&](auto policy) {
    side<half, half, true> w{{{5001}, {0}, {9}}, s, comm, coarse};
    side<float, float, true> b{{{333}, {1}}, s, comm};
    side<half, half, false> hw{w.x.list, s, comm, coarse};
    side<float, float, false> hb{b.x.list, s, comm};
    auto const list = [](auto& w, auto& b) {
      ds::parameters<two> all;
      auto const of_w = w.list();
      auto const of_b = b.list();
      for (auto const& x : of_w.views()) all.add("half " + x.name, x.value, x.gradient, x.count);
      for (auto const& x : of_b.views()) all.add("float " + x.name, x.value, x.gradient, x.count);
      return all;
    };
    ds::optimizer opt{list(w, b), ds::adamw{}, ds::master<float>{}, ds::clip_norm{1}, policy, ds::cuda{s}};
    ds::optimizer alone{list(hw, hb), ds::adamw{}, ds::master<float>{}, ds::clip_norm{1}, ds::accumulate{1}};
    for (int t = 0; t < 3; ++t) {
      w.set(t), b.set(t), hw.set(t), hb.set(t);
      w.step(opt), alone.step(comm.size());
      CHECK(test::same_bits(w.values(), hw.values()));
      CHECK(test::same_bits(b.values(), hb.values()));
    }
  };
  check(ds::replicated{comm});
  check(ds::sharded{comm});
}

// ---- sums ----------------------------------------------------------------------------------------------------------

TEST_CASE("what goes over the wire has the type that was asked for") {
  joined comm;
  ds::sgd const rule{.lr = 0.5, .momentum = 0.5};  // large enough to show what is rounded
  trial<float> const rounded{comm, usual, nearly_coarse, coarse};
  rounded.same(steps, ds::sharded{comm, ds::wire<half>{}, ds::native_sum{}}, rule);
  rounded.same(steps, ds::sharded{comm, ds::wire<bfloat16>{}, ds::ordered_sum{}}, rule);
  trial<float, float, double> const wide{comm, {{130}}, of_double};
  wide.same(steps, ds::replicated{comm, ds::wire<double>{}, ds::ordered_sum{}}, rule);
}

TEST_CASE("gradients of 16 bits are added in float where that was asked for, and else in their own type") {
  joined comm;
  ds::sgd const rule{.lr = 0.5, .momentum = 0.5};
  trial<float, half, float> const exact{comm};
  exact.same(steps, ds::sharded{comm, ds::float_sum{}}, rule);
  trial<bfloat16> const own{comm, usual, coarse};
  own.same(steps, ds::replicated{comm, ds::native_sum{}}, rule);
}

TEST_CASE("an ordered sum of shards is made where it is read first: one launch and one buffer less") {
  joined comm;
  test::stream s;
  std::int64_t const chunks = 3 * comm.size(), count = chunks * 4096, own = count / comm.size();
  test::device_vector<float> value(std::vector<float>(std::size_t(count), 1), s), gradient(value.get(s), s);
  ds::parameters<float> list;
  list.add("w", value.data(), gradient.data(), count);
  struct cost {
    std::int64_t launches, moved = 0, memory;
    bool keeps_sum;
    std::string text;
  };
  auto const step = [&](auto... policies) {
    ds::optimizer opt{list, ds::sgd{.lr = 0.5}, policies..., ds::cuda{s}};
    s.wait();
    auto const launches = ds::detail::launches;
    if (test::in_software()) cudasim_reset_counters();
    opt.step();
    s.wait();
    cost c{ds::detail::launches - launches, 0, opt.memory().bytes, has(opt.explain(), "sum of gradients"),
           opt.explain()};
    if (test::in_software())
      c.moved = std::int64_t(cudasim_count("global_load_bytes") + cudasim_count("global_store_bytes"));
    return c;
  };
  auto const traffic = [](int pass, int update) {
    std::string const bytes = " bytes per parameter";
    return "traffic: " +
           (pass == 0 ? std::to_string(update) + bytes + "\n"
                      : std::to_string(pass) + bytes + " before the update, " + std::to_string(update) + " in it\n");
  };
  ds::sharded const native{comm};
  ds::sharded const ordered{comm, ds::ordered_sum{}};
  int const parts = 4 * comm.size();

  auto const plain = step(native), added = step(ordered);
  CHECK(added.launches == plain.launches);
  CHECK((plain.keeps_sum && !added.keeps_sum));
  CHECK(added.memory == plain.memory + parts * own - 4 * own);
  CHECK(has(plain.text, traffic(0, 12)));
  CHECK(has(added.text, traffic(0, 8 + parts)));
  CHECK(added.moved == plain.moved + (test::in_software() ? (parts - 4) * own : 0));

  ds::clip<ds::norm::l2, ds::scope::group> const by_group{1};
  auto const clipped = step(by_group, native), both = step(by_group, ordered);
  CHECK(both.launches == clipped.launches);
  CHECK((clipped.keeps_sum && both.keeps_sum));
  CHECK(both.memory == clipped.memory + parts * own);
  CHECK(has(clipped.text, traffic(4, 12)));
  CHECK(has(both.text, traffic(4 + parts, 12)));
  CHECK(both.moved == clipped.moved + (test::in_software() ? parts * own : 0));
}

TEST_CASE("gradients whose sum is beyond half are not: they are sent divided") {
  joined comm;
  test::stream s;
  side<half, half, true> at{{{9}}, s, comm, [](int, int, std::size_t, std::int64_t) { return 30000.0; }};
  ds::optimizer opt{at.list(), ds::sgd{.lr = 1.0 / 30000}, ds::master<float>{}, ds::skip_nonfinite{},
                    ds::replicated{comm}, ds::cuda{s}};
  auto const before = test::from_device(opt.master("w0").data(), 9, s);
  at.set(0);
  at.step(opt);
  CHECK(opt.report().applied);
  auto const after = test::from_device(opt.master("w0").data(), 9, s);
  for (std::size_t i = 0; i < 9; ++i) CHECK(after[i] == doctest::Approx(before[i] - 1).epsilon(1e-3));
}

// ---- between backward and step -------------------------------------------------------------------------------------

TEST_CASE("gradients may be unscaled and transformed: each rank's own") {
  joined comm;
  auto const train = [](auto& opt, auto& at) {
    for (int t = 0; t < 3; ++t) {
      at.set(t, 128);
      if constexpr (std::remove_reference_t<decltype(at)>::on_device) {
        at.set(t, 256);
        at.enqueue([&] {
          opt.unscale();
          opt.transform_gradients(halve{});
        });
        auto const left = at.x.device_gradient.get(at.x.s);
        at.set(t, 0.5);
        CHECK(test::same_bits(left, at.x.gradient));
      }
      at.step(opt);
      at.look();
      CHECK(opt.report().loss_scale == 256);
    }
  };
  both_as_usual({comm}, train, 256);
}

TEST_CASE("values that something else wrote, and groups that changed") {
  joined comm;
  auto const train = [](auto& opt, auto& at) {
    steps(opt, at);
    at.halve_values();
    at.enqueue([&] { opt.reload_values(); });
    opt.group(0).lr *= 0.5;
    opt.freeze(0, false);
    at.enqueue([&] { opt.commit_groups(); });
    steps(opt, at);
  };
  both_as_usual({comm}, train);
  trial<half, float>{comm}.same(train, ds::sharded{comm}, ds::sgd{.lr = 0.5, .momentum = 0.5}, ds::master<float>{},
                                ds::clip_norm{1});
}

TEST_CASE("one loss scale for two optimizers, on all ranks") {
  joined comm;
  test::stream s;
  side<float, float, true> x{usual, s, comm}, y{usual, s, comm};
  ds::loss_scaler scaler{ds::dynamic_loss_scale{.init = 64}, ds::cuda{s}};
  ds::sharded const shared_out{comm, ds::ordered_sum{}};
  ds::optimizer a{x.list(), ds::adamw{}, ds::shared_loss_scale{scaler}, shared_out, ds::cuda{s}};
  ds::optimizer b{y.list(), ds::sgd{}, ds::shared_loss_scale{scaler}, ds::replicated{comm}, ds::cuda{s}};
  double scale = 64;
  for (int bad = 0; bad <= comm.size(); ++bad) {
    INFO("rank ", comm.rank(), ", overflow on ", bad);
    x.set(bad), y.set(bad);
    if (bad == comm.rank()) {
      x.x.gradient_of(0, 4098) = std::numeric_limits<float>::infinity();
      x.x.send_gradients();
    }
    x.enqueue([&] { a.step(), b.step(), scaler.update(); });
    if (bad < comm.size()) scale /= 2;
    CHECK(scaler.loss_scale() == scale);
    CHECK(a.loss_scale() == scale);
    CHECK(a.report().applied == (bad == comm.size()));
    CHECK(b.report().applied);
  }
  if (comm.size() == 1) return;
  ds::loss_scaler other{ds::dynamic_loss_scale{.init = comm.rank() == 1 ? 4.0 : 2.0}, ds::cuda{s}};
  std::string const why = ranks::thrown<std::invalid_argument>(
      [&] { ds::optimizer{y.list(), ds::sgd{}, ds::shared_loss_scale{other}, ds::replicated{comm}, ds::cuda{s}}; });
  INFO(why);
  CHECK(has(why, ": shared loss scale 2 (rank 0"));
  CHECK(why.ends_with("; shared loss scale 4 (rank 1)"));
}

TEST_CASE("flush divides by the micro-batches and weights of all ranks") {
  joined comm;
  auto const train = [](auto& opt, auto& at) {
    int const n = at.comm.size();
    at.weight = at.on_device ? at.comm.rank() + 1 : n * (n + 1) / 2;
    for (int t = 0; t < 3; ++t) {
      at.set(t);
      at.step(opt), at.step(opt);
      CHECK_FALSE(opt.report().applied);
      at.enqueue([&] { opt.flush(); });
      CHECK(opt.report().applied);
      at.enqueue([&] { opt.flush(); });
      CHECK(opt.report().step == t + 1);
      at.look();
    }
  };
  trial<float>{comm}.both(train, ds::adamw{}, ds::accumulate{4});
}

TEST_CASE("flush: a rank without micro-batches meets the others, adds nothing and keeps its gradients; captured, too") {
  joined comm;
  test::stream s;
  // Rank 0 may have a micro-batch without examples.
  auto const run = [&](auto policy, bool capture, bool without_examples = false) {
    INFO("rank ", comm.rank(), capture ? ", captured" : "");
    side<float, float, true> d{usual, s, comm};
    side<float, float, false> h{usual, s, comm};
    ds::optimizer opt{d.list(), ds::adamw{}, ds::accumulate{4}, ds::zero_grad{}, policy, ds::cuda{s}};
    ds::optimizer alone{h.list(), ds::adamw{}, ds::accumulate{1}};
    int const n = comm.size();
    auto const micro_batches = [&] {
      for (int batch = 0; batch < comm.rank(); ++batch) opt.step();  // rank 0 has no batch
      if (comm.rank() == 0 && without_examples) opt.step(0);
      opt.flush();
    };
    auto const none = [&] { opt.flush(); };
    auto const both = [&](auto const& update, auto const& empty) {
      for (int t = 0; t < 3; ++t) {
        h.sum(t, 1, n);
        if (n > 1) alone.step(n * (n - 1) / 2);
        d.set(t);
        if (comm.rank() == 0) {
          d.x.gradient.assign(d.x.gradient.size(), std::numeric_limits<float>::quiet_NaN());
          d.x.send_gradients();
        }
        update();
        CHECK(opt.report().applied == (n > 1));
        CHECK(opt.report().step == (n > 1 ? t + 1 : 0));
        CHECK(test::same_bits(d.values(), h.values()));
        float const left = d.x.device_gradient.get(s)[d.x.place(0, 0)];
        CHECK((comm.rank() == 0 && !without_examples ? std::isnan(left) : left == 0));
        empty();
        CHECK(opt.report().why == "no gradients were waiting");
        CHECK(opt.report().step == (n > 1 ? t + 1 : 0));
        CHECK(test::same_bits(d.values(), h.values()));
      }
    };
    if (capture) {
      test::graph const update(s, micro_batches), empty(s, none);
      both([&] { update.launch(s); }, [&] { empty.launch(s); });
    } else {
      both([&] { d.enqueue(micro_batches); }, [&] { d.enqueue(none); });
    }
  };
  run(ds::replicated{comm}, false), run(ds::replicated{comm}, true);
  run(ds::sharded{comm, ds::ordered_sum{}}, false), run(ds::sharded{comm, ds::ordered_sum{}}, true);
  run(ds::replicated{comm}, true, true), run(ds::sharded{comm, ds::ordered_sum{}}, false, true);
}

TEST_CASE("sam and gradient_ahead: every rank moves to where all take their gradients") {
  joined comm;
  int const n = comm.size();
  test::stream s;
  auto const check = [&](auto const& move, auto rule, auto policy) {
    side<float, float, false> h{usual, s, comm};
    side<float, float, true> d{usual, s, comm};
    ds::optimizer alone{h.list(), rule, policy};  // takes no weight
    ds::optimizer opt{d.list(), rule, policy, ds::replicated{comm}, ds::cuda{s}};
    auto const same = [&] {
      d.x.value = h.x.value;
      if (std::has_single_bit(unsigned(n))) CHECK(test::same_bits(d.values(), h.values()));
      else CHECK(d.x.furthest() < 1e-5);
    };
    for (int t = 0; t < 6; t += 2) {
      d.set(t), h.set(t, 1.0 / n);
      d.enqueue([&] { move(opt); });
      move(alone);
      same();
      d.set(t + 1), h.set(t + 1, 1.0 / n);
      d.step(opt), alone.step();
      same();
    }
  };
  check([](auto& opt) { opt.ascend(); }, ds::sgd{.lr = 0.5}, ds::sam{.rho = 0.1});
  check([](auto& opt) { opt.move_ahead(); }, ds::sgd{.lr = 0.5, .momentum = 0.5}, ds::gradient_ahead{});
}

// ---- policies and rules --------------------------------------------------------------------------------------------

TEST_CASE("norms over groups and tensors, the largest element, adaptive clipping, in double, and remainders") {
  joined comm;
  trial<float> const m{comm};
  m.same(steps, ds::sharded{comm}, ds::sgd{}, ds::clip<ds::norm::l2, ds::scope::group>{0.5});
  m.same(steps, ds::replicated{comm}, ds::sgd{}, ds::clip<ds::norm::inf>{0.5});
  trial<bfloat16, float>{comm}.same(steps, ds::sharded{comm}, ds::lion{}, ds::master_remainder{}, ds::maximize{},
                                    ds::clip<ds::norm::inf, ds::scope::tensor>{0.5});
  trial<double>{comm, of_many_chunks}.same(steps, ds::sharded{comm, ds::ordered_sum{}}, ds::nadam{.lr = 0.1},
                                           ds::clip_adaptive{0.01});
}

TEST_CASE("rounding at random, clipped elements, masters, averages, slow weights and noise") {
  joined comm;
  trial<bfloat16, float> const m{comm};
  m.same(steps, ds::sharded{comm}, ds::adamw{}, ds::stochastic_rounding{7}, ds::clip_value{0.25},
         ds::gradient_noise{.eta = 0.1, .seed = 3});
  auto const averaged = [](auto& opt, auto& at) {
    steps(opt, at);
    opt.swap_average(), at.look();
    opt.swap_average(), at.look();
    at.set(3), at.step(opt), at.look();
  };
  trial<half, float> const h{comm};
  h.same(averaged, ds::sharded{comm}, ds::adamw{}, ds::master<float>{}, ds::states<bfloat16>{}, ds::lookahead{.k = 2},
         ds::swa{}, ds::static_loss_scale{4});
}

TEST_CASE("rules with sums that remember, and with averages of their own") {
  joined comm;
  trial<float>{comm}.same(steps, ds::sharded{comm}, ds::prodigy{.d0 = 1e-3});
  auto const averaged = [](auto& opt, auto& at) {
    steps(opt, at);
    opt.swap_average(), at.look();
    opt.swap_average(), at.look();
  };
  trial<float>{comm}.same(averaged, ds::sharded{comm}, ds::schedule_free_adamw{});
}

TEST_CASE("rules that look at the loss see the mean over the ranks, and skip together") {
  joined comm;
  int const n = comm.size(), r = comm.rank();
  test::stream s;
  auto const check = [&](auto policy) {
    float mean = 0;
    test::device_vector<float> loss({0}, s);
    side<float, float, false> h{usual, s, comm};
    side<float, float, true> d{usual, s, comm};
    ds::polyak const rule{};
    ds::on_plateau const slow{{.factor = 0.5, .patience = 0}};
    ds::optimizer alone{h.list(), rule, ds::loss_at{&mean}, slow, ds::accumulate{1}};
    ds::optimizer opt{d.list(), rule, ds::loss_at{loss.data()}, slow, policy, ds::cuda{s}};
    h.weight = n * (n + 1) / 2, d.weight = r + 1;
    for (int t = 0; t < 4; ++t) {
      mean = t == 2 ? std::numeric_limits<float>::quiet_NaN() : 1.5f + 0.25f * float(t);
      float mine = mean;  // one loss is larger by 2 with weight 1, one smaller by 1 with weight 2
      if (n > 1 && r < 2) mine += r == 0 ? 2 : -1;
      if (t == 2 && r != n - 1) mine = 1;
      loss.put({mine}, s);
      h.set(t), d.set(t);
      h.step(alone), d.step(opt);
      alone.observe(double(t)), opt.observe(double(t));
      CHECK(opt.report().applied == (t != 2));
      CHECK(opt.report().learning_rate == alone.report().learning_rate);
      CHECK(test::same_bits(d.values(), h.values()));
    }
  };
  check(ds::replicated{comm});
  check(ds::sharded{comm});
}

// ---- what is asked of an optimizer ---------------------------------------------------------------------------------

TEST_CASE("a run that is resumed has the bits of one that did not stop") {
  joined comm;
  test::stream s;
  auto const whole = [&](auto policy, bool stop) {
    side<float, float, true> d{usual, s, comm};
    auto const make = [&] {
      return ds::optimizer{d.list(), ds::adamw{}, ds::clip_norm{0.5}, ds::ema{.decay = 0.5},
                           ds::dynamic_loss_scale{.init = 1}, policy, ds::cuda{s}};
    };
    auto const train = [&](auto& opt, int first, int last) {
      for (int t = first; t < last; ++t) d.set(t), d.step(opt);
    };
    auto opt = make();
    train(opt, 0, 2);
    if (!stop) {
      train(opt, 2, 4);
      return d.values();
    }
    auto next = make();
    next.set_step(opt.report().step);
    for (std::size_t k = 0; k < usual.size(); ++k) {
      auto const name = d.x.name(k);
      auto const saved = [&](auto view) { return test::from_device(view.data(), view.size(), s); };
      next.template set_state<0>(name, std::span<float const>(saved(opt.template state<0>(name))));
      next.template set_state<1>(name, std::span<float const>(saved(opt.template state<1>(name))));
    }
    train(next, 2, 4);
    return d.values();
  };
  auto const check = [&](auto policy) { CHECK(test::same_bits(whole(policy, true), whole(policy, false))); };
  check(ds::replicated{comm});
  check(ds::sharded{comm});
}

TEST_CASE("the parts of a shard are all of the state; norms and what is not finite are those of all ranks") {
  joined comm;
  test::stream s;
  side<float, float, true> d{usual, s, comm};
  ds::optimizer opt{d.list(), ds::adamw{}, ds::clip_norm{0.5}, ds::ema{.decay = 0.5},
                    ds::dynamic_loss_scale{.init = 1}, ds::sharded{comm}, ds::cuda{s}};
  d.set(0);
  d.step(opt);
  double held = 0;
  for (std::size_t k = 0; k < usual.size(); ++k) held += double(opt.state(d.x.name(k), 0).size());
  test::device_vector<double> sum({held}, s);
  comm.all_reduce(sum.data(), 1, s);
  CHECK(sum.get(s)[0] == 4099 + 1 + 7 + 130);

  if (comm.rank() == comm.size() - 1) d.x.gradient_of(3, 6) = std::numeric_limits<float>::infinity();
  d.x.send_gradients();
  d.step(opt);
  auto const why = opt.report().why;
  CHECK(why == "the gradient of 'w3' is not finite");
  auto const bad = opt.diagnose();
  REQUIRE(bad.size() == 5);
  for (std::size_t k = 0; k < bad.size(); ++k) {
    CHECK(bad[k].name == d.x.name(k));
    CHECK(bad[k].finite == (k != 3));
  }
  CHECK(std::isinf(opt.gradient_norm()));
}
