// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "../support/reference.hpp"
#include "../support/settings.hpp"

#include <descent/core/fields.hpp>
#include <descent/matrices/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/rules/adafactor.hpp>
#include <descent/rules/kl_shampoo.hpp>
#include <descent/rules/muon.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/shampoo.hpp>
#include <descent/rules/sm3.hpp>
#include <descent/rules/soap.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

/// Rules for matrices against the recorded trajectories of other libraries; tests/reference/values_matrix.txt describes
/// problem and format.
namespace {

namespace ds = descent;
using namespace test::reference;

std::vector<ds::shape> const matrix_shapes{{3, 5}, {6, 4}, {4, 4}, {5, 1}, {7, 7}};
double noise_of(std::size_t k, std::size_t i, std::size_t t) {
  return (double((i * i * 37 + i * 11 + t * 101 * (i + 1) + k * 59) % 257) - 128) / 256;
}
/// The noise and the gradient of a convex function of the values.
template <class Real> double gradient_of(tensors<Real> const& p, std::size_t k, std::size_t i, std::size_t t) {
  std::size_t const n = p.value[k].size();
  return noise_of(k, i, t) + p(k, i) + (p(k, (i + 1) % n) + p(k, (i + n - 1) % n)) / 2;
}

/// The tensors that a case records; the others are empty.
std::vector<ds::shape> recorded_of(golden const& g) {
  std::vector<ds::shape> some(matrix_shapes.size(), {0, 1});
  for (recorded const& r : g.steps) some[r.tensor] = matrix_shapes[r.tensor];
  return some;
}

/// Vectors follow `vectors`, if a case has any.
template <class Real, class Rule, class Vectors>
difference follow_matrices(golden const& g, Rule const& rule, Vectors const& vectors) {
  tensors<Real> p(recorded_of(g));
  ds::optimizer opt{p.list(), vectors, ds::matrices{rule}};
  auto const step = [&](int t) {
    p.backward_by([&](std::size_t k, std::size_t i) { return gradient_of(p, k, i, std::size_t(t)); });
    opt.step();
  };
  return compare(g, step, p);
}

/// The first 20 steps of a case: after more, the gradients that follow the values multiply rounding errors of float.
golden start_of(golden g) {
  std::erase_if(g.steps, [](recorded const& r) { return r.step > 20; });
  return g;
}

/// Every case of one peer, with the largest allowed differences in double, and in float for the first steps.
template <class Rule>
void follow_peer(std::string const& name, std::string const& peer, int cases, double in_double, double in_float) {
  auto const about = [&](golden const& g) { return g.rule == name && g.peer.starts_with(peer); };
  each_case("values_matrix.txt", cases, about, [&](golden const& g) {
    auto const rule = configured<Rule>(g);
    auto const check = [&](auto const& vectors) {
      difference const exact = follow_matrices<double>(g, rule, vectors);
      difference const rounded = follow_matrices<float>(start_of(g), rule, vectors);
      std::size_t all = 0;
      for (recorded const& r : g.steps) all += r.values.size();
      CHECK(exact.compared == all);
      CHECK(all >= 7 * 55);
      // PyTorch rounds to bfloat16, 8 bits, after every product of Muon. A step moves an element by at most about lr,
      // so 100 steps with errors of 2^-8 that mostly cancel stay within half an lr.
      double const coarse = g.options.contains("bf16") ? 0.01 : 0;
      CHECK(exact.values <= std::max(coarse, g.options.contains("qr") ? in_float : in_double));
      CHECK(rounded.values <= std::max(coarse, in_float));
    };
    if constexpr (ds::update_rule<Rule>) check(rule);
    else check(ds::sgd{});
  }, matrix_shapes);
}

}  // namespace

// Each update multiplies small singular values by up to 3.4445^5 = 485, and with them the rounding errors of gradients
// that follow the values.
TEST_CASE("muon follows optax") { follow_peer<ds::muon>("muon", "optax", 6, 1e-8, 1e-5); }
TEST_CASE("muon with normalized rows follows pytorch_optimizer's NorMuon") {
  follow_peer<ds::muon>("muon", "pytorch_optimizer", 3, 1e-12, 1e-5);
}
TEST_CASE("muon follows PyTorch, and as far as bfloat16 goes where that is in it") {
  follow_peer<ds::muon>("muon", "torch", 5, 1e-12, 1e-5);
}
TEST_CASE("adafactor follows PyTorch") { follow_peer<ds::adafactor>("adafactor", "torch", 2, 1e-13, 1e-5); }
// optax computes t^-0.8 in float.
TEST_CASE("adafactor follows optax") { follow_peer<ds::adafactor>("adafactor", "optax", 3, 2e-7, 1e-5); }
TEST_CASE("sm3 follows optax") { follow_peer<ds::sm3>("sm3", "optax", 3, 1e-13, 1e-5); }
TEST_CASE("shampoo follows pytorch_optimizer") {
  follow_peer<ds::shampoo>("shampoo", "pytorch_optimizer", 6, 1e-13, 1e-5);
}

// Its QR is in float if the case has qr=32.
TEST_CASE("soap follows pytorch_optimizer") { follow_peer<ds::soap>("soap", "pytorch_optimizer", 3, 1e-13, 1e-5); }

/// The path of the first matrix in float and in double, apart by this part of it, for gradients(t, row, column).
template <class Rule, class F, class... Ps>
double apart_in_float(Rule const& rule, std::int64_t n, int steps, F const& gradient, Ps... policies) {
  tensors<double> x({{n, n}});
  tensors<float> y({{n, n}});
  ds::optimizer in_double{x.list(), ds::sgd{}, ds::matrices{rule}};
  ds::optimizer in_float{y.list(), ds::sgd{}, ds::matrices{rule}, policies...};
  for (int t = 1; t <= steps; ++t) {
    y.backward_by([&](std::size_t, std::size_t i) { return gradient(t, i / std::size_t(n), i % std::size_t(n)); });
    x.backward_by([&](std::size_t, std::size_t i) { return y.grad[0][i]; });
    in_double.step(), in_float.step();
  }
  double way = 0, apart = 0;
  for (std::size_t i = 0; i < x.value[0].size(); ++i) {
    way += (x(0, i) - start(0, i)) * (x(0, i) - start(0, i));
    apart += (x(0, i) - y(0, i)) * (x(0, i) - y(0, i));
  }
  return std::sqrt(apart / way);
}

TEST_CASE("rules for matrices: every setting is written as text and read, enumerations and lists, too") {
  auto const check = [](auto const& rule) {
    int numbers = 0;
    CHECK(ds::detail::each_number(rule, [&](auto) { ++numbers; }));
    CHECK(test::settings_in_text(rule) == numbers);
  };
  check(ds::muon{}), check(ds::shampoo{}), check(ds::soap{}), check(ds::kl_shampoo{}), check(ds::adafactor{});
  check(ds::sm3{});
  CHECK(ds::detail::text_of_setting(ds::muon::adjust_by::match_rms_adamw) == "match_rms_adamw");
  CHECK(ds::detail::text_of_setting(ds::muon::adjust_by(77)) == "77");
}

TEST_CASE("soap in float stays near soap in double for noise") {
  // The first g g' of noise has eigenvalues down to 1 / (4 n^2) of the largest; none of them is a rounding error.
  for (std::int64_t n : {8, 32, 128}) {
    INFO("n = ", n);
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    auto const noise = [&](int, std::size_t, std::size_t) { return normal(random); };
    CHECK(apart_in_float(ds::soap{.weight_decay = 0}, n, 11, noise) <= 1e-3);
  }
}

TEST_CASE(
    "soap and KL-SOAP in float and with m in 16 bits stay near double for gradients of rank 1, after an outlier, too") {
  // Whole numbers, so that the rank is exact: what rounding leaves in the other columns of Q must not become steps.
  auto const factor = [](int kind, std::size_t i) { return float(int((i * 37 + std::size_t(kind) * 11) % 17) - 8); };
  auto const gradient = [&](int t, std::size_t i, std::size_t j) {
    bool const outlier = t == 20;
    return factor(outlier, i) * factor(outlier + 2, j) * (outlier ? 4096 : 1);
  };
  auto const stay = [&](auto const& rule, std::int64_t n, double before, double after) {
    INFO("n = ", n, ", beta1 ", rule.beta1);
    CHECK(apart_in_float(rule, n, 15, gradient) <= before);
    CHECK(apart_in_float(rule, n, 80, gradient) <= after);
    CHECK(apart_in_float(rule, n, 15, gradient, ds::states<ds::bfloat16>{}) <= before);
    CHECK(apart_in_float(rule, n, 80, gradient, ds::states<ds::half>{}) <= after);
  };
  for (std::int64_t n : {8, 33}) {
    stay(ds::soap{.weight_decay = 0}, n, 5e-3, 0.2);
    stay(ds::kl_shampoo{.weight_decay = 0, .adam = true}, n, 5e-3, 0.4);
  }
}

TEST_CASE("soap with m in 16 bits: rounding errors of the stored m do not become steps") {
  // The second part of the gradient is 2^-13 of the first one: m in bfloat16 does not hold it.
  auto const gradient = [](int t, std::size_t i, std::size_t j) {
    auto const of = [](std::size_t k, int a) { return float(int(k * 37 % std::size_t(a)) - a / 2); };
    return of(i, 17) * of(j, 13) * float(1 + t % 3) + of(i, 11) * of(j, 19) * (t % 2 ? 0x1p-13f : -0x1p-13f);
  };
  for (std::int64_t n : {8, 33}) {
    INFO("n = ", n);
    CHECK(apart_in_float(ds::soap{.weight_decay = 0}, n, 80, gradient, ds::states<ds::bfloat16>{}) <= 2);
    CHECK(apart_in_float(ds::soap{.weight_decay = 0}, n, 80, gradient, ds::states<ds::half>{}) <= 2);
  }
}

TEST_CASE("kl_shampoo follows the authors' KL-Shampoo and KL-SOAP") {
  follow_peer<ds::kl_shampoo>("kl_shampoo", "KL-Methods", 6, 1e-13, 1e-5);
}

TEST_CASE("optax's presets are what its default cases need") {
  auto const check = [](std::string const& name, double in_double, auto rule) {
    auto const default_case = [&](golden const& g) {
      return g.rule == name && g.peer.starts_with("optax") && g.options.at("lr") == "0.02";
    };
    each_case("values_matrix.txt", 1, default_case, [&](golden const& g) {
      rule.lr = 0.02;
      if constexpr (ds::update_rule<decltype(rule)>) CHECK(follow_matrices<double>(g, rule, rule).values <= in_double);
      else CHECK(follow_matrices<double>(g, rule, ds::sgd{}).values <= in_double);
    }, matrix_shapes);
  };
  check("muon", 1e-11, ds::preset::optax::muon());
  check("adafactor", 2e-7, ds::preset::optax::adafactor());
}

TEST_CASE("matrices: finite gradients up to a hundredth of the largest float leave finite values, zeros among them") {
  auto const stay_finite = [](auto const& rule, auto const& vectors, double size) {
    bool finite = true;
    for (int order = 0; order < 3; ++order) {
      tensors<float> p(matrix_shapes);
      ds::optimizer opt{p.list(), vectors, ds::matrices{rule}};
      for (int t = 1; t <= 12; ++t) {
        p.backward_by([&](std::size_t k, std::size_t i) {
          double const ordinary = noise_of(k, i, std::size_t(t)), large = std::copysign(size, ordinary);
          double const in_order[] = {t <= 6 ? size : ordinary, t % 2 ? large : size * 1e-9, i % 2 ? ordinary : large};
          return in_order[order];
        });
        opt.step();
        for (auto const& tensor : p.value)
          for (float x : tensor) finite = finite && std::isfinite(x);
      }
    }
    return finite;
  };
  for (double size : {0., 1e-45, 1e-38, 1e-20, 1e10, 1e18, 1e36}) {
    CAPTURE(size);
    CHECK(stay_finite(ds::muon{}, ds::sgd{}, size));
    CHECK(stay_finite(ds::adafactor{}, ds::adafactor{}, size));
    CHECK(stay_finite(ds::preset::optax::adafactor(), ds::preset::optax::adafactor(), size));
    CHECK(stay_finite(ds::sm3{}, ds::sm3{}, size));
    CHECK(stay_finite(ds::shampoo{}, ds::sgd{}, size));
    CHECK(stay_finite(ds::soap{}, ds::sgd{}, size));
    CHECK(stay_finite(ds::kl_shampoo{}, ds::sgd{}, size));
    CHECK(stay_finite(ds::kl_shampoo{.adam = true}, ds::sgd{}, size));
  }

  std::vector<float> w(4, 1), large{2e19f, 0, 0, 2e19f};
  ds::parameters<float> params;
  params.add("W", w, large, ds::shape{2, 2});
  ds::optimizer opt{params, ds::sgd{}, ds::matrices{ds::shampoo{}}};
  opt.step();
  CHECK(w == std::vector<float>(4, 1));  // the statistics have overflowed
}

TEST_CASE("matrices: each field of each rule at what check() accepts: finite gradients leave finite values") {
  double const infinity = std::numeric_limits<double>::infinity();
  int accepted = 0, refused = 0;
  auto const trains = [&](auto const& rule, auto const& vectors) {
    for (int kind = 0; kind < 3; ++kind) {  // zeros; rows of zeros; none
      tensors<float> p(matrix_shapes);
      if (kind == 0)
        for (float& x : p.value[0]) x = 0;
      ds::optimizer opt{p.list(), vectors, ds::matrices{rule}};
      for (int t = 1; t <= 3; ++t) {
        p.backward_by([&](std::size_t k, std::size_t i) {
          std::size_t const row = i / std::size_t(matrix_shapes[k].columns);
          return kind == 0 || (kind == 1 && row % 2 == 0) ? 0 : noise_of(k, i, std::size_t(t));
        });
        opt.step();
      }
      for (auto const& tensor : p.value)
        for (float x : tensor)
          if (!std::isfinite(x)) return false;
    }
    return true;
  };
  auto const walk = [&](std::string const& name, auto rule) {
    ds::each_field(rule, [&](std::string const& field, auto& x) {
      auto const old = x;
      for (double value : {-infinity, -1., -5e-324, 0., 5e-324, 1e-300, 1e-60, 1e-45, 1e-30, 1e-7, 1 - 0x1p-53, 1., 2.,
                           99., 100., 1e10, infinity}) {
        if constexpr (std::is_same_v<decltype(x), double&>) x = value;
        else if (value > 1e6 || !ds::detail::set_number(x, value)) continue;
        bool finite = true;
        try {
          if constexpr (ds::update_rule<decltype(rule)>) finite = trains(rule, rule);
          else finite = trains(rule, ds::sgd{});
          ++accepted;
        } catch (std::invalid_argument const&) { ++refused; }
        INFO(name, ".", field, " = ", value);
        CHECK(finite);
      }
      x = old;
    });
  };
  walk("muon", ds::muon{});
  walk("muon, exact_rms",
       ds::muon{.bias_correction = true, .eps_added = true, .adjust = ds::muon::adjust_by::exact_rms});
  walk("muon, normalize_rows", ds::muon{.normalize_rows = true, .adaptive = true});
  walk("adafactor", ds::adafactor{});
  walk("adafactor, other options", ds::adafactor{.momentum = 0.9, .eps_added = true, .relative = false});
  walk("sm3", ds::sm3{.momentum = 0.5, .beta2 = 0.9});
  walk("shampoo", ds::shampoo{.beta2 = 0.9, .graft = true});
  walk("soap", ds::soap{.every = 1});
  walk("kl_shampoo", ds::kl_shampoo{});
  walk("kl_shampoo, adam", ds::kl_shampoo{.adam = true, .clamp = false});
  CHECK(accepted > 500);
  CHECK(refused > 200);
  CHECK(trains(ds::adafactor{.clip = infinity}, ds::adafactor{.clip = infinity}));  // optax's None
}
