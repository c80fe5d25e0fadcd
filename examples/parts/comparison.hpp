// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "options.hpp"
#include "program.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace example {

/// What the command line of `compare` says.
struct comparison_options {
  std::string data = "fashion";
  std::vector<std::string> networks{"softmax", "shallow", "deep"};
  std::vector<optimizer_choice> optimizers;
  std::vector<double> rates{1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1};
  double search_epochs = 0.5;
  int epochs = 5, seeds = 3, batch = 128;
  std::uint64_t seed = 1;
  std::int64_t limit = 0;
  std::string out = "results";
  bool help = false;
};

comparison_options parse_comparison(std::vector<std::string> const& arguments);
std::string comparison_help();

/// The training images without every sixth of a shuffled order; these are in place of the test images.
dataset hold_out(dataset const& data, std::uint64_t seed);

/// A learning rate that was tried, and the loss of the images held out; infinite where it is not a number.
struct trial { double rate, loss; };

/// A network trained with an optimizer at the rate that was found, once with each seed.
struct comparison {
  std::string network, optimizer;
  std::vector<trial> trials;  // by rate
  double rate;
  std::vector<history> runs;
};

/// The trial of least loss; the smaller rate of two alike.
trial const& best(std::vector<trial> const& trials);

/// Trains at each rate of the grid, for a part of an epoch. As long as the best one lies on an edge, the grid goes on
/// beyond it, as often as eight times, and `out` says so.
std::vector<trial> search_rate(comparison_options const& c, options const& o, optimizer_choice const& optimizer,
                               dataset const& held_out, trainer const& train, console& out);

/// Search and final runs of all networks and optimizers.
std::vector<comparison> compare(comparison_options const& c, dataset const& data, trainer const& train, console& out);

/// Markdown: the results of each network, then what the search saw.
std::string to_markdown(comparison_options const& c, std::vector<comparison> const& all);
/// A line for each run and epoch, without the times.
std::string to_csv(std::vector<comparison> const& all);
/// Training loss and test accuracy of one network, means over the seeds.
std::string draw(comparison_options const& c, std::string const& network, std::vector<comparison> const& all);

/// The program; its exit status.
int run_comparison(int argc, char** argv, trainer const& train);

}  // namespace example
