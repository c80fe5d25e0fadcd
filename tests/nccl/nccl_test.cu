// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#define DESCENT_SEPARATE_ARRAYS  // a memory checker sees accesses beyond each array
#include <descent/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/training/diloco.cuh>

#include "nccl/side.cuh"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Ranks that are processes with a device each. Each runs this whole file, in the same order. Sums of the gradients are
/// exact, so the host's single process is the oracle to the bit.

namespace ds = descent;
using ds::half, ds::bfloat16;
using ranks::has, ranks::thrown, test::joined;
using namespace side_by_side;

extern "C" __attribute__((weak)) std::uint64_t cudasim_nccl_count(char const* what);

namespace {

/// Three steps, with the number of launches that explain() reports.
auto const counted_steps = [](auto& opt, auto& at) {
  auto const launches = test::launches([&] { steps(opt, at); });
  if constexpr (std::remove_reference_t<decltype(at)>::on_device)
    CHECK(
        has(opt.explain(), " update, " + std::to_string(launches / 3) + " launches on a device, no synchronisation\n"));
};

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

TEST_CASE("devices of several ranks do what one process does on the host, bit for bit") {
  joined comm;
  trial<float> const m{comm, of_many_chunks};
  m.both(counted_steps, ds::lamb{});
  m.same(counted_steps, ds::replicated{comm, ds::ordered_sum{}}, ds::lamb{}, ds::clip_norm{1});
  m.same(counted_steps, ds::sharded{comm, ds::ordered_sum{}}, ds::lamb{}, ds::clip_norm{1});
  trial<half, float>{comm, of_many_chunks}.both(counted_steps, ds::sgd{.momentum = 0.9}, ds::master<float>{},
                                                ds::ema{.decay = 0.9});
}

TEST_CASE("ranks that disagree about the training setup throw the same sentence") {
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
    CHECK(why.starts_with("ranks disagree about the training setup: "));
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
  differ("lr of group 0 is 0.001", "lr of group 0 is 0.002",
         [&](bool odd) { build(two, {.lr = odd ? 0.002 : 0.001}, 1, 0.5); });
  differ("max of clip_norm is 1", "max of clip_norm is 2", [&](bool odd) { build(two, {}, odd ? 2 : 1, 0.5); });
  differ("decay of ema is 0.5", "decay of ema is 0.25", [&](bool odd) { build(two, {}, 1, odd ? 0.25 : 0.5); });
  differ("descent::adamw,", "descent::adam,", [&](bool odd) {
    if (odd) ds::optimizer{two, ds::adam{}, ds::replicated{comm}, ds::cuda{s}};
    else of(two);
  });
}

TEST_CASE("rebind() on every rank: steps work on the new memory and leave the old one alone") {
  joined comm;
  test::stream s;
  auto const run = [&](auto policy) {
    side<half, half, true> old{of_many_chunks, s, comm}, moved{of_many_chunks, s, comm}, fixed{of_many_chunks, s, comm};
    auto const make = [&](auto& side) {
      return ds::optimizer{side.list(), ds::adamw{}, ds::master<float>{}, ds::dynamic_loss_scale{.init = 4}, policy,
                           ds::cuda{s}};
    };
    auto opt = make(old), still = make(fixed);
    for (int t = 0; t < 3; ++t) {
      if (t == 1) {
        old.look();
        moved.x.device_value.put(old.seen[0], s);
        opt.rebind(moved.list());
      }
      auto& now = t == 0 ? old : moved;
      now.set(t, 1 / 64.), fixed.set(t, 1 / 64.);
      now.step(opt), fixed.step(still);
      CHECK(test::same_bits(now.values(), fixed.values()));
    }
    CHECK(test::same_bits(old.values(), old.seen[0]));
  };
  run(ds::replicated{comm});
  run(ds::sharded{comm, ds::ordered_sum{}});
}

TEST_CASE("an overflow on any rank is skipped by all, on the device, and they agree on the loss scale") {
  joined comm;
  test::stream s;
  auto const run = [&](auto policy, int bad) {
    side<half, half, true> d{of_many_chunks, s, comm};
    ds::optimizer opt{d.list(), ds::adamw{}, ds::master<float>{}, ds::dynamic_loss_scale{.init = 4},
                      policy, ds::cuda{s}};
    d.look();
    for (int t = 0; t < 3; ++t) {
      d.set(t, 1 / 64.);
      if (t == 1 && comm.rank() == bad) {
        d.x.gradient_of(3, 5000) = half(std::numeric_limits<float>::infinity());
        d.x.send_gradients();
      }
      d.step(opt), d.look();
      auto const r = opt.report();
      CHECK(r.applied == (t != 1));
      CHECK(r.step == (t < 1 ? 1 : t));
      CHECK(r.loss_scale == (t == 0 ? 4 : 2));
      if (t == 1) CHECK(r.why == "the gradient of 'w3' is not finite");
      auto const *before = &d.seen[std::size_t(t)], *after = before + 1;
      for (std::size_t k = 0; k < of_many_chunks.size(); ++k) {
        auto const n = std::size_t(of_many_chunks[k].count), at = d.x.place(k, 0);
        bool const same = std::memcmp(&(*before)[at], &(*after)[at], n * sizeof(half)) == 0;
        if (t == 1 || n > 100) CHECK(same == (t == 1));
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
    side<float, float, true> d{of_many_chunks, s, comm};
    ds::optimizer opt{d.list(), ds::lamb{}, ds::clip_norm{1}, ds::accumulate{2}, policy, ds::cuda{s}};
    auto const update = [&] {
      std::uint64_t const before = sent();
      opt.step();
      CHECK(sent() == before);
      opt.step();
      if (cudasim_nccl_count) CHECK(sent() > before);
    };
    if (capture) {
      test::graph const recorded(s, update);
      for (int t = 0; t < 4; ++t) d.set(t), recorded.launch(s);
      CHECK(opt.report().step == 4);
      opt.step();  // and a capture must not begin in the middle of an update
      test::cuda(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
      CHECK_THROWS_AS(opt.step(), std::logic_error);
      cudaGraph_t nothing;
      test::cuda(cudaStreamEndCapture(s, &nothing));
      test::cuda(cudaGraphDestroy(nothing));
    } else {
      for (int t = 0; t < 4; ++t) d.set(t), update();
    }
    return d.values();
  };
  CHECK(run(ds::replicated{comm}, false) == run(ds::replicated{comm}, true));
  CHECK(run(ds::sharded{comm}, false) == run(ds::sharded{comm}, true));
}

TEST_CASE("averages, norms, gradients in memory, and frozen groups") {
  joined comm;
  test::stream s;
  auto const run = [&](std::string const& how, auto policy) {
    INFO(how, ", rank ", comm.rank());
    side<float, float, true> d{of_many_chunks, s, comm};
    side<float, float, false> h{of_many_chunks, s, comm};
    ds::optimizer opt{d.list(), ds::adamw{}, ds::clip_norm{2}, ds::ema{.decay = 0.5},
                      ds::zero_grad{}, policy, ds::cuda{s}};
    ds::optimizer alone{h.list(), ds::adamw{}, ds::clip_norm{2}, ds::ema{.decay = 0.5}, ds::accumulate{1}};
    auto const each = [&](auto const& f) { f(opt), f(alone); };
    auto const same = [&] { CHECK(test::same_bits(d.values(), h.values())); };
    auto const gradients_are = [&](auto const& wanted) {
      auto const g = d.x.device_gradient.get(s);
      std::size_t wrong = 0;
      d.x.each([&](std::size_t k, std::int64_t i) { wrong += g[d.x.place(k, i)] != wanted(k, d.x.place(k, i)); });
      return wrong == 0;
    };
    for (int t = 0; t < 3; ++t) {
      each([&](auto& o) { o.freeze(1, t == 1); });
      d.set(t), h.set(t);
      each([](auto& o) { o.transform_gradients(halve{}); });
      auto const left = d.x.device_gradient.get(s);
      CHECK(opt.gradient_norm() == alone.gradient_norm() * (1.0 / comm.size()));
      CHECK(opt.gradient_norm("w3") == alone.gradient_norm("w3") * (1.0 / comm.size()));
      d.step(opt), h.step(alone);
      same();
      CHECK(gradients_are([&](std::size_t k, std::size_t at) { return t == 1 && k % 2 == 1 ? left[at] : 0.f; }));
      for (int swaps = 0; swaps < 2; ++swaps) {
        each([](auto& o) { o.swap_average(); });
        same();
      }
    }
    d.set(0);
    opt.zero_grad();
    CHECK(gradients_are([](auto, auto) { return 0.f; }));
  };
  run("replicated", ds::replicated{comm});
  run("sharded", ds::sharded{comm, ds::ordered_sum{}});
}

TEST_CASE("broadcast: what was restored on one rank is on all") {
  joined comm;
  test::stream s;
  int const root = comm.size() - 1;
  auto const run = [&](bool each) {
    side<float, float, true> d{of_many_chunks, s, comm};
    ds::optimizer opt{d.list(), ds::adamw{}, ds::ema{.decay = 0.5}, ds::dynamic_loss_scale{.init = 4},
                      ds::replicated{comm}, ds::cuda{s}};
    auto const train = [&](int first, int last) {
      for (int t = first; t < last; ++t) d.set(t), d.step(opt);
    };
    train(0, 2);
    if (each || comm.rank() == root) {
      opt.set_step(7);
      opt.set_scale_state({8, 1, 0});
      opt.group(1).weight_decay = 0.25;
      std::vector<float> const threes(std::size_t(of_many_chunks[3].count), 3);
      opt.set_state<0>("w3", std::span<float const>(threes));
      auto values = d.values();
      std::fill_n(values.begin() + std::ptrdiff_t(d.x.place(0, 0)), of_many_chunks[0].count, 0.5f);
      d.x.device_value.put(values, s);
    }
    if (!each) opt.broadcast(root);
    CHECK(opt.report().step == 7);
    if (!each) CHECK(opt.last_report().step == 7);
    CHECK(opt.group(1).weight_decay == 0.25);
    train(2, 6);
    CHECK(opt.report().loss_scale == 8);
    return d.values();
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("agree: every rank names the parameter, its part and the ranks that differ; broadcast() repairs it") {
  joined comm;
  test::stream s;
  side<float, float, true> d{of_many_chunks, s, comm};
  ds::optimizer opt{d.list(), ds::adamw{}, ds::ema{.decay = 0.5}, ds::dynamic_loss_scale{.init = 4},
                    ds::replicated{comm}, ds::cuda{s}};
  d.set(0), d.step(opt);
  opt.agree();
  if (comm.size() == 1) return;
  auto const check = [&](std::string const& what, auto const& change) {
    INFO("rank ", comm.rank(), ", ", what);
    if (comm.rank() == 1) change();
    auto const before = d.values();
    std::string const why = thrown<std::invalid_argument>([&] { opt.agree(); });
    INFO(why);
    CHECK(why.starts_with("ranks have diverged: " + what + " "));
    CHECK(why.ends_with(" (rank 1)"));
    CHECK(d.values() == before);
    opt.broadcast();
    opt.agree();
  };
  check("value of 'w3'", [&] {
    auto values = d.values();
    std::swap(values[d.x.place(3, 1)], values[d.x.place(3, 12288)]);
    d.x.device_value.put(values, s);
  });
  std::vector<float> const threes(std::size_t(of_many_chunks[3].count), 3);
  check("state v of 'w3'", [&] { opt.set_state<1>("w3", std::span<float const>(threes)); });
  check("average of 'w3'", [&] { opt.set_average("w3", std::span<float const>(threes)); });
  check("weight_decay of group 1 is", [&] { opt.group(1).weight_decay = 0.25; });
  check("t is", [&] { opt.set_step(7); });
  test::cuda(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  CHECK_THROWS_AS(opt.agree(), std::logic_error);
  cudaGraph_t nothing;
  test::cuda(cudaStreamEndCapture(s, &nothing));
  test::cuda(cudaGraphDestroy(nothing));
}

TEST_CASE("agree_every: before every n-th update all ranks report a difference; others do not wait") {
  joined comm;
  test::stream s;
  side<float, float, true> d{of_many_chunks, s, comm};
  ds::optimizer opt{d.list(), ds::sgd{}, ds::sharded{comm, ds::agree_every{3}}, ds::cuda{s}};
  d.set(0), d.step(opt), d.step(opt);
  if (comm.rank() == 1) {
    auto values = d.values();
    values[d.x.place(0, 5)] += 1;
    d.x.device_value.put(values, s);
  }
  auto const before = d.values();
  std::string const why = thrown<std::invalid_argument>([&] { opt.step(); });
  INFO("rank ", comm.rank(), ": ", why);
  if (comm.size() > 1) {
    CHECK(why.starts_with("ranks have diverged: value of 'w0' "));
    CHECK(d.values() == before);
  }
  CHECK(opt.report().step == (comm.size() > 1 ? 2 : 3));
  d.step(opt);
  test::cuda(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  CHECK_THROWS_AS(opt.step(), std::logic_error);
  cudaGraph_t nothing;
  test::cuda(cudaStreamEndCapture(s, &nothing));
  test::cuda(cudaGraphDestroy(nothing));
}

TEST_CASE("diloco on devices: ranks train alone and meet at every second step, as in double on the host") {
  joined comm;
  test::stream s;
  side<half, half, true> d{usual, s, comm, coarse};
  d.look();
  auto const widened = [](std::vector<half> const& x) { return std::vector<double>(x.begin(), x.end()); };
  auto slow = widened(d.seen[0]), momentum = std::vector<double>(slow.size());
  ds::diloco global{d.list(), ds::outer{.every = 2, .lr = 0.5, .momentum = 0.5}, ds::replicated{comm}, ds::cuda{s}};
  ds::optimizer opt{d.list(), ds::sgd{.lr = 0.25}, ds::master<float>{}, ds::cuda{s}};
  auto fast = std::vector<std::vector<double>>(std::size_t(comm.size()), slow);
  for (int t = 0; t < 6; ++t) {
    d.x.each([&](std::size_t k, std::int64_t i) {
      std::size_t const at = d.x.place(k, i);
      for (int r = 0; r < comm.size(); ++r) fast[std::size_t(r)][at] -= 0.25 * coarse(r, t, k, i);
      if (t % 2 == 0) return;
      double gone = 0;
      for (auto const& p : fast) gone += (slow[at] - p[at]) / comm.size();
      momentum[at] = 0.5 * momentum[at] + gone;
      slow[at] -= 0.5 * (gone + 0.5 * momentum[at]);
      for (auto& p : fast) p[at] = slow[at];
    });
    d.set(t);
    opt.step();
    CHECK(global.step(opt) == (t % 2 == 1));
    d.look();
    d.x.each([&](std::size_t k, std::int64_t i) {
      std::size_t const at = d.x.place(k, i);
      CHECK(ds::widen<double>(d.seen.back()[at]) == doctest::Approx(fast[std::size_t(comm.rank())][at]).epsilon(1e-3));
    });
  }
}
