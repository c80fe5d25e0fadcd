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

/// All of the program but the training: command line, data, tables and pictures. Returns the exit
/// status: 0, 1 for what went wrong on the way, 2 for a command line that makes no sense.
int run_program(int argc, char** argv, trainer const& train);

/// ... with options that are known, where one rank of several says and writes nothing unless it speaks.
void train_and_draw(options const& o, trainer const& train, bool speaks = true);

/// The exit status of run(): 0, 2 for std::invalid_argument, 1 for another exception, whose text goes to stderr, and
/// where stdout could not be written.
int exit_status(std::string const& program, std::function<void()> const& run);

/// The number of steps that a training takes.
std::int64_t total_steps(options const& o, labelled_images const& images);

}  // namespace example
