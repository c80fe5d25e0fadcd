// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// What explain() says, so that a reader can check what was asked for: groups without decay, a warm-up, master copies.
#include <descent/optimizer.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/choose.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/schedules/warmup.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace ds = descent;

namespace {

bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

/// Tensors 0, 1, ... of two elements, in the groups given.
template <class T> struct model {
  std::vector<T> w, g;
  ds::parameters<T> list;

  explicit model(std::vector<int> const& groups, std::string const& name = "t") {
    w.resize(2 * groups.size()), g.resize(2 * groups.size());
    for (std::size_t t = 0; t < groups.size(); ++t)
      list.add(name + std::to_string(t), &w[2 * t], &g[2 * t], 2, ds::group{groups[t]});
  }
};

/// A schedule of a user.
struct halving {
  double first = 1;
  DESCENT_HD double operator()(std::int64_t step) const { return first / double(std::int64_t{1} << step); }
};

}  // namespace

TEST_CASE("explain: a group says what differs from group 0") {
  model<float> m({0, 1, 0, 2});
  ds::optimizer opt{m.list, ds::sgd{.lr = 0.5, .momentum = 0.9, .weight_decay = 0.25}, ds::host<ds::cpp>{}};
  opt.group(1).weight_decay = 0;
  opt.group(2).lr = 0.125, opt.group(2).nesterov = true;
  opt.freeze(2);
  CHECK(opt.explain() ==
        "8 parameters in 4 tensors, after 0 updates, on host, cpp\n"
        "sgd: lr 0.5, momentum 0.9, dampening 0, weight_decay 0.25, nesterov false, decoupled false\n"
        "group 0: 4 parameters in 2 tensors ('t0', 't2')\n"
        "group 1: 2 parameters in 1 tensor ('t1'), with weight_decay 0\n"
        "group 2: 2 parameters in 1 tensor ('t3'), frozen, with lr 0.125, nesterov true\n"
        "storage: value float, gradient float, arithmetic float\n"
        "memory: 1024 bytes, 128.00 per parameter\n"
        "  state b (float): 1024 bytes\n"
        "step: 1 update\n"
        "traffic: 20 bytes per parameter\n"
        "gradients are not checked: add skip_nonfinite\n");
}

TEST_CASE("explain: a warm-up, then a cosine, with the values now, at the start, at most and at the end") {
  model<float> m({0, 0});
  using warm_up = ds::warmup<ds::cosine>;
  ds::optimizer opt{m.list, ds::sgd{}, ds::learning_rate(warm_up{.steps = 4, .then = {.peak = 0.5, .steps = 16}}),
                    ds::clip_norm{2.0}};
  CHECK(has(opt.explain(), "\nsgd: lr 0.125 now, momentum 0, "));
  CHECK(has(opt.explain(),
            "\nschedule of lr, warmup<cosine>: steps 4, then.peak 0.5, then.floor 0, then.steps 16, then.exponent 1, "
            "then.after hold,\n  shape linear, from 0, first past_start\n"
            "  now 0.125, first 0.125, largest 0.5 at update 4, last 0 from update 21 on\n"
            "clip_norm: max 2, eps 0\n"));
  for (int i = 0; i < 3; ++i) opt.step();
  CHECK(has(opt.explain(), ", after 3 updates, "));
  CHECK(has(opt.explain(), "\nsgd: lr 0.5 now, momentum 0, "));
  CHECK(has(opt.explain(), "\n  now 0.5, first 0.125, "));
}

TEST_CASE("explain: a schedule of one group, a factor, a function without a length, and one without an end") {
  model<float> m({0, 1});
  ds::optimizer one{m.list, ds::sgd{.lr = 0.5}, ds::scale_learning_rate(halving{}).only(ds::group{1})};
  for (int i = 0; i < 2; ++i) one.step();
  CHECK(has(one.explain(), "\nsgd: lr 0.5, momentum 0, "));
  CHECK(has(one.explain(), "('t1'), with lr 0.125 now\n"));
  CHECK(has(one.explain(), "\nfactor of lr for group 1, halving: first 1\n  now 0.25, first 1\n"));

  ds::optimizer each{m.list, ds::sgd{}, ds::learning_rate(ds::per_group{ds::constant{0.5}, ds::constant{0.25}})};
  CHECK(has(each.explain(), "\nsgd: lr 0.5 now, "));
  CHECK(has(each.explain(), "('t1'), with lr 0.25 now\n"));
  CHECK(has(each.explain(), "\nschedule of lr, per_group<constant, constant>: 0.value 0.5, 1.value 0.25\nlr follows "));

  ds::optimizer endless{m.list, ds::sgd{}, ds::learning_rate(ds::step{.initial = 0.5, .every = 2}),
                        ds::vary<&ds::sgd::momentum>([](std::int64_t) { return 0.75; })};
  CHECK(has(endless.explain(), "\nsgd: lr 0.5 now, momentum 0.75 now, "));
  CHECK(has(endless.explain(), "\nschedule of lr, step: initial 0.5, factor 0.1, every 2\n  now 0.5, first 0.5\n"));
  CHECK(has(endless.explain(),
            "\nschedule of sgd::momentum, a function: fields that cannot be read\n  now 0.75, first 0.75\n"));

  ds::optimizer long_one{m.list, ds::sgd{}, ds::learning_rate(ds::linear{1, 0, 2000000})};
  CHECK(has(long_one.explain(), "\n  now 1, first 1, last 0 from update 2000001 on\n"));
  ds::optimizer plateau{m.list, ds::sgd{.lr = 0.5}, ds::on_plateau{{.factor = 0.5, .patience = 0}}};
  plateau.observe(1.0), plateau.observe(2.0);
  CHECK(has(plateau.explain(), "\nsgd: lr 0.25 now, "));
}

TEST_CASE("explain, report: the text in docs/training_loop.md is what they say") {
  std::vector<ds::half> weight(2048), bias(64), dweight(2048, ds::half(8192.f)), dbias(64, ds::half(8192.f));
  std::string said;
  auto const print = [&](std::string const& text) { said += text + "\n"; };
  // snippet: explained
  ds::parameters<ds::half> params;
  params.add("layer.weight", weight.data(), dweight.data(), ds::shape{64, 32});
  params.add("layer.bias", bias.data(), dbias.data(), 64, ds::group{1});
  ds::optimizer opt{params,
                    ds::adamw{.weight_decay = 0.1},
                    ds::learning_rate(ds::warmup<ds::cosine>{.steps = 10, .then = {.peak = 1e-3, .steps = 90}}),
                    ds::clip_norm{1.0},
                    ds::dynamic_loss_scale{},
                    ds::master<float>{},
                    ds::zero_grad{}};
  opt.group(1).weight_decay = 0;  // no decay of biases
  print(opt.explain());
  opt.step();
  print(opt.report().text());
  // end
  std::ifstream in(test::tests_dir() + "/../docs/training_loop.md");
  std::string const page(std::istreambuf_iterator<char>(in), {}),
      mark = "<!-- output: optimizer/explain_test.cpp -->\n```\n";
  std::size_t const begin = page.find(mark);
  REQUIRE(begin != page.npos);
  std::string const shown =
      page.substr(begin + mark.size(), page.find("```\n", begin + mark.size()) - begin - mark.size());
  if (auto const cpp = said.find("host, cpp"); cpp != said.npos) said.replace(cpp, 9, "host, omp");  // without OpenMP
  CHECK(shown == said);
}

TEST_CASE("explain: half with masters and a loss scale") {
  model<ds::half> m({0});
  ds::optimizer opt{m.list, ds::adamw{}, ds::master<float>{}, ds::dynamic_loss_scale{}, ds::zero_grad{}};
  std::string const text = opt.explain();
  CHECK(has(text, "\nstorage: value half, gradient half, master float, arithmetic float\n"));
  CHECK(has(text, "\n  master (float): 256 bytes\n"));
  CHECK(has(text, "\ndynamic_loss_scale: init 65536, growth 2, backoff 0.5, interval 2000, min 1, "));
  CHECK(has(text, "\n  refill clean_step, patience 20\n"));
  CHECK(has(text, "\nalso master, zero_grad\n"));
  CHECK(has(text, "\nstep: 1 read-only pass and 1 update\n"));
  CHECK(has(text, "\na gradient that is not finite skips the step\ngradients are set to zero in the update\n"));
}

TEST_CASE("explain: lines have at most 120 columns, and long lists and names are shortened") {
  model<float> many(std::vector<int>(1000, 0)), long_names({0}, "layers." + std::string(1000, 'x') + ".weight");
  ds::optimizer opt{many.list, ds::adamw{},
                    ds::learning_rate(ds::warmup<ds::cosine>{.steps = 4, .then = {.peak = 0.5, .steps = 16}}),
                    ds::dynamic_loss_scale{}};
  CHECK(has(opt.explain(), "('t0', 't1', 't2', 't3', 't4', 't5', 't6', 't7' and 992 more)\n"));
  ds::optimizer other{long_names.list, ds::adamw{}};
  CHECK(has(other.explain(), "1 tensor ('layers.xxxxxxxxxxxxxxxxxx...xxxxxxxxxxxx.weight0')\n"));
  for (auto const& text : {opt.explain(), other.explain()}) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(line.size() <= 120, line);
  }
}
