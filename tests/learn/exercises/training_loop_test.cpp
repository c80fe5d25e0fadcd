// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// The loss is (w - 3)^2 / 2, so step t multiplies w - 3 by 1 - lr(t).
#include "../verdict.hpp"

using learn::number, learn::path;

namespace {

constexpr double peak = 0.5;
constexpr std::int64_t steps = 8;

/// What was called: z zero_grad, l loss, b backward, s step.
std::string calls;

struct model {
  float w = 1, dw = 0;
  double loss() {
    calls += 'l';
    return (double(w) - 3) * (double(w) - 3) / 2;
  }
  void backward() {
    calls += 'b';
    dw += w - 3;
  }
};

template <class Optimizer> struct watched {
  Optimizer& opt;
  model const& of;
  path w{};
  void zero_grad() {
    calls += 'z';
    opt.zero_grad();
  }
  void step() {
    calls += 's';
    opt.step();
    w.push_back(double(of.w));
  }
};

double rate(std::int64_t t) { return peak * (1 + std::cos(3.14159265358979323846 * double(t) / double(steps))) / 2; }

path with(bool schedule, bool clears) {
  path all;
  double w = 1, dw = 0;
  for (std::int64_t t = 0; t < steps; ++t) {
    dw = (clears ? 0 : dw) + w - 3;
    w -= (schedule ? rate(t) : peak) * dw;
    all.push_back(w);
  }
  return all;
}

void require_call(char call, std::string const& name, std::string const& consequence) {
  if (calls.find(call) == calls.npos) learn::wrong(name + " is never called: " + consequence);
}

}  // namespace

int main() {
  model m;
  ds::parameters<float> params;
  params.add("w", &m.w, &m.dw, 1);
  auto opt = make_optimizer(params, peak, steps);
  watched<decltype(opt)> seen{opt, m};
  double const loss = train(seen, m, steps);

  path const want = with(true, true);
  if (calls.empty())
    learn::wrong("after 8 steps, w is 1 and should be " + number(want.back()) +
                 "; the four calls are still to be written.");
  require_call('s', "opt.step()", "w stays 1.");
  require_call('b', "model.backward()", "the gradient stays 0.");
  if (std::count(calls.begin(), calls.end(), 's') != steps)
    learn::wrong("opt.step() is called " + std::to_string(std::count(calls.begin(), calls.end(), 's')) +
                 " times in 8 steps; call it once per step.");
  std::size_t t = 0;
  while (t < seen.w.size() && learn::same(seen.w[t], want[t], 1e-5)) ++t;
  if (t < seen.w.size()) {
    std::string const where = "after step " + std::to_string(t + 1) + ", w is " + number(seen.w[t]) +
                              " and should be " + number(want[t]) + "; ";
    std::size_t const b = calls.find('b'), s = calls.find('s'), z = calls.find('z', b);
    if (s < b) learn::wrong(where + "is step() called before backward()? It uses the gradients of the batch before.");
    if (z < s) learn::wrong(where + "is zero_grad() called after backward()? step() then finds gradients of 0.");
    bool const clears = calls.find('z') != calls.npos;
    if (!clears) learn::wrong(where + "is zero_grad() missing? Every gradient still contains those before it.");
    if (learn::same(seen.w, with(false, true), 1e-5))
      learn::wrong(where + "the calls are right, but the rate stays " + number(peak) + ": is the schedule missing?");
    learn::wrong(where + "is the schedule right? The rate of the last step was " + number(opt.report().learning_rate) +
                 " and should be " + number(rate(steps - 1)) + ".");
  }
  require_call('l', "model.loss()", "train() should return the loss of the last batch.");
  double const last = (want[steps - 2] - 3) * (want[steps - 2] - 3) / 2;
  if (!learn::same(loss, last, 1e-4))
    learn::wrong("w is right, but train() returns a loss of " + number(loss) + " and should return " + number(last) +
                 ", the last loss before its step.");
}
