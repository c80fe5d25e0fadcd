// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "options.hpp"

#include "text.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

namespace example {
namespace {

[[noreturn]] void fail(std::string const& what) { throw std::invalid_argument(what); }

template <class Number>
Number integer(std::string const& name, std::string const& text, Number low, Number high) {
  Number x{};
  if (!read(text, x) || x < low || x > high)
    fail(name + " must be an integer from " + std::to_string(low) + " to " + std::to_string(high) +
         ", is " + quoted(text));
  return x;
}

double number(std::string const& name, std::string const& text) {
  double x = 0;
  if (text == "true" || text == "false") return text == "true";
  if (!read(text, x)) fail(name + " must be a number, is " + quoted(text));
  return x;
}

double positive(std::string const& name, std::string const& text) {
  double const x = number(name, text);
  if (!(x > 0)) fail(name + " must be above 0, is " + quoted(text));
  return x;
}

template <class Enum> using spellings = std::vector<std::pair<std::string, Enum>>;

spellings<precision> const precisions{
    {"float", precision::float_}, {"half", precision::half}, {"bfloat16", precision::bfloat16}};
spellings<schedule_shape> const schedules{{"constant", schedule_shape::constant},
                                          {"linear", schedule_shape::linear},
                                          {"cosine", schedule_shape::cosine},
                                          {"step", schedule_shape::step}};

template <class Enum>
Enum one_of(spellings<Enum> const& all, std::string const& name, std::string const& text) {
  std::string allowed;
  for (auto const& [spelling, value] : all) {
    if (spelling == text) return value;
    allowed += (allowed.empty() ? "" : ", ") + spelling;
  }
  fail(name + " must be one of " + allowed + ", is " + quoted(text));
}

template <class Enum> std::string spelling_of(spellings<Enum> const& all, Enum wanted) {
  return std::ranges::find(all, wanted, &std::pair<std::string, Enum>::second)->first;
}

/// The hyperparameters of all rules, each once.
std::set<std::string> all_hyperparameters() {
  std::set<std::string> all;
  for (auto const& name : rule_names())
    for (auto const& parameter : hyperparameters(rule_named(name))) all.insert(parameter);
  return all;
}

using values = std::map<std::string, double>;

/// A rule as written on the command line: NAME or NAME:HYPERPARAMETER=VALUE:...
optimizer_choice parse_optimizer(std::string const& text, values const& for_all) {
  auto const parts = split(text, ':');
  optimizer_choice choice{.label = parts[0], .rule = rule_named(parts[0])};
  for (auto const& [name, value] : for_all) set(choice.rule, name, value);

  for (std::size_t k = 1; k < parts.size(); ++k) {
    auto const equals = parts[k].find('=');
    auto const name = parts[k].substr(0, equals);
    if (equals == std::string::npos)
      fail(quoted(parts[k]) + " in " + quoted(text) + " must be HYPERPARAMETER=VALUE");
    if (!set(choice.rule, name, number(name, parts[k].substr(equals + 1))))
      fail(parts[0] + " has no hyperparameter " + quoted(name) + "; it has " +
           joined(hyperparameters(choice.rule), ", "));
    choice.label += " " + parts[k];
  }
  std::visit([](auto const& rule) { rule.check(); }, choice.rule);
  return choice;
}

void require_some_use(std::string const& name, std::vector<optimizer_choice> const& optimizers) {
  auto const has_it = [&](optimizer_choice const& choice) {
    return std::ranges::count(hyperparameters(choice.rule), name) > 0;
  };
  if (std::ranges::none_of(optimizers, has_it))
    fail("no chosen optimizer has a hyperparameter " + quoted(name));
}

/// weight_decay for --weight-decay or --weight_decay; nothing for what is no option.
std::string hyperparameter_of(std::string option) {
  if (!option.starts_with("--")) return {};
  std::ranges::replace(option, '-', '_');
  return option.substr(2);
}

using setter = void (*)(options& o, std::string const& name, std::string const& text);

std::map<std::string, setter> const setters{
    {"--data", [](auto& o, auto&, auto& text) { o.data = text; }},
    {"--limit", [](auto& o, auto& name, auto& text) { o.limit = integer(name, text, 1, 1 << 30); }},
    {"--network", [](auto& o, auto&, auto& text) { o.hidden = parse_network(o.network = text); }},
    {"--precision",
     [](auto& o, auto& name, auto& text) { o.storage = one_of(precisions, name, text); }},
    {"--schedule",
     [](auto& o, auto& name, auto& text) { o.schedule = one_of(schedules, name, text); }},
    {"--warmup",
     [](auto& o, auto& name, auto& text) { o.warmup = integer(name, text, 0, 1 << 30); }},
    {"--clip", [](auto& o, auto& name, auto& text) { o.clip = positive(name, text); }},
    {"--batch", [](auto& o, auto& name, auto& text) { o.batch = integer(name, text, 1, 65536); }},
    {"--epochs",
     [](auto& o, auto& name, auto& text) { o.epochs = integer(name, text, 1, 1'000'000); }},
    {"--steps", [](auto& o, auto& name, auto& text) { o.steps = integer(name, text, 1, 1 << 30); }},
    {"--seed",
     [](auto& o, auto& name, auto& text) {
       o.seed = integer(name, text, std::uint64_t{0}, ~std::uint64_t{0});
     }},
    {"--out", [](auto& o, auto&, auto& text) { o.out = text; }},
};

}  // namespace

options parse_options(std::vector<std::string> const& arguments) {
  options o;
  std::string optimizers;
  values for_all;
  auto const all = all_hyperparameters();

  for (auto argument = arguments.begin(); argument != arguments.end(); ++argument) {
    if (*argument == "--help" || *argument == "-h") {
      o.help = true;
      return o;
    }
    auto const equals = argument->find('=');
    auto const name = argument->substr(0, equals);
    auto const setter = setters.find(name);
    auto const hyperparameter = hyperparameter_of(name);
    bool const chooses = name == "--optimizer" || name == "--compare";
    if (setter == setters.end() && !chooses && !all.contains(hyperparameter))
      fail("unknown option " + quoted(name));

    bool const apart = equals == std::string::npos;
    if (apart && argument + 1 == arguments.end()) fail(name + " needs a value");
    auto const value = apart ? *++argument : argument->substr(equals + 1);
    if (setter != setters.end()) {
      setter->second(o, name, value);
    } else if (chooses) {
      if (!optimizers.empty())
        fail("--optimizer and --compare can be given only once, and not together");
      optimizers = value;
    } else {
      for_all[hyperparameter] = number(name, value);
    }
  }

  if (optimizers.empty()) optimizers = "adamw";
  if (optimizers == "all") optimizers = joined(rule_names(), ",");
  for (auto const& text : split(optimizers, ','))
    o.optimizers.push_back(parse_optimizer(text, for_all));
  for (auto const& [name, value] : for_all) require_some_use(name, o.optimizers);
  return o;
}

std::string help_text() {
  std::ostringstream text;
  text << R"(usage: train [options]

Trains a classifier of images and shows what the optimizer does.

data and network
  --data NAME|DIR    digits: 1797 handwritten digits of 8x8, built in (default)
                     fashion: 70000 pieces of clothing of 28x28, Debian's dataset-fashion-mnist
                     DIR: the four files of MNIST, compressed or not
  --limit N          train on the first N images only
  --network SPEC     softmax: no hidden layer
                     shallow: one of 100 sigmoids
                     deep: 300 sigmoids, 100 rectifiers, 50 sigmoids (default)
                     or hidden layers of your own, such as sigmoid300,relu100

training
  --optimizer RULE   one of those below (default: adamw)
  --compare A,B,...  train with each of them from the same start, or with `all`
  --precision TYPE   storage of weights and gradients: float (default), half, bfloat16;
                     the 16-bit types come with master weights in float
  --schedule SHAPE   of the learning rate: constant, linear, cosine (default), step
  --warmup N         steps in which the rate rises first (default: 0)
  --clip X           scale gradients down to a norm of X
  --batch N          images per step (default: 32)
  --epochs N         passes over the training data (default: 30)
  --steps N          stop after N steps
  --seed N           of the initial weights and the order of images (default: 1)

output
  --out DIR          where curves.csv and curves.svg go (default: results)
  --help             this text

A table has a line per epoch: means of loss and accuracy over the epoch for the training images,
those of the network as it is then for the test images; learning rate and norm of the gradient in
the last step; steps skipped so far because a gradient was not finite; the time to train, and the
share of it that the optimizer's step took.

optimizers, with their hyperparameters, which are options of the same name, and their defaults
)";
  for (auto const& name : rule_names()) {
    auto const rule = rule_named(name);
    text << "  " << name << std::string(name.size() < 9 ? 9 - name.size() : 1, ' ');
    for (auto const& parameter : hyperparameters(rule))
      text << " --" << parameter << ' ' << get(rule, parameter);
    text << '\n';
  }
  text << R"(
An optimizer can be given hyperparameters of its own: --compare adam,adam:lr=1e-2,sgd:momentum=0

examples
  train
  train --compare all
  train --data fashion --optimizer lion --precision bfloat16 --schedule linear --warmup 500
)";
  return text.str();
}

std::string to_string(precision p) { return spelling_of(precisions, p); }
std::string to_string(schedule_shape s) { return spelling_of(schedules, s); }

}  // namespace example
