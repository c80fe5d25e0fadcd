// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "history.hpp"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace example {

epoch_record const& history::best() const {
  return *std::ranges::max_element(epochs, {}, &epoch_record::test_accuracy);
}

double history::seconds() const {
  double sum = 0;
  for (auto const& e : epochs) sum += e.seconds;
  return sum;
}

double history::optimizer_share() const {
  double sum = 0;
  for (auto const& e : epochs) sum += e.optimizer_seconds;
  return sum / seconds();
}

epoch_numbers numbers_of(epoch_record const& e) {
  return {double(e.epoch), double(e.steps), e.train_loss,      e.train_accuracy, e.test_loss,        e.test_accuracy,
          e.learning_rate, e.gradient_norm, double(e.skipped), e.seconds,        e.optimizer_seconds};
}

epoch_record record_of(epoch_numbers const& n) {
  return {int(n[0]), std::int64_t(n[1]), n[2], n[3], n[4], n[5], n[6], n[7], std::int64_t(n[8]), n[9], n[10]};
}

std::string to_csv(std::vector<history> const& runs, std::string const& title) {
  std::ostringstream csv;
  csv << title;
  for (auto const* column : epoch_columns) csv << ',' << column;
  csv << '\n' << std::setprecision(9);
  for (auto const& run : runs)
    for (auto const& e : run.epochs)
      csv << run.name << ',' << e.epoch << ',' << e.steps << ',' << e.train_loss << ',' << e.train_accuracy << ','
          << e.test_loss << ',' << e.test_accuracy << ',' << e.learning_rate << ',' << e.gradient_norm << ','
          << e.skipped << ',' << e.seconds << ',' << e.optimizer_seconds << '\n';
  return csv.str();
}

}  // namespace example
