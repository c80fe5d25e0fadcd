// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "run_file.hpp"

#include "hash.hpp"
#include "output.hpp"
#include "program.hpp"
#include "text.hpp"

#include <descent/io/checkpoint.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <stdexcept>

namespace example {
namespace {

namespace fs = std::filesystem;

using settings = std::vector<std::pair<std::string, std::string>>;

/// The shortest text of exactly this number.
template <class Number> std::string exact(Number x) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, x).ptr};
}

std::string spelled(std::vector<layer_size> const& hidden) {
  std::string text;
  for (auto const& [units, function] : hidden)
    text += (text.empty() ? "" : ",") + std::string(function == activation::relu ? "relu" : "sigmoid") + exact(units);
  return text.empty() ? "softmax" : text;
}

std::uint64_t hash_of_images(dataset const& data) {
  std::uint64_t h = hash_of(exact(data.train.features));
  for (auto const* images : {&data.train, &data.test}) h = hash_of(images->labels, hash_of(images->pixels, h));
  return h;
}

/// O0 is no other run than float alone.
std::string at_level(opt_level level) {
  return level == opt_level::none || level == opt_level::O0 ? "" : " at level " + to_string(level);
}

/// What the result depends on, under the names of the options.
settings settings_of(options const& o, dataset const& data, std::int64_t steps) {
  auto const& [label, rule] = o.optimizers[0];
  settings all{{"images", hex(hash_of_images(data))},
               {"--network", spelled(o.hidden)},
               {"--precision", to_string(o.storage) + at_level(o.level)},
               {"--schedule", to_string(o.schedule)},
               {"--warmup", exact(o.warmup)},
               {"--clip", exact(o.clip)},
               {"--batch", exact(o.batch)},
               {"--seed", exact(o.seed)}};
  if (o.schedule != schedule_shape::constant) all.emplace_back("steps", exact(steps));
  std::string const optimizer = label.substr(0, label.find(' '));
  all.emplace_back("--optimizer", optimizer);
  for (auto const& name : hyperparameters(rule)) all.emplace_back(optimizer + ":" + name, exact(get(rule, name)));
  return all;
}

std::string to_text(settings const& all) {
  std::string text;
  for (auto const& [name, value] : all) text += name + " " + value + "\n";
  return text;
}

settings from_text(std::string const& text) {
  settings all;
  for (auto const& line : split(text, '\n')) {
    auto const space = std::min(line.find(' '), line.size());
    if (space < line.size()) all.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return all;
}

/// What the file was saved with and this run does not have; empty if there is nothing.
std::string differences(settings const& mine, settings const& saved) {
  std::vector<std::string> all;
  for (auto const& [name, value] : mine) {
    auto const there = std::ranges::find(saved, name, &settings::value_type::first);
    std::string const theirs = there == saved.end() ? "unknown" : there->second;
    if (theirs == value) continue;
    if (name == "images") all.push_back("other images (--data, --limit)");
    else if (name == "steps")
      all.push_back("a schedule of " + theirs + " steps, not " + value + " (--epochs, --steps)");
    else all.push_back(name + " " + theirs + ", not " + value);
    if (name == "--optimizer") break;  // it has other hyperparameters
  }
  return joined(all, "; ");
}

/// The numbers of the epochs that have ended, a vector for each column.
using columns = std::array<std::vector<double>, epoch_columns.size()>;

columns columns_of(std::vector<epoch_record> const& epochs) {
  columns all;
  for (auto const& e : epochs)
    for (std::size_t k = 0; double const x : numbers_of(e)) all[k++].push_back(x);
  return all;
}

std::vector<epoch_record> epochs_of(columns const& all) {
  std::vector<epoch_record> epochs;
  for (std::size_t row = 0; row < all[0].size(); ++row) {
    epoch_numbers e;
    for (std::size_t k = 0; k < e.size(); ++k) e[k] = all[k][row];
    epochs.push_back(record_of(e));
  }
  return epochs;
}

/// Calls f with the parts of the file that say whether the others fit.
template <class F> void with_heading(std::string& options, std::int64_t& ended, std::int64_t& step, F f) {
  f(ds::named("run.options", options), ds::named("run.epochs", ended), ds::named("run.step", step));
}

/// Calls f with the parts of the file behind the optimizer.
template <class F> void with_parts(training_state& at, columns& past, F f) {
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    f(ds::named("run.seen", at.seen), ds::named("run.loss", at.totals.loss),
      ds::named("run.correct", at.totals.correct), ds::named("run.seconds", at.seconds),
      ds::named("run.optimizer_seconds", at.optimizer_seconds), ds::named("run.learning_rate", at.learning_rate),
      ds::named("run.gradient_norm", at.gradient_norm), ds::named("run.skipped", at.skipped),
      ds::named("loader.position", at.place.position), ds::named("loader.fingerprint", at.place.fingerprint),
      ds::named(std::string("run.epochs.") + epoch_columns[k], past[k])...);
  }(std::make_index_sequence<epoch_columns.size()>());
}

}  // namespace

run_file::run_file(options const& o, dataset const& data)
    : save_(o.save), resume_(o.resume), every_(o.every), images_(data.train.count()),
      steps_(total_steps(o, data.train)), batch_(std::size_t(o.batch)) {
  if (!saves() && !resumes()) return;
  settings_ = settings_of(o, data, steps_);
  command_ = resume_command(o);
  if (!saves()) return;
  fs::path const path{save_};
  if (fs::exists(path) && !fs::is_regular_file(path))
    throw std::runtime_error(save_ + ": cannot be written: it is no regular file");
  require_writable(path);
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
}

bool run_file::due(training_state const& at) const {
  if (!saves()) return false;
  return at.step == steps_ || (every_ > 0 ? at.step % every_ == 0 : at.seen == images_);
}

void run_file::save(ds::any_optimizer const& opt, training_state const& at) const {
  training_state copy = at;
  columns past = columns_of(at.epochs);
  std::string options = to_text(settings_);
  std::int64_t ended = std::int64_t(at.epochs.size());
  with_heading(options, ended, copy.step, [&](auto const&... heading) {
    with_parts(copy, past, [&](auto const&... parts) { ds::save_file(save_, heading..., opt, parts...); });
  });
}

void run_file::load(ds::any_optimizer& opt, training_state& at) const {
  std::string options;
  std::int64_t ended = 0;
  with_heading(options, ended, at.step, [&](auto const&... heading) {
    ds::load_file(resume_, ds::load_options{.partial = true}, heading...);
    require_fit(options, ended, at.step);

    columns past;
    past.fill(std::vector<double>(std::size_t(ended)));
    at.totals = {std::vector<double>(batch_), std::vector<std::int64_t>(batch_)};
    with_parts(at, past, [&](auto const&... parts) { ds::load_file(resume_, heading..., opt, parts...); });
    at.epochs = epochs_of(past);
  });
}

void run_file::require_fit(std::string const& options, std::int64_t ended, std::int64_t step) const {
  if (auto const other = differences(settings_, from_text(options)); !other.empty())
    throw std::invalid_argument(resume_ + " was saved with " + other);
  if (step > steps_)
    throw std::invalid_argument(resume_ + " was saved after " + exact(step) + " steps, more than the " + exact(steps_) +
                                " of --epochs and --steps");
  if (step < 0 || ended < 0 || ended > step)
    throw std::runtime_error(resume_ + ": " + exact(step) + " steps cannot be " + exact(ended) + " epochs");
}

std::string run_file::how_to_resume(training_state const& at) const {
  std::string const after = "stopped after step " + exact(at.step) + " of " + exact(steps_);
  return after + (saves() ? ", resume with\n" + command_ : ", not saved without --save");
}

void run_file::refuse() { throw std::logic_error("only the optimizers of optimizers/ can be saved"); }

}  // namespace example
