// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/minimizers/esgd.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/clip.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/sgd.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

/// ESGD (Cui et al. 2018) against a second implementation, and its laws.

namespace ds = descent;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Rastrigin's function, 10 n + sum x^2 - 10 cos(2 pi x). Its minimum is 0 at 0; other minima are near all integers.
struct rastrigin {
  static double value(double x) { return 10 + x * x - 10 * std::cos(2 * std::numbers::pi * x); }
  static double slope(double x) { return 2 * x + 20 * std::numbers::pi * std::sin(2 * std::numbers::pi * x); }
};
struct square {
  static double value(double x) { return x * x / 2; }
  static double slope(double x) { return x; }
};

/// Two tensors, and the sum of the function over their elements.
template <class Function, class Value = double> struct problem {
  std::vector<Value> x, y, gx, gy;
  problem(std::size_t n, std::size_t m, double start)
      : x(n, ds::narrow<Value>(start)), y(m, ds::narrow<Value>(-start)), gx(n), gy(m) {}
  ds::parameters<Value> list() {
    ds::parameters<Value> all;
    all.add("x", x.data(), gx.data(), x.size());
    all.add("y", y.data(), gy.data(), y.size());
    return all;
  }
  std::vector<double> all() const {
    std::vector<double> v;
    for (auto e : x) v.push_back(ds::widen<double>(e));
    for (auto e : y) v.push_back(ds::widen<double>(e));
    return v;
  }
  double fitness() const {
    double f = 0;
    for (double e : all()) f += Function::value(e);
    return f;
  }
  void gradients() {
    for (std::size_t i = 0; i < x.size(); ++i) gx[i] = ds::narrow<Value>(Function::slope(ds::widen<double>(x[i])));
    for (std::size_t i = 0; i < y.size(); ++i) gy[i] = ds::narrow<Value>(Function::slope(ds::widen<double>(y[i])));
  }
  auto trainer(int steps) {
    return [this, steps](auto& opt) {
      for (int s = 0; s < steps; ++s) gradients(), opt.step();
    };
  }
};

std::vector<ds::sgd> const some_rules{{.lr = 1e-3}, {.lr = 3e-3}, {.lr = 10}};  // the last one diverges

auto const nothing = [](auto&) {};
auto const go_on = [](ds::esgd_result const&) { return true; };

/// Algorithm 1 of the paper for sgd without momentum, line by line, on vectors of doubles, with the library's random
/// numbers. Line numbers count the paper's statements from "Initialize population" on.
template <class Function> struct by_the_paper {
  using vector = std::vector<double>;
  struct one {
    vector theta;
    double f;
  };
  ds::esgd set;
  std::size_t n;  // elements of the first tensor; the second starts at the next multiple of 64
  std::vector<one> psi;
  std::vector<std::array<double, 3>> history;  // best, mean, backed off

  static double F(vector const& theta) {
    double f = 0;
    for (double e : theta) f += Function::value(e);
    return f;
  }
  std::uint64_t word(std::int64_t k, std::int64_t j, int stream, int i) const {
    return ds::detail::random_at(set.seed, k * 65536 + j, i, stream).word[0];
  }
  double normal(std::int64_t k, std::int64_t j, std::size_t element) const {
    std::size_t const place = element < n ? element : (n + 63) / 64 * 64 + (element - n);
    float z[8];
    ds::detail::normals(z, set.seed, k * 65536 + j, std::int64_t(place / 8), 244);
    return z[place % 8];
  }

  vector run(vector const& start, std::vector<ds::sgd> const& rules, int steps) {
    for (int j = 0; j < set.population; ++j) {  // 1: initialize the population
      vector theta = start;
      for (std::size_t e = 0; e < theta.size() && j > 0; ++e) theta[e] += set.spread * normal(0, j, e);
      psi.push_back({theta, F(theta)});
    }
    double sigma = set.deviation;
    for (int k = 1; k <= set.generations; ++k, sigma *= set.annealing) {  // 2: K generations
      int backed_off = 0;
      for (int j = 0; j < set.population; ++j) {  // 4: for each individual
        double const lr = rules[word(k, j, 248, 0) * rules.size() >> 32].lr;  // 5, 6: an optimizer and its settings
        vector theta = psi[std::size_t(j)].theta;
        for (int s = 0; s < steps; ++s)  // 7, 8: SGD
          for (double& e : theta) e = e - lr * Function::slope(e);
        double const f = F(theta);
        if (f <= psi[std::size_t(j)].f) psi[std::size_t(j)] = {theta, f};
        else ++backed_off;  // 9: if the fitness degrades, back off
      }
      std::vector<one> both = psi;
      for (int i = 0; i < set.offspring; ++i) {  // 13: offspring
        std::vector<int> left;
        for (int j = 0; j < set.population; ++j) left.push_back(j);
        vector theta(start.size());
        for (int r = 0; r < set.parents; ++r) {
          std::size_t const at = word(k, i, 246, r) * left.size() >> 32;
          for (std::size_t e = 0; e < theta.size(); ++e) theta[e] += psi[std::size_t(left[at])].theta[e];
          left[at] = left.front();
          left.erase(left.begin());
        }
        for (std::size_t e = 0; e < theta.size(); ++e) theta[e] = theta[e] / set.parents + sigma * normal(k, i, e);
        both.push_back({theta, F(theta)});
      }
      std::vector<one> next;  // 14, 15: sort, and the m best
      for (std::size_t i = 0; i < both.size(); ++i)
        for (std::size_t j = i; j > 0 && !(both[j - 1].f <= both[j].f); --j) std::swap(both[j - 1], both[j]);
      for (int i = 0; i < set.elite; ++i) next.push_back(both[std::size_t(i)]);
      both.erase(both.begin(), both.begin() + set.elite);
      for (int i = set.elite; i < set.population; ++i) {  // 16: mu - m of the others, at random
        std::size_t const at = ds::detail::random_at(set.seed, k, i, 247).word[0] * std::uint64_t(both.size()) >> 32;
        next.push_back(both[at]);
        both[at] = both.front();
        both.erase(both.begin());
      }
      psi = next;
      double mean = 0;
      for (one const& x : psi) mean += x.f / set.population;
      history.push_back({psi.front().f, mean, double(backed_off)});
    }
    return psi.front().theta;
  }
};

}  // namespace

TEST_CASE("esgd is the paper's algorithm 1, by a second implementation with the same random numbers") {
  struct {
    int population, offspring, parents, elite;
    double deviation;
  } const rows[] = {{6, 9, 3, 2, 0.5}, {5, 7, 2, 1, 0.4}, {5, 7, 2, 5, 0.4}, {4, 40, 4, 3, 0}, {3, 2, 1, 1, 1}};
  for (auto const& row : rows)
    for (std::uint64_t seed : {1, 2, 3, 40}) {
      INFO("population ", row.population, ", parents ", row.parents, ", elite ", row.elite, ", seed ", seed);
      problem<rastrigin> p(5, 13, 3.3);
      ds::esgd const set{.population = row.population, .offspring = row.offspring, .parents = row.parents,
                         .elite = row.elite, .generations = 12, .deviation = row.deviation, .annealing = 0.5,
                         .spread = 0.2, .seed = seed};
      by_the_paper<rastrigin> paper{set, 5, {}, {}};
      auto const want = paper.run(p.all(), some_rules, 4);
      ds::esgd_optimizer opt{p.list(), some_rules, set};
      std::size_t k = 0;
      auto const r = opt.minimize(p.trainer(4), [&] { return p.fitness(); }, [&](ds::esgd_result const& now) {
        auto const& [best, mean, backed_off] = paper.history[k++];
        CHECK(now.best == best);
        CHECK(now.mean == doctest::Approx(mean).epsilon(1e-12));
        CHECK(now.backed_off == backed_off);
        CHECK(now.generations == int(k));
        return true;
      });
      CHECK(k == 12);
      CHECK(p.all() == want);
      CHECK(r.evaluations == row.population + 12 * (row.population + row.offspring));
    }
}

TEST_CASE("esgd: best fitness and the mean of the elite never degrade, also where training diverges") {
  int backed_off = 0;
  for (double lr : {1e-3, 1.0, 1e200})
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      problem<rastrigin> p(3, 4, 2.6);
      ds::esgd_optimizer opt{p.list(), std::vector{ds::sgd{.lr = lr}},
                             ds::esgd{.generations = 15, .deviation = 0.3, .seed = seed}};
      double best = p.fitness(), elite = infinity, lowest = infinity;
      auto const r = opt.minimize(
          p.trainer(5),
          [&] {
            double const f = p.fitness();
            if (f < lowest) lowest = f;
            return f;
          },
          [&](ds::esgd_result const& now) {
            CHECK(now.best <= best);
            CHECK(now.elite_mean <= elite);
            CHECK(now.best == lowest);
            CHECK(now.elite_mean >= now.best);
            best = now.best;
            elite = now.elite_mean;
            backed_off += now.backed_off;
            return true;
          });
      CHECK(p.fitness() == r.best);
      CHECK(r.best == lowest);
    }
  CHECK(backed_off > 12 * 15);
}

TEST_CASE("esgd: what training made worse or NaN is restored bit for bit") {
  auto const works = []<class Value>(Value) {
    std::vector<double> const start{-0.0, 1e-7, -3, 65504, 0.1, 0, 7};
    for (double ruin : {1e4, std::nan(""), infinity}) {
      std::vector<Value> x, g(start.size());
      for (double s : start) x.push_back(ds::narrow<Value>(s));
      auto const before = x;
      ds::parameters<Value> list;
      list.add("x", x.data(), g.data(), x.size());
      ds::esgd_optimizer opt{list, std::vector{ds::sgd{}},
                             ds::esgd{.population = 1, .offspring = 1, .parents = 1, .elite = 1, .generations = 3}};
      auto const same = [&] { return std::memcmp(x.data(), before.data(), x.size() * sizeof(Value)) == 0; };
      auto const r = opt.minimize(
          [&](auto&) {
            CHECK(same());
            x.assign(x.size(), ds::narrow<Value>(ruin));
          },
          [&] { return same() ? 0.0 : ds::widen<double>(x[0]) + 1; },
          [](ds::esgd_result const& now) { return now.backed_off == 1; });
      CHECK(r.generations == 3);
      CHECK(r.best == 0);
      CHECK(same());
    }
  };
  works(0.0);
  works(0.f);
  works(ds::half{});
  works(ds::bfloat16{});
}

TEST_CASE("esgd: mutations are normal with the stated deviation, annealed, and each different") {
  std::size_t const n = 20000;
  problem<square, float> p(n, 0, 3);
  ds::esgd_optimizer opt{p.list(), some_rules,
                         ds::esgd{.population = 1, .offspring = 4, .parents = 1, .elite = 1, .generations = 3,
                                  .deviation = 0.25, .annealing = 0.5, .seed = 7}};
  std::vector<std::vector<float>> z;
  int call = 0;
  std::vector<double> deviations;
  opt.minimize(
      nothing,
      [&] {
        if (call++ > 0 && call % 5 != 2) z.push_back(p.x);  // not at the start and not after training
        return 1.0;
      },
      [&](ds::esgd_result const& r) { return deviations.push_back(r.deviation), true; });
  CHECK(deviations == std::vector{0.25, 0.125, 0.0625});
  REQUIRE(z.size() == 12);
  for (std::size_t i = 0; i < z.size(); ++i) {
    double const sigma = deviations[i / 4];
    double m1 = 0, m2 = 0, m4 = 0;
    for (float& e : z[i]) {
      e = float((e - 3) / sigma);
      m1 += e / double(n), m2 += double(e) * e / double(n), m4 += std::pow(double(e), 4) / double(n);
    }
    CHECK(std::abs(m1) < 4 / std::sqrt(double(n)));
    CHECK(std::abs(m2 - 1) < 4 * std::sqrt(2.0 / double(n)));
    CHECK(std::abs(m4 - 3) < 4 * std::sqrt(96.0 / double(n)));
    for (std::size_t j = 0; j < i; ++j) {
      double product = 0;
      for (std::size_t e = 0; e < n; ++e) product += double(z[i][e]) * z[j][e] / double(n);
      CHECK(std::abs(product) < 4.5 / std::sqrt(double(n)));
    }
  }
}

TEST_CASE("esgd: the first population is the start, and copies with the deviation `spread` or what initialize makes") {
  problem<square> p(5000, 0, 2);
  std::vector<std::vector<double>> all;
  ds::esgd const set{.population = 3, .offspring = 1, .parents = 1, .elite = 1, .generations = 1, .spread = 0.5};
  ds::esgd_optimizer opt{p.list(), some_rules, set};
  opt.minimize(nothing, [&] { return all.push_back(p.all()), p.fitness(); });
  CHECK(all[0] == std::vector<double>(5000, 2));
  for (std::size_t i : {1, 2}) {
    double square = 0;
    for (double e : all[i]) square += (e - 2) * (e - 2) / 5000;
    CHECK(square == doctest::Approx(0.25).epsilon(0.08));
  }
  CHECK(all[1] != all[2]);

  all.clear();
  p.x.assign(5000, 2);
  std::vector<int> asked;
  opt.minimize(nothing, [&] { return all.push_back(p.all()), p.fitness(); }, go_on, [&](int i) {
    CHECK(p.x == std::vector<double>(5000, 2));
    asked.push_back(i);
    p.x.assign(5000, 10.0 + i);
  });
  CHECK(asked == std::vector{1, 2});
  CHECK(all[0] == std::vector<double>(5000, 2));
  CHECK(all[1] == std::vector<double>(5000, 11));
  CHECK(all[2] == std::vector<double>(5000, 12));
}

TEST_CASE("esgd stops for every reason there is, and says so") {
  auto const run = [](ds::esgd set, auto progress) {
    problem<square> p(3, 3, 2);
    ds::esgd_optimizer opt{p.list(), std::vector{ds::sgd{.lr = 0.1}}, set};
    return opt.minimize(p.trainer(1), [&] { return p.fitness(); }, progress);
  };
  auto r = run({.generations = 3}, go_on);
  CHECK(r.why == ds::esgd_stop::generations);
  CHECK(r.generations == 3);
  CHECK(r.reason() == "all generations are complete");
  r = run({.generations = 100, .target = 1}, go_on);
  CHECK(r.why == ds::esgd_stop::target);
  CHECK(r.best <= 1);
  CHECK(r.generations > 1);
  CHECK(r.generations < 100);
  CHECK(r.reason() == "the best fitness reached the target");
  CHECK(run({.target = 1e9}, go_on).generations == 0);
  r = run({}, [](ds::esgd_result const& now) { return now.generations < 2; });
  CHECK(r.why == ds::esgd_stop::callback);
  CHECK(r.generations == 2);
  CHECK(r.reason() == "the callback requested it");

  problem<square> p(3, 3, 2);
  ds::esgd_optimizer still{p.list(), some_rules, ds::esgd{.generations = 100, .patience = 4}};
  int call = 0;
  r = still.minimize(nothing, [&] { return ++call <= 8 + 3 * 24 ? 100.0 - call : 50; });  // better 3 times
  CHECK(r.why == ds::esgd_stop::patience);
  CHECK(r.generations == 7);
  CHECK(r.reason() == "the best fitness did not improve for `patience` generations");

  auto const before = p.x = {2, 3, 4};
  int trained = 0;
  r = still.minimize([&](auto&) { ++trained; }, [&] { return std::nan(""); });
  CHECK(r.why == ds::esgd_stop::not_finite);
  CHECK(r.reason() == "no individual has a finite fitness");
  CHECK(r.best == infinity);
  CHECK(r.evaluations == 8);
  CHECK(trained == 0);
  CHECK(p.x == before);
}

TEST_CASE("esgd: NaN and infinities of either sign are worse than anything finite") {
  for (double bad : {std::nan(""), infinity, -infinity}) {
    problem<square> p(2, 2, 2);
    ds::esgd_optimizer opt{p.list(), some_rules, ds::esgd{.deviation = 1, .spread = 1}};
    int call = 0;
    auto const fitness = [&] { return ++call % 3 == 0 ? p.fitness() : bad; };
    auto const r = opt.minimize(p.trainer(1), fitness, [&](ds::esgd_result const& now) {
      CHECK(std::isfinite(now.best));
      CHECK(std::isfinite(now.mean));
      return true;
    });
    CHECK(p.fitness() == r.best);
  }
}

TEST_CASE("esgd: what is not finite after training is restored, also if it was not finite before") {
  problem<square> p(2, 2, 2);
  ds::esgd_optimizer opt{p.list(), some_rules, ds::esgd{.generations = 3}};
  int call = 0;
  opt.minimize(p.trainer(1), [&] { return ++call == 1 ? 1 : std::nan(""); }, [](ds::esgd_result const& now) {
    CHECK(now.backed_off == 8);
    CHECK(now.best == 1);
    CHECK(now.mean == 1);
    CHECK(now.elite_mean == infinity);
    return true;
  });
}

TEST_CASE("esgd: a seed gives the same bits again, on one thread and many; another gives others") {
  auto const run = [](std::uint64_t seed, auto backend) {
    problem<rastrigin, float> p(30000, 5000, 1.4);
    ds::esgd_optimizer opt{p.list(), some_rules,
                           ds::esgd{.population = 3, .offspring = 3, .elite = 1, .generations = 2, .seed = seed},
                           backend};
    opt.minimize(p.trainer(1), [&] { return p.fitness(); });
    return p.all();
  };
  auto const a = run(1, ds::host<>{});
  CHECK(a == run(1, ds::host<>{}));
  CHECK(a == run(1, ds::host<ds::cpp>{}));
  CHECK(a != run(2, ds::host<>{}));
}

TEST_CASE("esgd: a second call starts from the best of the first, also if the optimizer was moved to itself") {
  problem<rastrigin> p(3, 3, 1.4);
  ds::esgd_optimizer opt{p.list(), some_rules, ds::esgd{.generations = 3, .deviation = 0.5}};
  auto& same = opt;
  opt = std::move(same);
  auto const a = opt.minimize(p.trainer(2), [&] { return p.fitness(); });
  int calls = 0;
  auto const b = opt.minimize(p.trainer(2), [&] {
    if (++calls == 1) CHECK(p.fitness() == a.best);
    return p.fitness();
  });
  CHECK(b.best <= a.best);
  CHECK(b.evaluations == calls);
}

TEST_CASE("esgd: rules of several types, each drawn as often as the others, each with the policies") {
  problem<square> p(4, 4, 1);
  using rule = std::variant<ds::sgd, ds::adamw>;
  std::vector<rule> const rules{ds::sgd{.lr = 1e-2}, ds::adamw{.lr = 1e-2}, ds::adamw{.lr = 2e-2}};
  ds::esgd_optimizer opt{p.list(), rules, ds::esgd{.generations = 100}, ds::clip_norm{1e-3}, ds::host<ds::cpp>{}};
  int drawn[3] = {};
  opt.minimize(
      [&](auto& one) {
        p.gradients();
        one.step();
        CHECK(one.report().step == 1);  // a new one
        CHECK(one.report().clip_factor < 1);
        auto const& r = one.group(0);
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(r)>, ds::sgd>) ++drawn[0];
        else ++drawn[r.lr == 1e-2 ? 1 : 2];
      },
      [&] { return p.fitness(); });
  CHECK(drawn[0] + drawn[1] + drawn[2] == 800);
  for (int n : drawn) CHECK(std::abs(n - 800 / 3.0) < 4 * std::sqrt(800 * 2 / 9.0));
}

TEST_CASE("esgd in float, half and bfloat16, and in several types at once: the values are the best, bit for bit") {
  auto const works = []<class Value>(Value) {
    problem<square, Value> p(5, 70, 2);
    double const start = p.fitness();
    ds::esgd_optimizer opt{p.list(), std::vector{ds::sgd{.lr = 0.3}}, ds::esgd{.deviation = 0.1}};
    std::vector<double> best;
    double lowest = infinity;
    auto const r = opt.minimize(p.trainer(2), [&] {
      double const f = p.fitness();
      if (f < lowest) lowest = f, best = p.all();
      return f;
    });
    CHECK(r.best < 1e-2 * start);
    CHECK(p.fitness() == r.best);
    CHECK(p.all() == best);
    CHECK(opt.memory().bytes == 24 * (64 + 128) * std::int64_t(sizeof(Value)));
    CHECK(opt.memory().parameters == 75);
  };
  works(0.f);
  works(ds::half{});
  works(ds::bfloat16{});

  std::vector<ds::half> a(3, ds::half(2.f)), ga(3);
  std::vector<double> b(66, -2), gb(66);
  ds::parameters<ds::mixed<ds::half, double>> list;
  list.add("a", a.data(), ga.data(), 3);
  list.add("b", b.data(), gb.data(), 66);
  ds::esgd_optimizer opt{list, std::vector{ds::adamw{.lr = 0.1, .weight_decay = 0}}, ds::esgd{.deviation = 0.1}};
  auto const fitness = [&] {
    double f = 0;
    for (auto e : a) f += ds::widen<double>(e) * ds::widen<double>(e);
    for (double e : b) f += e * e;
    return f;
  };
  auto const r = opt.minimize(
      [&](auto& one) {
        for (int s = 0; s < 3; ++s) {
          ga = a, gb = b;
          one.step();
        }
      },
      fitness);
  CHECK(fitness() == r.best);
  CHECK(r.best < 0.1 * 276);
  CHECK(std::abs(ds::widen<double>(a[0])) < 1);
  CHECK(opt.memory().bytes == 24 * (64 + 128) * 8);
}

TEST_CASE("esgd: an exception leaves the best individual so far, or the start") {
  struct stop {};
  for (int where = 0; where < 3; ++where)
    for (int when : {1, 2, 9, 20, 33, 50}) {
      INFO(where, ", call ", when);
      problem<rastrigin> p(2, 3, 1.6);
      auto const start = p.all();
      ds::esgd_optimizer opt{p.list(), some_rules, ds::esgd{.generations = 50, .deviation = 0.5}};
      int calls[3] = {};
      std::vector<double> best = start;
      double lowest = infinity;
      auto const throws = [&](int w) {
        if (w == where && ++calls[w] == when) {
          p.x[0] = 77;
          throw stop{};
        }
      };
      CHECK_THROWS_AS(opt.minimize(
                          [&](auto& one) {
                            p.trainer(2)(one);
                            throws(0);
                          },
                          [&] {
                            throws(1);
                            double const f = p.fitness();
                            if (f < lowest) lowest = f, best = p.all();
                            return f;
                          },
                          [&](auto const&) { return throws(2), true; }),
                      stop);
      CHECK(p.all() == best);
    }
}

TEST_CASE("esgd: an exception of initialize leaves the start, where nothing better was found") {
  problem<square> p(2, 2, 1);
  auto const start = p.all();
  ds::esgd_optimizer opt{p.list(), some_rules};
  CHECK_THROWS_AS(opt.minimize(nothing, [&] { return p.fitness(); }, go_on,
                               [&](int) {
                                 p.x[0] = 9;
                                 throw 1;
                               }),
                  int);
  CHECK(p.all() == start);
}

TEST_CASE("esgd finds the minimum of Rastrigin's function, from where each of its rules stays in another") {
  ds::esgd const set{.population = 10, .offspring = 30, .parents = 2, .elite = 5, .generations = 80, .deviation = 1,
                     .annealing = 0.95, .spread = 0};
  std::vector<ds::sgd> const rules{{.lr = 1e-3}, {.lr = 2e-3}};
  for (ds::sgd const& rule : rules) {
    problem<rastrigin> alone(1, 1, 3.2);
    ds::optimizer opt{alone.list(), rule};
    for (int t = 0; t < 20 * 80 * 10; ++t) alone.gradients(), opt.step();  // the steps of all individuals together
    CHECK(alone.fitness() > 15);
  }
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    problem<rastrigin> p(1, 1, 3.2);
    auto settings = set;
    settings.seed = seed;
    ds::esgd_optimizer opt{p.list(), rules, settings};
    CHECK(opt.minimize(p.trainer(20), [&] { return p.fitness(); }).best < 1e-9);
  }
}

TEST_CASE("esgd: bad input is refused before anything is touched") {
  problem<square> p(2, 2, 1);
  auto const make = [&](ds::esgd set, std::vector<ds::sgd> rules = some_rules) {
    ds::esgd_optimizer opt{p.list(), rules, set};
  };
  using bad = std::invalid_argument;
  CHECK_THROWS_WITH_AS(make({.population = 0}), "esgd: population must be in [1, 65536], is 0", bad);
  CHECK_THROWS_WITH_AS(make({.offspring = 65537}), "esgd: offspring must be in [1, 65536], is 65537", bad);
  CHECK_THROWS_WITH_AS(make({.parents = 9}), "esgd: parents must be in [1, population], is 9", bad);
  CHECK_THROWS_WITH_AS(make({.parents = 0}), "esgd: parents must be in [1, population], is 0", bad);
  CHECK_THROWS_WITH_AS(make({.elite = 0}), "esgd: elite must be in [1, population], is 0", bad);
  CHECK_THROWS_WITH_AS(make({.elite = 9}), "esgd: elite must be in [1, population], is 9", bad);
  CHECK_THROWS_WITH_AS(make({.generations = 0}), "esgd: generations must be at least 1, is 0", bad);
  CHECK_THROWS_WITH_AS(make({.deviation = -1}), "esgd: deviation must be finite and at least 0, is -1", bad);
  CHECK_THROWS_WITH_AS(make({.annealing = 1.5}), "esgd: annealing must be in (0, 1], is 1.5", bad);
  CHECK_THROWS_WITH_AS(make({.annealing = 0}), "esgd: annealing must be in (0, 1], is 0", bad);
  CHECK_THROWS_WITH_AS(make({.spread = infinity}), "esgd: spread must be finite and at least 0, is inf", bad);
  CHECK_THROWS_AS(make({.target = std::nan("")}), bad);
  CHECK_THROWS_WITH_AS(make({.patience = -1}), "esgd: patience must be at least 0, is -1", bad);
  CHECK_THROWS_WITH_AS(make({}, {}), "esgd: the number of rules must be at least 1, is 0", bad);
  CHECK_THROWS_WITH_AS(make({}, {{}, {.lr = -1}}), "rule 1: sgd: lr must be finite and at least 0, is -1", bad);
  CHECK_THROWS_AS(ds::esgd_optimizer(p.list(), some_rules, ds::esgd{}, ds::clip_norm{-1}), bad);
  ds::parameters<float> empty;
  CHECK_THROWS_WITH_AS(ds::esgd_optimizer(empty, some_rules), "esgd: the number of elements must be at least 1, is 0",
                       bad);
  empty.add("empty", static_cast<float*>(nullptr), static_cast<float*>(nullptr), 0);
  CHECK_THROWS_AS(ds::esgd_optimizer(empty, some_rules), bad);
  CHECK(p.all() == std::vector<double>{1, 1, -1, -1});
}

TEST_CASE("esgd as the page on optimizers shows it") {
  // snippet: esgd
  std::vector<double> x{3.2, -3.2}, g(2);  // a valley of its own, with many between here and the minimum at 0
  descent::parameters<double> params;
  params.add("x", x.data(), g.data(), x.size());
  double const turn = 2 * std::numbers::pi;

  using rule = std::variant<descent::sgd, descent::adamw>;
  std::vector<rule> const rules{descent::sgd{.lr = 1e-3}, descent::adamw{.lr = 1e-2}};
  descent::esgd_optimizer opt{params, rules, descent::esgd{.population = 10, .offspring = 30, .generations = 80,
                                                           .deviation = 1, .annealing = 0.95, .target = 1e-6}};
  auto const result = opt.minimize(
      [&](auto& optimizer) {
        for (int step = 0; step < 20; ++step) {
          for (std::size_t i = 0; i < x.size(); ++i) g[i] = 2 * x[i] + 10 * turn * std::sin(turn * x[i]);
          optimizer.step();
        }
      },
      [&] {
        double f = 0;
        for (double e : x) f += 10 + e * e - 10 * std::cos(turn * e);
        return f;
      });
  // result.reason(): "the best fitness reached the target"
  // end
  CHECK(result.best <= 1e-6);
  CHECK(result.reason() == "the best fitness reached the target");
}
