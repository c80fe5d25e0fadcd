// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/threads.hpp>
#include <descent/io/checkpoint.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/training/diloco.hpp>

#include <doctest/doctest.h>
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

/// Ranks that train by themselves and meet at every K-th step, against the algorithm in plain loops.

namespace ds = descent;
using ranks::model, ranks::with_ranks;

namespace {

std::vector<std::size_t> const sizes{5, 0, 4099, 7};
using values = std::vector<std::vector<double>>;
constexpr double lr = 0.25, outer_lr = 0.7, mu = 0.9;

template <class Value> values widened(model<Value> const& m) {
  values all;
  for (auto const& tensor : m.value) {
    all.emplace_back();
    for (auto x : tensor) all.back().push_back(ds::widen<double>(x));
  }
  return all;
}

/// Algorithm 1 for all ranks at once: the values of each rank after `steps` steps, with SGD as the inner rule.
std::vector<values> by_hand(int team, int every, int steps) {
  values const start = widened(model<double>(0, sizes));
  values slow = start, momentum = start;
  for (auto& tensor : momentum) tensor.assign(tensor.size(), 0);
  std::vector<values> p(std::size_t(team), start);
  for (int t = 0; t < steps; ++t) {
    for (int r = 0; r < team; ++r)
      for (std::size_t k = 0; k < sizes.size(); ++k)
        for (std::size_t i = 0; i < sizes[k]; ++i) p[std::size_t(r)][k][i] -= lr * ranks::gradient_of(r, t, k, i);
    if ((t + 1) % every != 0) continue;
    for (std::size_t k = 0; k < sizes.size(); ++k)
      for (std::size_t i = 0; i < sizes[k]; ++i) {
        double d = 0;
        for (auto const& of_rank : p) d += (slow[k][i] - of_rank[k][i]) / team;
        momentum[k][i] = mu * momentum[k][i] + d;
        slow[k][i] -= outer_lr * (d + mu * momentum[k][i]);
        for (auto& of_rank : p) of_rank[k][i] = slow[k][i];
      }
  }
  return p;
}
double furthest(values const& a, values const& b) {
  double most = 0;
  for (std::size_t k = 0; k < a.size(); ++k)
    for (std::size_t i = 0; i < a[k].size(); ++i) most = std::fmax(most, std::abs(a[k][i] - b[k][i]));
  return most;
}

/// The steps [first, last) of one rank.
template <class Opt, class Global, class Model> void train(Opt& opt, Global& global, Model& m, int rank, int first,
                                                           int last) {
  for (int t = first; t < last; ++t) {
    m.set(t, rank, rank + 1);
    opt.step();
    global.step(opt);
  }
}
ds::outer const how{.every = 3, .lr = outer_lr, .momentum = mu};

}  // namespace

TEST_CASE("diloco is its algorithm, for values in double and for masters beside values in half") {
  for (int team : {1, 2, 3}) {
    auto const want = by_hand(team, 3, 8);
    with_ranks(team, [&](auto& comm) {
      auto const r = std::size_t(comm.rank());
      model<double> m(comm.rank(), sizes);  // values differ until the constructor gives all those of rank 0
      ds::diloco global{m.list(), how, ds::replicated{comm, ds::ordered_sum{}}};
      ds::optimizer opt{m.list(), ds::sgd{.lr = lr}};
      train(opt, global, m, comm.rank(), 0, 8);
      CHECK(furthest(widened(m), want[r]) < 1e-13);
      CHECK(global.steps() == 2);

      model<ds::half> h(0, sizes);
      ds::diloco of_half{h.list(), how, ds::sharded{comm}};
      ds::optimizer inner{h.list(), ds::sgd{.lr = lr}, ds::master<float>{}};
      train(inner, of_half, h, comm.rank(), 0, 8);
      values masters;
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        auto const of = inner.master("w" + std::to_string(k));
        masters.emplace_back(of.begin(), of.end());
      }
      CHECK(furthest(masters, want[r]) < 1e-5);  // half has all gradients and first values
      CHECK(furthest(widened(h), masters) < 2e-3);
    });
  }
}

TEST_CASE("after an outer step all ranks have the same values, in between they do not") {
  std::vector<model<float>> met(3, model<float>(0, sizes)), apart = met;
  with_ranks(3, [&](auto& comm) {
    auto const r = std::size_t(comm.rank());
    model<float> m(0, sizes);
    m.set(0, comm.rank(), comm.rank() + 1);
    auto const params = m.list();
    // snippet: diloco
    descent::diloco global{params, descent::outer{.every = 3}, descent::replicated{comm}};
    descent::optimizer opt{params, descent::adamw{.lr = 0.01}};  // without ranks
    for (int t = 0; t < 6; ++t) {
      // forward and backward on this rank's batch
      opt.step();
      global.step(opt);
    }
    // end
    met[r] = m;
    opt.step();
    CHECK_FALSE(global.step(opt));
    apart[r] = m;
  });
  for (std::size_t r : {1, 2}) {
    CHECK(met[r] == met[0]);
    CHECK_FALSE(apart[r] == apart[0]);
  }
}

TEST_CASE("diloco: settings out of range are refused; K may be 1, and a list empty") {
  with_ranks(2, [&](auto& comm) {
    model<double> m(0, sizes), none(0, {});
    auto const refused = [&](ds::outer bad) {
      return ranks::thrown<std::invalid_argument>(
          [&] { ds::diloco{m.list(), bad, ds::replicated{comm, ds::ordered_sum{}}}; });
    };
    CHECK(refused({.every = 0}) == "outer: every must be at least 1, is 0");
    CHECK(refused({.lr = 0}) == "outer: lr must be finite and above 0, is 0");

    ds::diloco global{m.list(), how, ds::replicated{comm, ds::ordered_sum{}}};
    for (int steps : {-1, 3, std::numeric_limits<int>::max()})
      CHECK(ranks::thrown([&] { global.set_steps(steps); }) ==
            "diloco: steps must be at least 0 and below every, is " + std::to_string(steps));

    ds::diloco each{m.list(), ds::outer{.every = 1, .lr = outer_lr, .momentum = mu},
                    ds::replicated{comm, ds::ordered_sum{}}};
    ds::optimizer opt{m.list(), ds::sgd{.lr = lr}};
    train(opt, each, m, comm.rank(), 0, 4);
    CHECK(furthest(widened(m), by_hand(2, 1, 4)[std::size_t(comm.rank())]) < 1e-13);

    ds::diloco empty{none.list(), how, ds::replicated{comm, ds::ordered_sum{}}};
    ds::optimizer nothing{none.list(), ds::sgd{.lr = lr}};
    train(nothing, empty, none, comm.rank(), 0, 4);
    CHECK(empty.steps() == 1);
  });
}

TEST_CASE("diloco of one rank is the policy outer") {
  with_ranks(1, [&](auto& comm) {
    model<double> m(0, sizes), n(0, sizes);
    ds::diloco global{m.list(), how, ds::replicated{comm}};
    ds::optimizer opt{m.list(), ds::sgd{.lr = lr}};
    ds::optimizer fused{n.list(), ds::sgd{.lr = lr}, how};
    for (int t = 0; t < 10; ++t) {
      m.set(t, 0, 1), n.set(t, 0, 1);
      opt.step(), fused.step();
      CHECK(global.step(opt) == (t % 3 == 2));
      CHECK(furthest(widened(m), widened(n)) < 1e-14);
    }
  });
}

TEST_CASE("diloco: a distance that is not finite on one rank brings all back to the slow weights") {
  with_ranks(2, [&](auto& comm) {
    model<float> m(0, sizes);
    ds::diloco global{m.list(), how, ds::replicated{comm}};
    ds::optimizer opt{m.list(), ds::sgd{.lr = lr}};
    train(opt, global, m, comm.rank(), 0, 3);
    auto const before = m;
    train(opt, global, m, comm.rank(), 3, 5);
    if (comm.rank() == 1) m.value[2][7] = std::numeric_limits<float>::quiet_NaN();
    train(opt, global, m, comm.rank(), 5, 6);
    CHECK(m == before);
    CHECK(!global.optimizer_of_slow().report().applied);
  });
}

TEST_CASE("diloco: a rank that is lost ends the outer step of the others, with nothing changed") {
  ds::comm::threads world{3, std::chrono::seconds(60)};
  std::vector<std::optional<model<float>>> before(3), after(3);
  auto const why = ranks::on_ranks(world, [&](auto& comm) {
    auto const r = std::size_t(comm.rank());
    model<float> m(0, sizes);
    ds::diloco global{m.list(), how, ds::replicated{comm}};
    ds::optimizer opt{m.list(), ds::sgd{.lr = lr}};
    train(opt, global, m, comm.rank(), 0, 5);
    if (r == 1) throw std::runtime_error("lost");
    m.set(5, comm.rank(), comm.rank() + 1);
    opt.step();
    before[r] = m;
    auto const text = ranks::thrown<ds::comm_error>([&] { global.step(opt); });
    after[r] = m;
    if (!text.empty()) throw std::runtime_error(text);
  });
  for (std::size_t r : {0, 2}) {
    CHECK(ranks::has(why[r], "rank 1"));
    CHECK(*before[r] == *after[r]);
  }
}

TEST_CASE("diloco resumes from a file, with each rank's own parts and the slow weights") {
  test::temporary_folder const folder;
  auto const run = [&](int first, int last, bool loads, bool saves) {
    std::vector<model<double>> all(2, model<double>(0, sizes));
    with_ranks(2, [&](auto& comm) {
      auto& m = all[std::size_t(comm.rank())];
      ds::diloco global{m.list(), how, ds::replicated{comm}};
      ds::optimizer opt{m.list(), ds::sgd{.lr = lr}};
      if (loads) {
        ds::load_file(folder / "run", global.optimizer_of_slow(), ds::each_rank(ds::named("own", opt)));
        global.set_steps(first % 3);
      }
      train(opt, global, m, comm.rank(), first, last);
      if (saves) ds::save_file(folder / "run", global.optimizer_of_slow(), ds::each_rank(ds::named("own", opt)));
    });
    return all;
  };
  auto const want = run(0, 8, false, false);
  for (int stop : {2, 3, 4}) {
    run(0, stop, false, true);
    CHECK(run(stop, 8, true, false) == want);
  }
}

namespace {

/// What an outer step of one rank with lr 1 and momentum 0 makes of the optimizer that make(list) returns: nothing,
/// because the slow weights become the parameters, look(opt, name). Values follow them. All numbers are exact in float.
template <class Value, class Make, class Look> void changes_nothing(Make const& make, Look const& look) {
  with_ranks(1, [&](auto& comm) {
    model<Value> m(0, sizes);
    ds::diloco global{m.list(), ds::outer{.every = 1, .lr = 1, .momentum = 0}, ds::replicated{comm}};
    auto opt = make(m.list());
    for (int t = 0; t < 3; ++t) {
      m.set(t, 0, 1);
      opt.step();
      std::vector<std::vector<float>> before;
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        auto const of = look(opt, "w" + std::to_string(k));
        before.emplace_back(of.begin(), of.end());
      }
      CHECK(global.step(opt));
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        std::string const name = "w" + std::to_string(k);
        auto const of = look(opt, name);
        CHECK(std::equal(of.begin(), of.end(), before[k].begin(), before[k].end()));
        if constexpr (std::is_same_v<Value, ds::half>)  // master_remainder rounds ties away from 0
          for (std::size_t i = 0; i < sizes[k]; ++i) CHECK(m.value[k][i] == ds::narrow<Value>(before[k][i]));
        if constexpr (requires { opt.slow(name); })
          for (std::size_t i = 0; i < sizes[k]; ++i) CHECK(float(opt.slow(name)[i]) == before[k][i]);
      }
    }
  });
}

}  // namespace

TEST_CASE("diloco takes the parameters as they are stored: masters of any type, those behind a point ahead") {
  auto const master = [](auto const& opt, std::string const& name) { return opt.master(name); };
  changes_nothing<ds::half>(
      [](auto const& list) {
        return ds::optimizer{list, ds::sgd{.lr = lr}, ds::master<float>{}, ds::lookahead{.k = 2}};
      },
      master);
  changes_nothing<ds::half>(
      [](auto const& list) {
        return ds::optimizer{list, ds::sgd{.lr = lr}, ds::master<float>{}, ds::ema_nesterov{.momentum = 0.5}};
      },
      [](auto const& opt, std::string const& name) { return opt.slow(name); });
  changes_nothing<ds::bfloat16>(
      [](auto const& list) {
        return ds::optimizer{list, ds::sgd{.lr = lr}, ds::master_remainder{}, ds::ema_nesterov{.momentum = 0.5}};
      },
      [](auto const& opt, std::string const& name) { return opt.slow(name); });
}

TEST_CASE("diloco follows an optimizer whose memory has moved, and leaves frozen groups alone") {
  with_ranks(2, [&](auto& comm) {
    model<float> m(0, sizes), n(0, sizes), same(0, sizes);
    ds::diloco global{m.list(), how, ds::replicated{comm}}, other{same.list(), how, ds::replicated{comm}};
    ds::optimizer opt{m.list(), ds::sgd{.lr = lr}}, undisturbed{same.list(), ds::sgd{.lr = lr}};
    opt.freeze(1), undisturbed.freeze(1);
    train(opt, global, m, comm.rank(), 0, 2);
    n.value = m.value;
    opt.rebind(n.list());
    auto const left = m;
    train(opt, global, n, comm.rank(), 2, 9);
    train(undisturbed, other, same, comm.rank(), 0, 9);
    CHECK(m == left);
    CHECK(n == same);
    model<float> const start(0, sizes);
    for (std::size_t k : {1, 3}) CHECK(n.value[k] == start.value[k]);  // group 1
    for (std::size_t k : {0, 2}) CHECK_FALSE(n.value[k] == start.value[k]);

    // Thawed in the middle of the momentum: as one that was frozen on both ranks all the time.
    opt.freeze(1, false);
    train(opt, global, n, comm.rank(), 9, 12);
    CHECK_FALSE(n.value[3] == start.value[3]);
  });
}

TEST_CASE("diloco is refused where values are elsewhere or an optimizer has other parameters, with nothing changed") {
  with_ranks(1, [&](auto& comm) {
    model<float> m(0, sizes), fewer(0, {5, 0}), others(0, {5, 0, 4099, 8});
    ds::diloco global{m.list(), ds::outer{.every = 1}, ds::replicated{comm}};
    ds::optimizer opt{m.list(), ds::sgd{.lr = lr}, ds::ema{.decay = 0.5}};
    m.set(0, 0, 1);
    opt.step();
    auto const refuses = [&](auto& of, model<float>& what) {
      auto const before = what;
      std::string const why = ranks::thrown<std::logic_error>([&] { global.step(of); });
      CHECK(what == before);
      CHECK(global.steps() == 0);
      return why;
    };
    opt.swap_average();
    CHECK(refuses(opt, m) == "diloco::step() between two calls of swap_average(): the values are the averages now");
    opt.swap_average();

    ds::optimizer of_fewer{fewer.list(), ds::sgd{}}, of_others{others.list(), ds::sgd{}};
    CHECK(refuses(of_fewer, fewer) == "diloco: the optimizer has other parameters: 2 of 4");
    CHECK(refuses(of_others, others) == "diloco: the optimizer has other parameters: 'w3' has 8 elements, not 7");
    ds::parameters<float> renamed, regrouped;
    auto const list = m.list();
    for (auto const& v : list.views()) {
      renamed.add(v.name == "w2" ? "w4" : v.name, v.value, v.gradient, v.count, descent::group{v.group});
      regrouped.add(v.name, v.value, v.gradient, v.count);
    }
    ds::optimizer of_renamed{renamed, ds::sgd{}}, of_regrouped{regrouped, ds::sgd{}};
    CHECK(refuses(of_renamed, m) == "diloco: the optimizer has other parameters: no 'w2'");
    CHECK(refuses(of_regrouped, m) == "diloco: the optimizer has other parameters: 'w1' is in group 0, not 1");
    CHECK(global.step(opt));
  });
}

TEST_CASE("diloco: what one rank alone has set is refused at the next outer step, with nothing written") {
  with_ranks(2, [&](auto& comm) {
    model<float> m(0, sizes);
    ds::diloco global{m.list(), how, ds::replicated{comm}};
    ds::optimizer opt{m.list(), ds::sgd{.lr = lr}};
    int t = 0;
    auto const trains = [&] {
      m.set(t, comm.rank(), comm.rank() + 1);
      opt.step();
      ++t;
      return global.step(opt);
    };
    if (comm.rank() == 0) global.set_steps(1);
    while (global.steps() < how.every - 1) trains();  // other numbers of steps on the ranks
    auto const before = m;
    auto const slow = [&] {
      std::vector<float> all;
      global.optimizer_of_slow().save([&](std::string const&, auto piece) {
        for (auto x : piece) all.push_back(float(x));
      });
      return all;
    };
    auto const slow_before = slow();
    std::string const why = ranks::thrown<std::invalid_argument>([&] { global.step(opt); });
    CHECK(why.starts_with("diloco: ranks disagree: "));
    CHECK(why.find("disagree: 2 calls of step() since the last outer step or set_steps() (rank 0)") != why.npos);
    CHECK(m == before);
    CHECK(slow() == slow_before);
    CHECK(global.steps() == how.every - 1);
    global.set_steps(how.every - 1);
    CHECK(global.step(opt));
    for (int i = 1; i <= how.every; ++i) CHECK(trains() == (i == how.every));

    // A rate of the slow weights.
    while (global.steps() < how.every - 1) trains();
    if (comm.rank() == 0) global.optimizer_of_slow().group(0).lr = 0.5;
    auto const then = m;
    auto const slow_then = slow();
    CHECK_FALSE(ranks::thrown<std::runtime_error>([&] { global.step(opt); }).empty());
    CHECK(m == then);
    CHECK(slow() == slow_then);
  });
}
