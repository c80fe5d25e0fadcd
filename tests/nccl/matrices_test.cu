// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#define DESCENT_SEPARATE_ARRAYS  // a memory checker sees accesses beyond each array
#include <descent/cuda.cuh>
#include <descent/matrices/cuda.cuh>
#include <descent/matrices/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/ranks/model_parallel.hpp>
#include <descent/policies/noise.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/muon.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/sm3.hpp>

#include "nccl/side.cuh"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

/// Matrices on the devices of several ranks: rules without products have the bits of one process on the host, rules
/// with products those of one process on a device. And models whose parameters are on several devices.

namespace ds = descent;
using ranks::has, ranks::thrown, test::joined;
using namespace side_by_side;

namespace {

test::tensor shaped(std::int64_t rows, std::int64_t columns, int group = 0) {
  return {rows * columns, group, 0, 0, columns};
}
tensors const mixed{shaped(4099, 1), shaped(11, 7, 1), shaped(0, 1), shaped(2050, 3), shaped(5, 1), shaped(16, 9, 1),
                    shaped(40, 40)};
/// Each of two to four ranks owns as many matrices, so that values are sent in several parts.
tensors const alike = [] {
  tensors all{shaped(5000, 1)};
  for (int k = 0; k < 24; ++k) all.push_back(shaped(16, 9, k % 2));
  return all;
}();

/// Micro-batches in pairs, a changed rule, and with overlap a mark for each gradient.
template <class Opt, class Side> void train(Opt& opt, Side& at, bool alone) {
  for (int t = 0; t < 6; ++t) {
    if (t == 2) opt.matrix_rule(1).lr /= 2;
    if (alone) at.sum(t, 0, at.comm.size()), at.x.send_gradients();
    else at.set(t);
    if constexpr (requires { opt.ready(0); })
      for (std::size_t n = at.list().views().size(), k = n; k-- > 0;) opt.ready((k + std::size_t(at.comm.rank())) % n);
    at.enqueue([&] { opt.step(alone ? at.comm.size() : 1); });
    at.look();
  }
}

/// Half values with masters, everything that a step has, and a policy of ranks or none.
template <class Side, class... Parallel> auto half_optimizer(Side& at, Parallel... policy) {
  return ds::optimizer{at.list(),           ds::adamw{},          ds::matrices{ds::muon{}},
                       ds::accumulate{2},   ds::clip_norm{1},     ds::ema{.decay = 0.9},
                       ds::master<float>{}, ds::dynamic_loss_scale{.init = 1}, policy..., ds::cuda{at.x.s}};
}
using half_side = side<ds::half, float, true>;

/// Whether rank `rank` has tensor k of a model that is split. All have a copy of the first.
bool has_tensor(std::size_t k, int rank, int ranks) { return k == 0 || int(k) * ranks / int(mixed.size()) == rank; }
/// The rank's tensors. An empty copy gives each rank both groups.
template <class List> List share(List const& all, int rank, int ranks) {
  List some;
  auto const& one = all.views()[0];
  some.add("both groups", one.value, one.gradient, 0, ds::group{1});
  some.mark_copied("both groups");
  for (std::size_t k = 0; k < all.views().size(); ++k)
    if (auto const& v = all.views()[k]; has_tensor(k, rank, ranks))
      some.add(v.name, v.value, v.gradient, ds::shape{v.count / v.columns, v.columns}, ds::group{v.group});
  some.mark_copied(all.views()[0].name);
  return some;
}

/// Five steps of one process on the host and of a model on the devices of all ranks. One step is skipped.
template <class Value, class Rule, class... Ps> void split_as_whole(joined& comm, Rule const& rule, Ps... policies) {
  INFO("rank ", comm.rank(), " of ", comm.size());
  test::stream s;
  side<Value, float, false> h{mixed, s, comm};
  side<Value, float, true> d{mixed, s, comm}, replayed{mixed, s, comm};
  ds::optimizer whole{share(h.list(), 0, 1), rule, policies...};
  ds::optimizer part{share(d.list(), comm.rank(), comm.size()), rule, policies..., ds::model_parallel{comm},
                     ds::cuda{s}};
  ds::optimizer captured{share(replayed.list(), comm.rank(), comm.size()), rule, policies..., ds::model_parallel{comm},
                         ds::cuda{s}};
  auto const set = [&](auto& side, int t) {
    side.sum(t, 0, 1);
    if (t == 3) side.x.gradient_of(3, 5) = std::numeric_limits<float>::infinity();
    side.x.send_gradients();
  };
  set(replayed, 0), captured.step();
  test::graph const graph(s, [&] { captured.step(); });
  for (int t = 0; t < 5; ++t) {
    set(h, t), set(d, t), set(replayed, t);
    if (t == 2) whole.group(1).lr /= 2, part.group(1).lr /= 2, captured.group(1).lr /= 2, captured.commit_groups();
    whole.step();
    auto const launches = ds::detail::launches;
    d.enqueue([&] { part.step(); });
    if constexpr (!requires { part.matrix_rule(); })
      if (t == 1) CHECK(has(part.explain(), std::to_string(ds::detail::launches - launches) + " launches on a device"));
    if (t > 0) graph.launch(s);
    auto const r = part.report();
    CHECK(r.grad_norm == whole.report().grad_norm);
    CHECK(r.why == whole.report().why);
    auto const on_device = d.values(), in_graph = replayed.values();
    int wrong = 0, wrong_in_graph = 0;
    h.x.each([&](std::size_t k, std::int64_t i) {
      if (!has_tensor(k, comm.rank(), comm.size())) return;
      auto const at = h.x.place(k, i);
      double const want = ds::widen<double>(h.x.value[at]);
      wrong += ds::widen<double>(on_device[at]) != want;
      wrong_in_graph += ds::widen<double>(in_graph[at]) != want;
    });
    CHECK(wrong == 0);
    CHECK(wrong_in_graph == 0);
  }
  CHECK(part.gradient_norm() == whole.gradient_norm());
  CHECK(part.gradient_norm("w3") == whole.gradient_norm("w3"));

  // Each rank saves the rule's memory of all tensors of the model.
  auto const memory_of = [&](auto& opt) {
    std::map<std::string, std::vector<std::byte>> all;
    opt.save([&](std::string const& name, auto elements) {
      if (!name.ends_with(".memory")) return;
      all[name].resize(elements.size_bytes());
      cudaMemcpy(all[name].data(), elements.data(), elements.size_bytes(), cudaMemcpyDefault);
    });
    return all;
  };
  CHECK(memory_of(part) == memory_of(whole));
}

}  // namespace

TEST_CASE("a matrix rule without products: devices of several ranks have the bits of one process on the host") {
  joined comm;
  trial<float>{comm, mixed}.both(steps, ds::adamw{}, ds::matrices{ds::sm3{}}, ds::clip_norm{1});
}

TEST_CASE("muon on devices of several ranks has the bits of one device, in buckets and in a graph, too") {
  joined comm;
  test::stream s;
  for (tensors const* const list : {&mixed, &alike}) {
    tensors const& of = *list;
    if (list == &alike && comm.size() == 1) continue;
    half_side want{of, s, comm};
    auto one = half_optimizer(want);
    train(one, want, true);
    auto const holds = [&](char const* how, auto policy) {
      INFO(how, ", rank ", comm.rank(), " of ", comm.size());
      half_side d{of, s, comm};
      d.differ();
      auto opt = half_optimizer(d, policy);
      train(opt, d, false);
      for (std::size_t i = 0; i < want.seen.size(); ++i) CHECK(test::same_bits(want.seen[i], d.seen[i]));
      opt.agree();
      std::string words;  // explain() breaks long lines
      for (char const c : opt.explain())
        if (c != ' ' && c != '\n') words += c;
        else if (words.empty() || words.back() != ' ') words += ' ';
      return words;
    };
    std::string const said = holds("sharded", ds::sharded{comm, ds::ordered_sum{}});
    if (list == &alike) {
      CHECK(has(said, "; values are sent in 5 parts, all but the last while matrices are computed"));
    } else {
      holds("replicated, in buckets", ds::replicated{comm, ds::overlap{.bucket_bytes = 4000}});
      holds("sharded, in buckets", ds::sharded{comm, ds::overlap{.bucket_bytes = 4000}});
    }

    half_side plain{of, s, comm}, replayed{of, s, comm};
    auto a = half_optimizer(plain, ds::sharded{comm, ds::ordered_sum{}});
    auto b = half_optimizer(replayed, ds::sharded{comm, ds::ordered_sum{}});
    auto const update = [&](auto& opt) { opt.step(), opt.step(); };  // two micro-batches
    plain.set(0), update(a), replayed.set(0), update(b);
    test::graph const graph(s, [&] { update(b); });
    for (int t = 1; t < 3; ++t) {
      plain.set(t), update(a), replayed.set(t), graph.launch(s);
      CHECK(test::same_bits(plain.values(), replayed.values()));
    }
  }
}

TEST_CASE("devices whose matrix rules or states differ get an error, and broadcast() makes them equal") {
  joined comm;
  if (comm.size() == 1) return;
  test::stream s;
  half_side d{mixed, s, comm};
  auto opt = half_optimizer(d, ds::replicated{comm, ds::overlap{.bucket_bytes = 4000}});
  train(opt, d, false);
  auto const state = opt.matrix_state<0>("w3");
  if (comm.rank() == 1) opt.set_matrix_state<0>("w3", std::vector<float>(state.size(), 1));
  CHECK(has(thrown([&] { opt.agree(); }), "ranks have diverged: matrix state m of 'w3' "));
  opt.broadcast();
  opt.agree();
  if (comm.rank() == 1) opt.matrix_rule(1).lr = 0.5;
  CHECK(has(thrown([&] { opt.agree(); }), "ranks have diverged: lr of the matrix rule of group 1 is "));
}

TEST_CASE("model_parallel: a model on several devices has the bits of one process on the host, in a graph, too") {
  joined comm;
  split_as_whole<float>(comm, ds::novograd{.lr = 0.01}, ds::clip_adaptive{.c = 0.1}, ds::gradient_noise{});
  split_as_whole<ds::half>(comm, ds::adamw{.lr = 0.01}, ds::matrices{ds::sm3{.lr = 0.01}}, ds::clip_norm{0.5},
                           ds::master<float>{}, ds::dynamic_loss_scale{.init = 1});
}

TEST_CASE("model_parallel: a row whose columns are on several devices is one row for clip_adaptive") {
  joined comm;
  constexpr std::int64_t rows = 130;
  std::vector<std::int64_t> first{0};  // rank k has columns [first[k], first[k + 1])
  for (int k = 0; k < comm.size(); ++k) first.push_back(first.back() + 1 + 20 * k);
  std::int64_t const columns = first.back(), begin = first[std::size_t(comm.rank())];
  std::int64_t const own = first[std::size_t(comm.rank()) + 1] - begin;
  auto const value = [&](std::int64_t i, std::int64_t j) { return float(i % 7 - 3) * float(1 + j); };
  auto const gradient = [&](std::int64_t i, std::int64_t j, int t) { return float((i * 31 + j * 17 + t) % 23 - 11); };
  auto const block = [&](std::int64_t from, std::int64_t size, auto const& at) {
    std::vector<float> x;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = from; j < from + size; ++j) x.push_back(at(i, j));
    return x;
  };
  test::stream s;
  std::vector<float> w = block(0, columns, value), g(w.size());
  test::device_vector<float> v(block(begin, own, value), s), dv(std::vector<float>(std::size_t(rows * own)), s);
  ds::parameters<float> all, some;
  all.add("layer", w.data(), g.data(), ds::shape{rows, columns});
  some.add("layer", v.data(), dv.data(), ds::shape{rows, own});
  some.mark_columns("layer");
  ds::optimizer whole{all, ds::lamb{.lr = 0.01}, ds::clip_adaptive{.c = 0.1}};
  ds::optimizer part{some, ds::lamb{.lr = 0.01}, ds::clip_adaptive{.c = 0.1}, ds::model_parallel{comm}, ds::cuda{s}};
  for (int t = 0; t < 3; ++t) {
    auto const now = [&](auto i, auto j) { return gradient(i, j, t); };
    std::ranges::copy(block(0, columns, now), g.begin());
    dv.put(block(begin, own, now), s);
    whole.step(), part.step();
  }
  auto const is = v.get(s);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < own; ++j) {
      float const want = w[std::size_t(i * columns + begin + j)];
      CHECK(std::abs(is[std::size_t(i * own + j)] - want) <= 1e-5f * (1 + std::abs(want)));
    }
}

TEST_CASE("model_parallel beside replicated: micro-batches, and a norm that no step measures") {
  joined comm;
  ds::comm::nccl alone{0, 1, [](int, int, auto&) {}};
  test::stream s;
  // Of `ranks` ranks with gradients of their own, this one has the share of `part` of `parts`.
  auto const same = [&](int ranks, int part, int parts, auto&... teams) {
    INFO("rank ", comm.rank(), ", ", ranks, " x ", parts);
    side<float, float, false> h{mixed, s, comm};
    side<float, float, true> d{mixed, s, comm};
    ds::optimizer whole{share(h.list(), 0, 1), ds::adamw{}, ds::accumulate{2}, ds::clip_norm{0.5}};
    ds::optimizer opt{share(d.list(), part, parts), ds::adamw{}, ds::accumulate{2}, ds::clip_norm{0.5}, teams...,
                      ds::cuda{s}};
    for (int t = 0; t < 4; ++t) {
      int const first = ranks > 1 ? comm.rank() : 0;
      h.sum(t, 0, ranks), d.sum(t, first, first + 1), d.x.send_gradients();
      whole.step(ranks), d.enqueue([&] { opt.step(); });
    }
    auto const values = d.values();
    int wrong = 0;
    h.x.each([&](std::size_t k, std::int64_t i) {
      wrong += has_tensor(k, part, parts) && values[h.x.place(k, i)] != h.x.value[h.x.place(k, i)];
    });
    CHECK(wrong == 0);
    CHECK(opt.report().grad_norm == whole.report().grad_norm);
  };
  ds::comm::nccl& all = comm;
  ds::replicated data{all}, no_data{alone};
  ds::model_parallel model{all}, no_model{alone};
  same(comm.size(), 0, 1, data, no_model);
  same(1, comm.rank(), comm.size(), no_data, model);
  ds::sharded no_shards{alone, ds::ordered_sum{}};  // each step adds the gradients when it first reads them
  same(1, comm.rank(), comm.size(), no_shards, model);

  side<float, float, false> h{mixed, s, comm};
  side<float, float, true> d{mixed, s, comm};
  ds::optimizer whole{h.list(), ds::adamw{}};
  ds::optimizer part{share(d.list(), comm.rank(), comm.size()), ds::adamw{}, model, ds::cuda{s}};
  h.sum(0, 0, 1), d.sum(0, 0, 1), d.x.send_gradients();
  part.step(), whole.step();
  CHECK(part.gradient_norm() == whole.gradient_norm());
  CHECK(part.diagnose().empty());
}
