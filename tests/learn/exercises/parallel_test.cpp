// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// flags: -fopenmp
#include "../verdict.hpp"

#include <cstring>

namespace {

constexpr std::size_t size = 20'001;

/// The loop of the exercise, with mistakes.
struct loop {
  float lr = 0.25f, mu = 0.75f, wd = 0.125f;
  bool decoupled = false, nesterov = false;
  std::vector<float> p = std::vector<float>(size), b = p;

  void step(std::vector<float> const& g) {
    for (std::size_t i = 0; i < size; ++i) {
      float const d = decoupled ? g[i] : g[i] + wd * p[i];
      b[i] = mu * b[i] + d;
      float const decay = decoupled ? lr * wd * p[i] : 0;
      p[i] = p[i] - decay - lr * (nesterov ? d + mu * b[i] : b[i]);
    }
  }
};

void fill(std::vector<float>& g, int t) {
  for (std::size_t i = 0; i < size; ++i) g[i] = float(std::sin(double(i) + 3 * t));
}

template <class Trainer> void require_threads(Trainer const& trainer) {
  if constexpr (requires { trainer.explain(); }) {
    if (trainer.explain().find("host, cpp") != std::string::npos)
      learn::wrong(
          "the bits are right, but all steps ran on one thread: is the backend ds::host<ds::cpp>{}? Leave it out.");
  } else {
    learn::wrong("the bits are right, but all steps ran on one thread: return a ds::optimizer instead of serial_sgd.");
  }
}

}  // namespace

int main() {
  std::vector<float> p(size, 1), g(size);
  auto trainer = make_trainer(p, g);
  loop want;
  std::vector<std::pair<std::string, loop>> mistakes = {
      {"is the decay decoupled? The loop adds it to the gradient.", {.decoupled = true}},
      {"is the decay missing?", {.wd = 0}},
      {"is the momentum missing?", {.mu = 0}},
      {"are momentum and decay missing?", {.mu = 0, .wd = 0}},
      {"is this Nesterov's step? The loop's is b.", {.nesterov = true}},
      {"is the learning rate left at its default?", {.lr = 1e-3f}},
  };
  want.p.assign(size, 1);
  for (auto& [question, one] : mistakes) one.p.assign(size, 1);
  for (int t = 1; t <= 10; ++t) {
    fill(g, t);
    trainer.step();
    want.step(g);
    for (auto& [question, one] : mistakes) one.step(g);
    for (std::size_t i = 0; i < size && t == 10; ++i) {
      if (std::memcmp(&p[i], &want.p[i], sizeof p[i]) == 0) continue;
      std::string const where = "after 10 steps, p[" + std::to_string(i) + "] is " + learn::number(double(p[i])) +
                                " and should be " + learn::number(double(want.p[i]));
      for (auto const& [question, one] : mistakes)
        if (learn::same(double(p[i]), double(one.p[i]), 1e-5)) learn::wrong(where + "; " + question);
      learn::wrong(where + ", to the last bit.");
    }
  }
  require_threads(trainer);
}
