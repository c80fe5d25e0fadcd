// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "console.hpp"
#include "dataset.hpp"
#include "history.hpp"
#include "options.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace example {

/// Trains one network with one optimizer.
using trainer = std::function<history(options const&, optimizer_choice const&, dataset const&, console&)>;

/// Everything but the training: command line, data, tables and pictures. Returns the exit status, see exit_code().
int run_program(int argc, char** argv, trainer const& train);

/// The same with parsed options. Of several ranks, only the one that speaks prints and writes files.
void train_and_draw(options const& o, trainer const& train, bool speaks = true);

/// By how many percentage points two accuracies near this one, each on so many images, differ by chance: two standard
/// errors of the difference of two independent samples.
double chance_difference(double accuracy, int images);

/// The number of steps of a training run.
std::int64_t total_steps(options const& o, labelled_images const& images);

}  // namespace example
