// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// The runs of examples/lab/rules.cpp without a browser, for lab.py. Reads a line for each run, the rule's name and the
// settings, and prints a digest of each record and the bits of the last one. With LAB_LIBRARY, compares runs with
// ds::optimizer instead.
#include "rules.cpp"

#if defined(LAB_LIBRARY)
#include <descent/backends/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/loss_at.hpp>
#include <descent/policies/storage.hpp>
#include <descent/schedules/vary.hpp>
#endif

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int width = int(sizeof(lab::record) / sizeof(double));

int number_of(std::string const& name) {
  int i = 0;
  for (auto const& rule : lab::rules) {
    if (rule.name == name) return i;
    ++i;
  }
  std::fprintf(stderr, "lab_native: there is no rule %s\n", name.c_str());
  std::exit(1);
}

#if !defined(LAB_LIBRARY)

/// The bits, with one pattern for every NaN.
std::uint64_t bits(double x) { return x != x ? 0x7ff8000000000000 : std::bit_cast<std::uint64_t>(x); }

void print(double const* x, int count) {
  std::uint32_t low = 0x811c9dc5, high = 0x01000193;
  for (int i = 0; i < count; ++i)
    for (std::uint32_t part : {std::uint32_t(bits(x[i])), std::uint32_t(bits(x[i]) >> 32)}) {
      low = (low ^ part) * 0x01000193;
      high = (high + part + (low >> 15)) * 0x85ebca6b;
    }
  std::printf("%08x%08x ", unsigned(high), unsigned(low));
}

int run_all() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string name, word;
    words >> name;
    double* setting = lab_settings();
    while (words >> word) *setting++ = std::strtod(word.c_str(), nullptr);
    int const rule = number_of(name);
    lab_defaults(rule);
    lab_run(rule);
    auto const steps = std::size_t(lab::now.steps);
    for (std::size_t n = 0; n <= steps; ++n) {
      print(&lab::records[n].value0, width);
      if (lab::bench::reads_digits()) print(&lab::layers[n][0][0], 8 * lab::network::tensors);
    }
    double const* last = &lab::records[steps].value0;
    for (int i = 0; i < width; ++i) std::printf("%016llx", static_cast<unsigned long long>(bits(last[i])));
    std::puts("");
  }
  return 0;
}

#else

namespace ds = descent;
int failures = 0;

/// Runs a rule with its defaults and these settings, and an optimizer beside it on the same surface.
template <class Value, class Gradient, class Rule, class... Policies>
void compare(char const* name, lab::settings const& settings, Rule rule, Policies... policies) {
  lab::now = settings;
  lab::now.steps = 400;
  lab_defaults(number_of(name));
  lab_run(number_of(name));

  Value value[2] = {ds::narrow<Value>(float(settings.x)), ds::narrow<Value>(float(settings.y))};
  Gradient gradient[2] = {};
  double loss = 0;
  ds::parameters<Value, Gradient> params;
  params.add("w", value, gradient, 2);
  auto const step_with = [&](auto... more) {
    ds::optimizer opt{params, rule, policies..., more...};
    lab::shape const surface{int(settings.surface), settings.condition, settings.angle, settings.size};
    for (int n = 1; n <= 400; ++n) {
      double exact[2], scale = 1;
      if constexpr (requires { opt.loss_scale(); }) scale = opt.loss_scale();
      loss = surface.at(ds::widen<double>(value[0]), ds::widen<double>(value[1]), exact);
      for (int i = 0; i < 2; ++i) gradient[i] = ds::narrow<Gradient>(float(scale * exact[i]));
      opt.step();
      lab::record const& r = lab::records[n];
      if (ds::widen<double>(value[0]) == r.value0 && ds::widen<double>(value[1]) == r.value1) continue;
      std::printf("%s, surface %g: step %d is (%.9g, %.9g), in the lab (%.9g, %.9g)\n", name, settings.surface, n,
                  ds::widen<double>(value[0]), ds::widen<double>(value[1]), r.value0, r.value1);
      ++failures;
      return;
    }
    std::printf("%s, surface %g: 400 steps are those of the optimizer, to (%.9g, %.9g)\n", name, settings.surface,
                ds::widen<double>(value[0]), ds::widen<double>(value[1]));
  };
  if constexpr (ds::has_loss<Rule>) step_with(ds::loss_at{&loss});
  else step_with();
}

/// The same on the network, whose weights are four tensors.
template <class Value, class Gradient, class Rule, class... Policies>
void compare_network(char const* name, lab::settings const& settings, Rule rule, Policies... policies) {
  using net = lab::network;
  lab::now = settings;
  lab::now.surface = lab::digits_surface, lab::now.steps = 200;
  lab_defaults(number_of(name));
  lab_run(number_of(name));

  auto const seed = std::uint64_t(settings.seed);
  std::vector<Value> value(net::weights);
  std::vector<Gradient> gradient(net::weights);
  for (int i = 0; i < net::weights; ++i) value[i] = ds::narrow<Value>(net::initial(i, seed));
  ds::parameters<Value, Gradient> params;
  char const* const names[] = {"W1", "b1", "W2", "b2"};
  for (int k = 0; k < net::tensors; ++k)
    params.add(names[k], &value[net::begin[k]], &gradient[net::begin[k]], net::begin[k + 1] - net::begin[k]);
  ds::optimizer opt{params, rule, policies...};
  for (int n = 1; n <= 200; ++n) {
    float w[net::weights];
    double exact[net::weights] = {}, scale = 1;
    for (int i = 0; i < net::weights; ++i) w[i] = ds::widen<float>(value[i]);
    net::batch(w, seed, n, int(settings.batch), exact);
    if constexpr (requires { opt.loss_scale(); }) scale = opt.loss_scale();
    for (int i = 0; i < net::weights; ++i) gradient[i] = ds::narrow<Gradient>(float(scale * exact[i]));
    opt.step();
    for (int k = 0; k < net::tensors; ++k) {
      double mean = 0;
      for (int i = net::begin[k]; i < net::begin[k + 1]; ++i) mean += std::fabs(ds::widen<double>(value[i]));
      mean /= net::begin[k + 1] - net::begin[k];
      if (mean == lab::layers[n][0][k]) continue;
      std::printf("%s, network: step %d differs in %s\n", name, n, names[k]);
      ++failures;
      return;
    }
  }
  std::printf("%s, network: 200 steps are those of the optimizer\n", name);
}

int run_all() {
  lab::settings s{};
  s.condition = 20, s.angle = 30, s.size = 1, s.seed = 5, s.x = -1.6, s.y = 1.2, s.scale_interval = 40;
  s.schedule_steps = 50, s.schedule_factor = 0.1, s.scale_init = 1 << 20, s.batch = 32;
  lab::settings const bowl = s;
  compare<float, float>("adam", bowl, ds::adam{});
  compare<float, float>("nadam", bowl, ds::nadam{});
  compare<float, float>("lamb", bowl, ds::lamb{});
  compare<float, float>("novograd", bowl, ds::novograd{});
  compare<float, float>("prodigy", bowl, ds::prodigy{});
  compare<float, float>("momo", bowl, ds::momo{});
  s.surface = 1, s.clip = 1, s.schedule = lab::cosine;
  compare<float, float>("rmsprop", s, ds::rmsprop{}, ds::clip_norm{1},
                        ds::learning_rate(ds::cosine{.peak = 1e-2, .floor = 1e-2 * 0.1, .steps = 50}));
  s = bowl;
  s.values = lab::in_half, s.states = lab::in_bfloat16, s.random = 1;
  compare<ds::half, float>("adagrad", s, ds::adagrad{}, ds::states<ds::bfloat16>{}, ds::stochastic_rounding{5});
  s = bowl;
  s.values = s.gradients = lab::in_half, s.master = 1, s.scale = lab::dynamic_scale, s.clip = 0.5;
  compare<ds::half, ds::half>("adamw", s, ds::adamw{}, ds::master<float>{}, ds::clip_norm{0.5},
                              ds::dynamic_loss_scale{.init = 1 << 20, .interval = 40});
  s = bowl;
  s.surface = 4, s.values = lab::in_bfloat16, s.master = s.random = 1;
  compare<ds::bfloat16, float>("yogi", s, ds::yogi{}, ds::master<float>{}, ds::stochastic_values{5});
  s = bowl;
  compare_network<float, float>("adam", s, ds::adam{});
  compare_network<float, float>("nadam", s, ds::nadam{});
  s.values = s.gradients = lab::in_half, s.master = 1, s.scale = lab::dynamic_scale;
  compare_network<ds::half, ds::half>("adamw", s, ds::adamw{}, ds::master<float>{},
                                      ds::dynamic_loss_scale{.init = 1 << 20, .interval = 40});
  s = bowl;
  s.values = lab::in_bfloat16, s.random = 1;
  compare_network<ds::bfloat16, float>("heavy_ball", s, ds::heavy_ball{}, ds::stochastic_rounding{5});
  return failures > 0;
}

#endif

}  // namespace

int main() { return run_all(); }
