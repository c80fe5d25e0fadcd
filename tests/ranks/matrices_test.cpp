// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/threads.hpp>
#include <descent/io/checkpoint.hpp>
#include <descent/matrices/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adafactor.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/kl_shampoo.hpp>
#include <descent/rules/muon.hpp>
#include <descent/rules/shampoo.hpp>
#include <descent/rules/sm3.hpp>
#include <descent/rules/soap.hpp>

#include <doctest/doctest.h>
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

/// Matrices on several ranks: the same bits as one process, whoever owns them, and what ranks say of them.

namespace ds = descent;
using ranks::model, ranks::with_ranks;

namespace {

using sizes = std::vector<std::size_t>;
/// Vectors, and matrices of 11 x 7, 45 x 3, 37 x 31, 13 x 11 and 6 x 2 in group 1; two tensors are empty.
sizes const small{4099, 77, 3, 135, 0, 0, 4096, 1147, 5, 143, 12, 12};
/// One of 4097 x 2, whose chunks would belong to two ranks if it were divided.
sizes const large{70, 8194, 5, 77, 3, 35, 4099, 1147};
int const teams[] = {1, 2, 3, 4, 7};  // more ranks than matrices at the end

/// Steps with a change of both rules, a frozen group and, in buckets, marks in an order of the rank's own.
template <class Opt, class Model> void train(Opt& opt, Model& m, int rank, int first, int last, int all,
                                             double weight) {
  for (int t = first; t < last; ++t) {
    if (t == 2) opt.matrix_rule(1).lr /= 2, opt.group(0).lr /= 2;
    if (t == 3) opt.freeze(1);
    if (t == 4) opt.freeze(1, false);
    m.set(t, rank, rank + all);
    if constexpr (requires { opt.ready(0); })
      for (std::size_t k = 0; k < m.value.size(); ++k) opt.ready((k * 5 + std::size_t(rank)) % m.value.size());
    opt.step(weight);
  }
}

/// All ranks have the values of one process with the sum of their gradients.
template <class Value = float, class Gradient = Value, class Way, class Rule, class... Ps>
void same_as_alone(sizes const& of, Way const& way, Rule const& rule, Ps... policies) {
  for (int team : teams) {
    INFO("ranks ", team);
    model<Value, Gradient> want(0, of);
    ds::optimizer opt{want.list(), ds::adamw{.lr = 0.01}, ds::matrices{rule}, policies..., ds::accumulate{1}};
    train(opt, want, 0, 0, ranks::steps, team, team);
    with_ranks(team, [&](auto& comm) {
      model<Value, Gradient> m(comm.rank(), of);
      ds::optimizer one{m.list(), ds::adamw{.lr = 0.01}, ds::matrices{rule}, policies..., way(comm), ds::accumulate{1}};
      train(one, m, comm.rank(), 0, ranks::steps, 1, 1);
      CHECK(m == want);
      one.agree();
    });
  }
}

auto const in_buckets = [](auto& comm) {
  return ds::sharded{comm, ds::ordered_sum{}, ds::overlap{.bucket_bytes = 1000}};
};
auto const replicated_in_buckets = [](auto& comm) { return ds::replicated{comm, ds::overlap{.bucket_bytes = 1000}}; };

/// How sharded ranks divide a list.
struct parts {
  ds::detail::layout<float, float> where;
  ds::detail::partition all;

  /// The part of the cost of all matrices that the rank with most has.
  double largest_share() const {
    std::vector<double> load(all.buckets[0].shares.size());
    double total = 0;
    for (std::size_t t = 0; t < all.owners.size(); ++t)
      if (int const r = all.owners[t].rank; r >= 0) load[std::size_t(r)] += where.costs[t], total += where.costs[t];
    return std::ranges::max(load) / total;
  }
};
template <class... Group>
parts parted(ds::parameters<float> const& list, int team, std::int64_t bucket_bytes, Group... only) {
  ds::comm::threads world{team, std::chrono::seconds(60)};
  auto comm = world.rank(0);
  ds::matrices const policy{ds::muon{}, only...};
  ds::sharded const parallel{comm, ds::overlap{.bucket_bytes = bucket_bytes}};
  using traits = ds::detail::optimizer_traits<float, float, ds::adamw, ds::matrices<ds::muon>,
                                              std::remove_const_t<decltype(parallel)>>;
  auto where = traits::layout_of(list, policy, parallel);
  auto all = ds::detail::partition_of<typename traits::plan>(where, parallel);
  return {std::move(where), std::move(all)};
}

using soap_optimizer =
    decltype(ds::optimizer{std::declval<model<float>&>().list(), ds::adamw{}, ds::matrices{ds::soap{}}, ds::ema{},
                           ds::sharded{std::declval<ds::comm::threads::member&>(), ds::overlap{}}});

}  // namespace

TEST_CASE("trap 50: each rule of matrices: sharded ranks do what one process does, bit for bit") {
  ds::clip_norm const clip{0.5};
  ds::ema const ema{.decay = 0.5};
  same_as_alone(large, ranks::sharded_ordered, ds::muon{.lr = 0.02}, clip, ema);
  same_as_alone(small, ranks::sharded_ordered, ds::soap{.lr = 0.01, .every = 2}, clip, ema);
  same_as_alone(small, ranks::sharded_ordered, ds::kl_shampoo{.lr = 0.01, .adam = true, .every = 2}, clip, ema);
  same_as_alone(small, ranks::sharded_ordered, ds::shampoo{.lr = 0.01}, clip, ema);
  same_as_alone(large, ranks::sharded_ordered, ds::sm3{.lr = 0.01}, clip, ema);
  same_as_alone(large, ranks::sharded_ordered, ds::adafactor{.lr = 0.01}, clip, ema);
}

TEST_CASE("matrices, replicated, in buckets, and in 16 bits with masters and a loss scale: the same bits") {
  same_as_alone(small, ranks::replicated, ds::muon{.lr = 0.02}, ds::clip_norm{0.5}, ds::ema{.decay = 0.5});
  same_as_alone(small, in_buckets, ds::muon{.lr = 0.02}, ds::clip_norm{0.5}, ds::ema{.decay = 0.5});
  same_as_alone(large, replicated_in_buckets, ds::muon{.lr = 0.02}, ds::clip_norm{0.5}, ds::ema{.decay = 0.5});
  same_as_alone<ds::half, float>(small, ranks::sharded_ordered, ds::muon{.lr = 0.02}, ds::master<float>{},
                                 ds::dynamic_loss_scale{.init = 1}, ds::zero_grad{});
}

TEST_CASE("trap 51: sharded matrices: a rank has the state of what it owns; any number of ranks resumes its files") {
  test::temporary_folder const folder;
  auto const path = folder / "run.safetensors";
  auto const run = [&](int team, int first, int last, bool load, auto const& then) {
    with_ranks(team, [&](auto& comm) {
      model<float> m(7, small);
      soap_optimizer opt{m.list(), ds::adamw{.lr = 0.01}, ds::matrices{ds::soap{.lr = 0.01, .every = 2}},
                         ds::ema{.decay = 0.5}, ds::sharded{comm, ds::overlap{.bucket_bytes = 1000}}};
      if (load) ds::load_file(path, opt);
      for (int t = first; t < last; ++t) {
        m.set(t, 0, 1);
        for (std::size_t k = 0; k < small.size(); ++k) opt.ready(k);
        opt.step();
      }
      then(opt, m, comm);
    });
  };
  model<float> want(7, small);
  run(1, 0, 6, false, [&](auto&, auto& m, auto&) { want = m; });
  for (int saving : {1, 4, 8})  // powers of two: the mean of equal gradients is exact
    for (int loading : {1, 2, 4}) {
      INFO(saving, " ranks save, ", loading, " load");
      run(saving, 0, 3, false, [&](auto& opt, auto& m, auto& comm) {
        ds::save_file(path, opt);
        for (std::size_t t = 0; t < small.size(); ++t) {  // of each matrix, one rank has all and the others nothing
          std::string const name = "w" + std::to_string(t);
          std::vector<double> sizes{double(opt.template matrix_state<0>(name).size()),
                                    double(opt.template matrix_state<1>(name).size()),
                                    double(opt.state(name, 0).size())};
          comm.all_reduce(sizes.data(), 3);
          bool const matrix = t % 2 && small[t] > 0;
          CHECK(sizes[0] == double(matrix ? small[t] : 0));
          CHECK((sizes[1] > 0) == matrix);
          CHECK(sizes[2] == double(matrix ? 0 : small[t]));
        }
        CHECK(m.value.size() == small.size());
      });
      run(loading, 3, 6, true, [&](auto&, auto& m, auto&) { CHECK(m == want); });
    }
}

TEST_CASE("explain() and memory() say who owns what") {
  std::vector<std::string> said(2);
  std::vector<std::int64_t> states(2), of_rule(2);
  with_ranks(2, [&](auto& comm) {
    model<float> m(0, {5, 12, 4099, 77, 3, 143});
    auto const params = m.list();
    // snippet: sharded
    descent::optimizer opt{params, descent::adamw{.lr = 1e-3}, descent::matrices{descent::muon{.lr = 0.02}},
                           descent::sharded{comm}};
    opt.step();
    // end
    auto const r = std::size_t(comm.rank());
    said[r] = opt.explain();
    for (auto const& b : opt.memory().buffers)
      if (b.name == "matrices: state m (float)") states[r] = b.bytes;
      else if (b.name == "state m (float)") of_rule[r] = b.bytes;
  });
  // The costs are 143 * 11, 77 * 7 and 12 * 2.
  CHECK(ranks::has(said[0], "  rank 0 owns 'w5': 74 % of their cost, the largest share is 74 %; parts are padded by "));
  CHECK(ranks::has(said[1], "  rank 1 owns 'w1', 'w3': 26 % of their cost, the largest share is 74 %;"));
  CHECK(states == std::vector<std::int64_t>{192 * 4, (64 + 128) * 4});
  CHECK(of_rule[0] + of_rule[1] == (64 + 4160 + 64) * 4);  // of the vectors alone
}

TEST_CASE("ranks that differ in a rule of matrices get an error, before anything changes and while they train") {
  with_ranks(3, [&](auto& comm) {
    model<float> m(comm.rank(), small);
    bool const odd = comm.rank() == 1;
    std::string const message = ranks::thrown([&] {
      ds::optimizer{m.list(), ds::adamw{}, ds::matrices{ds::muon{.lr = odd ? 0.5 : 0.02}}, ds::replicated{comm}};
    });
    CHECK(message ==
          "ranks disagree about the training setup: lr of the matrix rule is 0.02 (rank 0, 2); "
          "lr of the matrix rule is 0.5 (rank 1)");
    ds::matrices other{ds::muon{}};
    other.at_once = odd ? 4 : 8;
    auto const number = ranks::thrown([&] { ds::optimizer{m.list(), ds::adamw{}, other, ds::replicated{comm}}; });
    CHECK(ranks::has(number, "at_once of matrices is 8 (rank 0, 2); at_once of matrices is 4 (rank 1)"));

    ds::optimizer opt{m.list(), ds::adamw{}, ds::matrices{ds::muon{.lr = 0.02}}, ds::replicated{comm}};
    m.set(0, comm.rank(), comm.rank() + 1);
    opt.step();
    auto const state = opt.template matrix_state<0>("w3");
    opt.agree();
    if (odd) opt.template set_matrix_state<0>("w3", std::vector<float>(state.size(), 1));
    CHECK(ranks::thrown([&] { opt.agree(); }).starts_with("ranks have diverged: matrix state m of 'w3' "));
    opt.broadcast();
    opt.agree();

    if (odd) opt.matrix_rule(1).lr = 0.5;
    CHECK(ranks::thrown([&] {
            opt.agree();
          }).starts_with("ranks have diverged: lr of the matrix rule of group 1 is 0.02 (rank 0"));
    auto const before = m;
    CHECK(
        ranks::has(ranks::thrown([&] { opt.step(); }), "but ranks differ: lr of the matrix rule of group 1 is 0.02 "));
    CHECK(m == before);
  });
}

TEST_CASE("the matrices of three transformers: shares and padding are those of docs/data_parallel.md") {
  struct model_size { std::int64_t layers, width, inner, inner_matrices, vocabulary; };
  auto const check = [](model_size const& of, int team, double share, double wire, double in_buckets,
                        std::size_t parts_of_values) {
    ds::parameters<float> list;  // fake memory
    std::uintptr_t at = 1 << 20;
    auto const add = [&](std::int64_t rows, std::int64_t columns, int group = 0) {
      list.add("w" + std::to_string(list.views().size()), reinterpret_cast<float*>(at),
               reinterpret_cast<float*>(at + (std::uintptr_t{1} << 35)), ds::shape{rows, columns}, ds::group{group});
      at += std::uintptr_t{1} << 36;
    };
    add(of.vocabulary, of.width, 1);
    for (std::int64_t layer = 0; layer < of.layers; ++layer) {
      add(of.width, 1), add(3 * of.width, of.width), add(of.width, of.width), add(of.width, 1);
      for (std::int64_t i = 1; i < of.inner_matrices; ++i) add(of.inner, of.width);
      add(of.width, of.inner);
    }
    add(of.width, 1);
    INFO(of.width, " wide, ", team, " ranks");
    auto const bytes = [&](parts const& cut) { return double(team) * double(cut.all.part) / double(cut.where.arena); };
    auto const whole = parted(list, team, std::int64_t{1} << 40, ds::group{0});
    CHECK(std::abs(whole.largest_share() * team - share) < 0.006);
    CHECK(std::abs(bytes(whole) - wire) < 0.006);
    auto const cut = parted(list, team, 25 << 20, ds::group{0});
    CHECK(std::abs(bytes(cut) - in_buckets) < 0.006);

    // A device sends values in several parts. Every element has a place of its own in them.
    for (parts const* one : {&whole, &cut}) {
      auto const& [where, all] = *one;
      ds::detail::value_layout const values(where, all, std::size_t(team), true);
      if (one == &whole) CHECK(values.segments().size() == parts_of_values);
      CHECK(8 * values.size() <= 9 * all.part);
      std::map<std::int64_t, std::int64_t> taken;  // begins and ends
      for (std::size_t t = 0; t < where.tensors.size(); ++t)
        for (std::size_t r = 0; r < std::size_t(team); ++r)
          if (auto const [begin, size] = all.part_of(where, t, r); size > 0) {
            std::int64_t const at = values.place(where, all, t, r)(where.tensors[t].arena + begin);
            CHECK(taken.try_emplace(at, at + size).second);
          }
      std::int64_t end = 0;
      for (auto const& [first, last] : taken) CHECK(first >= std::exchange(end, last));
      CHECK(end <= team * values.size());
    }
  };
  model_size const small_one{12, 768, 3072, 2, 50257}, medium{48, 1600, 6400, 2, 50257},
      large_one{32, 4096, 11008, 3, 32000};
  check(small_one, 8, 1, 1, 1.10, 5), check(small_one, 16, 1.11, 1, 1.12, 1), check(small_one, 64, 1.78, 1.22, 1.22, 1);
  check(medium, 8, 1, 1, 1.13, 5), check(medium, 64, 1.11, 1.05, 1.26, 1);
  check(large_one, 8, 1, 1, 1.16, 5), check(large_one, 64, 1.06, 1.04, 1.46, 5);
  check(large_one, 128, 1.22, 1.20, 1.95, 5);
}

TEST_CASE("matrices belong to one rank each, by cost, and parts of a bucket do not overlap") {
  std::mt19937 random(3);
  auto const below = [&](int n) { return std::int64_t(random() % unsigned(n)); };
  for (int trial = 0; trial < 300; ++trial) {
    ds::parameters<float> list;  // fake memory
    std::uintptr_t at = 1 << 20;
    std::int64_t const tensors = 1 + below(40);
    for (std::int64_t t = 0; t < tensors; ++t, at += std::uintptr_t{1} << 36) {
      std::int64_t const rows = below(3000), columns = below(3) ? 2 + below(2000) : 1;
      list.add("w" + std::to_string(t), reinterpret_cast<float*>(at),
               reinterpret_cast<float*>(at + (std::uintptr_t{1} << 35)), ds::shape{rows, columns});
    }
    int const team = 1 + int(below(9));
    auto const [where, all] = parted(list, team, 1 << below(28));
    INFO("trial ", trial, ", ranks ", team);

    std::vector<double> load(std::size_t(team), 0);
    double total = 0, dearest = 0;
    std::int64_t owned = 0;
    for (auto const& b : all.buckets) {
      std::vector<std::pair<std::int64_t, std::int64_t>> used;  // in the parts of all ranks: begin and end
      std::int64_t of_matrices = 0;
      std::vector<std::int64_t> of_rank(std::size_t(team), 0);
      for (std::size_t t = b.first_tensor; t < b.first_tensor + b.tensors; ++t)
        for (std::size_t r = 0; r < std::size_t(team); ++r) {
          auto const [begin, size] = all.part_of(where, t, r);
          owned += size;
          if (size == 0) continue;
          if (where.tensors[t].matrix) {
            CHECK(size == where.tensors[t].count);
            load[r] += where.costs[t], total += where.costs[t], dearest = std::max(dearest, where.costs[t]);
            of_matrices += size, of_rank[r] += ds::detail::arena_of(size);
          }
          std::int64_t const place = all.in_part(where, t, r)(where.tensors[t].arena + begin);
          CHECK(place >= 0);
          CHECK(place + size <= b.room);
          used.push_back({std::int64_t(r) * b.room + place, std::int64_t(r) * b.room + place + size});
        }
      std::ranges::sort(used);
      for (std::size_t i = 1; i < used.size(); ++i) CHECK(used[i - 1].second <= used[i].first);
      // Vectors fill up the ranks that have fewer elements of matrices, to a chunk.
      CHECK(b.room <= std::max(std::ranges::max(of_rank), b.size() / team) + 4096 + 64);
      // Room for a quarter more than the matrices, and for the vectors, whose shares differ by two chunks at most.
      if (b.first_tensor > 0 && of_matrices > 0)
        CHECK(team * b.room <= b.size() + b.matrices.size / 4 + 2 * 4096 * team);
    }
    CHECK(owned == where.elements);
    for (double one : load) CHECK(one <= total / team + dearest);  // Graham's bound
  }
}
