// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>

namespace example {

/// While there is one, the first SIGINT or SIGTERM only makes stop_asked() true, and the next one ends the process. A
/// signal that was ignored before stays so.
class stop_signals {
 public:
  stop_signals();
  stop_signals(stop_signals const&) = delete;
  stop_signals& operator=(stop_signals const&) = delete;
  ~stop_signals();
};

/// Whether a signal has asked the process to end.
bool stop_asked();

/// A run that ends early because it was asked to. what() says how to resume it.
struct stopped : std::runtime_error { using std::runtime_error::runtime_error; };

}  // namespace example
