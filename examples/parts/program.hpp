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

/// Everything but the training: command line, data, tables and pictures. Returns the exit status: 0, 1 for a run-time
/// error, 2 for an invalid command line, 130 for a run that was stopped by a signal.
int run_program(int argc, char** argv, trainer const& train);

/// The same with parsed options. Of several ranks, only the one that speaks prints and writes files.
void train_and_draw(options const& o, trainer const& train, bool speaks = true);

/// The exit status of run(): 0, 130 for `stopped`, 2 for std::invalid_argument, 1 for another exception or if stdout
/// could not be written. Messages go to stderr.
int exit_status(std::string const& program, std::function<void()> const& run);

/// The number of steps of a training run.
std::int64_t total_steps(options const& o, labelled_images const& images);

}  // namespace example
