// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/preset.hpp>

#include <doctest/doctest.h>

#include "support/reference.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

/// Presets are what the frameworks do when only the learning rate is given.

using namespace test::reference;
namespace preset = descent::preset;

namespace {

template <class Rule> void follows(std::string const& name, std::string const& peer, Rule rule) {
  int cases = 0;
  for (golden const& g : read_goldens(DESCENT_TESTS_DIR "/reference/values_presets.txt")) {
    if (g.rule != name || !g.peer.starts_with(peer)) continue;
    INFO(g.line);
    ++cases;
    rule.lr = std::stod(g.options.at("lr"));
    difference const d = follow<double>(g, rule);
    CHECK(d.compared == 7 * 18);
    CHECK(d.way <= 1e-9);
  }
  CHECK(cases == 1);
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

// ---- frameworks that are not at hand: their formula, written down from their source, in double ----------------------

namespace {

/// Two tensors with a gradient of their own at each step.
struct tensors {
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
template <class Rule, class Formula> void agrees(Rule const& rule, Formula formula) {
  tensors ours, theirs;
  descent::parameters<double> list;
  for (int k = 0; k < 2; ++k) list.add(std::to_string(k), ours.p[k].data(), ours.g[k].data(), ours.p[k].size());
  descent::optimizer opt{list, rule};
  double furthest = 0, way = 0;
  for (int t = 1; t <= 100; ++t) {
    ours.gradients(t);
    theirs.gradients(t);
    opt.step();
    for (int k = 0; k < 2; ++k) {
      formula(t, k, theirs.p[k], theirs.g[k]);
      for (std::size_t i = 0; i < ours.p[k].size(); ++i) {
        double const apart = std::abs(ours.p[k][i] - theirs.p[k][i]);
        furthest = apart <= furthest ? furthest : apart;
        way = std::max(way, std::abs(ours.p[k][i] - tensors{}.p[k][i]));
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

/// The same for each element: formula(t, p, g, m, v) of the new moments, with Adam's betas.
template <class Rule, class Formula> void agrees_by_element(Rule const& rule, Formula formula, double decay = 0) {
  agrees(rule, [s = moments{}, formula, decay](int t, int k, auto& p, auto const& g) mutable {
    for (std::size_t i = 0; i < p.size(); ++i) {
      s.add(k, i, g[i] + decay * p[i], 0.9, 0.999);
      p[i] = formula(t, p[i], s.m[k][i], s.v[k][i]);
    }
  });
}

double corrected(double b, int t) { return 1 - std::pow(b, t); }

/// apex/optimizers/fused_novograd.py, csrc/multi_tensor_novograd.cu: the norm n, kept and blended as a norm.
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
    return [wd](int t, double p, double m, double v) {
      return p - 1e-3 * (m / corrected(0.9, t) / (std::sqrt(v / corrected(0.999, t)) + 1e-8) + wd * p);
    };
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
  strong.weight_decay = 20;  // where the order shows
  agrees_by_element(strong, formula(20));
}

TEST_CASE("MLX: Adam and AdamW do not correct bias, Adamax adds eps to u") {
  agrees_by_element(preset::mlx::Adam(), [](int, double p, double m, double v) {
    return p - 1e-3 * m / (std::sqrt(v) + 1e-8);
  });
  agrees_by_element(preset::mlx::AdamW(), [](int, double p, double m, double v) {
    return p * (1 - 1e-3 * 0.01) - 1e-3 * m / (std::sqrt(v) + 1e-8);
  });
  auto adamax = preset::mlx::Adamax();
  adamax.eps = 0.01;
  agrees(adamax, [s = moments{}](int, int k, auto& p, auto const& g) mutable {
    for (std::size_t i = 0; i < p.size(); ++i) {
      s.m[k][i] = 0.9 * s.m[k][i] + (1 - 0.9) * g[i];
      s.v[k][i] = std::max(0.999 * s.v[k][i], std::abs(g[i]));
      p[i] -= 2e-3 * s.m[k][i] / (s.v[k][i] + 0.01);
    }
  });
}

TEST_CASE("tiny-cuda-nn: Adam has L2 and eps on the raw root, its decoupled decay follows the corrected rate") {
  auto const rate = [](int t) { return 1e-3 * std::sqrt(corrected(0.999, t)) / corrected(0.9, t); };
  auto const step = [rate](int t, double p, double m, double v) { return p - rate(t) * m / (std::sqrt(v) + 1e-8); };
  agrees_by_element(preset::tcnn::Adam(), step, 1e-8);
  auto decoupled = preset::tcnn::DecoupledAdam();
  decoupled.weight_decay = 0.1;
  agrees_by_element(decoupled, [rate](int t, double p, double m, double v) {
    return (1 - 0.1 * rate(t)) * p - rate(t) * m / (std::sqrt(v) + 1e-8);
  });
  agrees(preset::tcnn::SGD(), [](int, int, auto& p, auto const& g) {
    for (std::size_t i = 0; i < p.size(); ++i) p[i] -= 1e-3 * (g[i] + 1e-8 * p[i]);
  });
}

TEST_CASE("DeepSpeed: FusedLamb takes the norm of raw moments, clamps, and corrects the rate (csrc/lamb)") {
  for (double const wd : {0.0, 0.1, 200.0})  // |u| is about wd |p| for the last, so that the ratio is below 0.01
    for (double const largest : {10.0, 0.5}) {
      auto rule = preset::deepspeed::FusedLamb();
      CHECK(rule.max_ratio == 10);
      rule.lr = 0.01;
      rule.weight_decay = wd;
      rule.max_ratio = largest;
      agrees(rule, [wd, largest, s = moments{}](int t, int k, auto& p, auto const& g) mutable {
        std::vector<double> u;
        for (std::size_t i = 0; i < p.size(); ++i) {
          s.add(k, i, g[i], 0.9, 0.999);
          u.push_back(s.m[k][i] / (std::sqrt(s.v[k][i]) + 1e-8) + wd * p[i]);
        }
        double coefficient = 1;
        if (norm(p) != 0 && norm(u) != 0) coefficient = std::max(std::min(norm(p) / norm(u), largest), 0.01);
        double const step_size = 0.01 * std::sqrt(corrected(0.999, t)) / corrected(0.9, t);
        for (std::size_t i = 0; i < p.size(); ++i) p[i] -= step_size * coefficient * u[i];
      });
    }
}

TEST_CASE("ensmallen: Adam, Nadam, AdaMax, Yogi, AdaDelta, AdaGrad") {
  agrees_by_element(preset::ensmallen::Adam(), [](int t, double p, double m, double v) {
    return p - 1e-3 * std::sqrt(corrected(0.999, t)) / corrected(0.9, t) * m / (std::sqrt(v) + 1e-8);
  });
  auto adamax = preset::ensmallen::AdaMax();
  adamax.eps = 0.01;
  agrees(adamax, [s = moments{}](int t, int k, auto& p, auto const& g) mutable {
    for (std::size_t i = 0; i < p.size(); ++i) {
      s.m[k][i] = 0.9 * s.m[k][i] + (1 - 0.9) * g[i];
      s.v[k][i] = std::max(0.999 * s.v[k][i], std::abs(g[i]));
      p[i] -= 1e-3 / corrected(0.9, t) * s.m[k][i] / (s.v[k][i] + 0.01);
    }
  });
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
  agrees(preset::ensmallen::AdaDelta(), [s = moments{}](int, int k, auto& p, auto const& g) mutable {
    for (std::size_t i = 0; i < p.size(); ++i) {
      s.v[k][i] = 0.95 * s.v[k][i] + (1 - 0.95) * g[i] * g[i];
      double const d = std::sqrt(s.m[k][i] + 1e-6) / std::sqrt(s.v[k][i] + 1e-6) * g[i];
      s.m[k][i] = 0.95 * s.m[k][i] + (1 - 0.95) * d * d;
      p[i] -= d;
    }
  });
  agrees(preset::ensmallen::AdaGrad(), [s = moments{}](int, int k, auto& p, auto const& g) mutable {
    for (std::size_t i = 0; i < p.size(); ++i) {
      s.v[k][i] += g[i] * g[i];
      p[i] -= 1e-2 * g[i] / (std::sqrt(s.v[k][i]) + 1e-8);
    }
  });
}

TEST_CASE("flashlight: AMSGrad corrects no bias") {
  descent::amsgrad rule{.bias_correction = false};
  agrees(rule, [s = moments{}, most = moments{}](int, int k, auto& p, auto const& g) mutable {
    for (std::size_t i = 0; i < p.size(); ++i) {
      s.add(k, i, g[i], 0.9, 0.999);
      most.v[k][i] = std::max(most.v[k][i], s.v[k][i]);
      p[i] -= 1e-3 * s.m[k][i] / (std::sqrt(most.v[k][i]) + 1e-8);
    }
  });
}

TEST_CASE("presets whose rule is ours state what differs in defaults") {
  CHECK(preset::apex::FusedLAMB().weight_decay == 0.01);
  CHECK_FALSE(preset::apex::FusedLAMB().always);
  CHECK(preset::torch::SparseAdam().eps_on_raw);
  CHECK(preset::deepspeed::FusedLion().beta2 == 0.999);
  CHECK(preset::bitsandbytes::AdEMAMix().weight_decay == 1e-2);
  CHECK(preset::mlx::Adagrad().eps == 1e-8);
  CHECK(preset::ensmallen::AdaBelief().eps_root == 1e-12);
  CHECK(preset::ensmallen::MomentumSGD().momentum == 0.5);
}
