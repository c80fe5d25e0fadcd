// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Compares a rule of your own with rules of the library, over learning rates and seeds: `compare_rule --help`. Change
// my_rule below, or include the header of your rule in its place.
#include "learn/seeds.hpp"
#include "parts/arguments.hpp"
#include "parts/chart.hpp"
#include "parts/output.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace ds = descent;
namespace learn = example::learn;

namespace {

// snippet: my_rule
/// RMSprop without squares:   v <- b v + (1 - b) |g|     p <- p - lr g / (v + eps)
struct my_rule {
  double lr = 1e-3, beta = 0.9, eps = 1e-8;

  template <class Real> struct state { Real v; };
  template <class Real> struct terms { Real lr, b, a, eps; };
  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, beta, 1 - beta, eps}; }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using ds::abs;
    s.v = k.b * s.v + k.a * abs(g);
    return p - k.lr * g / (s.v + k.eps);
  }
};
// end

/// The percentage of test digits that a run with this rate reads right.
using trial = std::function<double(learn::settings const&, double lr)>;

struct contestant {
  std::string name;
  trial accuracy;
};

template <class Rule> contestant with_rates(std::string const& name, Rule const& rule) {
  return {name, [rule](learn::settings const& s, double lr) {
            return learn::train(s, rule, ds::learning_rate(ds::cosine{.peak = lr, .steps = s.steps})).accuracy;
          }};
}

std::vector<contestant> const& library() {
  static std::vector<contestant> const all{with_rates("sgd", ds::sgd{.momentum = 0.9}),
                                           with_rates("rmsprop", ds::rmsprop{}), with_rates("adam", ds::adam{}),
                                           with_rates("adamw", ds::adamw{}), with_rates("lion", ds::lion{})};
  return all;
}

// ---- the command line

struct options {
  std::vector<contestant> against;
  std::vector<double> rates;
  std::uint64_t seeds = 5;
  int steps = 300;
  std::string picture = "compare_rule.svg";
};

constexpr char const* help = R"(usage: compare_rule [options]

Trains a small network on handwritten digits with my_rule and with rules of the library, at several learning rates and
seeds, and says which is better.

  --against NAMES   rules of the library (default: sgd,rmsprop,adam,adamw,lion)
  --rates RATES     the learning rates, each the peak of a cosine (default: 0.001,0.003,0.01,0.03,0.1,0.3)
  --seeds N         runs of each rule at each rate, with the same initial weights and batches for all (default: 5)
  --steps N         of each run (default: 300)
  --picture FILE    accuracies over the rates (default: compare_rule.svg)
  --help            this text
)";

options parse(std::vector<std::string> const& arguments) {
  options o;
  std::string against = "sgd,rmsprop,adam,adamw,lion", rates = "0.001,0.003,0.01,0.03,0.1,0.3";
  auto const take = [&](std::string const& name, std::string const& value) {
    if (name == "--against") against = value;
    else if (name == "--rates") rates = value;
    else if (name == "--seeds") o.seeds = example::integer(name, value, std::uint64_t{1}, std::uint64_t{1000});
    else if (name == "--steps") o.steps = example::integer(name, value, 1, 1000000);
    else o.picture = value;
  };
  example::each_option(arguments, {"--against", "--rates", "--seeds", "--steps", "--picture"}, take);
  std::vector<std::string> names;
  for (auto const& one : library()) names.push_back(one.name);
  for (auto const& name : example::split(against, ',')) {
    if (std::ranges::count(names, name) == 0) example::fail_unknown("there is no rule", name, names);
    o.against.push_back(*std::ranges::find(library(), name, &contestant::name));
  }
  for (auto const& rate : example::split(rates, ',')) o.rates.push_back(example::positive("each of --rates", rate));
  std::ranges::sort(o.rates);
  return o;
}

// ---- the comparison

/// The runs of one rule at its best rate.
struct best_runs {
  std::string name;
  double rate = 0;
  std::vector<double> accuracy{};  // by seed
};

double mean(std::vector<double> const& x) { return std::accumulate(x.begin(), x.end(), 0.) / double(x.size()); }

best_runs runs_of(contestant const& one, options const& o, example::panel& shown) {
  best_runs best{one.name};
  shown.curves.push_back({one.name, {}});
  std::printf("%-10s", one.name.c_str());
  for (double const rate : o.rates) {
    std::vector<double> got;
    for (std::uint64_t seed = 1; seed <= o.seeds; ++seed)
      got.push_back(one.accuracy({.steps = o.steps, .network = "relu50", .seed = seed}, rate));
    auto const spread = learn::spread_of(got);
    learn::add(shown.curves.back(), rate, spread);
    std::printf(" %8.1f", spread.mean);
    std::fflush(stdout);
    if (best.accuracy.empty() || spread.mean > mean(best.accuracy)) best.rate = rate, best.accuracy = got;
  }
  auto const [low, at, high] = learn::spread_of(best.accuracy);
  std::printf("   best at %g: %.1f (%.1f to %.1f)", best.rate, at, low, high);
  if (best.rate == o.rates.front()) std::puts(", the smallest rate given: try smaller ones");
  else std::puts(best.rate == o.rates.back() ? ", the largest rate given: try larger ones" : "");
  return best;
}

void compare(options const& o) {
  example::require_writable(o.picture);
  example::panel shown{"accuracy in %, mean and range of the seeds", "learning rate", example::axis::nines, {},
                       example::x_axis::decades};
  std::printf("test accuracy, %%, mean of %d seeds\n%-10s", int(o.seeds), "rate");
  for (double const rate : o.rates) std::printf(" %8g", rate);
  std::puts("");
  auto const mine = runs_of(with_rates("my_rule", my_rule{}), o, shown);
  std::vector<best_runs> others;
  for (auto const& one : o.against) others.push_back(runs_of(one, o, shown));
  std::puts("");
  for (auto const& other : others) {
    std::size_t better = 0, worse = 0;
    for (std::size_t k = 0; k < mine.accuracy.size(); ++k) {
      better += mine.accuracy[k] > other.accuracy[k];
      worse += mine.accuracy[k] < other.accuracy[k];
    }
    std::printf("my_rule - %s: %+.2f points on average, better with %d seeds and worse with %d\n", other.name.c_str(),
                mean(mine.accuracy) - mean(other.accuracy), int(better), int(worse));
  }
  example::write_file(o.picture, example::draw("my_rule and others, " + std::to_string(o.steps) + " steps", {shown}));
}

}  // namespace

int main(int argc, char** argv) {
  return example::exit_code(argc, argv, help,
                            [](std::vector<std::string> const& arguments) { compare(parse(arguments)); });
}
