// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "layer_sizes.hpp"
#include "rules.hpp"
#include "schedule.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace example {

enum class precision { float_, half, bfloat16 };

/// A rule with its hyperparameters, and how its user wrote it.
struct optimizer_choice {
  std::string label;
  any_rule rule;
};

using hyperparameter_values = std::map<std::string, double>;

/// A rule as written on the command line: NAME or NAME:HYPERPARAMETER=VALUE:..., with `for_all` where it has these.
optimizer_choice parse_optimizer(std::string const& text, hyperparameter_values const& for_all = {});

/// What the command line says. A zero count is one that was not given.
struct options {
  std::string data = "digits";
  std::string network = "deep";
  std::vector<layer_size> hidden = parse_network("deep");
  std::int64_t limit = 0;

  std::vector<optimizer_choice> optimizers;
  precision storage = precision::float_;
  schedule_shape schedule = schedule_shape::cosine;
  std::int64_t warmup = 0;
  double clip = std::numeric_limits<double>::infinity();
  int batch = 32;
  int epochs = 30;
  std::int64_t steps = 0;
  std::uint64_t seed = 1;

  std::string out = "results";
  bool help = false;

  /// The rate of an optimizer as it falls over so many steps.
  rate_schedule rate(any_rule const& rule, std::int64_t total) const {
    return {.steps = warmup, .then = {.shape = schedule, .peak = get(rule, "lr"), .steps = total - warmup}};
  }
};

/// The arguments without the program's name. Throws std::invalid_argument, with what is wrong and
/// what is allowed.
options parse_options(std::vector<std::string> const& arguments);

std::string help_text();

/// As the command line spells them.
std::string to_string(precision p);
std::string to_string(schedule_shape s);

}  // namespace example
