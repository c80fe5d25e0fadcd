// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "chart.hpp"
#include "comparison.hpp"
#include "text.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>

namespace example {
namespace {

std::string fixed(double x, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << x;
  return text.str();
}

struct statistics {
  double mean, deviation;  // of a sample; 0 for a single number
};

statistics over(std::vector<double> const& xs) {
  double mean = 0, squares = 0;
  for (double const x : xs) mean += x / double(xs.size());
  for (double const x : xs) squares += (x - mean) * (x - mean);
  return {mean, xs.size() > 1 ? std::sqrt(squares / double(xs.size() - 1)) : 0};
}

/// Mean and standard deviation over the seeds after the last epoch.
std::string at_the_end(comparison const& c, double epoch_record::* what, int digits) {
  std::vector<double> xs;
  for (auto const& run : c.runs) xs.push_back(run.last().*what);
  auto const [mean, deviation] = over(xs);
  return fixed(mean, digits) + " ± " + fixed(deviation, digits);
}

/// The minimum, since other load on the machine only adds time.
double seconds_per_epoch(comparison const& c) {
  double least = std::numeric_limits<double>::infinity();
  for (auto const& run : c.runs)
    for (auto const& e : run.epochs) least = std::min(least, e.seconds);
  return least;
}

std::vector<comparison> of_network(std::string const& network, std::vector<comparison> const& all) {
  std::vector<comparison> result;
  std::ranges::copy_if(all, std::back_inserter(result), [&](auto const& c) { return c.network == network; });
  return result;
}

std::string results_table(std::vector<comparison> const& results) {
  auto const& first = results.front();
  std::string text = "| optimizer | learning rate | training loss | test accuracy, % | time, " + first.optimizer +
                     " = 1 |\n|---|---:|---:|---:|---:|\n";
  for (auto const& c : results)
    text += "| " + c.optimizer + " | " + short_number(c.rate) + " | " + at_the_end(c, &epoch_record::train_loss, 4) +
            " | " + at_the_end(c, &epoch_record::test_accuracy, 2) + " | " +
            fixed(seconds_per_epoch(c) / seconds_per_epoch(first), 2) + " |\n";
  return text;
}

std::string search_table(std::vector<comparison> const& results) {
  std::set<double> rates;
  for (auto const& c : results)
    for (auto const& t : c.trials) rates.insert(t.rate);
  std::string head = "| optimizer |", rule = "|---|", rows;
  for (double const rate : rates) head += " " + short_number(rate) + " |", rule += "---:|";
  for (auto const& c : results) {
    rows += "| " + c.optimizer + " |";
    for (double const rate : rates) {
      auto const t = std::ranges::find(c.trials, rate, &trial::rate);
      std::string const loss = t == c.trials.end() ? "" : std::isfinite(t->loss) ? fixed(t->loss, 4) : "not finite";
      rows += rate == c.rate ? " **" + loss + "** |" : " " + loss + " |";
    }
    rows += "\n";
  }
  return head + "\n" + rule + "\n" + rows;
}

/// The mean over the seeds at each epoch.
curve mean_curve(comparison const& c, double epoch_record::* what) {
  curve result{c.optimizer + ", lr " + short_number(c.rate), {}};
  for (std::size_t e = 0; e < c.runs[0].epochs.size(); ++e) {
    std::vector<double> xs;
    for (auto const& run : c.runs) xs.push_back(run.epochs[e].*what);
    result.points.push_back({double(c.runs[0].epochs[e].epoch), over(xs).mean});
  }
  return result;
}

}  // namespace

std::string to_markdown(comparison_options const& c, std::vector<comparison> const& all) {
  std::string results, search;
  for (auto const& network : c.networks) {
    results += "### " + network + "\n\n" + results_table(of_network(network, all)) + "\n";
    search += "### " + network + ", search\n\n" + search_table(of_network(network, all)) + "\n";
  }
  return results + search;
}

std::string to_csv(std::vector<comparison> const& all) {
  std::ostringstream csv;
  csv << "network,optimizer,learning_rate,run,epoch,train_loss,train_accuracy,test_loss,test_accuracy\n"
      << std::setprecision(9);
  for (auto const& c : all)
    for (std::size_t k = 0; k < c.runs.size(); ++k)
      for (auto const& e : c.runs[k].epochs)
        csv << c.network << ',' << c.optimizer << ',' << c.rate << ',' << k + 1 << ',' << e.epoch << ',' << e.train_loss
            << ',' << e.train_accuracy << ',' << e.test_loss << ',' << e.test_accuracy << '\n';
  return csv.str();
}

std::string draw(comparison_options const& c, std::string const& network, std::vector<comparison> const& all) {
  panel loss{"training loss, logarithmic", "epoch", axis::logarithmic, {}};
  panel accuracy{"test accuracy, %", "epoch", axis::linear, {}};
  for (auto const& result : of_network(network, all)) {
    loss.curves.push_back(mean_curve(result, &epoch_record::train_loss));
    accuracy.curves.push_back(mean_curve(result, &epoch_record::test_accuracy));
  }
  return draw(c.data + ", " + network + " network, batches of " + std::to_string(c.batch), {loss, accuracy});
}

}  // namespace example
