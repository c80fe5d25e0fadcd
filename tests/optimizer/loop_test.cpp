// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The recipes of docs/training_loop.md, and that each does what the page says.
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adamw.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

namespace ds = descent;

TEST_CASE(
    "the recipes of a training loop: pointers, an iteration, a log, other settings, averages, memory that moves") {
  std::vector<float> weight{4, -4, 4, -4}, dweight(4), bias{4}, dbias(1);
  float *w = weight.data(), *dw = dweight.data(), *b = bias.data(), *db = dbias.data();
  // snippet: pointers
  ds::parameters<float> params;
  params.add("weight", w, dw, 4);  // values, gradients, their number
  params.add("bias", b, db, 1, ds::group{1});
  ds::optimizer opt{params, ds::adamw{.lr = 0.25, .weight_decay = 0.5}, ds::clip_norm{1}, ds::ema{0.5},
                    ds::zero_grad{}};
  opt.group(1).weight_decay = 0;  // of the biases
  // end

  int const batches = 3;
  auto const backward = [&](int) {
    for (std::size_t i = 0; i < 4; ++i) dw[i] += 3 * weight[i];
    db[0] += 0;
  };
  // snippet: iteration
  for (int batch = 0; batch < batches; ++batch) {
    backward(batch);  // yours: adds to the gradients
    opt.step();       // clips, updates, sets the gradients to zero
  }
  // end
  CHECK(opt.report().step == 3);
  CHECK(bias[0] == 4);  // without a gradient or weight decay it stays
  CHECK(std::abs(weight[0]) < 4);
  CHECK(dweight == std::vector<float>(4));

  std::ostringstream out;
  backward(0), opt.step();
  // snippet: log
  ds::step_report const r = opt.report();  // on a GPU it waits for the stream: not in every step
  out << "step " << r.step << ", rate " << r.learning_rate << ", norm " << r.grad_norm;
  out << ", clipped by " << r.clip_factor << '\n';
  if (!r.applied) out << "skipped: " << r.why << '\n';
  // end
  CHECK(out.str().starts_with("step 4, rate 0.25, norm "));
  CHECK(out.str().find("skipped") == std::string::npos);
  CHECK(r.grad_norm > 1);
  CHECK(r.clip_factor == doctest::Approx(1 / r.grad_norm));

  auto const before = weight;
  // snippet: settings
  opt.group(0).lr *= 0.1;  // from the next step on
  opt.freeze(1);           // opt.freeze(1, false) ends it
  // end
  db[0] = 5, backward(0), opt.step();
  CHECK(opt.report().learning_rate == doctest::Approx(0.025));
  CHECK(bias[0] == 4);
  CHECK(weight != before);

  auto const trained = weight;
  std::vector<float> seen;
  auto const evaluate = [&] { seen = weight; };
  // snippet: averages
  opt.swap_average();  // the values are the averages
  evaluate();
  opt.swap_average();  // and are trained again
  // end
  CHECK(seen != trained);
  CHECK(weight == trained);

  std::vector<float> elsewhere = weight;
  w = elsewhere.data();
  // snippet: moved
  ds::parameters<float> now;  // the same names, sizes and groups
  now.add("weight", w, dw, 4);
  now.add("bias", b, db, 1, ds::group{1});
  opt.rebind(now);
  // end
  backward(0), opt.step();
  CHECK(weight == trained);
  CHECK(elsewhere != trained);
}
