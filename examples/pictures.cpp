// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Draws the pictures of docs/optimizers.md: each rule's path on two surfaces and its training curve.
#include "parts/arguments.hpp"
#include "parts/chart.hpp"
#include "parts/claim.hpp"
#include "parts/cpu.hpp"
#include "parts/network.hpp"
#include "parts/output.hpp"
#include "parts/text.hpp"
#include "pictures/draw.hpp"
#include "pictures/shown_rule.hpp"

#include <descent/policies/rounding.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace example::pictures {
namespace {

constexpr char const* help = R"(usage: pictures FOLDER [NAME...]
       pictures --list

Draws the path of each rule on two surfaces and a training curve, as FOLDER/NAME.svg.

  NAME      which pictures (default: all)
  --list    print the names
  --help    this text
)";

/// Values of lr to try. The best has the smallest final loss: on a surface the largest of the last ten steps, among the
/// paths that stay in the picture if there are any; on the network the mean of the last three epochs.
constexpr double rates[] = {1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1,
                            0.2,  0.5,  1,    2,    5,    10,   20,   50,   100};

/// f(lr) returns a result and its final loss. Returns the best result.
template <class F> auto best_of(bool searched, F f, double otherwise = 1) {
  auto best = f(searched ? 1. : otherwise);
  if (!searched) return best.first;
  for (double lr : rates) {
    auto now = f(lr);
    if (!std::isfinite(best.second) || now.second < best.second) best = std::move(now);
  }
  return best.first;
}

std::pair<path, double> descend(surface const& s, starter const& start, double lr) {
  std::vector<float> x{float(s.start.x), float(s.start.y)}, g(2);
  float loss = 0;
  auto const here = [&] { return point{x[0], x[1]}; };
  problem p{.loss = &loss, .names = {"x"}};
  p.parameters.add("x", x.data(), g.data(), x.size());
  p.curvature = [&](std::string const&) {
    point const h = s.curvature(here());
    return std::vector{float(h.x), float(h.y)};
  };
  p.backward = [&] {
    point const slope = s.gradient(here());
    loss = float(s.value(here()));
    g = {float(slope.x), float(slope.y)};
  };
  stepper const step = start(p, lr);

  path result{lr, {here()}};
  double worst = 0, outside = 0;
  for (int t = 1; t <= s.steps; ++t) {
    p.backward();
    step();
    result.points.push_back(here());
    result.value = s.value(here());
    if (!std::isfinite(result.value)) return {result, std::numeric_limits<double>::infinity()};
    if (t > s.steps - 10) worst = std::fmax(worst, result.value);
    if (!s.shows(here())) outside = 1e6;
  }
  worst += outside;
  return {result, worst};
}

/// Trains 32 rectifiers between the pixels of the built-in digits and their classes, in batches of 32.
std::pair<training, double> learn(dataset const& data, starter const& start, double lr) {
  constexpr int batch = 32, epochs = 15;
  random_source initial{1, 0};
  cpu device;
  network<cpu, float> net{device, data.train.features, {{32, activation::relu}}, data.classes, batch, initial};
  auto batches = batches_of(data.train, {.size = batch}, reshuffled{1}, device);
  image_rows const all = rows_of(data.train);
  image_rows now = all;  // the batch
  float loss = 0;

  problem p{.parameters = net.parameters(), .loss = &loss, .curvature_every = 10};
  std::map<std::string, std::vector<float>> curvature;
  std::map<std::string, std::vector<float> const*> gradients;
  for (std::size_t k = 0; k < net.layers().size(); ++k)
    for (bool weight : {true, false}) {
      auto const& layer = net.layers()[k];
      auto const name = "layer" + std::to_string(k + 1) + (weight ? ".weight" : ".bias");
      p.names.push_back(name);
      gradients[name] = weight ? &layer.weight_gradient : &layer.bias_gradient;
    }
  p.curvature = [&](std::string const& name) {  // Gauss-Newton, with true labels in place of sampled ones
    auto const& g = *gradients[name];
    auto& h = curvature[name];
    h.resize(g.size());
    for (std::size_t i = 0; i < g.size(); ++i) h[i] = 0.99f * h[i] + 0.01f * batch * g[i] * g[i];
    return h;
  };
  p.backward = [&] {
    net.forward(now);
    net.backward();
    loss = float(net.take_totals().loss / now.count);
  };
  stepper const step = start(p, lr);

  auto const mean_loss = [&] {
    for (int i = 0; i < all.count; i += batch) net.forward(all.part({i, std::min(batch, all.count - i)}));
    return net.take_totals().loss / all.count;
  };
  training result{lr, {mean_loss()}};
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (auto const& b : batches.epoch()) {
      now = rows_of(b, data.train);
      p.backward();
      step();
    }
    result.losses.push_back(mean_loss());
    if (!std::isfinite(result.losses.back())) return {result, std::numeric_limits<double>::infinity()};
  }
  auto const end = result.losses.end();
  return {result, (end[-1] + end[-2] + end[-3]) / 3};
}

/// The mean over 4096 elements of (x - c)^2 / 2, which start at x = 1, with c up to 1/4 away.
template <class Value, class... Ps> curve stall(std::string const& name, auto const& rule, Ps... policies) {
  constexpr std::size_t size = 4096;
  std::vector<Value> x(size, ds::narrow<Value>(1.f)), g(size);
  ds::parameters<Value> list;
  list.add("x", x.data(), g.data(), size);
  ds::optimizer opt{list, rule, policies...};
  curve result{name, {}};
  for (int t = 0; t <= 900; ++t) {
    double loss = 0;
    for (std::size_t i = 0; i < size; ++i) {
      double const c = 1 + (i % 2 ? 0.25 : -0.25) * (1 - double(i % 19) / 40);
      double const away = ds::widen<double>(x[i]) - c;
      g[i] = ds::narrow<Value>(away);
      loss += away * away / 2 / size;
    }
    if (t % 20 == 0 && loss > 1e-8) result.points.push_back({double(t), loss});
    opt.step();
  }
  return result;
}

panel stalls(std::string const& name, auto const& rule) {
  return {name,
          "step",
          axis::logarithmic,
          {stall<float>("float", rule), stall<ds::bfloat16>("bfloat16, rounded to nearest", rule),
           stall<ds::bfloat16>("bfloat16, stochastic rounding", rule, ds::stochastic_rounding{1})}};
}

void draw_rule(std::filesystem::path const& folder, shown_rule const& rule, dataset const& data, training const& sgd) {
  std::vector<surface> on;
  std::vector<path> paths;
  auto const walked = [&](surface const& s, path p) {
    std::printf("%-20s %-14s lr %-7g loss %-10.3g at %.6g %.6g\n", rule.name.c_str(), s.name.c_str(), p.lr, p.value,
                p.points.back().x, p.points.back().y);
    on.push_back(s), paths.push_back(std::move(p));
  };
  for (auto const& [s, start, lr, walk] : rule.scenes) walked(s, walk ? walk(s) : descend(s, start, lr).first);
  if (rule.scenes.empty() && rule.on_surface)
    for (surface const& s : surfaces())
      walked(s, best_of(rule.searched, [&](double lr) { return descend(s, rule.on_surface, lr); }));
  training own;
  if (rule.on_network) {
    own = best_of(rule.searched, [&](double lr) { return learn(data, rule.on_network, lr); }, rule.network_lr);
    std::printf("%-20s %-14s lr %-7g loss %.3g\n", rule.name.c_str(), "Digits", own.lr, own.losses.back());
  }
  std::fflush(stdout);
  write_file(folder / (rule.name + ".svg"), draw(rule.name, on, paths, own, sgd, rule.settings));
}

void draw_stochastic_rounding(std::filesystem::path const& folder) {
  write_file(folder / "stochastic_rounding.svg", example::draw("Loss of 16-bit parameters without a master",
                                                               {stalls("sgd, lr 0.01", ds::sgd{.lr = 0.01}),
                                                                stalls("adam, lr 0.0005", ds::adam{.lr = 5e-4}),
                                                                stalls("lion, lr 0.0005", ds::lion{.lr = 5e-4})}));
}

void draw_together(std::filesystem::path const& folder) {
  std::vector<pictures::together> rules{{"sgd", {}}, {"momentum", {}}, {"rmsprop", {}}, {"adam", {}}};
  std::vector<starter> const starts{start_of(ds::sgd{}), start_of(ds::sgd{.momentum = 0.9}), start_of(ds::rmsprop{}),
                                    start_of(ds::adam{})};
  for (std::size_t k = 0; k < rules.size(); ++k)
    for (surface const& s : surfaces())
      rules[k].paths.push_back(best_of(true, [&](double lr) { return descend(s, starts[k], lr); }));
  write_file(folder / "together.svg", pictures::draw_together(surfaces(), rules));
}

void run(std::vector<std::string> const& arguments) {
  std::vector<shown_rule> rules;
  for (auto part : {momentum_rules, adaptive_rules, layer_rules, free_rules, matrix_rules, around_rules})
    std::ranges::move(part(), std::back_inserter(rules));
  std::string const rounding = "stochastic_rounding", together = "together";
  std::vector<std::string> names;
  for (shown_rule const& rule : rules) names.push_back(rule.name);
  names.insert(names.end(), {rounding, together});

  if (arguments == std::vector<std::string>{"--list"}) {
    for (auto const& name : names) std::puts(name.c_str());
    return;
  }
  if (std::ranges::count(arguments, "--list") > 0) fail("--list is given alone");
  each_option(arguments, {"--list"}, [](auto&, auto&) {}, [](auto&) {});
  if (arguments.empty()) fail("the folder of the pictures is missing");
  std::filesystem::path const folder = arguments[0];
  std::vector<std::string> const wanted(arguments.begin() + 1, arguments.end());
  for (auto const& name : wanted)
    if (!std::ranges::count(names, name)) fail_unknown("there is no picture", name, names);
  auto const want = [&](std::string const& name) { return wanted.empty() || std::ranges::count(wanted, name) > 0; };

  std::filesystem::create_directories(folder);
  dataset const data = embedded_digits();
  training const sgd = best_of(true, [&](double lr) { return learn(data, start_of(ds::sgd{}), lr); });
  for (shown_rule const& rule : rules)
    if (want(rule.name)) draw_rule(folder, rule, data, sgd);
  if (want(rounding)) draw_stochastic_rounding(folder);
  if (want(together)) draw_together(folder);
}

}  // namespace
}  // namespace example::pictures

int main(int argc, char** argv) {
  return example::exit_code(argc, argv, example::pictures::help, example::pictures::run);
}
