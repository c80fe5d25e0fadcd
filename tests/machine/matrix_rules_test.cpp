// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "../support/reference.hpp"

#include <descent/matrix.hpp>
#include <descent/rules/adafactor.hpp>
#include <descent/rules/muon.hpp>
#include <descent/rules/shampoo.hpp>
#include <descent/rules/sm3.hpp>
#include <descent/rules/soap.hpp>

/// Rules for matrices against the recorded trajectories of other libraries; tests/reference/values_matrix.txt describes
/// problem and format.
namespace {

namespace ds = descent;
using test::reference::golden;

struct problem_tensor { std::int64_t rows, columns; };
constexpr problem_tensor tensors[] = {{3, 5}, {6, 4}, {4, 4}, {5, 1}, {7, 7}};
std::size_t size_of(std::size_t k) { return std::size_t(tensors[k].rows * tensors[k].columns); }
double start(std::size_t k, std::size_t i) { return (double((i * 7 + k * 3) % 11) - 5) / 8; }
double gradient(std::size_t k, std::size_t i, std::size_t t) {
  return (double((i * i * 37 + i * 11 + t * 101 * (i + 1) + k * 59) % 257) - 128) / 256;
}

std::vector<golden> read() {
  std::ifstream in(DESCENT_TESTS_DIR "/reference/values_matrix.txt");
  REQUIRE(in);
  std::vector<golden> all;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word[0] == '#') continue;
    if (word == "case") {
      golden g{line, {}, {}, {}, {}};
      words >> g.rule >> g.peer;
      while (words >> word) g.options[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
      all.push_back(g);
    } else {
      test::reference::recorded r{};
      words >> r.step >> word >> r.tensor;
      for (double x; words >> x;) r.values.push_back(x);
      REQUIRE(r.values.size() == size_of(r.tensor));
      all.back().steps.push_back(r);
    }
  }
  return all;
}

template <class Rule> bool set_more(Rule& rule, std::string const& key, double x) {
#define FIELD(name)                      \
  if constexpr (requires { rule.name; }) \
    if (key == #name) return rule.name = decltype(rule.name)(x), true;
  FIELD(beta2_decay) FIELD(eps1) FIELD(eps2) FIELD(eps_added) FIELD(capped) FIELD(relative) FIELD(decay_by_lr)
  FIELD(rms) FIELD(ns_steps) FIELD(adjust) FIELD(every) FIELD(shampoo_beta) FIELD(max_precondition_dim)
  FIELD(graft)
#undef FIELD
  if constexpr (requires { rule.coefficients; })
    if (key.size() == 2 && key[0] == 'c') return rule.coefficients.at(std::size_t(key[1] - '1')) = x, true;
  return test::reference::set(rule, key, x);
}

struct difference { double values = 0; std::size_t compared = 0; };

/// The vectors follow `vectors`, where a case has any.
template <class Real, class Rule, class Vectors> difference follow(golden const& g, Rule rule, Vectors const& vectors) {
  std::vector<std::vector<Real>> value(5), grad(5);
  ds::parameters<Real> list;
  std::set<std::size_t> recorded;
  for (auto const& r : g.steps) recorded.insert(r.tensor);
  for (std::size_t k : recorded) {
    for (std::size_t i = 0; i < size_of(k); ++i) value[k].push_back(Real(start(k, i)));
    grad[k].resize(size_of(k));
    list.add(std::to_string(k), value[k].data(), grad[k].data(), ds::shape{tensors[k].rows, tensors[k].columns});
  }
  ds::optimizer opt{list, vectors, ds::matrices{rule}};
  difference d;
  for (int t = 1; t <= 100; ++t) {
    for (std::size_t k : recorded)
      for (std::size_t i = 0; i < size_of(k); ++i) grad[k][i] = Real(gradient(k, i, std::size_t(t)));
    opt.step();
    for (auto const& r : g.steps)
      if (r.step == t)
        for (std::size_t i = 0; i < r.values.size(); ++i) {
          double const error = std::abs(double(value[r.tensor][i]) - r.values[i]);
          d.values = error <= d.values ? d.values : error;
          ++d.compared;
        }
  }
  return d;
}

/// Every case of one peer, with what double and float may be away from it.
template <class Rule> void follow_all(std::string const& name, std::string const& peer, int cases, double in_double,
                                      double in_float, auto const&... more) {
  for (golden const& g : read()) {
    if (g.rule != name || !g.peer.starts_with(peer)) continue;
    INFO(g.line);
    --cases;
    Rule rule;
    for (auto const& [key, text] : g.options) {
      if (key == "qr" || key == "bf16") continue;
      INFO("option ", key);
      REQUIRE(set_more(rule, key, std::stod(text)));
    }
    (more(rule), ...);
    auto const check = [&](auto const& vectors) {
      difference const exact = follow<double>(g, rule, vectors), rounded = follow<float>(g, rule, vectors);
      std::size_t all = 0;
      for (auto const& r : g.steps) all += r.values.size();
      CHECK(exact.compared == all);
      CHECK(all >= 7 * 55);
      // PyTorch rounds to bfloat16, 8 bits, after every product of Muon. A step moves an element by lr at most about,
      // so 100 steps with errors of 2^-8 that mostly cancel stay within half an lr.
      double const coarse = g.options.contains("bf16") ? 0.01 : 0;
      CHECK(exact.values <= std::max(coarse, g.options.contains("qr") ? in_float : in_double));
      CHECK(rounded.values <= std::max(coarse, in_float));
    };
    if constexpr (ds::update_rule<Rule>) check(rule);
    else check(ds::sgd{});
  }
  CHECK(cases == 0);
}

}  // namespace

TEST_CASE("muon follows optax") { follow_all<ds::muon>("muon", "optax", 4, 1e-13, 1e-5); }
TEST_CASE("muon follows PyTorch, and as far as bfloat16 goes where that is in it") {
  follow_all<ds::muon>("muon", "torch", 5, 1e-12, 1e-5);
}
TEST_CASE("adafactor follows PyTorch") { follow_all<ds::adafactor>("adafactor", "torch", 2, 1e-13, 1e-5); }
// optax finds t^-0.8 in float.
TEST_CASE("adafactor follows optax") { follow_all<ds::adafactor>("adafactor", "optax", 3, 2e-7, 1e-5); }
TEST_CASE("sm3 follows optax") { follow_all<ds::sm3>("sm3", "optax", 3, 1e-13, 1e-5); }
TEST_CASE("shampoo follows pytorch_optimizer") {
  follow_all<ds::shampoo>("shampoo", "pytorch_optimizer", 6, 1e-13, 1e-5);
}

// Its QR is in float where the case says qr=32.
TEST_CASE("soap follows pytorch_optimizer") { follow_all<ds::soap>("soap", "pytorch_optimizer", 3, 1e-13, 1e-5); }

TEST_CASE("optax's presets are what its default cases need") {
  int found = 0;
  auto const check = [&](std::string const& name, double lr, auto rule) {
    for (golden const& g : read()) {
      if (g.rule != name || !g.peer.starts_with("optax") || g.options.at("lr") != "0.02") continue;
      INFO(g.line);
      ++found;
      rule.lr = lr;
      if constexpr (ds::update_rule<decltype(rule)>) CHECK(follow<double>(g, rule, rule).values <= 2e-7);
      else CHECK(follow<double>(g, rule, ds::sgd{}).values <= 1e-13);
    }
  };
  check("muon", 0.02, ds::preset::optax::muon());
  check("adafactor", 0.02, ds::preset::optax::adafactor());
  CHECK(found == 2);
}
