// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "../../examples/parts/comparison.hpp"
#include "../../examples/parts/cpu.hpp"
#include "../../examples/parts/text.hpp"
#include "../../examples/train.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <sstream>
#include <stdexcept>

using namespace example;

namespace {

/// Images of one pixel, each with its own value: 0, 1, ... for training, 200, 201, ... for testing.
dataset numbered(int count) {
  dataset data{.name = "numbered",
               .train = {.features = 1, .brightest = 255},
               .test = {.features = 1, .brightest = 255},
               .classes = 2};
  for (int k = 0; k < count; ++k) {
    data.train.pixels.push_back(std::uint8_t(k)), data.train.labels.push_back(k % 2);
    data.test.pixels.push_back(std::uint8_t(200 + k % 50)), data.test.labels.push_back(k % 2);
  }
  return data;
}

std::set<int> pixels(labelled_images const& images) { return {images.pixels.begin(), images.pixels.end()}; }

history ending_at(double loss) { return {"pretend", {{1, 10, loss, 80, loss, 70, 0.1, 1.5, 0, 3, 0.25}}}; }

/// The trials of a search in which the loss at a rate is f(rate).
std::vector<trial> search(std::function<double(double)> const& f) {
  console silent{nullptr};
  auto const c = parse_comparison({"--optimizers", "adam"});
  auto const train = [&](options const&, optimizer_choice const& choice, dataset const&, console&) {
    return ending_at(f(get(choice.rule, "lr")));
  };
  return search_rate(c, {}, c.optimizers[0], numbered(60), train, silent);
}

void rejects(std::vector<std::string> const& arguments, std::string const& why) {
  CHECK_THROWS_WITH_AS(parse_comparison(arguments), why.c_str(), std::invalid_argument);
}

std::vector<comparison> compare_digits(std::vector<std::string> arguments) {
  for (auto const* more : {"--data=digits", "--limit=240", "--batch=32", "--epochs=2", "--seeds=2", "--search=1",
                           "--networks=softmax,shallow", "--rates=0.01,0.1,1"})
    arguments.insert(arguments.begin(), more);
  auto const c = parse_comparison(arguments);
  auto data = load_dataset(c.data);
  data.train.limit(int(c.limit));
  console silent{nullptr};
  return compare(c, data, train_with_options<cpu>, silent);
}

}  // namespace

TEST_CASE("compare: what is held out is a sixth of the training images and disjoint from the rest") {
  auto const data = numbered(100);
  auto const held = hold_out(data, 7);
  CHECK(held.train.count() == 84);
  CHECK(held.test.count() == 16);
  auto all = pixels(held.train);
  CHECK(all.size() == 84);
  all.merge(pixels(held.test));
  CHECK(all == pixels(data.train));
  for (int k = 0; k < held.test.count(); ++k) CHECK(held.test.labels[k] == held.test.pixels[k] % 2);
  CHECK(held.test.pixels == hold_out(data, 7).test.pixels);
  CHECK(held.test.pixels != hold_out(data, 8).test.pixels);
}

TEST_CASE("compare: the search never sees a test image, the final runs see all images and every seed") {
  auto const c = parse_comparison({"--networks", "softmax", "--optimizers", "adam,lion", "--search", "0.5", "--batch",
                                   "10", "--epochs", "4", "--seeds", "2", "--seed", "5"});
  auto const data = numbered(60);
  int trials = 0;
  std::vector<std::uint64_t> seeds;
  auto const train = [&](options const& o, optimizer_choice const& choice, dataset const& d, console&) {
    if (pixels(d.test) == pixels(data.test)) {
      CHECK(pixels(d.train) == pixels(data.train));
      CHECK(total_steps(o, d.train) == 24);
      CHECK(get(choice.rule, "lr") == 0.1);
      seeds.push_back(o.seed);
    } else {
      for (int const p : pixels(d.test)) CHECK(p < 60);
      CHECK(total_steps(o, d.train) == 3);  // half of 50 images in batches of 10, rounded up
      CHECK(o.seed == 5);
      ++trials;
    }
    return ending_at(std::abs(std::log10(get(choice.rule, "lr")) + 1));
  };
  console silent{nullptr};
  auto const all = compare(c, data, train, silent);
  CHECK(trials == 14);
  CHECK(seeds == std::vector<std::uint64_t>{5, 5, 6, 6});
  CHECK(all.size() == 2);
}

TEST_CASE("compare: the best rate is that of the least loss, and one on an edge extends the grid") {
  auto const near = [](double target) { return [=](double lr) { return std::abs(std::log10(lr / target)); }; };
  CHECK(search(near(0.03)).size() == 7);
  CHECK(best(search(near(0.03))).rate == 0.03);

  auto const high = search(near(10));
  CHECK(high.size() == 10);
  CHECK(best(high).rate == doctest::Approx(10));
  CHECK(high.back().rate == doctest::Approx(30));
  auto const low = search(near(1e-4));
  CHECK(low.size() == 10);
  CHECK(best(low).rate == doctest::Approx(1e-4));
  CHECK(low.front().rate == doctest::Approx(3e-5));
}

TEST_CASE("compare: a loss that is not finite never wins, and a grid is not extended for ever") {
  auto const found = search([](double lr) { return lr > 0.05 ? std::nan("") : 1 - lr; });
  CHECK(best(found).rate == 0.03);
  CHECK(std::isinf(found.back().loss));
  CHECK(search([](double lr) { return -lr; }).size() == 7 + 8);
}

TEST_CASE("compare: the table has a row for every optimizer, and the rate in it is the best of those printed") {
  auto const c = parse_comparison({"--networks", "softmax,shallow"});
  auto const all = compare_digits({});
  REQUIRE(all.size() == 20);
  auto const text = to_markdown(c, all);
  for (auto const& result : all) {
    INFO(result.network, " ", result.optimizer);
    CHECK(std::ranges::all_of(result.trials, [&](trial const& t) { return t.loss >= best(result.trials).loss; }));
    CHECK(result.rate == best(result.trials).rate);
    CHECK(result.runs.size() == 2);
  }

  // in the printed rows of the search, the bold one is the smallest
  std::istringstream lines{text.substr(text.find("### softmax, search"))};
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("**") == line.npos) continue;
    ++rows;
    double least = std::numeric_limits<double>::infinity(), bold = 0;
    for (auto cell : split(line, '|')) {
      std::erase(cell, ' ');
      bool const chosen = cell.starts_with("**");
      std::erase(cell, '*');
      double loss = 0;
      if (!read(cell, loss)) continue;
      least = std::min(least, loss);
      if (chosen) bold = loss;
    }
    CHECK(bold == least);
  }
  CHECK(rows == 20);
  for (auto const& optimizer : c.optimizers) CHECK(text.find("\n| " + optimizer.label + " | ") != text.npos);
}

TEST_CASE("compare: one seed gives the same results, another seed others") {
  std::vector<std::string> const few{"--optimizers", "sgd,nesterov,adagrad", "--networks", "softmax"};
  auto const again = [&](char const* seed) {
    auto arguments = few;
    arguments.insert(arguments.end(), {"--seed", seed});
    return to_csv(compare_digits(arguments));
  };
  auto const once = again("3");
  CHECK(std::ranges::count(once, '\n') == 1 + 3 * 2 * 2);
  CHECK(once == again("3"));
  CHECK(once != again("4"));
}

TEST_CASE("compare: what to_csv() wrote is read again and gives the same picture") {
  auto const all = compare_digits({"--optimizers", "sgd,adam", "--networks", "softmax"});
  auto const c = parse_comparison({});
  auto const text = to_csv(all);
  auto const again = from_csv(text);
  CHECK(to_csv(again) == text);
  CHECK(draw(c, "softmax", again) == draw(c, "softmax", all));
  CHECK_THROWS_WITH_AS(from_csv("head\nsoftmax,sgd,1\n"), "no line of a comparison: \"softmax,sgd,1\"",
                       std::runtime_error);
}

TEST_CASE("compare: sgd is plain, momentum and nesterov are sgd with momentum 0.9") {
  auto const c = parse_comparison({});
  REQUIRE(c.optimizers.size() == 10);
  CHECK(get(c.optimizers[0].rule, "momentum") == 0);
  CHECK(get(c.optimizers[1].rule, "momentum") == 0.9);
  CHECK(get(c.optimizers[1].rule, "nesterov") == 0);
  CHECK(get(c.optimizers[2].rule, "nesterov") == 1);
  CHECK(c.optimizers[2].label == "nesterov");
  CHECK(parse_comparison({"--optimizers", "lion:beta1=0.8"}).optimizers[0].label == "lion beta1=0.8");
}

TEST_CASE("compare: mistakes are named, with what is allowed") {
  rejects({"--network", "deep"}, "unknown option \"--network\": did you mean --networks?");
  rejects({"--epochs"}, "--epochs needs a value");
  rejects({"--epochs", "0"}, "--epochs must be an integer from 1 to 1000000, is \"0\"");
  rejects({"--search", "0"}, "--search must be above 0, is \"0\"");
  rejects({"--search", "1e9"}, "--search must be at most 1000 epochs, is \"1e9\"");
  rejects({"--networks", "softmax,wide"}, "each of --networks must be one of softmax, shallow, deep, is \"wide\"");
  rejects({"--networks", "deep,deep"}, "--networks has \"deep\" twice");
  rejects({"--optimizers", "sgd,sgd"}, "--optimizers has \"sgd\" twice");
  rejects({"--optimizers", "adam:rho=1"},
          "adam has no hyperparameter \"rho\"; there are\n"
          "  lr, beta1, beta2, eps, weight_decay, eps_hat, bias_correction");
  rejects({"--rates", "0.1,1"}, "--rates must be at least 3 rates that rise, is \"0.1,1\"");
  rejects({"--rates", "0.1,1,0.5"}, "--rates must be at least 3 rates that rise, is \"0.1,1,0.5\"");
  rejects({"--rates", "0.1,0.1,1"}, "--rates must be at least 3 rates that rise, is \"0.1,0.1,1\"");
  rejects({"--rates", "0,1,2"}, "--rates must be above 0, is \"0\"");
  rejects({"--limit", "5"}, "--limit must be an integer from 6 to 1073741824, is \"5\"");
}
