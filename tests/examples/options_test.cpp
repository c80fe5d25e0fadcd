// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "../../examples/parts/options.hpp"

#include "../../examples/parts/arguments.hpp"
#include "../../examples/parts/text.hpp"

#include <descent/core/detail/each_setting.hpp>
#include <doctest/doctest.h>

#include <stdexcept>
#include <utility>

using namespace example;

namespace {

std::vector<std::string> words(std::string const& text) {
  std::vector<std::string> result(1);
  for (char const c : text) {
    if (c == ' ') result.emplace_back();
    else result.back() += c;
  }
  return result;
}

void rejects(std::string const& arguments, std::string const& why) {
  CAPTURE(arguments);
  CHECK_THROWS_WITH_AS(parse_options(words(arguments)), why.c_str(), std::invalid_argument);
}

/// The number of a rule's fields; in place of an inner rule, its momentum counts.
template <class Rule> constexpr std::size_t fields_of = descent::detail::count_fields<Rule>();

}  // namespace

TEST_CASE("options: nothing given is adamw on the digits") {
  auto const o = parse_options({});
  CHECK(o.data == "digits");
  CHECK(o.hidden.size() == 3);
  REQUIRE(o.optimizers.size() == 1);
  CHECK(o.optimizers[0].label == "adamw");
  CHECK(o.storage == precision::float_);
}

TEST_CASE("options: values follow their name after a space or =") {
  for (auto const* text : {"--epochs 7 --precision half --schedule linear --network relu8,sigmoid4",
                           "--epochs=7 --precision=half --schedule=linear --network=relu8,sigmoid4"}) {
    auto const o = parse_options(words(text));
    CHECK(o.epochs == 7);
    CHECK(o.storage == precision::half);
    CHECK(o.schedule == schedule_shape::linear);
    REQUIRE(o.hidden.size() == 2);
    CHECK(o.hidden[0].units == 8);
    CHECK(o.hidden[0].function == activation::relu);
    CHECK(o.hidden[1].units == 4);
    CHECK(o.hidden[1].function == activation::sigmoid);
  }
}

TEST_CASE("options: hyperparameters go to every optimizer that has them, its own come last") {
  auto const o = parse_options(words("--compare sgd:lr=0.5:nesterov=true,adam --lr 0.25 --momentum 0.8"));
  REQUIRE(o.optimizers.size() == 2);
  CHECK(o.optimizers[0].label == "sgd lr=0.5 nesterov=true");
  CHECK(get(o.optimizers[0].rule, "lr") == 0.5);
  CHECK(get(o.optimizers[0].rule, "momentum") == 0.8);
  CHECK(get(o.optimizers[0].rule, "nesterov") == 1);
  CHECK(get(o.optimizers[1].rule, "lr") == 0.25);
}

TEST_CASE("options: `--compare all` is every rule, `common` those of every storage type") {
  CHECK(parse_options(words("--compare all")).optimizers.size() == rule_names().size());
  CHECK(parse_options(words("--compare common")).optimizers.size() == 8);
  CHECK(parse_options(words("--compare all --precision half")).optimizers.size() == 8);
}

TEST_CASE("options: `--compare NAME=` is a run of one optimizer for each value, whatever the order of the options") {
  for (auto const* text : {"--compare batch=8,32,128 --optimizer lion --lr 0.5 --epochs 2",
                           "--epochs 2 --lr 0.5 --optimizer lion --compare batch=8,32,128"}) {
    auto const o = parse_options(words(text));
    CHECK(o.compared == "batch");
    auto const runs = runs_of(o);
    REQUIRE(runs.size() == 3);
    CHECK(runs[0].batch == 8);
    CHECK(runs[2].batch == 128);
    CHECK(runs[2].value == "128");
    for (auto const& run : runs) {
      REQUIRE(run.optimizers.size() == 1);
      CHECK(run.optimizers[0].label == "lion");
      CHECK(get(run.optimizers[0].rule, "lr") == 0.5);
      CHECK(run.epochs == 2);
    }
  }
}

TEST_CASE("options: `--compare NAME=` takes every option that it names, and hyperparameters") {
  auto const second = [](std::string const& text) { return runs_of(parse_options(words(text))).at(1); };
  CHECK(second("--compare precision=float,half").storage == precision::half);
  CHECK(second("--compare schedule=constant,step").schedule == schedule_shape::step);
  CHECK(second("--compare network=softmax,relu8").hidden.size() == 1);
  CHECK(second("--compare warmup=0,50").warmup == 50);
  CHECK(second("--compare clip=1,2").clip == 2);
  CHECK(second("--compare seed=1,7").seed == 7);
  CHECK(second("--compare level=O0,O2").level == opt_level::O2);
  CHECK(get(second("--compare lr=1,2").optimizers[0].rule, "lr") == 2);
  CHECK(get(second("--compare weight-decay=0,0.5").optimizers[0].rule, "weight_decay") == 0.5);
  CHECK(get(second("--compare nesterov=false,true --optimizer sgd:momentum=0.5").optimizers[0].rule, "nesterov") == 1);
}

TEST_CASE("options: a level decides the storage type, and there are rules of levels") {
  CHECK(parse_options(words("--level O0 --optimizer nadam")).storage == precision::float_);
  CHECK(parse_options(words("--level O1")).storage == precision::float_);
  CHECK(parse_options(words("--level O2 --optimizer sgd")).storage == precision::half);
  CHECK(parse_options(words("--level O3")).storage == precision::half);
  CHECK(parse_options(words("--level O0 --compare all")).optimizers.size() == rule_names().size());
  CHECK(parse_options(words("--level O1 --compare all")).optimizers.size() == level_rule_names().size());
  CHECK(parse_options(words("--level O3 --compare common")).optimizers.size() == level_rule_names().size());
}

TEST_CASE("options: mistakes in --compare and --level are named, with what is allowed") {
  rejects("--compare bacht=8,16", "--compare has no setting \"bacht\": did you mean batch?");
  rejects("--compare epochs=1,2 --optimizer signsgd",
          "--compare has no setting \"epochs\"; there are\n"
          "  batch, clip, level, network, precision, schedule, seed, warmup, lr, weight_decay");
  rejects("--compare batch=8,0", "--compare batch must be an integer from 1 to 65536, is \"0\"");
  rejects("--compare batch=", "--compare batch must be an integer from 1 to 65536, is \"\"");
  rejects("--compare precision=float,fp8", "--compare precision must be one of float, half, bfloat16, is \"fp8\"");
  rejects("--compare lr=1,fast", "--compare lr must be a number, is \"fast\"");
  rejects("--compare lr=1,-1", "adamw: lr must be finite and at least 0, is -1");
  rejects("--compare batch=8,16,8", "--compare batch has \"8\" twice");
  rejects("--compare batch=8,16 --batch 4", "--batch and --compare batch cannot be given together");
  rejects("--compare lr=1,2 --lr 4", "--lr and --compare lr cannot be given together");
  rejects("--compare lr=1,2 --optimizer sgd:lr=4", "\"sgd:lr=4\" and --compare lr cannot be given together");
  rejects("--compare lr=1,2 --compare batch=1,2", "--compare can be given only once");
  rejects("--compare batch=8,16 --optimizer sgd,adam", "--compare batch is for one optimizer, there are 2");
  rejects("--level O4", "--level must be one of O0, O1, O2, O3, is \"O4\": did you mean O0?");
  rejects("--level O1 --precision half", "the level decides the precision: only one of them can be given");
  rejects("--compare level=O1,O2 --precision half", "the level decides the precision: only one of them can be given");
  rejects("--compare precision=float,half --level O1",
          "the level decides the precision: only one of them can be given");
  rejects("--compare level=O0,O1 --optimizer lion", "lion is not compiled for level O1; there are sgd, adamw");
  rejects("--compare precision=float,half --optimizer nadam",
          "nadam is compiled for float only; for half there are sgd, adam, adamw, rmsprop, lion, lars, lamb, dog");
}

TEST_CASE("rules: each name is that of another rule") {
  for (auto const& name : rule_names())
    for (auto const& other : rule_names())
      CHECK((rule_named(name).index() == rule_named(other).index()) == (name == other));
}

TEST_CASE("rules: every field of every rule is a hyperparameter") {
  for (auto const& name : rule_names()) {
    INFO(name);
    auto const rule = rule_named(name);
    CHECK(hyperparameters(rule).size() == std::visit([]<class Rule>(Rule const&) { return fields_of<Rule>; }, rule));
  }
}

TEST_CASE("rules: every hyperparameter that is listed can be set and read back") {
  for (auto const& name : rule_names()) {
    auto rule = rule_named(name);
    CHECK(!hyperparameters(rule).empty());
    for (auto const& parameter : hyperparameters(rule)) {
      INFO(name, " ", parameter);
      double const changed = get(rule, parameter) == 0 ? 1 : 0;
      CHECK(set(rule, parameter, changed));
      CHECK(get(rule, parameter) == changed);
    }
    CHECK(!set(rule, "no such thing", 1));
  }
}

TEST_CASE("options: mistakes are named, with what is allowed") {
  rejects("--epoch 3", "unknown option \"--epoch\": did you mean --epochs?");
  rejects("fashion", "unknown argument \"fashion\"");
  rejects("--weight-decoy 1", "unknown option \"--weight-decoy\": did you mean --weight-decay?");
  rejects("--nothing 1", "unknown option \"--nothing\"");
  rejects("--epochs", "--epochs needs a value");
  rejects("--epochs x", "--epochs must be an integer from 1 to 1000000, is \"x\"");
  rejects("--epochs 0", "--epochs must be an integer from 1 to 1000000, is \"0\"");
  rejects("--batch 3.5", "--batch must be an integer from 1 to 65536, is \"3.5\"");
  rejects("--clip 0", "--clip must be above 0, is \"0\"");
  rejects("--lr fast", "--lr must be a number, is \"fast\"");
  rejects("--lr -1", "adamw: lr must be finite and at least 0, is -1");
  rejects("--precision fp8", "--precision must be one of float, half, bfloat16, is \"fp8\"");
  rejects("--schedule slow", "--schedule must be one of constant, linear, cosine, step, is \"slow\"");
  rejects("--optimizer sgdd", "there is no optimizer \"sgdd\": did you mean sgd?");
  rejects("--optimizer adamv", "there is no optimizer \"adamv\": did you mean adamw?");
  rejects("--optimizer nothing", "there is no optimizer \"nothing\"; there are\n" + in_lines(rule_names()));
  rejects("--optimizer adam,nadam --precision half",
          "nadam is compiled for float only; for half there are sgd, adam, adamw, rmsprop, lion, lars, lamb, dog");
  rejects("--optimizer sgd:beta1=1",
          "sgd has no hyperparameter \"beta1\"; there are\n"
          "  lr, momentum, dampening, weight_decay, nesterov, decoupled");
  rejects("--optimizer adamw:lr=0.1:lr=0.2", "\"lr\" in \"adamw:lr=0.1:lr=0.2\" is given twice, as 0.1 and as 0.2");
  rejects("--lr 0.1 --beta2 0.9 --lr 0.2", "--lr is given twice, as 0.1 and as 0.2");
  rejects("--optimizer ", "--optimizer needs the name of an optimizer");
  rejects("--compare ", "--compare needs the name of an optimizer");
  rejects("--optimizer sgd:lr", "\"lr\" in \"sgd:lr\" must be HYPERPARAMETER=VALUE");
  rejects("--optimizer sgd --compare adam",
          "--optimizer and --compare with optimizers can be given only once, and not together");
  rejects("--optimizer sgd --beta1 0.5", "no chosen optimizer has a hyperparameter \"beta1\"");
  rejects("--network tanh3",
          "a network must be softmax, shallow, deep, or a list of hidden layers such as "
          "sigmoid300,relu100;\n"
          "\"tanh3\" is none");
  rejects("--network softmx", "there is no network \"softmx\": did you mean softmax?");
}

TEST_CASE("arguments: the nearest name is the one with the fewest changes, then of the nearest length") {
  std::vector<std::string> const names{"sgd", "adam", "adamw", "adagrad", "schedule_free_sgd"};
  CHECK(nearest("adamv", names) == "adamw");
  CHECK(nearest("adma", names) == "adam");
  CHECK(nearest("dagrad", names) == "adagrad");
  CHECK(nearest("adagrade", names) == "adagrad");
  CHECK(nearest("sched", names) == "schedule_free_sgd");
  CHECK(nearest("sc", names).empty());  // two letters begin many names
  CHECK(nearest("lion", names).empty());
  CHECK(nearest("", names).empty());
  CHECK(edits("ab", "ba") == 1);
  CHECK(edits("", "abc") == 3);
  CHECK(edits("kitten", "sitting") == 3);
}

TEST_CASE("arguments: a list of names has lines of at most 118 columns") {
  std::size_t longest = 0;
  for (auto const& line : split(in_lines(rule_names()), '\n')) longest = std::max(longest, line.size());
  CHECK(longest > 100);
  CHECK(longest <= 118);
  auto lines = in_lines(rule_names());
  std::erase_if(lines, [](char c) { return c == ' ' || c == '\n'; });
  CHECK(split(lines, ',') == rule_names());
}

TEST_CASE("options: --save, --every and --resume are for one run") {
  auto const o = parse_options(words("--save a --every 3 --resume b"));
  CHECK(o.save == "a");
  CHECK(o.every == 3);
  CHECK(o.resume == "b");
  CHECK(parse_options({}).save.empty());
  CHECK(parse_options(words("--compare sgd --save a")).optimizers.size() == 1);
  rejects("--every 3", "--every needs --save");
  rejects("--every 3 --resume b", "--every needs --save");
  rejects("--every 0 --save a", "--every must be an integer from 1 to 1073741824, is \"0\"");
  rejects("--save=", "--save needs the path of a file");
  rejects("--resume=", "--resume needs the path of a file");
  rejects("--compare sgd,adam --save a", "--save and --resume are for one run, there are 2");
  rejects("--compare common --resume a", "--save and --resume are for one run, there are 8");
  rejects("--compare batch=8,16 --save a", "--save and --resume are for one run, there are 2");
  CHECK(runs_of(parse_options(words("--compare batch=8 --save a"))).size() == 1);
}

TEST_CASE("options: the command line that resumes is the same one with the saved file") {
  auto const resumes = [](std::vector<std::string> const& arguments) {
    return resume_command(parse_options(arguments, "./train"));
  };
  CHECK(resumes(words("--save a.b")) == "./train --save a.b --resume a.b");
  CHECK(resumes(words("--resume b --batch 8 --save=a --resume=c --seed=3")) ==
        "./train --batch 8 --save=a --seed=3 --resume a");
  CHECK(resumes(words("--out --resume --save a")) == "./train --out --resume --save a --resume a");
  CHECK(resumes({"--save", "it's a file"}) == "./train --save 'it'\\''s a file' --resume 'it'\\''s a file'");
  CHECK(resumes({"--optimizer", "sgd:lr=0.1", "--save", "$x"}) ==
        "./train --optimizer sgd:lr=0.1 --save '$x' --resume '$x'");
}

TEST_CASE("options: the help names every rule and every hyperparameter, in lines of at most 120 columns") {
  auto const help = help_text();
  for (auto const& line : split(help, '\n')) CHECK(line.size() <= 120);
  for (auto const& name : rule_names()) {
    CHECK(help.find("\n  " + name + " ") != std::string::npos);
    for (auto const& parameter : hyperparameters(rule_named(name)))
      CHECK(help.find("--" + parameter) != std::string::npos);
  }
}

TEST_CASE("schedule: every shape starts at the peak after the warm-up; all but `constant` fall") {
  for (auto const shape :
       {schedule_shape::constant, schedule_shape::linear, schedule_shape::cosine, schedule_shape::step}) {
    options o;
    o.schedule = shape;
    o.warmup = 10;
    auto const rate = o.rate(descent::sgd{.lr = 2}, 100);
    CHECK(rate(0) == doctest::Approx(0.2));
    CHECK(rate(10) == 2);
    CHECK(rate(99) == doctest::Approx(shape == schedule_shape::constant ? 2
                                      : shape == schedule_shape::step   ? 0.02
                                                                        : 0)
                          .epsilon(0.03)
                          .scale(1));
  }
}
