// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "options.hpp"

#include "arguments.hpp"
#include "text.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

namespace example {
namespace {

template <class Enum> using spellings = std::vector<std::pair<std::string, Enum>>;

spellings<precision> const precisions{
    {"float", precision::float_}, {"half", precision::half}, {"bfloat16", precision::bfloat16}};
spellings<opt_level> const levels{
    {"O0", opt_level::O0}, {"O1", opt_level::O1}, {"O2", opt_level::O2}, {"O3", opt_level::O3}};
spellings<schedule_shape> const schedules{{"constant", schedule_shape::constant},
                                          {"linear", schedule_shape::linear},
                                          {"cosine", schedule_shape::cosine},
                                          {"step", schedule_shape::step}};

template <class Enum>
Enum one_of(spellings<Enum> const& all, std::string const& name, std::string const& text) {
  std::vector<std::string> allowed;
  for (auto const& [spelling, value] : all) allowed.push_back(spelling);
  example::one_of(name, text, allowed);
  return std::ranges::find(all, text, &std::pair<std::string, Enum>::first)->second;
}

template <class Enum> std::string spelling_of(spellings<Enum> const& all, Enum wanted) {
  return std::ranges::find(all, wanted, &std::pair<std::string, Enum>::second)->first;
}

/// All hyperparameters that any rule has.
std::set<std::string> all_hyperparameters() {
  std::set<std::string> all;
  for (auto const& name : rule_names())
    for (auto const& parameter : hyperparameters(rule_named(name))) all.insert(parameter);
  return all;
}

void require_some_use(std::string const& name, std::vector<optimizer_choice> const& optimizers) {
  auto const has_it = [&](optimizer_choice const& choice) {
    return std::ranges::count(hyperparameters(choice.rule), name) > 0;
  };
  if (std::ranges::none_of(optimizers, has_it)) fail("no chosen optimizer has a hyperparameter " + quoted(name));
}

/// weight_decay for --weight-decay or --weight_decay, batch for --batch; empty if it is not an option.
std::string hyperparameter_of(std::string option) {
  if (!option.starts_with("--")) return {};
  std::ranges::replace(option, '-', '_');
  return option.substr(2);
}

std::string path(std::string const& name, std::string const& text) {
  if (text.empty()) fail(name + " needs the path of a file");
  return text;
}

using setter = void (*)(options& o, std::string const& name, std::string const& text);

std::map<std::string, setter> const setters{
    {"--data", [](auto& o, auto&, auto& text) { o.data = text; }},
    {"--limit", [](auto& o, auto& name, auto& text) { o.limit = integer(name, text, 1, 1 << 30); }},
    {"--network", [](auto& o, auto&, auto& text) { o.hidden = parse_network(o.network = text); }},
    {"--precision", [](auto& o, auto& name, auto& text) { o.storage = one_of(precisions, name, text); }},
    {"--level",
     [](auto& o, auto& name, auto& text) {
       o.level = one_of(levels, name, text);
       o.storage = is_half(o.level) ? precision::half : precision::float_;
     }},
    {"--schedule", [](auto& o, auto& name, auto& text) { o.schedule = one_of(schedules, name, text); }},
    {"--warmup", [](auto& o, auto& name, auto& text) { o.warmup = integer(name, text, 0, 1 << 30); }},
    {"--clip", [](auto& o, auto& name, auto& text) { o.clip = positive(name, text); }},
    {"--batch", [](auto& o, auto& name, auto& text) { o.batch = integer(name, text, 1, 65536); }},
    {"--workers", [](auto& o, auto& name, auto& text) { o.workers = integer(name, text, 0, 64); }},
    {"--epochs", [](auto& o, auto& name, auto& text) { o.epochs = integer(name, text, 1, 1'000'000); }},
    {"--steps", [](auto& o, auto& name, auto& text) { o.steps = integer(name, text, 1, 1 << 30); }},
    {"--seed",
     [](auto& o, auto& name, auto& text) { o.seed = integer(name, text, std::uint64_t{0}, ~std::uint64_t{0}); }},
    {"--save", [](auto& o, auto& name, auto& text) { o.save = path(name, text); }},
    {"--every", [](auto& o, auto& name, auto& text) { o.every = integer(name, text, 1, 1 << 30); }},
    {"--resume", [](auto& o, auto& name, auto& text) { o.resume = path(name, text); }},
    {"--out", [](auto& o, auto&, auto& text) { o.out = text; }},
};

/// The options whose values --compare can list, besides hyperparameters.
std::vector<std::string> const compared_options{"batch",     "clip",     "level", "network",
                                                "precision", "schedule", "seed",  "warmup"};

/// What --compare NAME=A,B,... compares.
struct compared_setting {
  std::string name;
  std::vector<std::string> values;
};

/// Empty if the text is a list of optimizers, in which = comes after a colon.
std::optional<compared_setting> parse_compared(std::string const& text) {
  auto const equals = text.find('=');
  if (equals == text.npos || text.find_first_of(":,") < equals) return {};
  compared_setting found{text.substr(0, equals), split(text.substr(equals + 1), ',')};
  std::ranges::replace(found.name, '-', '_');
  std::set<std::string> seen;
  for (auto const& value : found.values)
    if (!seen.insert(value).second) fail("--compare " + found.name + " has " + quoted(value) + " twice");
  return found;
}

/// The optimizers of a list such as adam,sgd:momentum=0, or of `all` or `common`, as far as they are compiled for the
/// storage type and the level.
std::vector<optimizer_choice> parse_optimizers(options const& o, std::string list,
                                               hyperparameter_values const& for_all) {
  bool const leveled = o.level != opt_level::none && o.level != opt_level::O0;
  bool const any = o.storage == precision::float_ && !leveled;
  auto const compiled = leveled ? level_rule_names() : any ? rule_names() : common_rule_names();
  if (list == "all" || (list == "common" && !any)) list = joined(compiled, ",");
  if (list == "common") list = joined(common_rule_names(), ",");

  std::vector<optimizer_choice> chosen;
  for (auto const& text : split(list, ',')) {
    chosen.push_back(parse_optimizer(text, for_all));
    if (std::ranges::count(compiled, split(text, ':')[0]) > 0) continue;
    fail(chosen.back().label +
         (leveled ? " is not compiled for level " + to_string(o.level) + "; there are "
                  : " is compiled for float only; for " + to_string(o.storage) + " there are ") +
         joined(compiled, ", "));
  }
  for (auto const& [name, value] : for_all) require_some_use(name, chosen);
  return chosen;
}

/// The options of each value that is compared.
std::vector<options> parse_values(options const& o, compared_setting const& compared, std::string const& optimizer,
                                  hyperparameter_values const& for_all) {
  bool const is_option = std::ranges::count(compared_options, compared.name) > 0;
  if (!is_option) {
    auto const mine = hyperparameters(parse_optimizer(optimizer, for_all).rule);
    auto settings = compared_options;
    settings.insert(settings.end(), mine.begin(), mine.end());
    if (std::ranges::count(mine, compared.name) == 0) fail_unknown("--compare has no setting", compared.name, settings);
    if (optimizer.find(":" + compared.name + "=") != optimizer.npos)
      fail(quoted(optimizer) + " and --compare " + compared.name + " cannot be given together");
  }

  std::vector<options> all;
  for (auto const& value : compared.values) {
    options run = o;
    auto with_value = for_all;
    auto const name = "--compare " + compared.name;
    if (is_option) setters.at("--" + compared.name)(run, name, value);
    else with_value[compared.name] = number(name, value);
    run.optimizers = parse_optimizers(run, optimizer, with_value);
    run.compared = compared.name;
    run.value = value;
    all.push_back(run);
  }
  return all;
}

}  // namespace

optimizer_choice parse_optimizer(std::string const& text, hyperparameter_values const& for_all) {
  auto const parts = split(text, ':');
  optimizer_choice choice{.label = parts[0], .rule = rule_named(parts[0])};
  for (auto const& [name, value] : for_all) set(choice.rule, name, value);

  std::map<std::string, std::string> given;
  for (std::size_t k = 1; k < parts.size(); ++k) {
    auto const equals = parts[k].find('=');
    auto const name = parts[k].substr(0, equals);
    if (equals == std::string::npos) fail(quoted(parts[k]) + " in " + quoted(text) + " must be HYPERPARAMETER=VALUE");
    if (!set(choice.rule, name, number(name, parts[k].substr(equals + 1))))
      fail_unknown(parts[0] + " has no hyperparameter", name, hyperparameters(choice.rule));
    auto const [earlier, is_new] = given.try_emplace(name, parts[k].substr(equals + 1));
    if (!is_new)
      fail(quoted(name) + " in " + quoted(text) + " is given twice, as " + earlier->second + " and as " +
           parts[k].substr(equals + 1));
    choice.label += " " + parts[k];
  }
  std::visit([](auto const& rule) { descent::check_rule(rule); }, choice.rule);
  return choice;
}

std::vector<std::string> option_names() {
  std::vector<std::string> names{"--optimizer", "--compare"};
  for (auto const& [name, setter] : setters) names.push_back(name);
  for (auto name : all_hyperparameters()) {
    names.push_back("--" + name);
    std::ranges::replace(name, '_', '-');
    if (names.back() != "--" + name) names.push_back("--" + name);
  }
  return names;
}

options parse_options(std::vector<std::string> const& arguments, std::string const& program) {
  options o;
  o.command = arguments;
  o.command.insert(o.command.begin(), program);
  std::string optimizers;
  std::optional<compared_setting> compared;
  std::set<std::string> given;
  hyperparameter_values for_all;
  std::map<std::string, std::string> texts_for_all;

  auto const chooses = [](std::string const& name) { return name == "--optimizer" || name == "--compare"; };
  each_option(arguments, option_names(), [&](std::string const& name, std::string const& value) {
    given.insert(hyperparameter_of(name));
    if (auto const setter = setters.find(name); setter != setters.end()) {
      setter->second(o, name, value);
    } else if (auto const setting = parse_compared(value); setting && name == "--compare") {
      if (compared) fail("--compare can be given only once");
      compared = setting;
    } else if (chooses(name)) {
      if (value.empty()) fail(name + " needs the name of an optimizer");
      if (!optimizers.empty())
        fail("--optimizer and --compare with optimizers can be given only once, and not together");
      optimizers = value;
    } else {
      auto const [earlier, is_new] = texts_for_all.try_emplace(hyperparameter_of(name), value);
      if (!is_new) fail(name + " is given twice, as " + earlier->second + " and as " + value);
      for_all[hyperparameter_of(name)] = number(name, value);
    }
  });

  if (optimizers.empty()) optimizers = "adamw";
  if (compared) {
    if (given.contains(compared->name))
      fail("--" + compared->name + " and --compare " + compared->name + " cannot be given together");
    given.insert(compared->name);
  }
  if (given.contains("level") && given.contains("precision"))
    fail("the level decides the precision: only one of them can be given");
  if (compared) {
    o.values = parse_values(o, *compared, optimizers, for_all);
    o.compared = compared->name;
    o.optimizers = o.values[0].optimizers;
    if (o.optimizers.size() > 1)
      fail("--compare " + o.compared + " is for one optimizer, there are " + std::to_string(o.optimizers.size()));
  } else {
    o.optimizers = parse_optimizers(o, optimizers, for_all);
  }

  if (o.every > 0 && o.save.empty()) fail("--every needs --save");
  if (auto const runs = runs_of(o).size(); runs > 1 && (!o.save.empty() || !o.resume.empty()))
    fail("--save and --resume are for one run, there are " + std::to_string(runs));
  return o;
}

std::vector<options> runs_of(options const& o) {
  if (!o.values.empty()) return o.values;
  std::vector<options> runs;
  for (auto const& optimizer : o.optimizers) {
    runs.push_back(o);
    runs.back().optimizers = {optimizer};
    runs.back().value = optimizer.label;
  }
  return runs;
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
  --compare A,B,...  train with each of them from the same start; `common` is those above the line,
                     `all` is all
  --compare NAME=X,Y,...
                     train one optimizer with each value of an option, which is batch, clip, level,
                     network, precision, schedule, seed, warmup, or one of its hyperparameters
  --precision TYPE   storage of weights and gradients: float (default), half, bfloat16;
                     the 16-bit types come with master weights in float
  --level LEVEL      instead of --precision, for sgd and adamw: O0: float; O1: float with a loss scale;
                     O2: half, with masters in float and a loss scale; O3: half alone
  --schedule SHAPE   of the learning rate: constant, linear, cosine (default), step
  --warmup N         steps in which the rate rises first (default: 0)
  --clip X           scale gradients down to a norm of X
  --batch N          images per step (default: 32)
  --workers N        threads that read batches ahead (default: 0, none)
  --epochs N         passes over the training data (default: 30)
  --steps N          stop after N steps
  --seed N           of the initial weights and the order of images (default: 1)

stop and resume
  --save FILE        save the run after each epoch, at the end, and when Ctrl-C stops it
  --every N          save it after every N steps instead of each epoch
  --resume FILE      resume a saved run, bit for bit as if it had never stopped. Give its options
                     again; --save, --every, --out and --workers may differ, and with
                     --schedule constant also --epochs and --steps

output
  --out DIR          where curves.csv and curves.svg go (default: results)
  --help             this text

The table of a run has a line per epoch: for the training images, loss and accuracy are means over
the epoch; for the test images, they are those of the network at its end. Then come the learning
rate and the norm of the gradient in the last step, the steps skipped so far because a gradient was
not finite, the seconds of training, and the share of them that the optimizer's step took.
With --compare, the table has a line per run, with the best epoch, and then says which differences
of accuracy may be chance.

optimizers, with their hyperparameters, which are options of the same name, and their defaults
)";
  bool common = true;
  for (auto const& name : rule_names()) {
    auto const rule = rule_named(name);
    if (common && !is_common(rule)) text << "  ---- for float only:\n";
    common = is_common(rule);
    std::ostringstream fields;
    std::size_t column = 0;
    for (auto const& parameter : hyperparameters(rule)) {
      std::ostringstream field;
      field << " --" << parameter << ' ' << get(rule, parameter);
      if (column + field.str().size() > 78) fields << '\n' << std::string(22, ' '), column = 0;
      fields << field.str();
      column += field.str().size();
    }
    text << "  " << name << std::string(name.size() < 20 ? 20 - name.size() : 1, ' ') << fields.str() << '\n';
  }
  text << R"(
Hyperparameters of one optimizer follow its name: --compare adam,adam:lr=1e-2,sgd:momentum=0
The clip of adopt and larc can be set in this way only: adopt:clip=false.

examples
  train
  train --compare common
  train --compare batch=8,32,128 --epochs 5
  train --compare level=O0,O1,O2,O3 --optimizer sgd
  train --data fashion --optimizer lion --precision bfloat16 --schedule linear --warmup 500
  train --save run.safetensors
  train --save run.safetensors --resume run.safetensors
)";
  return text.str();
}

std::string resume_command(options const& o) {
  std::string line;
  auto const add = [&](std::string const& word) { line += (line.empty() ? "" : " ") + for_shell(word); };
  for (auto word = o.command.begin(); word != o.command.end(); ++word) {
    bool const is_option = word->starts_with("--"), with_value = word->find('=') != word->npos;
    bool const apart = is_option && !with_value && word + 1 != o.command.end();
    if (*word != "--resume" && !word->starts_with("--resume=")) {
      add(*word);
      if (apart) add(word[1]);
    }
    word += apart;
  }
  add("--resume"), add(o.save);
  return line;
}

std::string to_string(precision p) { return spelling_of(precisions, p); }
std::string to_string(opt_level l) { return spelling_of(levels, l); }
std::string to_string(schedule_shape s) { return spelling_of(schedules, s); }

}  // namespace example
