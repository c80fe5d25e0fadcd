// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Why half needs a loss scale. One network trains on the same batches in float, in half with float master weights, and
// in half with a dynamic loss scale that starts far too high and settles. The loss has a factor of 2^-20, as in a mean
// over a million tokens: without a scale, most of its gradients are below the smallest number of half.
#include "parts/arguments.hpp"
#include "parts/chart.hpp"
#include "parts/claim.hpp"
#include "parts/dataset.hpp"
#include "parts/device.hpp"
#include "parts/layer_sizes.hpp"
#include "parts/network.hpp"
#include "parts/output.hpp"
#include "parts/random.hpp"

#include <descent/descent.hpp>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace {

using namespace example;

struct settings {
  int steps = 600, batch = 32;
  std::string picture = "mixed_precision.svg";

  explicit settings(std::vector<std::string> const& arguments) {
    each_word(arguments,
              {[&](auto& word) { steps = integer("STEPS", word, 1, 1'000'000); },
               [&](auto& word) { batch = integer("BATCH", word, 1, 1438); }, [&](auto& word) { picture = word; }});
  }
};

/// One training run, step by step.
struct record {
  std::string name;
  std::vector<double> loss{}, zeros{}, scale{};  // zeros: percentage of the weights' gradients that are 0
  double test_accuracy = 0;
  ds::step_report last{};
};

double mean(std::vector<double> const& x, std::size_t first, std::size_t end) {
  double sum = 0;
  for (auto i = first; i < end; ++i) sum += x[i];
  return sum / double(end - first);
}
double mean(std::vector<double> const& x) { return mean(x, 0, x.size()); }
double mean_of_last_tenth(std::vector<double> const& x) { return mean(x, 9 * x.size() / 10, x.size()); }

template <class Net> double percent_of_zeros(device& d, Net& net) {
  std::size_t zeros = 0, all = 0;
  for (auto& layer : net.layers()) {
    for (auto const g : d.to_host(layer.weight_gradient)) zeros += float(g) == 0;
    all += layer.weight_gradient.size();
  }
  return 100 * double(zeros) / double(all);
}

template <class Value, class... Policies>
record train(std::string const& name, settings const& s, dataset const& data, Policies... policies) {
  device d;
  random_source initial{1, 0};
  network<device, Value> net{d, data.train.features, parse_network("deep"), data.classes, s.batch, initial};

  ds::optimizer opt{net.parameters(), ds::adamw{.lr = 1e-3, .eps = 1e-12}, policies..., d.backend()};
  net.loss_weight = 0x1p-20f;
  net.loss_scale = opt.loss_scale_pointer();

  record r{.name = name};
  auto batches = batches_of(data.train, {s.batch, ds::last_batch::drop}, reshuffled{1}, d);
  for (int t = 0; t < s.steps; ++t) {
    net.forward(rows_of(batches.next(), data.train));
    net.backward();

    r.scale.push_back(opt.loss_scale());
    r.zeros.push_back(percent_of_zeros(d, net));
    opt.step();
    r.loss.push_back(net.take_totals().loss / s.batch);
  }
  r.last = opt.report();

  auto test_batches = batches_of(data.test, {.size = s.batch}, ds::sequential{}, d);
  for (auto const& batch : test_batches.epoch()) net.forward(rows_of(batch, data.test));
  r.test_accuracy = 100.0 * double(net.take_totals().correct) / data.test.count();
  return r;
}

/// Means over `width` steps.
curve over_steps(std::string const& name, std::vector<double> const& y, std::size_t width = 1) {
  curve c{name, {}};
  for (std::size_t i = 0; i + width <= y.size(); i += width)
    c.points.push_back({double(i) + double(width + 1) / 2, mean(y, i, i + width)});
  return c;
}

void draw_all(std::vector<record> const& runs, std::string const& path) {
  panel loss{"loss, without its factor", "step", axis::logarithmic, {}};
  panel zeros{"gradients that are 0, %", "step", axis::linear, {}};
  panel scale{"loss scale", "step", axis::logarithmic, {}};
  std::size_t const width = runs[0].loss.size() >= 200 ? 10 : 1;
  for (auto const& r : runs) {
    loss.curves.push_back(over_steps(r.name, r.loss, width));
    zeros.curves.push_back(over_steps(r.name, r.zeros, width));
  }
  scale.curves.push_back(over_steps(runs.back().name, runs.back().scale));
  write_file(path, draw("Three hidden layers on handwritten digits, loss times 2⁻²⁰", {loss, zeros, scale}));
}

void run(settings const& s) {
  require_writable(s.picture);
  auto const data = embedded_digits();
  ds::dynamic_loss_scale const scaling{.init = 0x1p44, .interval = 100, .max = 0x1p44};
  std::vector<record> const runs{
      train<float>("float", s, data),
      train<ds::half>("half, no loss scale", s, data, ds::master<float>{}),
      train<ds::half>("half, dynamic loss scale", s, data, ds::master<float>{}, scaling),
  };
  auto const& [reference, plain, scaled] = std::tie(runs[0], runs[1], runs[2]);

  std::puts("                            loss  test accuracy  gradients at 0  skipped  loss scale");
  for (auto const& r : runs)
    std::printf("%-24s %7.3f %12.1f %% %13.1f %% %8lld  %10.3g\n", r.name.c_str(), mean_of_last_tenth(r.loss),
                r.test_accuracy, mean(r.zeros), static_cast<long long>(r.last.skipped), r.last.loss_scale);
  draw_all(runs, s.picture);
  std::printf("wrote %s\n", s.picture.c_str());

  claim(scaled.last.skipped >= 4 && scaled.last.loss_scale < 0x1p42, "a scale that is too high backs off");
  claim(scaled.last.step > 0 && scaled.last.step + scaled.last.skipped == s.steps,
        "training continues after the skips");
  claim(mean(plain.zeros) > 90, "half without a loss scale loses nearly all gradients");
  claim(mean(scaled.zeros) < mean(reference.zeros) + 5, "with it hardly any that float has");
  if (s.steps < 600) return;
  double const want = mean_of_last_tenth(reference.loss);
  claim(mean_of_last_tenth(scaled.loss) < 1.2 * want, "with a loss scale half learns as float does");
  claim(mean_of_last_tenth(plain.loss) > 3 * want, "without it half does not");
}

constexpr char const* help = R"(usage: mixed_precision [STEPS [BATCH [PICTURE]]]

Trains in float, in half, and in half with a loss scale, and draws losses, zero gradients and scales.

  STEPS      default: 600
  BATCH      images per step (default: 32)
  PICTURE    a file (default: mixed_precision.svg)
  --help     this text
)";

}  // namespace

int main(int argc, char** argv) {
  return example::exit_code(argc, argv, help, [](std::vector<std::string> const& words) { run(settings{words}); });
}
