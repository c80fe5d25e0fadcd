// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "../../examples/parts/arguments.hpp"
#include "../../examples/parts/output.hpp"
#include "../../examples/parts/program.hpp"
#include "../../examples/parts/stop.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace example;
namespace fs = std::filesystem;

namespace {

int run(std::vector<std::string> arguments, trainer const& train) {
  arguments.insert(arguments.begin(), "train");
  std::vector<char*> pointers;
  for (auto& argument : arguments) pointers.push_back(argument.data());
  return run_program(int(pointers.size()), pointers.data(), train);
}

history pretend(options const&, optimizer_choice const& optimizer, dataset const&, console&) {
  return {optimizer.label, {{1, 10, 0.5, 80, 0.75, 70, 0.1, 1.5, 2, 3, 0.25}}};
}

}  // namespace

TEST_CASE("program: pictures and numbers are written to a directory that need not exist, status 0") {
  auto const directory = fs::temp_directory_path() / ("descent-program-" + std::to_string(getpid()));
  CHECK(run({"--compare", "sgd,adam", "--out", (directory / "new").string()}, pretend) == 0);
  CHECK(fs::file_size(directory / "new" / "curves.svg") > 1000);
  CHECK(fs::file_size(directory / "new" / "curves.csv") > 100);
  fs::remove_all(directory);
}

TEST_CASE("program: status 2 for a wrong command line, 1 for what fails later") {
  auto const out = "--out=" + fs::temp_directory_path().string();
  CHECK(run({"--nonsense"}, pretend) == 2);
  CHECK(run({"--warmup", "1000000"}, pretend) == 2);
  CHECK(run({"--data", "/no/such/place"}, pretend) == 1);
  CHECK(run({"--out", "/dev/null/results"}, pretend) == 1);
  auto const fails = [](auto&&...) -> history { throw std::runtime_error("out of memory"); };
  CHECK(run({out}, fails) == 1);
}

TEST_CASE("program: a file that cannot be written is an error before the training, and an existing file stays") {
  int trained = 0;
  auto const train = [&](options const& o, optimizer_choice const& optimizer, dataset const& data, console& out) {
    ++trained;
    return pretend(o, optimizer, data, out);
  };
  CHECK(run({"--out", "/dev/null/results"}, train) == 1);
  CHECK(trained == 0);
  auto const file = fs::temp_directory_path() / ("descent-written-" + std::to_string(getpid()));
  require_writable(file);
  CHECK_FALSE(fs::exists(file));
  write_file(file, "before");
  require_writable(file);
  CHECK(fs::file_size(file) == 6);
  fs::remove(file);
  require_writable(file / "new" / "one");
  CHECK_FALSE(fs::exists(file));
}

TEST_CASE("program: status 1 for a training whose loss is not finite, with its pictures and numbers") {
  auto const directory = fs::temp_directory_path() / ("descent-diverged-" + std::to_string(getpid()));
  auto const diverge = [](options const& o, optimizer_choice const& optimizer, dataset const& data, console& out) {
    auto run = pretend(o, optimizer, data, out);
    if (optimizer.label == "adam") run.epochs[0].train_loss = std::nan("");
    return run;
  };
  CHECK(run({"--compare", "sgd,adam", "--out", directory.string()}, diverge) == 1);
  CHECK(fs::file_size(directory / "curves.csv") > 100);
  fs::remove_all(directory);
}

TEST_CASE("program: status 130 for a training that was stopped, and no curves") {
  auto const directory = fs::temp_directory_path() / ("descent-stopped-" + std::to_string(getpid()));
  auto const stops = [](auto&&...) -> history {
    std::raise(SIGINT);
    if (stop_asked()) throw stopped("stopped");
    return {};
  };
  CHECK(run({"--out", directory.string()}, stops) == 130);
  CHECK_FALSE(fs::exists(directory));
  CHECK_FALSE(stop_asked());
}

TEST_CASE("program: the first signal is noted, the next one ends the process, one that was ignored stays so") {
  auto const ended_by = [](void (*run)()) {
    pid_t const child = fork();
    if (child == 0) {
      std::signal(SIGINT, SIG_DFL);
      std::signal(SIGTERM, SIG_DFL);
      run();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  };
  CHECK(ended_by([] {
          stop_signals const signals;
          std::raise(SIGTERM);
          if (!stop_asked()) std::raise(SIGKILL);
        }) == 0);
  CHECK(ended_by([] {
          stop_signals const signals;
          std::raise(SIGTERM), std::raise(SIGINT);
        }) == SIGINT);
  CHECK(ended_by([] {
          std::signal(SIGINT, SIG_IGN);
          stop_signals const signals;
          std::raise(SIGINT);
          if (stop_asked()) std::raise(SIGKILL);
          std::raise(SIGTERM), std::raise(SIGINT);
        }) == 0);
  CHECK(ended_by([] {
          { stop_signals const signals; }
          std::raise(SIGINT);
        }) == SIGINT);
}

TEST_CASE("program: status 1 where stdout is full") {
  int const kept = dup(STDOUT_FILENO);
  std::fflush(stdout);
  REQUIRE(std::freopen("/dev/full", "w", stdout) != nullptr);
  int const status = exit_code([] { std::puts("more than nothing"); });
  std::clearerr(stdout);
  dup2(kept, STDOUT_FILENO);
  close(kept);
  CHECK(status == 1);
}

TEST_CASE("program: --help and the status of a program, with and without arguments") {
  auto const status = [](std::vector<char const*> words, auto const& run) {
    words.insert(words.begin(), "program");
    return exit_code(int(words.size()), const_cast<char**>(words.data()), "", run);
  };
  int runs = 0;
  auto const alone = [&] { ++runs; };
  auto const with_words = [&](std::vector<std::string> const& words) { runs += int(words.size()); };
  CHECK(status({"--help"}, alone) == 0);
  CHECK(status({"a", "-h"}, with_words) == 0);
  CHECK(runs == 0);
  CHECK(status({"a"}, alone) == 2);
  CHECK(status({"--a", "b"}, alone) == 2);
  CHECK(runs == 0);
  CHECK(status({}, alone) == 0);
  CHECK(status({"a", "--b"}, with_words) == 0);
  CHECK(runs == 3);
}

TEST_CASE("program: accuracies differ by chance as two independent samples do, more on fewer images") {
  std::binomial_distribution<int> right{400, 0.9};
  std::mt19937 random{1};
  int outside = 0;
  for (int k = 0; k < 20000; ++k)
    outside += std::abs(right(random) - right(random)) * 100 / 400. > chance_difference(90, 400);
  CHECK(outside / 20000. == doctest::Approx(0.0455).epsilon(0.15));  // two standard errors of a normal distribution
  CHECK(chance_difference(90, 100) > 1.9 * chance_difference(90, 400));
  CHECK(chance_difference(100, 359) > 0);
}

TEST_CASE("program: the last batch of an epoch may be smaller, --steps counts") {
  auto const data = embedded_digits();
  options o;
  o.batch = 1000;
  o.epochs = 3;
  CHECK(total_steps(o, data.train) == 6);
  o.steps = 5;
  CHECK(total_steps(o, data.train) == 5);
  o.steps = 100;
  CHECK(total_steps(o, data.train) == 6);
}
