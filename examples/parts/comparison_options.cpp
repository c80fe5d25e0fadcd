// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "arguments.hpp"
#include "comparison.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace example {
namespace {

/// The plain forms need their own names here, since `sgd` has momentum in `train`.
std::map<std::string, std::string> const short_names{
    {"sgd", "sgd:momentum=0"},
    {"momentum", "sgd:momentum=0.9"},
    {"nesterov", "sgd:momentum=0.9:nesterov=true"},
};

constexpr char const* all_optimizers = "sgd,momentum,nesterov,adagrad,adadelta,rmsprop,adam,adamax,nadam,adamw";

optimizer_choice parse(std::string const& text) {
  auto const known = short_names.find(text);
  auto choice = parse_optimizer(known != short_names.end() ? known->second : text);
  if (known != short_names.end()) choice.label = text;
  return choice;
}

void require_once(std::string const& name, std::vector<std::string> const& words) {
  std::set<std::string> seen;
  for (auto const& word : words)
    if (!seen.insert(word).second) fail(name + " has " + example::quoted(word) + " twice");
}

std::vector<double> grid(std::string const& name, std::string const& text) {
  std::vector<double> rates;
  for (auto const& rate : split(text, ',')) rates.push_back(positive(name, rate));
  bool const rises = std::ranges::is_sorted(rates, std::less_equal{}) && std::isfinite(rates.back());
  if (rates.size() < 3 || !rises) fail(name + " must be at least 3 rates that rise, is " + example::quoted(text));
  return rates;
}

using setter = void (*)(comparison_options& c, std::string const& name, std::string const& text);

std::map<std::string, setter> const setters{
    {"--data", [](auto& c, auto&, auto& text) { c.data = text; }},
    {"--networks",
     [](auto& c, auto& name, auto& text) {
       c.networks = split(text, ',');
       require_once(name, c.networks);
       for (auto const& network : c.networks) one_of("each of " + name, network, {"softmax", "shallow", "deep"});
     }},
    {"--optimizers",
     [](auto& c, auto& name, auto& text) {
       c.optimizers.clear();
       require_once(name, split(text, ','));
       for (auto const& optimizer : split(text, ',')) c.optimizers.push_back(parse(optimizer));
     }},
    {"--rates", [](auto& c, auto& name, auto& text) { c.rates = grid(name, text); }},
    {"--search",
     [](auto& c, auto& name, auto& text) {
       c.search_epochs = positive(name, text);
       if (c.search_epochs > 1000) fail(name + " must be at most 1000 epochs, is " + example::quoted(text));
     }},
    {"--epochs", [](auto& c, auto& name, auto& text) { c.epochs = integer(name, text, 1, 1'000'000); }},
    {"--seeds", [](auto& c, auto& name, auto& text) { c.seeds = integer(name, text, 1, 1000); }},
    {"--seed",
     [](auto& c, auto& name, auto& text) { c.seed = integer(name, text, std::uint64_t{0}, std::uint64_t{1} << 62); }},
    {"--batch", [](auto& c, auto& name, auto& text) { c.batch = integer(name, text, 1, 65536); }},
    {"--limit", [](auto& c, auto& name, auto& text) { c.limit = integer(name, text, 6, 1 << 30); }},
    {"--runs", [](auto& c, auto&, auto& text) { c.runs = text; }},
    {"--out", [](auto& c, auto&, auto& text) { c.out = text; }},
};

}  // namespace

comparison_options parse_comparison(std::vector<std::string> const& arguments) {
  comparison_options c;
  std::vector<std::string> names;
  for (auto const& [name, setter] : setters) names.push_back(name);
  setters.at("--optimizers")(c, "--optimizers", all_optimizers);
  each_option(arguments, names,
              [&](std::string const& name, std::string const& value) { setters.at(name)(c, name, value); });
  return c;
}

std::string comparison_help() {
  return std::string{R"(usage: compare_optimizers [options]

Compares optimizers on three networks, each at its best learning rate.

For each network and optimizer, rates are tried on a part of the training images and judged by the
loss of those held out, a sixth. Then it trains with the best rate on all images, with several seeds.

  --data NAME|DIR    fashion (default), digits or a directory, as for `train`
  --networks A,B     some of softmax, shallow, deep (default: all three)
  --optimizers A,B   default: )"} + all_optimizers + R"(;
                     sgd is plain, momentum and nesterov are sgd with momentum 0.9; or any that
                     `train --help` lists, as NAME:HYPERPARAMETER=VALUE:...
  --rates A,B,...    the grid of the search (default: 1e-3,3e-3,1e-2,3e-2,1e-1,3e-1,1); it is
                     extended while the best rate is the first or the last
  --search N         epochs of a trial, may be a fraction (default: 0.5)
  --epochs N         epochs of a final run (default: 5)
  --seed N           the first seed, and that of the search (default: 1)
  --seeds N          how many final runs, with seeds that follow each other (default: 3)
  --batch N          images per step (default: 128)
  --limit N          the first N training images only
  --out DIR          where comparison.md, comparison.csv and the pictures comparison_NETWORK.svg go
                     (default: results)
  --runs FILE        no training: the pictures of an earlier comparison.csv
  --help             this text
)";
}

}  // namespace example
