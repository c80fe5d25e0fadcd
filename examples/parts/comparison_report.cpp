// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "comparison.hpp"
#include "dots.hpp"
#include "text.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>
#include <stdexcept>

namespace example {
namespace {

std::string fixed(double x, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << x;
  return text.str();
}

/// Mean and standard deviation over the seeds after the last epoch.
std::string at_the_end(comparison const& c, double epoch_record::* what, int digits) {
  std::vector<double> xs;
  for (auto const& run : c.runs) xs.push_back(run.last().*what);
  auto const [mean, deviation] = sample_of(xs);
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

/// A dot for each seed, after the last epoch.
dot_panel at_the_end(std::string title, axis scale, int digits, std::vector<comparison> const& results,
                     double epoch_record::* what) {
  dot_panel p{std::move(title), scale, {}, digits};
  for (auto const& c : results) {
    p.rows.push_back({c.optimizer + ", lr " + short_number(c.rate), {}});
    for (auto const& run : c.runs) p.rows.back().values.push_back(run.last().*what);
  }
  return p;
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

std::vector<comparison> from_csv(std::string const& text) {
  std::vector<comparison> all;
  auto lines = split(text, '\n');
  for (std::size_t k = 1; k < lines.size(); ++k) {
    if (lines[k].empty()) continue;
    auto const cells = split(lines[k], ',');
    std::vector<double> numbers(cells.size());
    bool valid = cells.size() == 9;
    for (std::size_t j = 2; j < cells.size(); ++j) valid = valid && read(cells[j], numbers[j]);
    if (!valid) throw std::runtime_error("no line of a comparison: " + example::quoted(lines[k]));
    if (all.empty() || all.back().network != cells[0] || all.back().optimizer != cells[1])
      all.push_back({cells[0], cells[1], {}, numbers[2], {}});
    auto& runs = all.back().runs;
    if (double(runs.size()) != numbers[3]) runs.push_back({cells[1], {}});
    epoch_record e{};
    e.epoch = int(numbers[4]);
    e.train_loss = numbers[5], e.train_accuracy = numbers[6];
    e.test_loss = numbers[7], e.test_accuracy = numbers[8];
    runs.back().epochs.push_back(e);
  }
  return all;
}

std::string draw(comparison_options const& c, std::string const& network, std::vector<comparison> const& all) {
  auto const results = of_network(network, all);
  auto const epochs = std::to_string(results[0].runs[0].epochs.size());
  auto const seeds = results[0].runs.size();
  return draw_dots(c.data + ", " + network + " network, batches of " + std::to_string(c.batch) +
                       (seeds > 1 ? ": " + std::to_string(seeds) + " seeds, mean and standard deviation" : ""),
                   {at_the_end("training loss after " + epochs + " epochs", axis::logarithmic, 4, results,
                               &epoch_record::train_loss),
                    at_the_end("test accuracy in % after " + epochs + " epochs", axis::linear, 2, results,
                               &epoch_record::test_accuracy)});
}

}  // namespace example
