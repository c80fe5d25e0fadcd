// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "../../examples/parts/cpu.hpp"
#include "../../examples/train.hpp"

#include <doctest/doctest.h>
#include <omp.h>

#include <memory>

using namespace example;

namespace {

using file = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

file temporary_file() { return {std::tmpfile(), std::fclose}; }

std::string contents(file const& f) {
  std::string text;
  std::rewind(f.get());
  for (int c; (c = std::fgetc(f.get())) != EOF;) text += char(c);
  return text;
}

template <class Value> history train_digits(std::vector<std::string> const& arguments) {
  auto const o = parse_options(arguments);
  auto data = embedded_digits();
  if (o.limit) data.train.limit(int(o.limit));
  auto const log = temporary_file();
  console out{log.get()};
  cpu device;
  return train<Value>(device, o, "adamw", std::get<descent::adamw>(o.optimizers[0].rule), data, out);
}

bool same_bits(history const& a, history const& b) {
  return std::ranges::equal(a.epochs, b.epochs, [](epoch_record const& x, epoch_record const& y) {
    return x.train_loss == y.train_loss && x.train_accuracy == y.train_accuracy && x.test_loss == y.test_loss &&
           x.test_accuracy == y.test_accuracy && x.gradient_norm == y.gradient_norm;
  });
}

}  // namespace

TEST_CASE_TEMPLATE("train: one seed gives the same bits for any number of threads, another seed does not", Value, float,
                   descent::half, descent::bfloat16) {
  std::vector<std::string> const arguments{"--epochs", "2", "--batch", "128", "--seed", "5"};
  omp_set_num_threads(1);
  auto const alone = train_digits<Value>(arguments);
  for (int threads : {2, 3, 8}) {
    omp_set_num_threads(threads);
    CHECK(same_bits(alone, train_digits<Value>(arguments)));
  }
  CHECK(!same_bits(alone, train_digits<Value>({"--epochs", "2", "--batch", "128", "--seed", "6"})));
}

TEST_CASE("train: the digits are learned") {
  auto const run = train_digits<float>({"--epochs", "10"});
  CHECK(run.epochs.size() == 10);
  CHECK(run.last().train_loss < 0.3);
  CHECK(run.last().test_accuracy > 90);
  CHECK(run.last().skipped == 0);
}

TEST_CASE("train: --steps ends within an epoch, --limit shortens it") {
  auto const run = train_digits<float>({"--network", "relu4", "--limit", "100", "--batch", "32", "--steps", "6"});
  REQUIRE(run.epochs.size() == 2);
  CHECK(run.epochs[0].steps == 4);
  CHECK(run.epochs[1].steps == 6);
}

TEST_CASE("console: lines are plain where there is no terminal") {
  auto const log = temporary_file();
  console out{log.get()};
  out.begin_run("sgd", 10);
  out.progress(5, 0);
  epoch_record const e{1, 10, 0.5, 80, 0.75, 70, 0.1, 1.5, 2, 3, 0.25};
  out.end_epoch(e);
  auto const text = contents(log);
  CHECK(text.find('\r') == text.npos);
  CHECK(text.find('\033') == text.npos);
  CHECK(text.find("  70.00  ") != text.npos);
}

TEST_CASE("console: a head is printed when the training has begun, not before") {
  auto const log = temporary_file();
  console out{log.get()};
  out.announce("digits");
  out.begin_run("sgd", 10);
  CHECK(contents(log).empty());
  out.progress(1, 0);
  CHECK(contents(log).starts_with("digits\n\nsgd\nepoch "));
}

TEST_CASE("console: a comparison has one head, and one line per run") {
  auto const log = temporary_file();
  console out{log.get()};
  out.compare("optimizer", {"sgd", "schedule_free_adamw"});
  epoch_record const e{1, 10, 0.5, 80, 0.75, 70, 0.1, 1.5, 2, 3, 0.25};
  for (auto const* name : {"sgd", "schedule_free_adamw"}) {
    out.begin_run(name, 10);
    out.progress(5, 0);
    out.end_epoch(e), out.end_epoch(e);
    out.end_run({name, {e, e}});
  }
  auto const text = contents(log);
  CHECK(std::ranges::count(text, '\n') == 4);  // the first line is empty
  CHECK(text.starts_with("\noptimizer            train: loss"));
  CHECK(text.find("\nsgd                       0.5000") != text.npos);
  CHECK(text.find("\nschedule_free_adamw       0.5000") != text.npos);
}
