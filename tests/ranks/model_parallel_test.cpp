// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/threads.hpp>
#include <descent/matrices/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/ranks/model_parallel.hpp>
#include <descent/policies/noise.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/sam.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/muon.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/sgd.hpp>

#include <doctest/doctest.h>
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <chrono>
#include <clocale>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <locale>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

/// A model whose parameters are on several ranks is trained like one of a single process, to the bit.

namespace ds = descent;
using ranks::equal_share, ranks::has, ranks::load, ranks::model, ranks::on_ranks, ranks::saved, ranks::share,
    ranks::with_ranks;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
int const teams[] = {1, 2, 3, 4, 7};  // more ranks than tensors at the end

/// What an optimizer says of each of six steps. One is skipped, one follows another rate, and one freezes a group.
template <class Opt, class Model> std::string train(Opt& opt, Model& m, int first, int last) {
  std::string said;
  auto const add = [&](double x) { said += " " + std::to_string(x); };
  for (int t = 0; t < ranks::steps; ++t) {
    if (t == 2)
      if constexpr (requires { opt.matrix_rule(1).lr; }) opt.matrix_rule(1).lr /= 2;
    if (t == 2) opt.group(1).lr /= 2;
    if (t == 4) opt.freeze(1);
    if (t == 5) opt.freeze(1, false);
    auto const set = [&](double factor) {
      m.set(t, first, last, factor);
      if (t == 3) m.gradient[3][5] = ds::narrow<std::remove_cvref_t<decltype(m.gradient[3][5])>>(inf);
    };
    set(1);
    if constexpr (requires { opt.ascend(); }) opt.ascend(), set(0.5);
    opt.step();
    auto const r = opt.report();
    add(r.grad_norm), add(r.clip_factor), add(double(r.step)), said += r.why;
    if (t == 3) for (auto const& one : opt.diagnose()) said += one.name, add(one.norm);
    add(opt.gradient_norm()), add(opt.gradient_norm(ds::group{1})), add(opt.gradient_norm("w3"));
  }
  return said;
}

template <class Value = float, class Gradient = Value, class Rule, class... Ps>
void same_as_whole(Rule const& rule, Ps... policies) {
  model<Value, Gradient> want;
  ds::optimizer whole{share(want), rule, policies...};
  std::string const said = train(whole, want, 0, 1);
  CHECK(has(said, "the gradient of 'w3' is not finite"));
  auto const pieces = saved(whole);
  for (int team : teams) {
    INFO("ranks ", team);
    with_ranks(team, [&](auto& comm) {
      model<Value, Gradient> m;
      ds::optimizer opt{share(m, comm.rank(), team), rule, policies..., ds::model_parallel{comm}};
      CHECK(train(opt, m, 0, 1) == said);
      CHECK(equal_share(m, want, comm.rank(), team));

      // What a rank has saved is what one process has, and a run goes on from it.
      auto const mine = saved(opt);
      for (auto const& one : mine) {
        INFO(one.first);
        CHECK(one.second == pieces.at(one.first));
      }
      model<Value, Gradient> again = m;
      ds::optimizer resumed{share(again, comm.rank(), team), rule, policies..., ds::model_parallel{comm}};
      load(resumed, mine);
      resumed.group(1) = opt.group(1);
      if constexpr (requires { opt.matrix_rule(1); }) resumed.matrix_rule(1) = opt.matrix_rule(1);
      train(opt, m, 1, 2), train(resumed, again, 1, 2);
      CHECK(equal_share(m, again, comm.rank(), team));
    });
  }
}

/// Counts the numbers that a communicator adds up.
struct counting_comm {
  ds::comm::threads::member& of;
  static constexpr bool on_device = false;
  std::int64_t added = 0;

  int rank() const { return of.rank(); }
  int size() const { return of.size(); }
  void abort(std::string const& why) noexcept { of.abort(why); }
  template <class T> void all_reduce(T* to, std::int64_t n) { of.all_reduce(to, n), added += n; }
  template <class T> void reduce_scatter(T const* from, T* to, std::int64_t n) { of.reduce_scatter(from, to, n); }
  template <class T> void all_gather(T const* from, T* to, std::int64_t n) { of.all_gather(from, to, n); }
  template <class T> void all_to_all(T const* from, T* to, std::int64_t n) { of.all_to_all(from, to, n); }
  template <class T> void broadcast(T* data, std::int64_t n, int root) { of.broadcast(data, n, root); }
};

/// A learning rate that throws once `now` is set.
struct throws_when {
  bool const* now;
  double operator()(std::int64_t) const {
    if (*now) throw std::runtime_error("the schedule failed");
    return 0.1;
  }
};

}  // namespace

TEST_CASE("trap 52: any split of a model over ranks gives the bits and the reports of one process") {
  same_as_whole(ds::adamw{.lr = 0.01}, ds::clip_norm{0.5}, ds::gradient_noise{});
  same_as_whole(ds::sgd{.lr = 0.01}, ds::clip<ds::norm::inf, ds::scope::group>{0.5}, ds::skip_nonfinite{});
  same_as_whole(ds::novograd{.lr = 0.01}, ds::clip<ds::norm::l2, ds::scope::tensor>{0.5});
  same_as_whole<double>(ds::prodigy{}, ds::clip_norm{0.5});
  same_as_whole(ds::sgd{.lr = 0.01}, ds::skip_nonfinite{}, ds::sam{.rho = 0.1});
  same_as_whole<ds::half>(ds::lars{.lr = 0.01}, ds::master<float>{}, ds::dynamic_loss_scale{.init = 1}, ds::ema{},
                          ds::accumulate{2}, ds::stochastic_values{});
  same_as_whole(ds::adamw{.lr = 0.01}, ds::matrices{ds::muon{.lr = 0.02}}, ds::clip_norm{0.5});
}

TEST_CASE("trap 52: parts of a tensor are one tensor, with its bits if they are whole chunks; copies count once") {
  constexpr std::size_t n = 3 * 4096 + 17;
  // Part r ends at ends[r].
  auto const trained = [](std::vector<std::size_t> const& ends, double noise = 0.01) {
    std::vector<float> w(n), bias(5 * ends.size(), 1.0f);
    for (std::size_t i = 0; i < n; ++i) w[i] = float(ranks::some(i));
    with_ranks(int(ends.size()), [&](auto& comm) {
      auto const r = std::size_t(comm.rank());
      std::size_t const begin = r ? ends[r - 1] : 0, size = ends[r] - begin;
      std::vector<float> g(size), dbias(5, 0.25f);
      ds::parameters<float> p;
      p.add("layer", w.data() + begin, g.data(), size);
      p.add("bias", bias.data() + 5 * r, dbias.data(), 5);
      p.mark_part("layer"), p.mark_copied("bias");
      ds::optimizer opt{p, ds::lamb{.lr = 0.1}, ds::clip<ds::norm::l2, ds::scope::tensor>{0.5},
                        ds::gradient_noise{noise}, ds::model_parallel{comm}};
      for (int t = 0; t < 3; ++t) {
        for (std::size_t i = 0; i < size; ++i) g[i] = float(ranks::gradient_of(0, t, 0, begin + i));
        opt.step();
      }
    });
    for (std::size_t i = 5; i < bias.size(); ++i) CHECK(bias[i] == bias[i - 5]);
    w.insert(w.end(), bias.begin(), bias.begin() + 5);
    return w;
  };
  auto const want = trained({n});
  CHECK(trained({4096, 4096, 12288, n}) == want);
  CHECK(trained({8192, n}) == want);
  CHECK(trained({0, n}) == want);
  auto const uneven = trained({1000, 7777, n}, 0), exact = trained({n}, 0);
  for (std::size_t i = 0; i < want.size(); ++i) CHECK(std::abs(uneven[i] - exact[i]) < 1e-5f);
}

TEST_CASE("texts of ranks are those of the classic locale, whatever locale the program has set") {
  struct french : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return ' '; }
    std::string do_grouping() const override { return "\3"; }
  };
  auto const told = [] {
    std::string all;
    with_ranks(2, [&](auto& comm) {
      model<float> m;
      ds::optimizer opt{share(m, comm.rank(), 2), ds::adamw{.lr = 0.01}, ds::clip_norm{0.5}, ds::gradient_noise{},
                        ds::model_parallel{comm}};
      m.set(0, 0, 1);
      opt.step();
      std::string const said = opt.explain() + ds::detail::exact(opt.gradient_norm("w3"));
      if (comm.rank() == 0) all = said;
    });
    all += ds::detail::seconds_of(std::chrono::milliseconds(1500));
    return all + ranks::thrown([] { ds::detail::require_fraction("rule", "beta", 1.5); });
  };
  auto const want = told();
  CHECK(has(want, "rule: beta must be in [0, 1), is 1.5"));
  std::locale const before = std::locale::global(std::locale(std::locale::classic(), new french));
  CHECK(told() == want);
  std::locale::global(before);

  // The decimal point of C's functions, if a locale with another one can be made here.
  test::temporary_folder const folder;
  std::string const make = "localedef -i de_DE -f UTF-8 " + (folder / "de_DE.UTF-8") + " >/dev/null 2>&1";
  bool const made = std::system(make.c_str()) == 0 && ::setenv("LOCPATH", folder.path.c_str(), 1) == 0;
  if (made && std::setlocale(LC_NUMERIC, "de_DE.UTF-8")) CHECK(told() == want);
  else MESSAGE("no locale with a decimal comma");
  std::setlocale(LC_NUMERIC, "C");
  ::unsetenv("LOCPATH");
}

TEST_CASE("model_parallel: clip_adaptive clips the rows of the model, wherever their elements are") {
  struct block { std::int64_t row, column, rows, columns; };
  // Each rank of the model has a block of the matrix, and a copy of a small one; two ranks of data share each.
  auto const trained = [](std::vector<block> const& blocks, auto mark) {
    int const parts = int(blocks.size());
    auto const& end = blocks.back();
    std::int64_t const columns = end.column + end.columns;
    std::vector<float> w(std::size_t((end.row + end.rows) * columns)), copies;
    ds::comm::threads models[] = {ds::comm::threads{parts}, ds::comm::threads{parts}};
    std::vector<std::unique_ptr<ds::comm::threads>> datas;
    for (int k = 0; k < parts; ++k) datas.push_back(std::make_unique<ds::comm::threads>(2));
    std::mutex writing;
    with_ranks(2 * parts, [&](auto& comm) {
      int const part = comm.rank() % parts, replica = comm.rank() / parts;
      auto in_model = models[replica].rank(part);
      auto in_data = datas[std::size_t(part)]->rank(replica);
      block const b = blocks[std::size_t(part)];
      std::vector<float> v, g(std::size_t(b.rows * b.columns)), small(12, 0.5f), dsmall(12);
      auto const each = [&](auto const& f) {
        for (std::int64_t i = 0, k = 0; i < b.rows; ++i)
          for (std::int64_t j = 0; j < b.columns; ++j, ++k) f(k, (b.row + i) * columns + b.column + j);
      };
      each([&](auto, auto at) { v.push_back(float(ranks::some(std::size_t(at))) * float(1 + at % columns)); });
      ds::parameters<float> p;
      p.add("small", small.data(), dsmall.data(), ds::shape{3, 4});
      p.add("layer", v.data(), g.data(), ds::shape{b.rows, b.columns});
      mark(p), p.mark_copied("small");
      ds::optimizer opt{p, ds::sgd{.lr = 0.5}, ds::clip_adaptive{.c = 0.01}, ranks::sharded_ordered(in_data),
                        ds::model_parallel{in_model}};
      for (int t = 0; t < 3; ++t) {
        each([&](auto k, auto at) { g[std::size_t(k)] = float(ranks::gradient_of(0, t, replica, std::size_t(at))); });
        for (std::size_t i = 0; i < 12; ++i) dsmall[i] = float(i) - 3;
        opt.step();
      }
      std::lock_guard const lock(writing);
      each([&](auto k, auto at) { w[std::size_t(at)] = v[std::size_t(k)]; });
      copies.insert(copies.end(), small.begin(), small.end());
    });
    for (std::size_t i = 12; i < copies.size(); ++i) CHECK(copies[i] == copies[i - 12]);
    w.insert(w.end(), copies.begin(), copies.begin() + 12);
    return w;
  };
  auto const by_rows = [](auto& p) { p.mark_part("layer"); };
  auto const by_columns = [](auto& p) { p.mark_columns("layer"); };
  auto const want = trained({{0, 0, 200, 64}}, by_rows);
  CHECK(trained({{0, 0, 64, 64}, {64, 0, 128, 64}, {192, 0, 8, 64}}, by_rows) == want);  // whole chunks
  auto const near = [](std::vector<float> const& x, std::vector<float> const& want) {
    REQUIRE(x.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i) CHECK(std::abs(x[i] - want[i]) <= 2e-6f * (1 + std::abs(want[i])));
  };
  near(trained({{0, 0, 77, 64}, {77, 0, 0, 64}, {77, 0, 123, 64}}, by_rows), want);
  near(trained({{0, 0, 200, 40}, {0, 40, 200, 1}, {0, 41, 200, 23}}, by_columns), want);
  near(trained({{0, 0, 3, 5000}, {0, 5000, 3, 4100}}, by_columns), trained({{0, 0, 3, 9100}}, by_columns));
  CHECK(trained({{0, 0, 0, 3}, {0, 3, 0, 5}}, by_columns).size() == 12);  // the matrix is empty
}

TEST_CASE("model_parallel on a grid: ranks of a data group have the same part and add their gradients") {
  auto const check = [](auto const& way) {
    auto const run = [&](int parts, auto const& then) {
      std::vector<model<float>> all;
      for (int r = 0; r < 2 * parts; ++r) all.emplace_back(0);
      std::vector<std::string> said(all.size());
      std::vector<ds::comm::threads> of_model, of_data;
      ds::comm::threads models[] = {ds::comm::threads{parts}, ds::comm::threads{parts}};
      ds::comm::threads datas[] = {ds::comm::threads{2}, ds::comm::threads{2}};
      with_ranks(2 * parts, [&](auto& comm) {
        int const stage = comm.rank() % parts, replica = comm.rank() / parts;
        auto in_model = models[replica].rank(stage);
        auto in_data = datas[stage].rank(replica);
        auto& m = all[std::size_t(comm.rank())];
        ds::optimizer opt{share(m, stage, parts), ds::lamb{.lr = 0.01}, ds::clip_norm{0.5}, way(in_data),
                          ds::model_parallel{in_model}};
        said[std::size_t(comm.rank())] = train(opt, m, replica, replica + 1);
      });
      then(all, said);
    };
    model<float> want;
    std::string report;
    run(1, [&](auto const& all, auto const& said) { want = all[0], report = said[0]; });
    run(2, [&](auto const& all, auto const& said) {
      for (int r = 0; r < 4; ++r) {
        CHECK(equal_share(all[std::size_t(r)], want, r % 2, 2));
        CHECK(said[std::size_t(r)] == report);
      }
    });
  };
  check(ranks::replicated_ordered);
  check(ranks::sharded_ordered);
}

TEST_CASE(
    "model_parallel on a grid: a data rank without examples adds nothing; if all have none, the step is skipped") {
  float const none = std::numeric_limits<float>::quiet_NaN();
  model<float> want(0);
  ds::optimizer alone{want.list(), ds::lamb{.lr = 0.01}, ds::clip_norm{0.5}};
  for (int t = 0; t < 2; ++t) want.set(t, 0, 1), alone.step();
  ds::comm::threads models[] = {ds::comm::threads{2}, ds::comm::threads{2}};
  ds::comm::threads datas[] = {ds::comm::threads{2}, ds::comm::threads{2}};
  with_ranks(4, [&](auto& comm) {
    int const stage = comm.rank() % 2, replica = comm.rank() / 2;
    auto in_model = models[replica].rank(stage);
    auto in_data = datas[stage].rank(replica);
    model<float> m(0);
    ds::optimizer opt{share(m, stage, 2), ds::lamb{.lr = 0.01}, ds::clip_norm{0.5}, ranks::sharded_ordered(in_data),
                      ds::model_parallel{in_model}};
    for (int t = 0; t < 2; ++t) {
      m.set(t, 0, 1, 2);
      if (replica == 1)
        for (auto& g : m.gradient) std::fill(g.begin(), g.end(), none);
      opt.step(replica == 1 ? 0 : 2);
      CHECK(opt.report().applied);
      opt.step(0);
      CHECK(opt.report().why == "there are no examples: the weights since the last update are all 0");
    }
    CHECK(equal_share(m, want, stage, 2));
  });
}

TEST_CASE("trap 53: terms that are infinite on one rank of a model skip the update on all") {
  with_ranks(2, [&](auto& comm) {
    // The step of lars is a ratio of norms: too large for float on rank 1 only.
    float w = comm.rank() ? 1e19f : 1, g = comm.rank() ? 1e-19f : 1;
    ds::parameters<float> p;
    p.add(comm.rank() ? "second" : "first", &w, &g, 1);
    ds::optimizer opt{p, ds::lars{.lr = 10, .trust = 10}, ds::model_parallel{comm}};
    float const before = w;
    opt.step();
    CHECK(w == before);
    CHECK(opt.report().skipped == 1);
    CHECK(has(opt.report().why, "'second'"));

    // The step of muon grows with rows over columns.
    std::vector<float> m(400, 1.0f), dm(400, 0.5f);
    ds::parameters<float> q;
    q.add(comm.rank() ? "tall" : "square", m.data(), dm.data(), ds::shape{comm.rank() ? 200 : 2, 2});
    ds::optimizer of_matrices{q, ds::sgd{}, ds::matrices{ds::muon{}}, ds::skip_nonfinite{}, ds::model_parallel{comm}};
    of_matrices.matrix_rule().lr = 1e38;
    of_matrices.step();
    CHECK(m == std::vector<float>(400, 1.0f));
    CHECK(has(of_matrices.report().why, "'tall'"));
  });
}

TEST_CASE("model_parallel: without norm, sums and checks ranks exchange nothing in a step") {
  with_ranks(2, [&](auto& comm) {
    counting_comm counts{comm};
    model<float> m;
    auto const p = share(m, comm.rank(), 2);
    ds::optimizer opt{p, ds::adamw{}, ds::model_parallel{counts}};
    m.set(0, 0, 1);
    opt.step();
    CHECK(counts.added == 0);
    CHECK(has(opt.explain(), "rank " + std::to_string(comm.rank()) + " of 2 of a model: a step exchanges nothing"));
    opt.gradient_norm();
    CHECK(counts.added == 8 + 2);  // a sum of each chunk, and who is in which call
  });
}

TEST_CASE("model_parallel: what is no model is refused on all ranks, with names and ranks") {
  float w[8] = {}, g[8] = {};
  auto const refused = [&](auto const& add, auto const& part, auto const& rule) {
    ds::comm::threads world{2, std::chrono::seconds(60)};
    auto const why = on_ranks(world, [&](auto& comm) {
      ds::parameters<float> p;
      add(p, comm.rank());
      ds::optimizer opt{p, rule(comm.rank()), ds::matrices{ds::muon{}}, ds::clip_norm{part(comm.rank())},
                        ds::model_parallel{comm}};
    });
    CHECK(why[0] == why[1]);
    return why[0];
  };
  auto const same = [](int) { return ds::sgd{}; };
  auto const one = [](int) { return 1.0; };
  auto const named = [&](auto const& mark) {
    return [&, mark](auto& p, int r) {
      p.add("a", w, g, r + 4);
      mark(p, r);
    };
  };
  CHECK(
      refused(named([](auto&, int) {}), one, same) ==
      "model_parallel: parameter 'a' is on ranks 0 and 1: mark it by mark_copied(), mark_part() or mark_columns(), or "
      "rename one");
  CHECK(has(refused(named([](auto& p, int r) { r ? p.mark_part("a") : p.mark_copied("a"); }), one, same),
            "is marked as copied on the first and as a part on the second"));
  CHECK(has(refused(named([](auto& p, int) { p.mark_copied("a"); }), one, same),
            "as copies, but with 4 elements in rows of 1 and 5 in rows of 1"));
  CHECK(has(refused([&](auto& p, int) { p.add("m", w, g, ds::shape{4, 2}), p.mark_part("m"); }, one, same),
            "'m' is a part, but a matrix rule updates whole matrices"));
  CHECK(has(refused([&](auto& p, int) { p.add("m", w, g, ds::shape{4, 2}), p.mark_columns("m"); }, one, same),
            "'m' is a part, but a matrix rule updates whole matrices"));
  auto const cut = [&](auto const& mark) {
    return [&, mark](auto& p, int r) { p.add("row", w, g, ds::shape{1, 4 + r}), mark(p); };
  };
  CHECK(has(refused(cut([](auto& p) { p.mark_part("row"); }), one, same),
            "'row' is on ranks 0 and 1 as parts with rows of 4 and of 5 elements: mark it by mark_columns()"));
  CHECK(has(refused(named([](auto& p, int) { p.mark_columns("a"); }), one, same), "as columns of 4 and of 5 rows"));
  CHECK(has(refused([&](auto& p, int r) { p.add(r ? "b" : "a", w, g, 3, ds::group{r}); }, one, same),
            "1 groups (rank 0); 2 groups (rank 1)"));
  auto const distinct = [&](auto& p, int r) { p.add(r ? "b" : "a", w, g, 3); };
  CHECK(has(refused(distinct, [](int r) { return 1.0 + r; }, same), "max"));
  CHECK(has(refused(distinct, one, [](int r) { return ds::sgd{.lr = 0.1 + r}; }),
            "lr of group 0 is 0.1 (rank 0); lr of group 0 is 1.1 (rank 1)"));
  CHECK(ranks::thrown<std::invalid_argument>([&] { ds::parameters<float>{}.mark_part("x"); }) ==
        "there is no parameter 'x' to mark");
}

TEST_CASE("model_parallel: a rank that fails or is in another call ends the step of all, and nothing is half applied") {
  auto const run = [](auto const& work) {
    ds::comm::threads world{3, std::chrono::seconds(60)};
    std::vector<int> unchanged(3);
    auto const why = on_ranks(world, [&](auto& comm) {
      model<float> m;
      bool fails = false;
      ds::optimizer opt{share(m, comm.rank(), 3), ds::sgd{}, ds::learning_rate(throws_when{&fails}), ds::clip_norm{1.0},
                        ds::accumulate{1}, ds::model_parallel{comm}};
      m.set(0, 0, 1);
      opt.step(), opt.step(2);
      model<float> const before = m;
      try {
        work(opt, comm.rank(), fails);
      } catch (...) {
        unchanged[std::size_t(comm.rank())] = m == before && opt.report().step == 2;
        CHECK(has(ranks::thrown([&] { opt.step(); }), "lost its ranks"));
        throw;
      }
    });
    CHECK(unchanged == std::vector<int>{1, 1, 1});
    return why;
  };
  auto const failed = run([](auto& opt, int rank, bool& fails) {
    fails = rank == 1;
    opt.step();
  });
  CHECK(failed[1] == "the schedule failed");
  CHECK(has(failed[0], "rank 1: the schedule failed"));
  auto const other = run([](auto& opt, int rank, bool&) {
    if (rank == 2) opt.gradient_norm();
    else opt.step();
  });
  CHECK(has(other[2], "in gradient_norm(), but ranks differ: step() (rank 0, 1); gradient_norm() (rank 2)"));
  auto const changed = run([](auto& opt, int rank, bool&) {
    if (rank == 0) opt.group(1).weight_decay = 0.5;
    opt.commit_groups();
    opt.gradient_norm();
  });
  CHECK(has(changed[0], "ranks differ: weight_decay of group 1 is 0.5 (rank 0); weight_decay of group 1 is "));
  auto const weighed = run([](auto& opt, int rank, bool&) { opt.step(rank == 1 ? 2 : 1); });
  CHECK(has(weighed[1], "in step(), but ranks differ: the weight is 1 (rank 0, 2); the weight is 2 (rank 1)"));
}
