// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "console.hpp"

#include <unistd.h>

#include <algorithm>

namespace example {
namespace {

constexpr auto time_between_bars = std::chrono::milliseconds{100};
constexpr int bar_width = 20;

}  // namespace

console::console(std::FILE* to) : to_{to}, terminal_{to && isatty(fileno(to)) != 0} {}

console::~console() {
  if (!to_) return;
  clear_bar();
  std::fflush(to_);
}

void console::say(std::string const& line) {
  if (!to_) return;
  show_head();
  clear_bar();
  std::fprintf(to_, "%s\n", line.c_str());
  std::fflush(to_);
}

void console::announce(std::string const& line) { head_ += line + "\n"; }

void console::compare(std::string const& title, std::vector<std::string> const& names) {
  comparing_ = true;
  std::size_t longest = title.size();
  for (auto const& name : names) longest = std::max(longest, name.size());
  width_ = int(longest);
  announce("\n" + title + std::string(longest - title.size(), ' ') +
           "  train: loss  test: loss   acc %  best %  in epoch  skipped  seconds  step %");
}

void console::begin_run(std::string const& title, std::int64_t total_steps) {
  total_steps_ = total_steps;
  first_step_ = 0;
  started_ = drawn_ = clock::now();
  title_ = comparing_ ? title + " " : "";
  if (comparing_) return;
  announce("\n" + title);
  announce("epoch  train: loss   acc %  test: loss   acc %      rate  gradient  skipped  seconds  step %");
}

void console::resume(std::vector<epoch_record> const& epochs, std::int64_t step) {
  first_step_ = step;
  for (auto const& e : epochs) end_epoch(e);
}

void console::progress(std::int64_t step, double waited) {
  show_head();
  if (!terminal_ || clock::now() - drawn_ < time_between_bars) return;
  drawn_ = clock::now();
  bar_shown_ = true;

  double const done = double(step) / double(total_steps_);
  double const left = double(total_steps_ - step) / double(step - first_step_);
  double const passed = std::chrono::duration<double>(drawn_ - started_).count();
  std::string const bar(std::size_t(bar_width * done), '=');
  std::fprintf(to_, "\r  %s[%-*s] step %lld of %lld, %.0f s to go, %.0f %% waiting for data ", title_.c_str(),
               bar_width, bar.c_str(), static_cast<long long>(step), static_cast<long long>(total_steps_),
               passed * left, 100 * waited / passed);
  std::fflush(to_);
}

void console::end_epoch(epoch_record const& e) {
  if (!to_ || comparing_) return;
  show_head();
  clear_bar();
  std::fprintf(to_, "%5d  %11.4f  %6.2f  %10.4f  %6.2f  %8.3g  %8.3g  %7lld  %7.2f  %6.1f\n", e.epoch, e.train_loss,
               e.train_accuracy, e.test_loss, e.test_accuracy, e.learning_rate, e.gradient_norm,
               static_cast<long long>(e.skipped), e.seconds, 100 * e.optimizer_seconds / e.seconds);
  std::fflush(to_);
}

void console::end_run(history const& run) {
  if (!to_ || !comparing_) return;
  show_head();
  clear_bar();
  auto const& e = run.last();
  std::fprintf(to_, "%-*s  %11.4f  %10.4f  %6.2f  %6.2f  %8d  %7lld  %7.2f  %6.1f\n", width_, run.name.c_str(),
               e.train_loss, e.test_loss, e.test_accuracy, run.best().test_accuracy, run.best().epoch,
               static_cast<long long>(e.skipped), run.seconds(), 100 * run.optimizer_share());
  std::fflush(to_);
}

void console::show_head() {
  if (!to_ || head_.empty()) return;
  std::fputs(head_.c_str(), to_);
  std::fflush(to_);
  head_.clear();
}

void console::clear_bar() {
  if (bar_shown_) std::fputs("\r\033[K", to_);
  bar_shown_ = false;
}

}  // namespace example
