// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "stop.hpp"

#include <atomic>
#include <csignal>
#include <cstddef>
#include <iterator>

namespace example {
namespace {

std::atomic<bool> asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // as a signal handler needs it

constexpr int signals[] = {SIGINT, SIGTERM};
struct sigaction before[std::size(signals)];

void restore() {
  for (std::size_t k = 0; k < std::size(signals); ++k) sigaction(signals[k], &before[k], nullptr);
}

extern "C" void note_signal(int) {
  asked = true;
  restore();
}

}  // namespace

stop_signals::stop_signals() {
  struct sigaction note{};
  note.sa_handler = note_signal;
  note.sa_flags = SA_RESTART;
  sigemptyset(&note.sa_mask);
  for (int const s : signals) sigaddset(&note.sa_mask, s);
  for (std::size_t k = 0; k < std::size(signals); ++k) sigaction(signals[k], nullptr, &before[k]);
  for (std::size_t k = 0; k < std::size(signals); ++k)
    if (before[k].sa_handler != SIG_IGN) sigaction(signals[k], &note, nullptr);
}

stop_signals::~stop_signals() {
  restore();
  asked = false;
}

bool stop_asked() { return asked; }

}  // namespace example
