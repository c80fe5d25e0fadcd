// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "options.hpp"
#include "program.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace example {

/// The options of the command line of `compare`.
struct comparison_options {
  std::string data = "fashion";
  std::vector<std::string> networks{"softmax", "shallow", "deep"};
  std::vector<optimizer_choice> optimizers;
  std::vector<double> rates{1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1};
  double search_epochs = 0.5;
  int epochs = 5, seeds = 3, batch = 128;
  std::uint64_t seed = 1;
  std::int64_t limit = 0;
  std::string out = "results", runs;  // a folder; the file of an earlier comparison
};

comparison_options parse_comparison(std::vector<std::string> const& arguments);
std::string comparison_help();

/// The training images without every sixth of a shuffled order; those replace the test images.
dataset hold_out(dataset const& data, std::uint64_t seed);

/// A learning rate that was tried, and the loss on the held-out images; infinite if that is not finite.
struct trial { double rate, loss; };

/// A network trained with an optimizer at the rate that was found, once with each seed.
struct comparison {
  std::string network, optimizer;
  std::vector<trial> trials;  // by rate
  double rate;
  std::vector<history> runs;
};

/// The trial with the smallest loss; on a tie, the one with the smaller rate.
trial const& best(std::vector<trial> const& trials);

/// Trains at each rate of the grid for part of an epoch. While the best rate is at an edge, extends the grid beyond it,
/// at most eight times, and reports this to `out`.
std::vector<trial> search_rate(comparison_options const& c, options const& o, optimizer_choice const& optimizer,
                               dataset const& held_out, trainer const& train, console& out);

/// Runs the search and the final training of all networks and optimizers.
std::vector<comparison> compare(comparison_options const& c, dataset const& data, trainer const& train, console& out);

/// Markdown: the results of each network, then the trials of the search.
std::string to_markdown(comparison_options const& c, std::vector<comparison> const& all);
/// One line for each run and epoch, without the times.
std::string to_csv(std::vector<comparison> const& all);
/// What to_csv() wrote, without the search. Throws std::runtime_error for any other text.
std::vector<comparison> from_csv(std::string const& text);
/// Training loss and test accuracy of one network, mean and standard deviation over the seeds.
std::string draw(comparison_options const& c, std::string const& network, std::vector<comparison> const& all);

/// Runs the program; returns its exit status.
int run_comparison(int argc, char** argv, trainer const& train);

}  // namespace example
