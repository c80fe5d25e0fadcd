// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "layer_sizes.hpp"
#include "level.hpp"
#include "rules.hpp"
#include "schedule.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace example {

enum class precision { float_, half, bfloat16 };

/// A rule with its hyperparameters, and the user's text for it.
struct optimizer_choice {
  std::string label;
  any_rule rule;
};

using hyperparameter_values = std::map<std::string, double>;

/// Parses NAME or NAME:HYPERPARAMETER=VALUE:... from the command line; applies those of `for_all` that the rule has.
optimizer_choice parse_optimizer(std::string const& text, hyperparameter_values const& for_all = {});

/// The options of the command line. A count of zero means that it was not given.
struct options {
  std::string data = "digits";
  std::string network = "deep";
  std::vector<layer_size> hidden = parse_network("deep");
  std::int64_t limit = 0;

  std::vector<optimizer_choice> optimizers;
  precision storage = precision::float_;
  opt_level level = opt_level::none;
  schedule_shape schedule = schedule_shape::cosine;
  std::int64_t warmup = 0;
  double clip = std::numeric_limits<double>::infinity();
  int batch = 32;
  int workers = 0;
  int epochs = 30;
  std::int64_t steps = 0;
  std::uint64_t seed = 1;

  std::string save, resume;  // files; empty: none
  std::int64_t every = 0;    // steps; 0: once per epoch

  std::string out = "results";
  std::vector<std::string> command;  // the whole command line

  std::string compared = "optimizer";  // what the runs differ in, and of one of them its text
  std::string value;
  std::vector<options> values;  // one for each value of --compare NAME=..., else empty

  /// The learning rate of an optimizer over a run of `total` steps.
  rate_schedule rate(any_rule const& rule, std::int64_t total) const {
    return {.steps = warmup, .then = {.shape = schedule, .peak = get(rule, "lr"), .steps = total - warmup}};
  }
};

/// The names of all options, also those of hyperparameters, with underscores and with hyphens.
std::vector<std::string> option_names();

/// Parses the arguments, without the program's name. Throws std::invalid_argument with the mistake and what is allowed.
options parse_options(std::vector<std::string> const& arguments, std::string const& program = "train");

/// The options of each run, which has one optimizer.
std::vector<options> runs_of(options const& o);

std::string help_text();

/// The same command line for a shell, with --resume and the file of --save.
std::string resume_command(options const& o);

/// As on the command line.
std::string to_string(precision p);
std::string to_string(opt_level l);
std::string to_string(schedule_shape s);

}  // namespace example
