// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/accumulate.hpp>
#include <descent/average.hpp>
#include <descent/clip.hpp>
#include <descent/cuda.cuh>
#include <descent/loss_scale.hpp>
#include <descent/optimizer.hpp>
#include <descent/parallel.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/storage.hpp>
#include <descent/zero_grad.hpp>

#include "nccl/ranks.cuh"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// Ranks that are processes with a device each. Each runs all of this file, in the same order. Gradients are such that
/// their sums are exact, so that the host's single process is the oracle to the bit.

namespace ds = descent;
using ds::half, ds::bfloat16;
using ranks::has, ranks::thrown, test::joined;

extern "C" __attribute__((weak)) std::uint64_t cudasim_nccl_count(char const* what);

namespace {

/// A model of support/ranks.hpp with its values and gradients on the device.
template <class Value, class Gradient = Value> struct device_model : ranks::model<Value, Gradient> {
  using host = ranks::model<Value, Gradient>;
  test::stream const& s;
  std::deque<test::device_vector<Value>> values;
  std::deque<test::device_vector<Gradient>> gradients;

  device_model(int seed, test::stream const& s) : host(seed), s(s) {
    for (std::size_t t = 0; t < ranks::sizes.size(); ++t) {
      values.emplace_back(host::value[t], s);
      gradients.emplace_back(host::gradient[t], s);
    }
  }
  ds::parameters<Value, Gradient> list() {
    ds::parameters<Value, Gradient> all;
    for (std::size_t t = 0; t < ranks::sizes.size(); ++t)
      all.add("w" + std::to_string(t), values[t].data(), gradients[t].data(), ranks::sizes[t],
              ds::group{int(t % 2)});
    return all;
  }
  void set(int t, int first, int last, double factor = 1) {
    host::set(t, first, last, factor);
    send();
  }
  void send() {
    for (std::size_t t = 0; t < ranks::sizes.size(); ++t) gradients[t].put(host::gradient[t], s);
  }
  host const& read() {
    for (std::size_t t = 0; t < ranks::sizes.size(); ++t) {
      host::value[t] = values[t].get(s);
      host::gradient[t] = gradients[t].get(s);
    }
    return *this;
  }
};

struct halve {
  DESCENT_HD float operator()(float g) const { return g / 2; }
};

/// Values after the usual steps, each rank with its own gradients.
template <class Value, class Gradient, class Policy, class Rule, class... Ps>
void same_as_alone(joined& comm, std::string const& how, Policy policy, Rule const& rule, Ps... policies) {
  INFO(how, ", rank ", comm.rank(), " of ", comm.size());
  constexpr int steps = 3;
  ranks::model<Value, Gradient> want;
  ds::optimizer alone{want.list(), rule, policies..., ds::accumulate{1}};
  test::stream s;
  device_model<Value, Gradient> m(comm.rank(), s);  // values differ until the constructor gives those of rank 0
  ds::optimizer opt{m.list(), rule, policies..., policy, ds::cuda{s}};
  auto const launches = ds::detail::launches;
  for (int t = 0; t < steps; ++t) {
    m.set(t, comm.rank(), comm.rank() + 1);
    opt.step();
  }
  std::string const said = " update, " + std::to_string((ds::detail::launches - launches) / steps);
  CHECK(has(opt.explain(), said + " launches on a device, no synchronisation\n"));
  for (int t = 0; t < steps; ++t) {
    want.set(t, 0, comm.size());
    alone.step(comm.size());
  }
  CHECK(m.read() == want);
}
template <class Value, class Gradient = Value, class Rule, class... Ps>
void all_ways(joined& comm, Rule const& rule, Ps... policies) {
  same_as_alone<Value, Gradient>(comm, "replicated", ds::replicated{comm}, rule, policies...);
  same_as_alone<Value, Gradient>(comm, "sharded", ds::sharded{comm}, rule, policies...);
}
template <class Value, class Gradient = Value, class Rule, class... Ps>
void all_ways_in_order(joined& comm, Rule const& rule, Ps... policies) {
  same_as_alone<Value, Gradient>(comm, "replicated, in order", ds::replicated{comm, ds::ordered_sum{}}, rule,
                                 policies...);
  same_as_alone<Value, Gradient>(comm, "sharded, in order", ds::sharded{comm, ds::ordered_sum{}}, rule, policies...);
}

template <class T> void collectives(joined& comm, test::stream const& s, std::int64_t n) {
  int const ranks = comm.size(), rank = comm.rank();
  INFO("rank ", rank, ", ", n, " ", ds::type_name<T>());
  auto const number = [](int r, std::int64_t i) { return double((i * 7 + r * 3) % 16 - 8); };  // sums are exact
  auto const filled = [&](std::int64_t count, auto const& at) {
    std::vector<T> x;
    for (std::int64_t i = 0; i < count; ++i) x.push_back(ds::narrow<T>(at(i)));
    return x;
  };
  auto const own = [&](std::int64_t i) { return number(rank, i); };
  auto const sum = [&](std::int64_t i) {
    double total = 0;
    for (int r = 0; r < ranks; ++r) total += number(r, i);
    return total;
  };
  auto const equal = [&](test::device_vector<T> const& got, auto const& at) {
    auto const x = got.get(s);
    auto const want = filled(std::int64_t(x.size()), at);
    CHECK((x.empty() || std::memcmp(x.data(), want.data(), x.size() * sizeof(T)) == 0));
  };
  std::vector<T> const none(static_cast<std::size_t>(n)), parts(static_cast<std::size_t>(n * ranks));
  test::device_vector<T> whole(filled(n, own), s), part(none, s), of_all(filled(n * ranks, own), s), all(parts, s);
  comm.reduce_scatter(static_cast<T const*>(of_all.data()), part.data(), n, s);
  equal(part, [&](std::int64_t i) { return sum(rank * n + i); });
  comm.all_to_all(static_cast<T const*>(of_all.data()), all.data(), n, s);
  equal(all, [&](std::int64_t i) { return number(int(i / n), rank * n + i % n); });
  comm.all_gather(static_cast<T const*>(whole.data()), all.data(), n, s);
  equal(all, [&](std::int64_t i) { return number(int(i / n), i % n); });
  comm.all_reduce(whole.data(), n, s);
  equal(whole, sum);
  comm.broadcast(part.data(), n, ranks - 1, s);
  equal(part, [&](std::int64_t i) { return sum((ranks - 1) * n + i); });
}

}  // namespace

TEST_CASE("collectives, all types and counts") {
  joined comm;
  test::stream s;
  for (std::int64_t n : {0, 1, 7, 1000}) {
    collectives<float>(comm, s, n);
    collectives<double>(comm, s, n);
    collectives<half>(comm, s, n);
    collectives<bfloat16>(comm, s, n);
  }
}

TEST_CASE("devices of several ranks do what one process does on the host, to the bit") {
  joined comm;
  all_ways<float>(comm, ds::adamw{}, ds::clip_norm{1});
  all_ways<float>(comm, ds::lamb{});
  all_ways<half, float>(comm, ds::sgd{.momentum = 0.9}, ds::master<float>{}, ds::ema{.decay = 0.9});
  all_ways_in_order<float>(comm, ds::lamb{}, ds::clip_norm{1});
}

TEST_CASE("ranks that are about to train different things throw the same sentence") {
  joined comm;
  if (comm.size() == 1) return;
  test::stream s;
  test::device_vector<float> value(std::vector<float>(64, float(comm.rank())), s), gradient(value.get(s), s);
  auto const list = [&](std::vector<std::pair<char const*, ds::shape>> const& of, int groups = 1) {
    ds::parameters<float> all;
    for (std::size_t i = 0; i < of.size(); ++i)
      all.add(of[i].first, value.data() + 24 * i, gradient.data() + 24 * i, of[i].second, ds::group{int(i) % groups});
    return all;
  };
  auto const differ = [&](std::string const& usual, std::string const& odd, auto const& make) {
    INFO(usual, " and ", odd);
    std::string const why = thrown<std::invalid_argument>([&] { make(comm.rank() == 1); });
    INFO(why);
    CHECK(why.starts_with("ranks are about to train different things: "));
    std::size_t const cut = std::min(why.find(" (rank 0"), why.size());
    CHECK(has(why.substr(0, cut), usual));
    CHECK(has(why.substr(cut), odd));
    CHECK(why.ends_with(" (rank 1)"));
    CHECK(value.get(s) == std::vector<float>(64, float(comm.rank())));
  };
  auto const two = list({{"a", {4, 5}}, {"b", {7}}});
  auto const build = [&](ds::parameters<float> const& list, ds::adamw const& rule, float clip, double decay) {
    ds::optimizer{list, rule, ds::clip_norm{clip}, ds::ema{.decay = decay}, ds::zero_grad{}, ds::replicated{comm},
                  ds::cuda{s}};
  };
  auto const of = [&](ds::parameters<float> const& list) { build(list, {}, 1, 0.5); };
  differ("2 parameters", "1 parameters", [&](bool odd) { of(odd ? list({{"a", {4, 5}}}) : two); });
  differ("1 groups", "2 groups", [&](bool odd) { of(list({{"a", {4, 5}}, {"b", {7}}}, odd ? 2 : 1)); });
  differ("parameter 0 'a' of 20 elements in 5 columns, types 0, group 0",
         "parameter 0 'a' of 20 elements in 4 columns, types 0, group 0",
         [&](bool odd) { of(odd ? list({{"a", {5, 4}}, {"b", {7}}}) : two); });
  differ("parameter 0 'a' of 7 elements in 1 columns, types 0, group 0",
         "parameter 0 'b' of 7 elements in 1 columns, types 0, group 0",
         [&](bool odd) { of(odd ? list({{"b", {7}}, {"a", {7}}}) : list({{"a", {7}}, {"b", {7}}})); });
  differ("update 1: 0.001 ", "update 1: 0.002 ", [&](bool odd) { build(two, {.lr = odd ? 0.002 : 0.001}, 1, 0.5); });
  differ("clip: max 1 ", "clip: max 2 ", [&](bool odd) { build(two, {}, odd ? 2 : 1, 0.5); });
  differ("average 0.5 ", "average 0.25 ", [&](bool odd) { build(two, {}, 1, odd ? 0.25 : 0.5); });
  differ("descent::adamw,", "descent::adam,", [&](bool odd) {
    if (odd) ds::optimizer{two, ds::adam{}, ds::replicated{comm}, ds::cuda{s}};
    else of(two);
  });
}

TEST_CASE("an overflow on any rank is skipped by all, on the device, and they agree on the loss scale") {
  joined comm;
  test::stream s;
  auto const run = [&](auto policy, int bad) {
    device_model<half> m(0, s);
    ds::optimizer opt{m.list(), ds::adamw{}, ds::master<float>{}, ds::dynamic_loss_scale{.init = 4}, policy,
                      ds::cuda{s}};
    for (int t = 0; t < 3; ++t) {
      m.set(t, comm.rank(), comm.rank() + 1, 1 / 64.);
      auto const before = m.read().value;
      if (t == 1 && comm.rank() == bad) {
        m.gradient[3][5000] = half(std::numeric_limits<float>::infinity());
        m.send();
      }
      opt.step();
      auto const r = opt.report();
      CHECK(r.applied == (t != 1));
      CHECK(r.step == (t < 1 ? 1 : t));
      CHECK(r.loss_scale == (t == 0 ? 4 : 2));
      if (t == 1) CHECK(r.why == "the gradient of 'w3' is not finite");
      for (std::size_t k = 0; k < before.size() && !before[k].empty(); ++k) {
        bool const same = std::memcmp(before[k].data(), m.read().value[k].data(), before[k].size() * sizeof(half)) == 0;
        if (t == 1) CHECK(same);
        else if (before[k].size() > 100) CHECK(!same);
      }
    }
  };
  for (int bad = 0; bad < comm.size(); ++bad) {
    INFO("rank ", comm.rank(), ", overflow on ", bad);
    run(ds::replicated{comm}, bad);
    run(ds::sharded{comm, ds::ordered_sum{}}, bad);
  }
}

TEST_CASE("micro-batches: nothing is sent before the last one; a captured update replays as an eager one") {
  joined comm;
  test::stream s;
  auto const sent = [] { return cudasim_nccl_count ? cudasim_nccl_count("calls") : 0; };
  auto const run = [&](auto policy, bool capture) {
    device_model<float> m(0, s);
    ds::optimizer opt{m.list(), ds::lamb{}, ds::clip_norm{1}, ds::accumulate{2}, policy, ds::cuda{s}};
    auto const update = [&] {
      std::uint64_t const before = sent();
      opt.step();
      CHECK(sent() == before);
      opt.step();
      if (cudasim_nccl_count) CHECK(sent() > before);
    };
    if (capture) {
      test::graph const recorded(s, update);
      for (int t = 0; t < 4; ++t) {
        m.set(t, comm.rank(), comm.rank() + 1);
        recorded.launch(s);
      }
      CHECK(opt.report().step == 4);
      opt.step();  // and a capture must not begin in the middle of an update
      test::cuda(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
      CHECK_THROWS_AS(opt.step(), std::logic_error);
      cudaGraph_t nothing;
      test::cuda(cudaStreamEndCapture(s, &nothing));
      test::cuda(cudaGraphDestroy(nothing));
    } else {
      for (int t = 0; t < 4; ++t) {
        m.set(t, comm.rank(), comm.rank() + 1);
        update();
      }
    }
    return m.read().value;
  };
  CHECK(run(ds::replicated{comm}, false) == run(ds::replicated{comm}, true));
  CHECK(run(ds::sharded{comm}, false) == run(ds::sharded{comm}, true));
}

TEST_CASE("averages, norms, gradients in memory, and frozen groups") {
  joined comm;
  test::stream s;
  auto const run = [&](std::string const& how, auto policy, auto host_policy) {
    INFO(how, ", rank ", comm.rank());
    device_model<float> m(0, s);
    ranks::model<float> h(0);
    ds::optimizer opt{m.list(), ds::adamw{}, ds::clip_norm{2}, ds::ema{.decay = 0.5}, ds::zero_grad{}, policy,
                      ds::cuda{s}};
    ds::optimizer alone{h.list(), ds::adamw{}, ds::clip_norm{2}, ds::ema{.decay = 0.5}, host_policy};
    for (int t = 0; t < 3; ++t) {
      opt.freeze(1, t == 1);
      alone.freeze(1, t == 1);
      m.set(t, comm.rank(), comm.rank() + 1);
      h.set(t, 0, comm.size());
      opt.transform_gradients(halve{});
      alone.transform_gradients(halve{});
      CHECK(opt.gradient_norm() == alone.gradient_norm() * (1.0 / comm.size()));
      CHECK(opt.gradient_norm("w3") == alone.gradient_norm("w3") * (1.0 / comm.size()));
      opt.step();
      alone.step(comm.size());
      CHECK(m.read() == h);
      for (std::size_t k = 0; k < m.gradient.size(); ++k)
        for (float g : m.gradient[k])
          if ((g == 0) != (t != 1 || k % 2 == 0)) REQUIRE(g == 0);
      opt.swap_average();
      alone.swap_average();
      CHECK(m.read() == h);
      opt.swap_average();
      alone.swap_average();
      CHECK(m.read() == h);
    }
    m.set(0, 0, 1);
    opt.zero_grad();
    for (auto const& g : m.read().gradient)
      for (float x : g) REQUIRE(x == 0);
  };
  run("replicated", ds::replicated{comm}, ds::accumulate{1});
  run("sharded", ds::sharded{comm, ds::ordered_sum{}}, ds::accumulate{1});
}

TEST_CASE("broadcast: what was put back on one rank is on all") {
  joined comm;
  test::stream s;
  int const root = comm.size() - 1;
  auto const run = [&](bool each) {
    device_model<float> m(0, s);
    ds::optimizer opt{m.list(), ds::adamw{}, ds::ema{.decay = 0.5}, ds::dynamic_loss_scale{.init = 4},
                      ds::replicated{comm}, ds::cuda{s}};
    auto const train = [&](int first, int last) {
      for (int t = first; t < last; ++t) {
        m.set(t, comm.rank(), comm.rank() + 1);
        opt.step();
      }
    };
    train(0, 2);
    if (each || comm.rank() == root) {
      opt.set_step(7);
      opt.set_scale_state({8, 1, 0});
      opt.group(1).weight_decay = 0.25;
      std::vector<float> const threes(ranks::sizes[3], 3);
      opt.set_state<0>("w3", std::span<float const>(threes));
      m.values[0].put(std::vector<float>(ranks::sizes[0], 0.5f), s);
    }
    if (!each) opt.broadcast(root);
    CHECK(opt.report().step == 7);
    if (!each) CHECK(opt.last_report().step == 7);
    CHECK(opt.group(1).weight_decay == 0.25);
    train(2, ranks::steps);
    CHECK(opt.report().loss_scale == 8);
    return m.read().value;
  };
  CHECK(run(true) == run(false));
}
