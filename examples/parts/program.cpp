// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "program.hpp"

#include "arguments.hpp"
#include "chart.hpp"
#include "output.hpp"
#include "stop.hpp"
#include "text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace example {

namespace fs = std::filesystem;

namespace {

/// Throws std::runtime_error if a training ended with a loss that is not finite.
void refuse_diverged(std::vector<history> const& runs) {
  std::string names;
  for (auto const& run : runs)
    if (!std::isfinite(run.last().train_loss)) names += (names.empty() ? "" : ", ") + run.name;
  if (!names.empty()) throw std::runtime_error("the training loss is not finite: " + names);
}

/// A curve over the epochs.
curve over_epochs(std::string name, history const& run, double epoch_record::* what) {
  curve c{std::move(name), {}};
  for (auto const& e : run.epochs) c.points.push_back({double(e.epoch), e.*what});
  return c;
}

/// The schedule itself, where it is not below `least`.
curve rate_curve(std::string name, rate_schedule const& rate, double least, std::int64_t steps, double epochs) {
  constexpr int parts = 200;
  curve c{std::move(name), {}};
  for (int k = 0; k <= parts; ++k) {
    double const value = rate(steps * k / parts);
    c.points.push_back({epochs * k / parts, value >= least ? value : std::nan("")});
  }
  return c;
}

/// What `text` says of each run, without repetition.
template <class F> std::string of_each(std::vector<options> const& runs, F text) {
  std::vector<std::string> all;
  for (auto const& o : runs)
    if (auto const it = text(o); std::ranges::count(all, it) == 0) all.push_back(it);
  return joined(all, ", ");
}

std::string network_of(options const& o) { return o.network; }
std::string type_of(options const& o) { return to_string(o.storage); }

/// The name of a run in titles and pictures.
std::string title_of(options const& o) { return (o.compared == "optimizer" ? "" : o.compared + " ") + o.value; }

/// Loss, accuracy and learning rate: the training and test of one run, or several runs in different colours.
std::string draw_runs(std::vector<options> const& options_of, dataset const& data, std::vector<history> const& runs) {
  bool const alone = runs.size() == 1;
  panel loss{alone ? "loss" : "training loss", "epoch", axis::logarithmic, {}};
  panel accuracy{std::string(alone ? "accuracy" : "test accuracy") + ", % (axis: logarithm of the error)",
                 "epoch",
                 axis::nines,
                 {}};
  panel rate{"learning rate", "epoch", alone ? axis::linear : axis::logarithmic, {}};

  for (std::size_t k = 0; k < runs.size(); ++k) {
    auto const& run = runs[k];
    auto const& o = options_of[k];
    auto const name = title_of(o);
    loss.curves.push_back(over_epochs(alone ? "training" : name, run, &epoch_record::train_loss));
    accuracy.curves.push_back(over_epochs(alone ? "test" : name, run, &epoch_record::test_accuracy));

    auto const steps = total_steps(o, data.train);
    double const epochs = double(steps) * o.batch / data.train.count();
    auto const schedule = o.rate(o.optimizers[0].rule, steps);
    // Rates below one percent of the peak would take up half of a logarithmic axis.
    double const least = alone ? 0 : 0.01 * schedule.then.peak;
    rate.curves.push_back(rate_curve(name, schedule, least, steps, epochs));
  }
  if (alone) {
    loss.curves.push_back(over_epochs("test", runs[0], &epoch_record::test_loss));
    accuracy.curves.push_back(over_epochs("training", runs[0], &epoch_record::train_accuracy));
  }
  auto const& first = options_of[0];
  bool const one_rule = alone || first.compared != "optimizer";
  return draw(data.name + ", " + of_each(options_of, network_of) + " network, " + of_each(options_of, type_of) +
                  (one_rule ? ", " + first.optimizers[0].label : ""),
              {loss, accuracy, rate});
}

std::string parameters_of(options const& o, dataset const& data) {
  std::int64_t parameters = 0, inputs = data.train.features;
  auto layers = o.hidden;
  layers.push_back({data.classes, activation::identity});
  for (auto const& layer : layers) {
    parameters += (inputs + 1) * layer.units;
    inputs = layer.units;
  }
  return std::to_string(parameters);
}

std::string describe(std::vector<options> const& runs, dataset const& data) {
  auto const each = [&](auto text) { return of_each(runs, text); };
  std::string const levels =
      "\nlevels differ in storage, masters and loss scale: O0 has float, O1 float and a loss "
      "scale, O2 half, masters in\nfloat and a loss scale, O3 half alone; products are computed "
      "in float on the host, in the storage type on a GPU";
  bool const leveled = std::ranges::any_of(runs, [](options const& o) { return o.level != opt_level::none; });
  return data.name + ": " + std::to_string(data.train.count()) + " images to train, " +
         std::to_string(data.test.count()) + " to test\n" + each(network_of) +
         " network: " + each([&](auto& o) { return parameters_of(o, data); }) + " parameters in " + each(type_of) +
         "; batches of " + each([](auto& o) { return std::to_string(o.batch); }) + ", " +
         each([](auto& o) { return to_string(o.schedule); }) + " schedule, seed " +
         each([](auto& o) { return std::to_string(o.seed); }) + (leveled ? levels : "");
}

/// What a difference between the accuracies of runs must be to mean something.
std::string what_counts(std::vector<history> const& runs, int images, std::string const& compared) {
  double best = 0;
  for (auto const& run : runs) best = std::max(best, run.last().test_accuracy);
  char text[200];
  std::snprintf(text, sizeof text,
                "\nAccuracies on %d test images that differ by less than %.1f points may do so by chance%s.", images,
                chance_difference(best, images),
                compared == "seed" ? "" : ";\n`--optimizer NAME --compare seed=1,2,3` shows how far seeds are apart");
  return text;
}

}  // namespace

double chance_difference(double accuracy, int images) {
  double const right = (accuracy / 100 * images + 1) / (images + 2);  // not 1 where all answers are right
  return 200 * std::sqrt(2 * right * (1 - right) / images);
}

void train_and_draw(options const& o, trainer const& train, bool speaks) {
  auto data = load_dataset(o.data);
  if (o.limit > 0) data.train.limit(int(o.limit));
  auto const runs_to_make = runs_of(o);
  for (auto const& run : runs_to_make)
    if (auto const steps = total_steps(run, data.train); run.warmup >= steps)
      throw std::invalid_argument("--warmup " + std::to_string(run.warmup) + " leaves none of the " +
                                  std::to_string(steps) + " steps of the training");

  auto const csv = fs::path{o.out} / "curves.csv", svg = fs::path{o.out} / "curves.svg";
  if (speaks) require_writable(csv), require_writable(svg);

  console out{speaks ? stdout : nullptr};
  out.announce(describe(runs_to_make, data));
  std::vector<std::string> names;
  for (auto const& run : runs_to_make) names.push_back(run.value);
  if (names.size() > 1) out.compare(o.compared, names);
  std::vector<history> runs;
  for (auto const& run : runs_to_make) {
    out.begin_run(title_of(run), total_steps(run, data.train));
    runs.push_back(train(run, run.optimizers[0], data, out));
    runs.back().name = run.value;
    out.end_run(runs.back());
  }
  if (!speaks) return;
  if (runs.size() > 1) out.say(what_counts(runs, data.test.count(), o.compared));

  write_file(csv, to_csv(runs, o.compared));
  write_file(svg, draw_runs(runs_to_make, data, runs));
  out.say("\nwrote " + csv.string() + " and " + svg.string());
  refuse_diverged(runs);
}

std::int64_t total_steps(options const& o, labelled_images const& images) {
  std::int64_t const per_epoch = (images.count() + o.batch - 1) / o.batch;
  std::int64_t const all = per_epoch * o.epochs;
  return o.steps > 0 ? std::min(o.steps, all) : all;
}

int run_program(int argc, char** argv, trainer const& train) {
  stop_signals const signals;
  return exit_code(argc, argv, help_text(), [&](std::vector<std::string> const& arguments) {
    train_and_draw(parse_options(arguments, argv[0]), train);
  });
}

}  // namespace example
