// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace example {

/// The results of an epoch. Training loss and accuracy are means over the epoch, while the network learns; rate and
/// norm are those of the last step. Accuracies are percentages.
struct epoch_record {
  int epoch;
  std::int64_t steps;  // so far
  double train_loss, train_accuracy, test_loss, test_accuracy;
  double learning_rate, gradient_norm;
  std::int64_t skipped;               // steps so far with a non-finite gradient
  double seconds, optimizer_seconds;  // of this epoch, without the test
};

/// The columns of an epoch in a file, and their numbers, which a double holds exactly.
inline constexpr std::array epoch_columns{"epoch",     "steps",         "train_loss",       "train_accuracy",
                                          "test_loss", "test_accuracy", "learning_rate",    "gradient_norm",
                                          "skipped",   "seconds",       "optimizer_seconds"};
using epoch_numbers = std::array<double, epoch_columns.size()>;
epoch_numbers numbers_of(epoch_record const& e);
epoch_record record_of(epoch_numbers const& numbers);

/// One training run, from the first epoch to the last.
struct history {
  std::string name;
  std::vector<epoch_record> epochs;

  epoch_record const& last() const { return epochs.back(); }
  epoch_record const& best() const;
  double seconds() const;
  /// The optimizer's share of the training time, from 0 to 1.
  double optimizer_share() const;
};

/// A line for each epoch of each run; `title` is what the names of the runs are.
std::string to_csv(std::vector<history> const& runs, std::string const& title = "optimizer");

}  // namespace example
