// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/preset.hpp>

#include <doctest/doctest.h>

#include "support/reference.hpp"

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
}

TEST_CASE("presets of apex, ensmallen and llm.c state what differs") {
  CHECK(preset::apex::FusedAdam().weight_decay == 0);
  CHECK(preset::apex::FusedLAMB().weight_decay == 0.01);
  CHECK_FALSE(preset::apex::FusedLAMB().always);
  CHECK(preset::ensmallen::Adam().eps_on_raw);
  CHECK(preset::torch::SparseAdam().eps_on_raw);
  CHECK(preset::llmc::AdamW().beta2 == 0.95);
}
