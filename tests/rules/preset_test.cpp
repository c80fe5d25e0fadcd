// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/core/fields.hpp>
#include <descent/optimizer.hpp>
#include <descent/presets/rules.hpp>
#include <descent/rules/adadelta.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/transforms/chain.hpp>
#include <descent/transforms/parts.hpp>

#include <doctest/doctest.h>

#include "support/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

/// Presets do what the frameworks do if only the learning rate is given.

using namespace test::reference;
namespace preset = descent::preset;

namespace {

template <class Rule> void follows(std::string const& name, std::string const& peer, Rule rule) {
  auto const about = [&](golden const& g) { return g.rule == name && g.peer.starts_with(peer); };
  each_case("values_presets.txt", 1, about, [&](golden const& g) {
    rule.lr = std::stod(g.options.at("lr"));
    difference const d = follow(g, rule);
    CHECK(d.compared == 7 * 18);
    CHECK(d.way <= 1e-9);
  });
}

}  // namespace

TEST_CASE("presets of PyTorch follow it") {
  follows("SGD", "torch", preset::torch::SGD());
  follows("Adam", "torch", preset::torch::Adam());
  follows("AdamW", "torch", preset::torch::AdamW());
  follows("RMSprop", "torch", preset::torch::RMSprop());
  follows("Adagrad", "torch", preset::torch::Adagrad());
}

TEST_CASE("presets of optax follow it") {
  follows("adamw", "optax", preset::optax::adamw());
  follows("adagrad", "optax", preset::optax::adagrad());
  follows("rmsprop", "optax", preset::optax::rmsprop());
  follows("lion", "optax", preset::optax::lion());
  follows("lars", "optax", preset::optax::lars());
  follows("lamb", "optax", preset::optax::lamb());
  follows("amsgrad", "optax", preset::optax::amsgrad());
  follows("nadam", "optax", preset::optax::nadam());
  follows("radam", "optax", preset::optax::radam());
}

// ---- frameworks that are not at hand: formulas from their source, in double -----------------------------------------

namespace {

/// Two tensors with a different gradient at each step.
struct two_tensors {
  std::vector<double> p[2] = {{1, -2, 0.5, 0.125}, {-0.25, 3}}, g[2] = {std::vector<double>(4), std::vector<double>(2)};
  void gradients(int t) {
    for (std::size_t k = 0; k < 2; ++k)
      for (std::size_t i = 0; i < g[k].size(); ++i)
        g[k][i] = double((int(i) * 37 + t * 101 + int(k) * 59) % 257 - 128) / 256;
  }
};
double norm(std::vector<double> const& x) {
  double sum = 0;
  for (double const y : x) sum += y * y;
  return std::sqrt(sum);
}

/// 100 steps of the preset, and of formula(t, k, p, g), which updates tensor k. The formula keeps its own state.
template <class Rule, class Formula, class... Ps> void agrees(Rule const& rule, Formula formula, Ps... policies) {
  two_tensors ours, theirs;
  descent::parameters<double> list;
  for (int k = 0; k < 2; ++k) list.add(std::to_string(k), ours.p[k].data(), ours.g[k].data(), ours.p[k].size());
  descent::optimizer opt{list, rule, policies...};
  double furthest = 0, way = 0;
  for (int t = 1; t <= 100; ++t) {
    ours.gradients(t);
    theirs.gradients(t);
    opt.step();
    for (int k = 0; k < 2; ++k) {
      formula(t, k, theirs.p[k], theirs.g[k]);
      for (std::size_t i = 0; i < ours.p[k].size(); ++i) {
        double const apart = std::abs(ours.p[k][i] - theirs.p[k][i]);
        furthest = test::larger(furthest, apart);
        way = std::max(way, std::abs(ours.p[k][i] - two_tensors{}.p[k][i]));
      }
    }
  }
  CHECK(furthest <= 1e-13);
  CHECK(furthest <= 1e-9 * way);
}

/// Moments of each element of both tensors.
struct moments {
  double m[2][4] = {}, v[2][4] = {};
  void add(int k, std::size_t i, double g, double b1, double b2) {
    m[k][i] = b1 * m[k][i] + (1 - b1) * g;
    v[k][i] = b2 * v[k][i] + (1 - b2) * g * g;
  }
};

/// The same if a tensor moves by -rate(t, |p|, |u|) u; u = direction(t, p, m, v) of each element, with Adam's betas.
template <class Rule, class Direction, class Rate>
void agrees_by_tensor(Rule const& rule, Direction direction, Rate rate) {
  agrees(rule, [s = moments{}, direction, rate](int t, int k, auto& p, auto const& g) mutable {
    std::vector<double> u;
    for (std::size_t i = 0; i < p.size(); ++i) {
      s.add(k, i, g[i], 0.9, 0.999);
      u.push_back(direction(t, p[i], s.m[k][i], s.v[k][i]));
    }
    double const scale = rate(t, norm(p), norm(u));
    for (std::size_t i = 0; i < p.size(); ++i) p[i] -= scale * u[i];
  });
}

/// The same for each element: formula(t, p, g, m, v) of the new moments, with Adam's betas.
template <class Rule, class Formula> void agrees_by_element(Rule const& rule, Formula formula, double decay = 0) {
  agrees(rule, [s = moments{}, formula, decay](int t, int k, auto& p, auto const& g) mutable {
    for (std::size_t i = 0; i < p.size(); ++i) {
      s.add(k, i, g[i] + decay * p[i], 0.9, 0.999);
      p[i] = formula(t, p[i], s.m[k][i], s.v[k][i]);
    }
  });
}

/// The same for each element: formula(t, p, g, a, b) with two own numbers a and b, which start at `start`.
template <class Rule, class Formula> void agrees_with_two(Rule const& rule, Formula formula, double start = 0) {
  moments s;
  for (int k = 0; k < 2; ++k)
    for (int i = 0; i < 4; ++i) s.m[k][i] = s.v[k][i] = start;
  agrees(rule, [s, formula](int t, int k, auto& p, auto const& g) mutable {
    for (std::size_t i = 0; i < p.size(); ++i) formula(t, p[i], g[i], s.m[k][i], s.v[k][i]);
  });
}

/// The rule with this decay.
template <class Rule> Rule decayed(Rule rule, double weight_decay) {
  rule.weight_decay = weight_decay;
  return rule;
}

double corrected(double b, int t) { return 1 - std::pow(b, t); }
/// Adam's rate with both bias corrections.
double corrected_rate(double lr, int t) { return lr * std::sqrt(corrected(0.999, t)) / corrected(0.9, t); }
/// Adam's direction.
double corrected_direction(int t, double m, double v, double eps, double eps_root = 0) {
  return m / corrected(0.9, t) / (std::sqrt(v / corrected(0.999, t) + eps_root) + eps);
}

/// Formulas for agrees_with_two. The decay shrinks p before the step, without lr.
auto adamax_with(auto rate) {
  return [rate](int t, double& p, double g, double& m, double& u) {
    m = 0.9 * m + (1 - 0.9) * g;
    u = std::max(0.999 * u, std::abs(g));
    p -= rate(t) * m / (u + 0.01);
  };
}
auto adadelta_with(double lr, double decay, double rho, double eps) {
  return [=](int, double& p, double g, double& v, double& u) {
    p = p - decay * p;
    v = rho * v + (1 - rho) * g * g;
    double const d = std::sqrt(u + eps) / std::sqrt(v + eps) * g;
    p -= lr * d;
    u = rho * u + (1 - rho) * d * d;
  };
}
auto adagrad_with(double lr, double decay) {
  return [=](int, double& p, double g, double& s, double&) {
    p = p - decay * p;
    s += g * g;
    p -= lr * g / (std::sqrt(s) + 1e-8);
  };
}

/// apex/optimizers/fused_novograd.py, csrc/multi_tensor_novograd.cu: the norm n, stored and blended as a norm.
struct apex_novograd {
  double lr, eps, wd;
  bool inside, averaging, zero;
  double n[2] = {-1, -1}, m[2][4] = {};
  void operator()(int t, int k, std::vector<double>& p, std::vector<double> const& g) {
    double const b1 = 0.9, b2 = 0.999, b3 = averaging ? 1 - b1 : 1;
    if (n[k] < 0) n[k] = zero ? 0 : norm(g);
    n[k] = std::sqrt(b2 * n[k] * n[k] + (1 - b2) * norm(g) * norm(g));
    double const bc1 = corrected(b1, t), bc2 = std::sqrt(corrected(b2, t)), denominator = n[k] / bc2 + eps;
    for (std::size_t i = 0; i < p.size(); ++i) {
      if (inside) {
        m[k][i] = b1 * m[k][i] + b3 * (g[i] / denominator + wd * p[i]);
        p[i] -= lr * m[k][i] / bc1;
      } else {
        m[k][i] = b1 * m[k][i] + b3 * g[i];
        p[i] -= lr * (m[k][i] / bc1 / denominator + wd * p[i]);
      }
    }
  }
};

}  // namespace

TEST_CASE("apex: FusedNovoGrad, in both places of the decay, with and without its start at the first norm") {
  for (bool const inside : {false, true})
    for (bool const zero : {false, true})
      for (bool const averaging : {false, true}) {
        auto rule = preset::apex::FusedNovoGrad();
        CHECK(rule.lr == 1e-3);
        rule.weight_decay = 0.1;
        rule.eps = 1e-3;
        rule.raw_moment = !inside;
        rule.init_zero = zero;
        rule.averaging = averaging;
        agrees(rule, apex_novograd{1e-3, 1e-3, 0.1, inside, averaging, zero});
      }
  // Its defaults: reg_inside_moment and init_zero off, grad_averaging on.
  agrees(preset::apex::FusedNovoGrad(), apex_novograd{1e-3, 1e-8, 0, false, true, false});
}

TEST_CASE("apex, TransformerEngine, DeepSpeed, llm.c: FusedAdam is AdamW without decay, additive with the old p") {
  auto const formula = [](double wd) {
    return
        [wd](int t, double p, double m, double v) { return p - 1e-3 * (corrected_direction(t, m, v, 1e-8) + wd * p); };
  };
  for (auto rule : {preset::apex::FusedAdam(), preset::transformer_engine::FusedAdam(), preset::deepspeed::FusedAdam(),
                    preset::deepspeed::CPUAdam()}) {
    agrees_by_element(rule, formula(0));
    rule.weight_decay = 0.1;
    agrees_by_element(rule, formula(0.1));
  }
  CHECK(preset::llmc::AdamW().beta2 == 0.95);
  CHECK(preset::llmc::AdamW().weight_decay == 0);
}

TEST_CASE("bitsandbytes: Adam and AdamW shrink what the step has made (csrc/kernels.cu)") {
  auto const formula = [](double wd) {
    return [wd](int t, double p, double m, double v) {
      double const root = std::sqrt(corrected(0.999, t));
      p -= 1e-3 * root / corrected(0.9, t) * (m / (std::sqrt(v) + 1e-8 * root));
      return p * (1 - 1e-3 * wd);
    };
  };
  agrees_by_element(preset::bitsandbytes::AdamW(), formula(1e-2));
  agrees_by_element(preset::bitsandbytes::Adam(), formula(0));
  auto strong = preset::bitsandbytes::Adam();
  strong.weight_decay = 20;  // large enough to show the order
  agrees_by_element(strong, formula(20));
}

TEST_CASE("MLX: Adam and AdamW do not correct bias, Adamax adds eps to u") {
  agrees_by_element(preset::mlx::Adam(),
                    [](int, double p, double m, double v) { return p - 1e-3 * m / (std::sqrt(v) + 1e-8); });
  agrees_by_element(preset::mlx::AdamW(), [](int, double p, double m, double v) {
    return p * (1 - 1e-3 * 0.01) - 1e-3 * m / (std::sqrt(v) + 1e-8);
  });
  auto adamax = preset::mlx::Adamax();
  adamax.eps = 0.01;
  agrees_with_two(adamax, adamax_with([](int) { return 2e-3; }));
}

TEST_CASE("tiny-cuda-nn: Adam has L2 and eps on the raw root, its decoupled decay follows the corrected rate") {
  auto const rate = [](int t) { return corrected_rate(1e-3, t); };
  auto const step = [rate](int t, double p, double m, double v) { return p - rate(t) * m / (std::sqrt(v) + 1e-8); };
  agrees_by_element(preset::tcnn::Adam(), step, 1e-8);
  for (double const l2 : {1e-8, 0.1}) {
    auto decoupled = preset::tcnn::DecoupledAdam();
    CHECK(decoupled.get<0>().weight_decay == 1e-8);
    decoupled.get<0>().weight_decay = l2;
    decoupled.get<1>().weight_decay = 0.1;
    agrees_by_element(decoupled, [rate](int t, double p, double m, double v) {
      return (1 - 0.1 * rate(t)) * p - rate(t) * m / (std::sqrt(v) + 1e-8);
    }, l2);
  }
  agrees_by_element(preset::tcnn::AdaBound(), [rate](int t, double p, double m, double v) {
    double const low = 0.1 - 0.1 / ((1 - 0.999) * t + 1), high = 0.1 + 0.1 / ((1 - 0.999) * t);
    return p - std::min(std::max(rate(t) / (std::sqrt(v) + 1e-8), low), high) * m;
  }, 1e-8);
  agrees(preset::tcnn::SGD(), [](int, int, auto& p, auto const& g) {
    for (std::size_t i = 0; i < p.size(); ++i) p[i] -= 1e-3 * (g[i] + 1e-8 * p[i]);
  });
}

TEST_CASE("tiny-cuda-nn: Novograd, exact in its first step, with decay of its own") {
  auto rule = preset::tcnn::Novograd();
  rule.weight_decay = 0.1;
  agrees(rule, [s = moments{}, v = std::vector<double>(2)](int t, int k, auto& p, auto const& g) mutable {
    double const b1 = t == 1 ? 0 : 0.9, b2 = t == 1 ? 0 : 0.999;
    v[std::size_t(k)] = b2 * v[std::size_t(k)] + (1 - b2) * norm(g) * norm(g);
    for (std::size_t i = 0; i < p.size(); ++i) {
      s.m[k][i] = b1 * s.m[k][i] + (1 - b1) * g[i] / (std::sqrt(v[std::size_t(k)]) + 1e-8);
      p[i] = (1 - 0.1 * 1e-3) * p[i] - 1e-3 * s.m[k][i];
    }
  });
}

TEST_CASE("DeepSpeed: FusedLamb takes the norm of raw moments, clamps, and corrects the rate (csrc/lamb)") {
  for (double const wd : {0.0, 0.1, 200.0})  // with the last, |u| is about wd |p|, so the ratio is below 0.01
    for (double const largest : {10.0, 0.5}) {
      auto rule = preset::deepspeed::FusedLamb();
      CHECK(rule.max_ratio == 10);
      rule.lr = 0.01;
      rule.weight_decay = wd;
      rule.max_ratio = largest;
      auto const direction = [wd](int, double p, double m, double v) { return m / (std::sqrt(v) + 1e-8) + wd * p; };
      agrees_by_tensor(rule, direction, [largest](int t, double p, double u) {
        double const coefficient = p != 0 && u != 0 ? std::max(std::min(p / u, largest), 0.01) : 1;
        return corrected_rate(0.01, t) * coefficient;
      });
    }
}

TEST_CASE("ensmallen: Adam, Nadam, AdaMax, Yogi, AdaDelta, AdaGrad") {
  agrees_by_element(preset::ensmallen::Adam(), [](int t, double p, double m, double v) {
    return p - corrected_rate(1e-3, t) * m / (std::sqrt(v) + 1e-8);
  });
  auto adamax = preset::ensmallen::AdaMax();
  adamax.eps = 0.01;
  agrees_with_two(adamax, adamax_with([](int t) { return 1e-3 / corrected(0.9, t); }));
  auto nadam = preset::ensmallen::Nadam();
  nadam.eps = 0.01;
  agrees(nadam, [s = moments{}, product = 1.0](int t, int k, auto& p, auto const& g) mutable {
    auto const mu = [](int t) { return 0.9 * (1 - 0.5 * std::pow(0.96, 4e-3 * t)); };
    if (k == 0) product *= mu(t);
    for (std::size_t i = 0; i < p.size(); ++i) {
      s.add(k, i, g[i], 0.9, 0.99);
      double const step = (1 - mu(t)) / (1 - product) * g[i] + mu(t + 1) / (1 - product * mu(t + 1)) * s.m[k][i];
      p[i] -= 1e-3 * std::sqrt(corrected(0.99, t)) * step / (std::sqrt(s.v[k][i]) + 0.01);
    }
  });
  agrees(preset::ensmallen::Yogi(), [s = moments{}](int, int k, auto& p, auto const& g) mutable {
    for (std::size_t i = 0; i < p.size(); ++i) {
      double const square = g[i] * g[i], apart = s.v[k][i] - square;
      s.m[k][i] = 0.9 * s.m[k][i] + (1 - 0.9) * g[i];
      s.v[k][i] -= (1 - 0.999) * (apart > 0 ? 1 : apart < 0 ? -1 : 0) * square;
      p[i] -= 1e-3 * s.m[k][i] / (std::sqrt(s.v[k][i]) + 1e-8);
    }
  });
  agrees_with_two(preset::ensmallen::AdaDelta(), adadelta_with(1, 0, 0.95, 1e-6));
  agrees_with_two(preset::ensmallen::AdaGrad(), adagrad_with(1e-2, 0));
}

TEST_CASE("apex, TransformerEngine: FusedSGD, with the decay before and after the momentum (multi_tensor_sgd_kernel)") {
  for (auto const& preset : {preset::apex::FusedSGD(), preset::transformer_engine::FusedSGD(), preset::timm::SGDW()})
    for (bool const after : {false, true})
      for (double const momentum : {0.0, 0.9})
        for (bool const nesterov : {false, true}) {
          auto rule = decayed(preset, 0.1);
          rule.lr = 0.05;
          rule.momentum = momentum;
          rule.decoupled = after;
          rule.nesterov = nesterov && momentum > 0;
          rule.dampening = momentum > 0 && !nesterov ? 0.25 : 0;
          agrees_with_two(rule, [=](int t, double& p, double g, double& b, double&) {
            if (!after) g += 0.1 * p;
            if (momentum > 0) {
              b = t == 1 ? g : momentum * b + (1 - rule.dampening) * g;
              g = nesterov ? g + momentum * b : b;
            }
            if (after) g += 0.1 * p;
            p += -0.05 * g;
          });
        }
  CHECK_FALSE(preset::apex::FusedSGD().decoupled);
  CHECK(preset::timm::SGDW().decoupled);
}

TEST_CASE("apex, DeepSpeed, bitsandbytes, MLX: Adagrad, L2 or in adagrad_w_mode") {
  for (bool const w_mode : {false, true})
    for (double const eps : {1e-10, 1e-8}) {
      auto const formula = [=](int, double& p, double g, double& s, double&) {
        if (!w_mode) g += 0.1 * p;
        s += g * g;
        p -= 1e-2 * (g / (std::sqrt(s) + eps) + (w_mode ? 0.1 * p : 0));
      };
      for (auto rule : {preset::apex::FusedAdagrad(), preset::deepspeed::CPUAdagrad(), preset::bitsandbytes::Adagrad(),
                        preset::mlx::Adagrad()}) {
        if (rule.eps != eps) continue;
        rule.decoupled = w_mode;
        agrees_with_two(decayed(rule, 0.1), formula);
      }
    }
  CHECK(preset::apex::FusedAdagrad().eps == 1e-10);
  CHECK(preset::deepspeed::CPUAdagrad().eps == 1e-10);
  CHECK(preset::bitsandbytes::Adagrad().eps == 1e-10);
  CHECK(preset::mlx::Adagrad().eps == 1e-8);
  auto slower = decayed(preset::apex::FusedAdagrad(), 0.1);
  slower.decoupled = true;
  slower.lr_decay = 0.5;
  agrees_with_two(slower, [](int t, double& p, double g, double& s, double&) {
    s += g * g;
    p -= 1e-2 / (1 + 0.5 * (t - 1)) * (g / (std::sqrt(s) + 1e-10) + 0.1 * p);
  });
}

TEST_CASE("apex: FusedLAMB has a ratio only where there is decay (multi_tensor_lamb)") {
  for (double const wd : {0.01, 0.0})
    agrees_by_tensor(
        decayed(preset::apex::FusedLAMB(), wd),
        [wd](int t, double p, double m, double v) { return corrected_direction(t, m, v, 1e-6) + wd * p; },
        [wd](int, double p, double u) { return 1e-3 * (wd != 0 && p > 0 && u > 0 ? p / u : 1); });
  CHECK(preset::apex::FusedLAMB().weight_decay == 0.01);
}

TEST_CASE("optax: eps_root stands inside the root of lamb") {
  auto lamb = preset::optax::lamb();
  lamb.eps_root = 0.01;
  agrees_by_tensor(
      lamb, [](int t, double, double m, double v) { return corrected_direction(t, m, v, 1e-6, 0.01); },
      [](int, double p, double u) { return 1e-3 * (p / u); });
}

TEST_CASE("optax: adamaxw and sophia") {
  auto const adamaxw = [](double wd) {
    return [wd](int t, double& p, double g, double& m, double& u) {
      m = 0.9 * m + (1 - 0.9) * g;
      u = std::max(0.999 * u, std::abs(g) + 1e-8);
      p -= 2e-3 * (m / corrected(0.9, t) / u + wd * p);
    };
  };
  agrees_with_two(preset::optax::adamaxw(), adamaxw(1e-4));
  agrees_with_two(decayed(preset::optax::adamaxw(), 20), adamaxw(20));
  agrees_with_two(preset::optax::sophia(), [](int t, double& p, double g, double& m, double&) {  // h = 0
    m = 0.965 * m + (1 - 0.965) * g;
    double const u = std::max(-1.0, std::min(1.0, m / corrected(0.965, t) / 1e-8));
    p -= 1e-4 * (u + 1e-4 * p);
  });
  CHECK(preset::optax::sophia().gamma == 0.01);
}

TEST_CASE("optax, timm: RMSprop with lr in the momentum, where a new lr arrives slowly") {
  auto const run = [](auto const& rule, double initial, double alpha, double eps) {
    moments s;
    for (auto& v : s.v) std::fill(std::begin(v), std::end(v), initial);
    auto const lr = [](std::int64_t t) { return t < 50 ? 0.02 : 0.002; };
    double const decay = rule.weight_decay;
    auto const formula = [=](int t, int k, auto& p, auto const& g) mutable {
      for (std::size_t i = 0; i < p.size(); ++i) {
        s.v[k][i] = alpha * s.v[k][i] + (1 - alpha) * g[i] * g[i];
        s.m[k][i] = 0.9 * s.m[k][i] + lr(t - 1) * g[i] / std::sqrt(s.v[k][i] + eps);
        p[i] -= lr(t - 1) * decay * p[i];
        p[i] -= s.m[k][i];
      }
    };
    agrees(rule, formula, descent::learning_rate(lr));
  };
  auto optax = preset::optax::rmsprop();
  optax.momentum = 0.9;
  run(optax, 0, 0.9, 1e-8);
  auto timm = decayed(preset::timm::RMSpropTF(), 0.1);
  timm.momentum = 0.9;
  timm.decoupled = true;
  run(timm, 1, 0.9, 1e-10);
}

TEST_CASE("flashlight: decay without lr, before the step; Adam and NAG have it with lr") {
  agrees(decayed(preset::flashlight::AMSgrad(), 0.01),
         [s = moments{}, most = moments{}](int, int k, auto& p, auto const& g) mutable {
           for (std::size_t i = 0; i < p.size(); ++i) {
             p[i] = p[i] - 0.01 * p[i];
             s.add(k, i, g[i], 0.9, 0.999);
             most.v[k][i] = std::max(most.v[k][i], s.v[k][i]);
             p[i] -= 1e-3 * s.m[k][i] / (std::sqrt(most.v[k][i]) + 1e-8);
           }
         });
  auto delta = decayed(preset::flashlight::Adadelta(), 0.01);
  delta.lr = 0.5;
  agrees_with_two(delta, adadelta_with(0.5, 0.01, 0.9, 1e-8));
  auto grad = decayed(preset::flashlight::Adagrad(), 0.01);
  CHECK(grad.lr == 1);
  grad.lr = 0.5;
  agrees_with_two(grad, adagrad_with(0.5, 0.01));
  for (bool const use_first : {false, true}) {
    auto prop = decayed(preset::flashlight::RMSProp(), 0.01);
    prop.centered = use_first;
    agrees_with_two(prop, [use_first](int, double& p, double g, double& first, double& second) {
      p = p - 0.01 * p;
      second = 0.99 * second + (1 - 0.99) * g * g;
      first = 0.99 * first + (1 - 0.99) * g;
      p -= 1e-2 * g / (std::sqrt(second - (use_first ? first * first : 0)) + 1e-8);
    });
  }
  agrees_by_element(decayed(preset::flashlight::Adam(), 0.1), [](int t, double p, double m, double v) {
    p = p - 1e-3 * 0.1 * p;
    return p - corrected_rate(1e-3, t) * m / (std::sqrt(v) + 1e-8);
  });
  agrees_with_two(decayed(preset::flashlight::NAG(), 0.1), [](int, double& p, double g, double& v, double&) {
    p = p * (1 - 1e-2 * 0.1);
    v = 0.99 * v + 1e-2 * g;
    p -= 1e-2 * g + 0.99 * v;
  });
  agrees_with_two(preset::flashlight::SGD(), [](int, double& p, double g, double&, double&) { p -= 1e-3 * g; });
}

TEST_CASE("decoupled decay with lr, of the rules that flashlight has without") {
  agrees_with_two(descent::adadelta{.lr = 0.5, .weight_decay = 0.01, .decoupled = true},
                  adadelta_with(0.5, 0.5 * 0.01, 0.9, 1e-6));
}

TEST_CASE("dlib: sgd and adam decay by L2, 5e-4 by default") {
  agrees_with_two(decayed(preset::dlib::sgd(), 0.1), [](int, double& p, double g, double& v, double&) {
    v = 0.9 * v - 0.1 * 1e-2 * p - 1e-2 * g;
    p += v;
  });
  CHECK(preset::dlib::sgd().weight_decay == 5e-4);
  agrees_by_element(preset::dlib::adam(), [](int t, double p, double m, double v) {
    return p - corrected_rate(1e-3, t) * m / (std::sqrt(v) + 1e-8);
  }, 5e-4);
}

TEST_CASE("bitsandbytes: SGD, RMSprop and AdEMAMix; MLX: RMSprop and AdaDelta; ensmallen: RMSProp (kernels.cu)") {
  agrees_with_two(decayed(preset::bitsandbytes::SGD(), 0.1), [](int t, double& p, double g, double& b, double&) {
    g += 0.1 * p;
    b = t == 1 ? g : 0.9 * b + g;
    p -= 1e-3 * b;
  });
  for (auto const& rule : {preset::bitsandbytes::RMSprop(), preset::mlx::RMSprop(), preset::ensmallen::RMSProp()})
    agrees_with_two(rule, [](int, double& p, double g, double& v, double&) {
      v = 0.99 * v + (1 - 0.99) * g * g;
      p -= 1e-2 * g / (std::sqrt(v) + 1e-8);
    });
  agrees(preset::bitsandbytes::AdEMAMix(),
         [s = moments{}, slow = moments{}](int t, int k, auto& p, auto const& g) mutable {
           for (std::size_t i = 0; i < p.size(); ++i) {
             s.add(k, i, g[i], 0.9, 0.999);
             slow.m[k][i] = 0.9999 * slow.m[k][i] + (1 - 0.9999) * g[i];
             p[i] *= 1 - 1e-3 * 1e-2;
             double const root = std::sqrt(s.v[k][i]) / std::sqrt(corrected(0.999, t));
             p[i] -= 1e-3 * (s.m[k][i] / corrected(0.9, t) + 5 * slow.m[k][i]) / (root + 1e-8);
           }
         });
  agrees_with_two(preset::mlx::AdaDelta(), adadelta_with(1, 0, 0.9, 1e-6));
}

TEST_CASE("bitsandbytes: LARS and LAMB cap the step's norm") {
  for (double const largest : {0.02, 0.4}) {
    auto lars = preset::bitsandbytes::LARS();
    CHECK(lars.trust == 0.02);
    lars.lr = 0.1;
    lars.trust = largest;
    descent::chain const rule{descent::l2{0.1}, lars};
    agrees(rule, [largest, s = moments{}](int t, int k, auto& p, auto const& g) mutable {
      std::vector<double> u;
      for (std::size_t i = 0; i < p.size(); ++i) {
        s.m[k][i] = t == 1 ? g[i] + 0.1 * p[i] : 0.9 * s.m[k][i] + (g[i] + 0.1 * p[i]);
        u.push_back(s.m[k][i]);
      }
      double const scale = norm(u) > largest * norm(p) ? largest * norm(p) / norm(u) : 1;
      for (std::size_t i = 0; i < p.size(); ++i) p[i] -= 0.1 * scale * u[i];
    });
  }
  for (double const largest : {1.0, 0.1}) {
    auto lamb = preset::bitsandbytes::LAMB();
    CHECK(lamb.trust == 1);
    lamb.trust = largest;
    agrees_by_tensor(
        lamb, [](int t, double, double m, double v) { return corrected_direction(t, m, v, 1e-8); },
        [largest](int, double p, double u) { return 1e-3 * (u > largest * p ? largest * p / u : 1); });
  }
}

TEST_CASE("DeepSpeed, bitsandbytes, MLX: Lion, and its step at sign 0") {
  auto const formula = [](double b2, double at_zero) {
    return [=](int t, double& p, double g, double& m, double&) {
      if (t == 1 && g == 0) FAIL("the first gradients are not 0");
      double const c = 0.9 * m + (1 - 0.9) * g;
      p = p * (1 - 1e-3 * 0.1) + (c > 0 ? -1e-3 : c < 0 ? 1e-3 : -at_zero * 1e-3);
      m = b2 * m + (1 - b2) * g;
    };
  };
  agrees_with_two(decayed(preset::deepspeed::FusedLion(), 0.1), formula(0.999, -1));
  for (auto rule : {preset::bitsandbytes::Lion(), preset::mlx::Lion()}) {
    rule.lr = 1e-3;
    agrees_with_two(decayed(rule, 0.1), formula(0.99, 0));
  }
  double p[2] = {1, 1}, g[2] = {0, 1};
  descent::parameters<double> list;
  list.add("p", p, g, 2);
  descent::optimizer opt{list, preset::deepspeed::FusedLion()};
  opt.step();
  CHECK(p[0] == 1 + 1e-3);
  CHECK(p[1] == 1 - 1e-3);
}

TEST_CASE("ensmallen: AdaBelief, AMSGrad, AdaBound, AMSBound, QHUpdate, OptimisticAdam, momentum") {
  agrees_with_two(preset::ensmallen::AdaBelief(), [](int t, double& p, double g, double& m, double& s) {
    m = 0.9 * m + (1 - 0.9) * g;
    s = 0.999 * s + (1 - 0.999) * (g - m) * (g - m) + 1e-12;
    p -= m / corrected(0.9, t) * 1e-3 / (std::sqrt(s / corrected(0.999, t)) + 1e-12);
  });
  auto ams = preset::ensmallen::AMSGrad();
  ams.eps = 0.01;
  agrees(ams, [s = moments{}, most = moments{}](int t, int k, auto& p, auto const& g) mutable {
    for (std::size_t i = 0; i < p.size(); ++i) {
      s.add(k, i, g[i], 0.9, 0.999);
      most.v[k][i] = std::max(most.v[k][i], s.v[k][i]);
      double const rate = corrected_rate(1e-3, t);
      p[i] -= rate * s.m[k][i] / (std::sqrt(most.v[k][i]) + 0.01);
    }
  });
  for (bool const bound : {false, true})
    agrees(bound ? preset::ensmallen::AMSBound() : preset::ensmallen::AdaBound(),
           [bound, s = moments{}, most = moments{}](int t, int k, auto& p, auto const& g) mutable {
             for (std::size_t i = 0; i < p.size(); ++i) {
               s.add(k, i, g[i], 0.9, 0.999);
               most.v[k][i] = bound ? std::max(most.v[k][i], s.v[k][i]) : s.v[k][i];
               double const rate = corrected_rate(1e-3, t);
               double const low = 0.1 * (1 - 1 / (1e-3 * t + 1)), high = 0.1 * (1 + 1 / (1e-3 * t));
               p[i] -= std::min(std::max(rate / (std::sqrt(most.v[k][i]) + 1e-8), low), high) * s.m[k][i];
             }
           });
  agrees_with_two(preset::ensmallen::QHSGD(), [](int, double& p, double g, double& v, double&) {
    v = 0.999 * v + (1 - 0.999) * g;
    p -= 0.01 * ((1 - 0.7) * g + 0.7 * v);
  });
  auto const optimistic = [s = moments{}, old = moments{}](int t, int k, auto& p, auto const& g) mutable {
    for (std::size_t i = 0; i < p.size(); ++i) {
      s.add(k, i, g[i], 0.9, 0.999);
      double const u = corrected_direction(t, s.m[k][i], s.v[k][i], 1e-8);
      p[i] -= 2 * 1e-3 * u - 1e-3 * old.m[k][i];
      old.m[k][i] = u;
    }
  };
  agrees(preset::ensmallen::OptimisticAdam(), optimistic);
  for (bool const nesterov : {false, true})
    agrees_with_two(nesterov ? preset::ensmallen::NesterovMomentumSGD() : preset::ensmallen::MomentumSGD(),
                    [nesterov](int, double& p, double g, double& v, double&) {
                      v = 0.5 * v - 0.01 * g;
                      p += nesterov ? 0.5 * v - 0.01 * g : v;
                    });
}

TEST_CASE("presets whose rule is ours state what differs in defaults") { CHECK(preset::torch::SparseAdam().eps_hat); }

// ---- hyperparameters that are floats elsewhere ----------------------------------------------------------------------

namespace {

/// How far apart adamw and a client's loop with floats are in 3000 steps of 256 elements.
struct apart {
  bool same_m = true, same_v = true, same_p = true;  // the bits, all the time
  double m = 0, v = 0, p = 0;  // the largest differences at the end, of m and p divided by the largest one
  double update[4] = {};  // the largest relative differences of steps 1 to 9, 10 to 99, 100 to 999 and 1000 to 3000
};

/// How the client finds m / (1 - b1^t) and v / (1 - b2^t): by factors or by divisors found in double, or by powf.
enum class correction { factor, divisor, powf };

apart from_a_loop(descent::adamw const& rule, correction how) {
  constexpr std::size_t n = 256;
  constexpr float lr = 1e-3f, b1 = 0.9f, b2 = 0.999f, eps = 1e-8f, wd = 0.1f;
  std::vector<float> p(n), g(n), q(n), m(n), v(n);
  for (std::size_t i = 0; i < n; ++i) p[i] = q[i] = 1 + float(i) / n;
  descent::parameters<float> list;
  list.add("w", p, g);
  descent::optimizer opt{list, rule};
  auto const ours_m = opt.state("w", "m"), ours_v = opt.state("w", "v");
  apart found;
  for (int t = 1; t <= 3000; ++t) {
    double const d1 = 1 - descent::power(double(b1), t), d2 = 1 - descent::power(double(b2), t);
    double const ours_d1 = 1 - descent::power(rule.beta1, t), ours_d2 = 1 - descent::power(rule.beta2, t);
    for (std::size_t i = 0; i < n; ++i)
      g[i] = float((std::uint64_t(i) * 2654435761u + std::uint64_t(t) * 40503u * 97u) % 65521) / 32768 - 0.7f;
    opt.step();
    for (std::size_t i = 0; i < n; ++i) {
      m[i] = b1 * m[i] + (1 - b1) * g[i];
      v[i] = b2 * v[i] + (1 - b2) * g[i] * g[i];
      float mh, vh;
      if (how == correction::factor) mh = m[i] * float(1 / d1), vh = v[i] * float(1 / d2);
      else if (how == correction::divisor) mh = m[i] / float(d1), vh = v[i] / float(d2);
      else mh = m[i] / (1 - std::pow(b1, float(t))), vh = v[i] / (1 - std::pow(b2, float(t)));
      q[i] -= lr * (mh / (std::sqrt(vh) + eps) + wd * q[i]);

      found.same_m &= ours_m[i] == m[i], found.same_v &= ours_v[i] == v[i], found.same_p &= p[i] == q[i];
      double const u = double(mh) / std::sqrt(double(vh));
      double const ours = double(ours_m[i]) / ours_d1 / std::sqrt(double(ours_v[i]) / ours_d2);
      double& largest = found.update[std::min(3, int(std::log10(t)))];
      if (std::abs(u) > 0.1) largest = std::max(largest, std::abs(ours / u - 1));
    }
  }
  auto const largest_of = [](auto const& x) {
    return std::abs(
        double(*std::max_element(x.begin(), x.end(), [](float a, float b) { return std::abs(a) < std::abs(b); })));
  };
  for (std::size_t i = 0; i < n; ++i) {
    found.m = std::max(found.m, std::abs(double(ours_m[i]) - double(m[i])) / largest_of(m));
    found.v = std::max(found.v, std::abs(double(ours_v[i]) / double(v[i]) - 1));
    found.p = std::max(found.p, std::abs(double(p[i]) - double(q[i])) / largest_of(q));
  }
  return found;
}

}  // namespace

TEST_CASE("a client's AdamW whose fields are floats: in_floats gives its moments bit for bit, doubles nearly") {
  descent::adamw const doubles{.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.1};
  descent::adamw const floats = descent::in_floats(doubles);
  CHECK((floats.beta1 == double(0.9f) && floats.beta2 == double(0.999f) && floats.lr == double(1e-3f)));
  auto const largest = [](apart const& x) { return *std::max_element(x.update, x.update + 4); };

  // The table in docs/optimizers/other_frameworks.md.
  apart const factor = from_a_loop(floats, correction::factor);
  CHECK((factor.same_m && factor.same_v && factor.same_p));
  apart const divisor = from_a_loop(floats, correction::divisor);
  CHECK((divisor.same_m && divisor.same_v && !divisor.same_p));
  CHECK((largest(divisor) < 1.5e-7 && divisor.p < 6e-7));
  apart const powf = from_a_loop(floats, correction::powf);
  CHECK((powf.same_m && powf.same_v && !powf.same_p));
  CHECK((powf.update[0] < 4e-6 && powf.update[1] < 1.5e-6 && powf.update[2] < 3e-7 && powf.update[3] < 1e-7 &&
         powf.p < 6e-7));
  apart const other = from_a_loop(doubles, correction::factor);
  CHECK((other.m > 2e-7 && other.m < 5e-7 && other.v > 1e-5 && other.v < 2e-5));
  CHECK((other.update[0] < 7e-7 && other.update[1] < 1.5e-6 && other.update[2] < 5e-6));
  CHECK((other.update[3] > 6e-6 && other.update[3] < 8e-6 && other.p > 1e-6 && other.p < 1.5e-5));
}
