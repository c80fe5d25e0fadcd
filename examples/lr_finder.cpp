// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// The learning-rate finder on handwritten digits: `lr_finder [picture.svg]` sweeps the rate for three rules, draws the
// curves, and trains at the rates that they suggest.
#include "parts/arguments.hpp"
#include "parts/chart.hpp"
#include "parts/claim.hpp"
#include "parts/device.hpp"
#include "parts/network.hpp"
#include "parts/output.hpp"

#include <descent/descent.hpp>
#include <descent/training/lr_finder.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace example;
namespace ds = descent;

constexpr int batch = 64;

/// A network and the batches that it learns from.
struct training {
  device d{};
  dataset data = embedded_digits();
  random_source initial{1, 0};
  network<device, float> net{d, data.train.features, parse_network("relu64,relu64"), data.classes, batch, initial};
  decltype(batches_of(data.train, {}, reshuffled{}, d)) batches =
      batches_of(data.train, {batch, ds::last_batch::drop}, reshuffled{1}, d);

  /// Computes the gradients of the next batch; returns its mean loss.
  double backward() {
    net.forward(rows_of(batches.next(), data.train));
    net.backward();
    return net.take_totals().loss / batch;
  }
};

/// Draws the curve of a rule and prints the loss after 150 steps at its steepest rate, a mean of the last ten.
template <class Rule> void show(std::string const& name, Rule rule, panel& picture) {
  training t;
  auto const params = t.net.parameters();
  // snippet: find
  ds::optimizer opt{params, rule, t.d.backend()};
  auto const before = t.net.layers()[0].weight;
  auto const curve =
      ds::find_learning_rate(opt, params, {.lowest = 1e-6, .highest = 100, .steps = 120}, [&] { return t.backward(); });
  opt.group(0).lr = curve.steepest();
  // end
  claim(t.net.layers()[0].weight == before && opt.report().step == 0, name + " goes on where it was");

  double loss = 0;
  for (int step = 0; step < 150; ++step) {
    double const now = t.backward();
    opt.step();
    if (step >= 140) loss += now / 10;
  }
  std::printf("%-6s steepest at %.2g, minimum / 10 = %.2g; loss %.3f after 150 steps, %.3f before\n", name.c_str(),
              curve.steepest(), curve.tenth_of_minimum(), loss, curve.points[0].loss);
  claim(curve.diverged, name + " diverges at the highest rates");
  claim(loss < 0.5 * curve.points[0].loss, name + " learns at the rate that its curve suggests");

  example::curve drawn{name, {}};
  for (auto const& p : curve.points) {
    drawn.points.push_back({p.rate, p.smoothed});
    if (p.rate == curve.steepest()) drawn.marks.push_back(drawn.points.back());
  }
  picture.curves.push_back(drawn);
}

constexpr char const* help = R"(usage: lr_finder [PICTURE]

Finds the learning rates of three rules by the range test, trains with them, and draws the curves.

  PICTURE    a file (default: lr_finder.svg)
  --help     this text
)";

}  // namespace

int main(int argc, char** argv) {
  return exit_code(argc, argv, help, [](std::vector<std::string> const& arguments) {
    std::string name = "lr_finder.svg";
    example::each_word(arguments, {[&](auto& word) { name = word; }});
    example::require_writable(name);
    panel picture{"smoothed loss", "learning rate", axis::logarithmic, {}, x_axis::decades};
    show("sgd", ds::sgd{.momentum = 0.9}, picture);
    show("adamw", ds::adamw{}, picture);
    show("lion", ds::lion{}, picture);
    example::write_file(name, draw("A rising rate, on handwritten digits", {picture}));
  });
}
