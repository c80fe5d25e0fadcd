// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "comparison.hpp"

#include "arguments.hpp"
#include "output.hpp"
#include "random.hpp"
#include "text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>

namespace example {
namespace {

constexpr int most_extensions = 8;

/// The options of the trainer. The rate is constant, in the search and in the final runs.
options training_options(comparison_options const& c, std::string const& network) {
  options o;
  o.network = network;
  o.hidden = parse_network(network);
  o.schedule = schedule_shape::constant;
  o.batch = c.batch;
  o.seed = c.seed;
  return o;
}

optimizer_choice at_rate(optimizer_choice optimizer, double rate) {
  if (!set(optimizer.rule, "lr", rate)) throw std::invalid_argument(optimizer.label + " has no lr");
  return optimizer;
}

/// The images order[first], ..., order[last - 1].
labelled_images chosen(labelled_images const& from, std::vector<std::int32_t> const& order, std::size_t first,
                       std::size_t last) {
  labelled_images images{.features = from.features, .brightest = from.brightest};
  for (std::size_t k = first; k < last; ++k) {
    auto const pixels = from.pixels.begin() + std::ptrdiff_t(order[k]) * from.features;
    images.pixels.insert(images.pixels.end(), pixels, pixels + from.features);
    images.labels.push_back(from.labels[std::size_t(order[k])]);
  }
  return images;
}

}  // namespace

dataset hold_out(dataset const& data, std::uint64_t seed) {
  auto const count = std::size_t(data.train.count()), split = count - count / 6;
  auto order = in_order(count);
  random_source{seed, 2}.shuffle(order);
  return {.name = data.name,
          .train = chosen(data.train, order, 0, split),
          .test = chosen(data.train, order, split, count),
          .classes = data.classes};
}

trial const& best(std::vector<trial> const& trials) { return *std::ranges::min_element(trials, {}, &trial::loss); }

std::vector<trial> search_rate(comparison_options const& c, options const& o, optimizer_choice const& optimizer,
                               dataset const& held_out, trainer const& train, console& out) {
  options search = o;
  double const steps = std::ceil(c.search_epochs * held_out.train.count() / o.batch);
  search.steps = std::int64_t(steps);
  search.epochs = int(std::ceil(c.search_epochs)) + 1;  // `steps` ends the last one early

  console silent{nullptr};
  std::vector<trial> trials;
  auto const try_rate = [&](double rate) -> trial {
    double const loss = train(search, at_rate(optimizer, rate), held_out, silent).last().test_loss;
    return {rate, std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity()};
  };
  for (double const rate : c.rates) trials.push_back(try_rate(rate));

  for (int k = 0; k < most_extensions; ++k) {
    auto const n = trials.size();
    auto const rate = [&](std::size_t k) { return trials[k].rate; };
    if (double const found = best(trials).rate; found == rate(0))
      trials.insert(trials.begin(), try_rate(rate(0) * rate(1) / rate(2)));
    else if (found == rate(n - 1)) trials.push_back(try_rate(rate(n - 1) * rate(n - 2) / rate(n - 3)));
    else break;
    out.say("  " + optimizer.label + ": the best rate is on the edge of the grid, which goes on");
  }
  return trials;
}

std::vector<comparison> compare(comparison_options const& c, dataset const& data, trainer const& train, console& out) {
  auto const held_out = hold_out(data, c.seed);
  std::vector<comparison> all;
  for (auto const& network : c.networks) {
    out.say("\n" + network);
    options o = training_options(c, network);
    auto const first = all.size();
    for (auto const& optimizer : c.optimizers) {
      auto const trials = search_rate(c, o, optimizer, held_out, train, out);
      all.push_back({network, optimizer.label, trials, best(trials).rate, {}});
      out.say("  " + optimizer.label + ": learning rate " + short_number(best(trials).rate));
    }
    // seed by seed, so that other load on the machine affects all optimizers alike
    o.epochs = c.epochs;
    console silent{nullptr};
    for (int k = 0; k < c.seeds; ++k) {
      o.seed = c.seed + std::uint64_t(k);
      for (std::size_t j = 0; j < c.optimizers.size(); ++j) {
        auto& result = all[first + j];
        result.runs.push_back(train(o, at_rate(c.optimizers[j], result.rate), data, silent));
      }
      out.say("  seed " + std::to_string(o.seed) + " is done");
    }
  }
  return all;
}

namespace {

void draw_networks(comparison_options const& c, std::vector<comparison> const& all) {
  std::set<std::string> networks;
  for (auto const& one : all) networks.insert(one.network);
  for (auto const& network : networks)
    write_file(std::filesystem::path{c.out} / ("comparison_" + network + ".svg"), draw(c, network, all));
}

std::string contents(std::string const& path) {
  std::ifstream file{path};
  if (!file) throw std::runtime_error(path + ": cannot be read");
  return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace

int run_comparison(int argc, char** argv, trainer const& train) {
  return exit_code(argc, argv, comparison_help(), [&](std::vector<std::string> const& arguments) {
    auto const c = parse_comparison(arguments);
    if (!c.runs.empty()) return draw_networks(c, from_csv(contents(c.runs)));
    auto data = load_dataset(c.data);
    if (c.limit > 0) data.train.limit(int(c.limit));
    auto const directory = std::filesystem::path{c.out};
    require_writable(directory / "comparison.md");

    console out{stdout};
    out.say(data.name + ": " + std::to_string(data.train.count()) + " images to train, " +
            std::to_string(data.train.count() / 6) + " of them held out in the search; " +
            std::to_string(data.test.count()) + " to test");
    auto const all = compare(c, data, train, out);
    auto const table = to_markdown(c, all);
    out.say("\n" + table);
    write_file(directory / "comparison.md", table);
    write_file(directory / "comparison.csv", to_csv(all));
    draw_networks(c, all);
    out.say("wrote comparison.md, comparison.csv and a picture of each network to " + directory.string());
  });
}

}  // namespace example
