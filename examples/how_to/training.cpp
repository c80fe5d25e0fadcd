// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// The tasks of docs/how_to.md that concern the training loop, each with what must hold after it.
#include "../parts/arguments.hpp"
#include "../parts/claim.hpp"
#include "my_rule.hpp"
#include "nvtx_tool.hpp"

#include <descent/any_optimizer.hpp>
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>
#include <descent/matrices/host.hpp>
#include <descent/minimizers/lbfgs.hpp>
#include <descent/optimizer/find_nonfinite.hpp>
#include <descent/policies/nvtx.hpp>
#include <descent/rules/muon.hpp>
#include <descent/training/lr_finder.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace ds = descent;
using example::claim, example::close;

namespace {

// ---- the optimizer

void groups() {
  std::vector<float> w(8, 1.f), dw(8), b(2, 1.f), db(2);
  // snippet: groups
  ds::parameters<float> params;
  params.add("layer1.weight", w, dw);
  params.add("layer1.bias", b, db, ds::group{1});
  ds::optimizer opt{params, ds::adamw{.lr = 1e-3, .weight_decay = 0.1}};
  opt.group(1).weight_decay = 0;
  // end
  opt.step();
  claim(close(w[0], 1 - 1e-4, 1e-7) && b[0] == 1, "only the weights decay");
}

void rates() {
  std::vector<float> w(8, 1.f), dw(8, 1.f), b(2, 1.f), db(2, 1.f);
  ds::parameters<float> params;
  params.add("head", w, dw);
  params.add("backbone", b, db, ds::group{1});
  // snippet: rates
  ds::cosine const factor{.peak = 1, .steps = 1000};
  ds::optimizer opt{params, ds::adamw{.lr = 1e-3, .weight_decay = 0}, ds::scale_learning_rate(factor)};
  opt.group(1).lr = 1e-4;
  // end
  opt.step();
  claim(close(1 - w[0], 1e-3, 1e-3) && close(1 - b[0], 1e-4, 1e-3), "each group has its rate");
}

void schedule() {
  std::vector<float> w(8), dw(8, 1.f);
  ds::parameters<float> params;
  params.add("w", w, dw);
  // snippet: schedule
  auto const rate = ds::warmup<ds::cosine>{.steps = 100, .then = {.peak = 3e-4, .steps = 900}};
  ds::optimizer opt{params, ds::adamw{}, ds::learning_rate(rate)};
  for (int t = 0; t < 1000; ++t) {
    opt.step();
    if (t % 100 == 0) std::printf("step %d: lr %.2g\n", t, opt.report().learning_rate);
  }
  // end
  claim(opt.report().learning_rate == rate(999) && rate(100) == 3e-4, "the rate in use is that of the schedule");
}

// snippet: own_schedule
/// A sawtooth: from peak to 0 in each period.
struct sawtooth {
  double peak = 1e-3;
  std::int64_t period = 100;

  DESCENT_HD double operator()(std::int64_t step) const { return peak * (1 - double(step % period) / double(period)); }
};
// end

void own_schedule() {
  std::vector<float> w(8), dw(8, 1.f);
  ds::parameters<float> params;
  params.add("w", w, dw);
  // snippet: own_schedule_used
  ds::optimizer opt{params, ds::adamw{}, ds::learning_rate(sawtooth{.peak = 0.01, .period = 4})};
  // end
  double last = 0;
  for (int t = 0; t < 5; ++t) {
    opt.step();
    double const rate = opt.report().learning_rate;
    claim(t == 0 || (t == 4) == (rate > last), "the rate falls and starts again");
    last = rate;
  }
  claim(last == 0.01, "at its peak");
}

void stalls() {
  std::vector<float> w(8, 1.f), dw(8);
  ds::parameters<float> params;
  params.add("w", w, dw);
  int epochs = 0;
  auto const train_epoch = [&](auto& opt) { opt.step(), ++epochs; };
  auto const validation_loss = [&] { return epochs < 3 ? 1. / epochs : 0.5; };
  // snippet: stalls
  ds::optimizer opt{params, ds::sgd{.lr = 0.1}, ds::on_plateau{{.factor = 0.5, .patience = 4}}};
  for (int epoch = 0; epoch < 1000; ++epoch) {
    train_epoch(opt);
    opt.observe(validation_loss());
    if (opt.report().learning_rate < 1e-6) break;
  }
  // end
  // The best loss is in epoch 2, so epochs 7, 12, ... halve the rate. After 17 halvings it is below 1e-6.
  claim(epochs == 2 + 17 * 5 + 1 && close(opt.report().learning_rate, 0.1 / (1 << 17), 1e-9), "five for each halving");
}

void finder() {
  std::vector<float> w(8, 4.f), dw(8);
  ds::parameters<float> params;
  params.add("w", w, dw);
  // snippet: finder
  ds::optimizer opt{params, ds::sgd{}};
  auto const curve = ds::find_learning_rate(opt, params, {.lowest = 1e-4, .highest = 10}, [&] {
    double loss = 0;  // of the next batch, with its gradients
    for (std::size_t i = 0; i < w.size(); ++i) dw[i] = w[i], loss += 0.5 * w[i] * w[i];
    return loss;
  });
  opt.group(0).lr = curve.steepest();
  // end
  claim(w[0] == 4, "the values are back");
  claim(opt.group(0).lr > 0.01 && opt.group(0).lr < 2, "the steepest rate is below the limit of stability, 2");
}

void clipping() {
  std::vector<float> w(2), dw{3, 4};
  ds::parameters<float> params;
  params.add("w", w, dw);
  // snippet: clipping
  ds::optimizer opt{params, ds::sgd{.lr = 1}, ds::clip_norm{1}};
  opt.step();
  auto const r = opt.report();
  std::printf("norm %g, gradients times %g\n", r.grad_norm, r.clip_factor);
  // end
  claim(r.grad_norm == 5 && close(r.clip_factor, 0.2, 1e-7), "the report has the norm before clipping, and the factor");
  claim(close(std::hypot(w[0], w[1]), 1, 1e-6), "the update has the norm 1");
}

void accumulation() {
  std::vector<float> w(1), dw(1);
  ds::parameters<float> params;
  params.add("w", w, dw);
  auto const backward = [&](int batch) { dw[0] += float(batch); };
  // snippet: accumulation
  ds::optimizer opt{params, ds::sgd{.lr = 1}, ds::accumulate{4}, ds::zero_grad{}};
  for (int batch = 0; batch < 8; ++batch) {
    backward(batch);  // adds to the gradients
    opt.step();       // updates with the mean at every fourth call
  }
  // end
  claim(opt.report().step == 2 && w[0] == -(0 + 1 + 2 + 3) / 4.f - (4 + 5 + 6 + 7) / 4.f, "two updates with means");
}

void averages() {
  std::vector<float> w(8, 1.f), dw(8);
  ds::parameters<float> params;
  params.add("w", w, dw);
  float of_average = 0;
  auto const evaluate = [&] { return w[0]; };
  // snippet: averages
  ds::optimizer opt{params, ds::sgd{.lr = 0.001}, ds::ema{.decay = 0.9}};
  for (int t = 0; t < 1000; ++t) {
    for (std::size_t i = 0; i < w.size(); ++i) dw[i] = w[i];
    opt.step();
    if ((t + 1) % 500 == 0) {
      opt.swap_average();  // the values are the averages
      of_average = evaluate();
      opt.swap_average();  // the values are the trained ones again, bit for bit
    }
  }
  // end
  claim(of_average == opt.average("w")[0] && of_average > w[0] && close(w[0], std::pow(0.999, 1000), 1e-3),
        "the averages are evaluated, and training can continue");

  std::vector<float> mine(8);
  // snippet: own_averages
  ds::state_memory memory;
  memory.add("w.average", mine);  // a vector, a span or a pointer
  ds::optimizer other{params, ds::sgd{.lr = 0.001}, ds::ema{.decay = 0.9}, ds::state_in{&memory}};
  // end
  other.step();
  claim(other.average("w").data() == mine.data() && mine[0] != w[0] && close(mine[0], w[0], 0.01),
        "averages of the caller");
}

void freezing() {
  std::vector<float> w(8), dw(8, 1.f), b(2), db(2, 1.f);
  // snippet: freezing
  ds::parameters<float> params;
  params.add("backbone", w, dw, ds::group{0});
  params.add("head", b, db, ds::group{1});
  ds::optimizer opt{params, ds::adamw{}};
  opt.freeze(0);
  opt.step();  // trains the head alone
  // end
  claim(w[0] == 0 && b[0] != 0, "a frozen group stays");
  // snippet: thawing
  opt.freeze(0, false);
  // end
  opt.step();
  claim(w[0] != 0, "and moves once it is thawed");
}

void projection() {
  std::vector<ds::half> w(8, ds::half(0.f)), dw(8, ds::half(1.f));
  ds::parameters<ds::half> params;
  params.add("w", w, dw);
  // snippet: projection
  ds::optimizer opt{params, ds::sgd{.lr = 0.1}, ds::master<float>{}};
  opt.step();
  for (auto& x : w)
    if (float(x) < 0) x = ds::half(0.f);
  opt.reload_values();  // with masters or slow weights, which the next step would start from
  // end
  claim(float(w[0]) == 0, "the values are projected");
  std::ranges::fill(dw, ds::half(0.f));
  opt.step();
  claim(float(w[0]) == 0, "and stay so");
}

// snippet: own_policy
/// Keeps the parameters in a box:   next <- min(max(next, low), high)
struct box {
  double low = -1, high = 1;

  using policy_kind = ds::kind::around<box>;
  template <class Real> struct terms { Real low, high; };
  DESCENT_HD terms<double> at(std::int64_t, double) const { return {low, high}; }

  template <class Real> DESCENT_HD static Real around(Real, Real, Real next, terms<Real> const& k) {
    using ds::max, ds::min;
    return min(max(next, k.low), k.high);
  }
};
// end

void own_policy() {
  std::vector<float> w(8), dw(8, 1.f);
  ds::parameters<float> params;
  params.add("w", w, dw);
  // snippet: own_policy_used
  ds::optimizer opt{params, ds::sgd{.lr = 0.1}, box{.low = -0.25}};
  // end
  for (int t = 0; t < 2; ++t) opt.step();
  claim(close(w[0], -0.2, 1e-6), "inside of the box the policy changes nothing");
  for (int t = 0; t < 5; ++t) opt.step();
  claim(w[0] == -0.25f, "the box holds the values");
}

void own_rule() {
  std::vector<float> w(8), dw(8, 2.f);
  ds::parameters<float> params;
  params.add("w", w, dw);
  // snippet: own_rule_used
  ds::optimizer opt{params, my_rule{.lr = 0.01}, ds::clip_norm{10}};
  // end
  opt.step();
  claim(close(w[0], -0.01 * 2 / (0.1 * 2), 1e-5), "the first step is lr / (1 - beta)");
}

void cautious() {
  std::vector<float> w(2, 1.f), dw{1, -1};
  ds::parameters<float> params;
  params.add("w", w, dw);
  // snippet: cautious
  ds::optimizer opt{params, ds::adamw{.lr = 1e-2, .weight_decay = 0}, ds::cautious_decay{.weight_decay = 0.1}};
  // end
  opt.step();
  claim(close(w[0], 1 - 1e-2 - 1e-3, 1e-6) && close(w[1], 1 + 1e-2, 1e-6),
        "only the element that moves towards zero decays");
}

// snippet: run_time
ds::any_optimizer make_optimizer(ds::parameters<float> const& params, std::string const& name, double lr) {
  std::variant<ds::adamw, ds::lion> rule;
  if (name == "lion") rule = ds::lion{};
  auto opt = ds::choose([&](auto chosen) { return ds::any_optimizer{ds::optimizer{params, chosen}}; }, rule);
  opt.set(0, "lr", lr);
  return opt;
}
// end

void run_time() {
  for (std::string const name : {"adamw", "lion"}) {
    std::vector<float> w(8), dw(8, 1.f);
    ds::parameters<float> params;
    params.add("w", w, dw);
    auto opt = make_optimizer(params, name, 0.5);
    opt.step();
    claim(close(w[0], -0.5, 1e-6) && opt.get(0, "beta2") == (name == "lion" ? 0.99 : 0.999), name);
  }
}

void matrices() {
  std::vector<float> W(64 * 32), dW(W.size()), E(50 * 64), dE(E.size(), 1.f), b(32), db(32, 1.f);
  for (std::size_t i = 0; i < dW.size(); ++i) dW[i] = float(i % 7) - 3;
  // snippet: matrices
  ds::parameters<float> params;
  params.add("W", W, dW, ds::shape{64, 32});  // with a shape: by muon
  params.add("embedding", E, dE);             // a matrix, but without its shape: by adamw
  params.add("b", b, db, ds::group{1});       // by adamw, without decay
  auto const factor = ds::warmup<ds::cosine>{.steps = 100, .then = {.peak = 1, .steps = 900}};
  ds::optimizer opt{params, ds::adamw{.lr = 1e-3, .weight_decay = 0.1},
                    ds::matrices{ds::muon{.lr = 0.02, .weight_decay = 0.1}},
                    ds::scale_learning_rate(factor)};  // of both rules, in all groups
  opt.group(1).weight_decay = 0;
  opt.step();
  // end
  double squares = 0;
  for (float const x : W) squares += double(x) * double(x);
  double const first = factor(0);
  claim(close(b[0], -1e-3 * first, 1e-3) && close(E[0], -1e-3 * first, 1e-3), "vectors and embedding are adamw's");
  claim(std::sqrt(squares) > 0.02 * first, "one step also updates the matrix");
}

void matrices_by_name() {
  struct tensor {
    std::string name;
    std::vector<std::int64_t> sizes;
    std::vector<float> w, dw;
    tensor(std::string n, std::vector<std::int64_t> s) : name(std::move(n)), sizes(std::move(s)) {
      std::int64_t count = 1;
      for (auto const size : sizes) count *= size;
      w.resize(std::size_t(count)), dw.resize(std::size_t(count), 1.f);
    }
  };
  std::vector<tensor> tensors{{"embed.weight", {50, 8}}, {"0.weight", {8, 8}}, {"0.bias", {8}},
                              {"1.weight", {8, 16}},     {"1.bias", {8}},      {"head.weight", {50, 8}}};
  // snippet: matrices_by_name
  ds::parameters<float> params;
  for (auto& t : tensors) {  // of your model: name, sizes, values, gradients
    bool const matrix = t.sizes.size() == 2;
    bool const end = t.name.find("embed") != t.name.npos || t.name.find("head") != t.name.npos;
    if (matrix && !end) params.add(t.name, t.w, t.dw, ds::shape{t.sizes[0], t.sizes[1]});  // by muon
    else params.add(t.name, t.w, t.dw, ds::group{matrix ? 0 : 1});                            // by adamw
  }
  ds::optimizer opt{params, ds::adamw{.lr = 1e-3, .weight_decay = 0.1}, ds::matrices{ds::muon{.lr = 0.02}}};
  opt.group(1).weight_decay = 0;
  // end
  // snippet: matrices_checked
  for (auto const& t : tensors)  // throws if a name is not in the list
    std::printf("%s: %s\n", t.name.c_str(), opt.matrix_state<0>(t.name).empty() ? "adamw" : "muon");
  std::printf("%s", opt.explain().c_str());
  // end
  auto const said = opt.explain();
  claim(said.starts_with("1008 parameters in 6 tensors, "), "explain() counts all parameters");
  claim(said.find("\nmatrix rule for 2 tensors ('0.weight', '1.weight'), muon: lr 0.02, ") != said.npos,
        "and names the matrices");
  for (auto const& t : tensors)
    claim(opt.matrix_state<0>(t.name).empty() == (t.name != "0.weight" && t.name != "1.weight"), "each has one rule");
  auto const refused = [](auto const& f) {
    try {
      f();
    } catch (std::invalid_argument const& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  claim(refused([&] { params.add("0.bias", tensors[0].w, tensors[0].dw); }) != "", "a name is refused twice");
  claim(refused([&] { (void)opt.matrix_state<0>("2.weight"); }) != "", "a name that is missing");
  params.add("again", tensors[1].w, tensors[1].dw);
  std::string const twice = refused([&] { ds::optimizer both{params, ds::sgd{}}; });
  claim(twice.find("'again'") != twice.npos && twice.find("'0.weight'") != twice.npos, "memory, too, is refused twice");
}

void embedding() {
  constexpr int rows = 6, columns = 3;
  std::vector<float> e(rows * columns), de(rows * columns, 1.f);
  std::vector<int> const tokens{4, 1, 1, -1};
  // snippet: embedding
  ds::parameters<float> params;
  params.add("embedding", e, de, ds::shape{rows, columns});
  ds::optimizer opt{params, ds::adam{.lr = 0.1}, ds::masked_rows<ds::row_step::own>{}};
  opt.select_rows("embedding", tokens.data(), std::ssize(tokens));  // the rows that this batch used
  opt.step();
  // end
  for (int i = 0; i < rows; ++i)
    claim(close(e[std::size_t(i * columns)], i == 1 || i == 4 ? -0.1 : 0, 1e-6), "only the selected rows move, once");
  opt.step();
  claim(close(e[columns], -0.2, 1e-6) && e[0] == 0, "a selection holds until the next one");
}

void min_max() {
  std::vector<float> x{0, 0}, dx(2), multiplier{0}, dmultiplier(1);
  ds::parameters<float> weights, multipliers;
  weights.add("x", x, dx);
  multipliers.add("multiplier", multiplier, dmultiplier);
  // snippet: min_max
  ds::optimizer down{weights, ds::sgd{.lr = 0.05}};
  ds::optimizer up{multipliers, ds::sgd{.lr = 0.05}, ds::maximize{}, box{.low = 0, .high = 1e6}};
  for (int t = 0; t < 1000; ++t) {  // x^2 + y^2 + multiplier (1 - x - y)
    for (std::size_t i = 0; i < 2; ++i) dx[i] = 2 * x[i] - multiplier[0];
    dmultiplier[0] = 1 - x[0] - x[1];
    down.step();
    up.step();
  }
  // end
  claim(close(x[0], 0.5, 1e-4) && close(x[1], 0.5, 1e-4) && close(multiplier[0], 1, 1e-4), "the constraint holds");
}

void curve() {
  std::vector<double> x, y;
  for (int i = 0; i < 20; ++i) x.push_back(0.2 * i), y.push_back(3 * std::exp(-0.7 * x.back()));
  // snippet: curve
  std::vector<double> p{1, 1}, dp(2);  // of the curve p[0] exp(-p[1] x)
  ds::parameters<double> params;
  params.add("p", p, dp);
  ds::lbfgs_optimizer opt{params, ds::lbfgs{.max_iterations = 100, .max_evaluations = 200}};
  auto const result = opt.minimize([&] {
    double loss = dp[0] = dp[1] = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      double const e = std::exp(-p[1] * x[i]), r = p[0] * e - y[i];
      loss += 0.5 * r * r, dp[0] += r * e, dp[1] -= r * p[0] * e * x[i];
    }
    return loss;
  });
  std::printf("%g exp(-%g x): %s\n", p[0], p[1], std::string(result.reason()).c_str());
  // end
  claim(close(p[0], 3, 1e-5) && close(p[1], 0.7, 1e-5), "the curve is found");
}

// ---- precision

void train_half() {
  std::vector<ds::half> w(8, ds::half(0.f)), dw(8, ds::half(0.f));
  std::vector<float> const x{1, -1, 0.5f, 2, -2, 1.5f, -0.5f, 1};
  // snippet: half
  ds::parameters<ds::half> params;
  params.add("w", w, dw);
  ds::optimizer opt{params, ds::adamw{.lr = 0.01}, ds::master<float>{}, ds::dynamic_loss_scale{}};
  for (int t = 0; t < 500; ++t) {
    float const scale = float(opt.loss_scale());  // multiplies the loss; in a kernel *opt.loss_scale_pointer()
    for (std::size_t i = 0; i < w.size(); ++i) dw[i] = ds::half(scale * 4 * (float(w[i]) - x[i]));
    opt.step();
  }
  std::printf("%d steps skipped, scale %g\n", int(opt.report().skipped), opt.report().loss_scale);
  // end
  claim(opt.report().skipped > 0 && opt.report().loss_scale < 65536, "the scale backs off from overflows");
  for (std::size_t i = 0; i < x.size(); ++i) claim(close(float(w[i]), x[i], 0, 0.05), "and the run converges");
}

void train_bfloat16() {
  std::vector<ds::bfloat16> w(8, ds::bfloat16(1.f)), dw(8, ds::bfloat16(1.f));
  // snippet: bfloat16
  ds::parameters<ds::bfloat16> params;
  params.add("w", w, dw);
  ds::optimizer opt{params, ds::adamw{.lr = 1e-4, .weight_decay = 0}, ds::master<float>{}};
  // end
  for (int t = 0; t < 100; ++t) opt.step();
  claim(close(opt.master("w")[0], 0.99, 1e-3) && close(float(w[0]), 0.99, 4e-3), "small updates are not lost");
}

// snippet: half_arithmetic
float dot(std::vector<ds::half> const& w, std::vector<float> const& x) {
  float sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += float(w[i]) * x[i];  // w[i] * x[i] is ambiguous
  return sum;
}
void store(std::vector<ds::half>& dw, std::size_t i, float gradient) { dw[i] = ds::half(gradient); }
// end

template <class T> concept multiplies_float = requires(T w, float x) { w * x; };
static_assert(!multiplies_float<ds::half> && multiplies_float<float>);

void half_arithmetic() {
  std::vector<ds::half> w(3, ds::half(0.5f));
  store(w, 2, 2.f);
  claim(dot(w, {1, 2, 3}) == 7.5f, "halves are computed with in float");
}

// ---- ranks

void threads() {
  float mean[2] = {};
  // snippet: threads
  ds::comm::threads world{2};
  auto const train = [&](int rank) {
    auto comm = world.rank(rank);
    std::vector<float> w(8), dw(8);  // of each rank its own
    ds::parameters<float> params;
    params.add("w", w, dw);
    ds::optimizer opt{params, ds::sgd{.lr = 1}, ds::replicated{comm}};
    std::ranges::fill(dw, float(rank + 1));  // the gradient of this rank's part of the batch
    opt.step();                              // all ranks update with the mean
    mean[rank] = -w[0];
  };
  std::thread other(train, 1);
  train(0);
  other.join();
  // end
  claim(mean[0] == 1.5f && mean[1] == 1.5f, "both ranks have the mean of the gradients");
}

// ---- what a step does

void skipped() {
  std::vector<float> w(8, 1.f), dw(8), b(2), db(2);
  ds::parameters<float> params;
  params.add("w", w, dw);
  params.add("b", b, db);
  db[1] = std::numeric_limits<float>::infinity();
  // snippet: skipped
  ds::optimizer opt{params, ds::adamw{}, ds::skip_nonfinite{}};
  opt.step();
  if (auto const r = opt.report(); !r.applied) {
    std::printf("skipped: %s\n", r.why.c_str());
    for (auto const& t : opt.diagnose())
      if (!t.finite) std::printf("  %s\n", t.name.c_str());
  }
  // end
  claim(!opt.report().applied && opt.report().skipped == 1 && w[0] == 1, "the step changed nothing");
  claim(opt.report().why.find("'b'") != std::string::npos && !opt.diagnose()[1].finite, "the tensor is named");
}

void stuck() {
  std::vector<ds::half> w(8, ds::half(1.f)), dw(8);
  ds::parameters<ds::half> params;
  params.add("w", w, dw);
  int steps = 0;
  auto const backward = [&](int t) { ++steps, std::ranges::fill(dw, ds::half(t < 10 ? 1.f : HUGE_VALF)); };
  // snippet: stuck
  ds::optimizer opt{params, ds::adamw{}, ds::master<float>{}, ds::dynamic_loss_scale{}, ds::zero_grad{}};
  for (int t = 0; t < 1000; ++t) {
    backward(t);
    opt.step();
    if (auto const r = opt.last_report(); !r.applied && r.loss_scale <= 1) break;  // without waiting
  }
  std::printf("%s\n", opt.report().why.c_str());
  for (auto const& t : opt.diagnose()) std::printf("%s: %s\n", t.name.c_str(), t.finite ? "finite" : "not finite");
  for (auto const& x : ds::find_nonfinite(opt)) std::printf("%s: %d elements\n", x.name.c_str(), int(x.count));
  // end
  claim(ds::find_nonfinite(opt).empty(), "values, masters and state are finite");
  claim(steps == 26 && float(dw[0]) == 0 && opt.diagnose().size() == 1 && !opt.diagnose()[0].finite,
        "16 halvings lead to 1, and the diagnosis outlives the gradients");
  claim(opt.state<1>("w")[0] > 0 && close(opt.master("w")[0], 1, 0.02), "the state is that of the last update");
}

/// Three steps of a run, with the log that names values, gradients and state by their hash.
std::string logged(std::uint64_t seed, float change) {
  std::vector<ds::bfloat16> w(8, ds::bfloat16(1.f)), dw(8);
  ds::parameters<ds::bfloat16> params;
  params.add("w", w, dw);
  auto const backward = [&](int t) {
    for (std::size_t i = 0; i < w.size(); ++i) dw[i] = ds::bfloat16(float(w[i]) + float(t == 1) * change);
  };
  ds::optimizer opt{params, ds::adamw{}, ds::stochastic_rounding{seed}, ds::zero_grad{}};
  std::ostringstream log;
  // snippet: hashes
  auto const add = [&](int t, std::string const& name, auto const& elements) {
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (std::byte const b : std::as_bytes(std::span(elements))) hash = (hash ^ std::uint64_t(b)) * 1099511628211u;
    log << t << ' ' << name << ' ' << hash << '\n';
  };
  for (int t = 0; t < 3; ++t) {
    backward(t);
    add(t, "gradient of w", dw);
    opt.step();
    add(t, "w", w);
    opt.save([&](std::string const& name, auto elements) { add(t, name, elements); });
  }
  // end
  return log.str();
}

/// The first line of a that b does not have at its place, without the hash.
std::string first_difference(std::string const& a, std::string const& b) {
  std::istringstream left(a), right(b);
  for (std::string x, y; std::getline(left, x) && std::getline(right, y);)
    if (x != y) return x.substr(0, x.rfind(' '));
  return "";
}

void hashes() {
  claim(logged(1, 0) == logged(1, 0), "two equal runs have equal logs");
  claim(first_difference(logged(1, 0), logged(1, 0.5f)) == "1 gradient of w", "a backward pass that differs is named");
  claim(first_difference(logged(1, 0), logged(2, 0)) == "0 w", "and so is a seed, in the step that uses it");
}

void memory() {
  // snippet: memory
  std::vector<ds::bfloat16> w(4096), dw(4096);  // a sample: what counts is bytes per parameter
  ds::parameters<ds::bfloat16> params;
  params.add("sample", w, dw);
  auto const owned = ds::memory(params, ds::adamw{}, ds::master<float>{}, ds::clip_norm{1});
  double const stored = 2 * sizeof(ds::bfloat16) + owned.bytes_per_parameter();
  constexpr auto moved =
      ds::bytes_per_parameter<ds::bfloat16, ds::bfloat16, ds::adamw, ds::master<float>, ds::clip_norm>();
  std::printf("7e9 parameters: %.0f GB, a step of %.0f ms at 4 TB/s\n", stored * 7, double(moved) * 7 / 4);
  // end
  claim(stored == 16 && moved == 30, "value, gradient, master and two moments are stored");
}

void profile() {
  std::vector<float> w(8), dw(8, 1.f);
  ds::parameters<float> params;
  params.add("w", w, dw);
  example::nvtx_tool::attach();
  // snippet: profile
  ds::optimizer opt{params, ds::adamw{}, ds::clip_norm{1}, ds::nvtx_ranges{}};
  // end
  opt.step();
  auto const ranges = example::nvtx_tool::take();
  claim(ranges == std::vector<std::string>{"descent: step", "  descent: measure", "  descent: update"},
        "a profiler gets the parts of the step");

  std::vector<float> W(16, 1.f), dW(16, 1.f);
  ds::parameters<float> matrix;
  matrix.add("W", W, dW, ds::shape{4, 4});
  ds::optimizer by_muon{matrix, ds::adamw{}, ds::matrices{ds::muon{}}, ds::nvtx_ranges{}};
  by_muon.step();
  claim(example::nvtx_tool::take() ==
            std::vector<std::string>{"descent: step", "  descent: update", "    descent: matrices"},
        "also of that of matrices");
}

}  // namespace

int main() {
  return example::exit_code([] {
    for (auto const task : {groups,   rates,        schedule,   own_schedule,   stalls,           finder,
                            clipping, accumulation, averages,   freezing,       projection,       own_policy,
                            own_rule, cautious,     run_time,   matrices,       matrices_by_name, embedding,
                            min_max,  curve,        train_half, train_bfloat16, half_arithmetic,  threads,
                            skipped,  stuck,        hashes,     memory,         profile})
      task();
  });
}
