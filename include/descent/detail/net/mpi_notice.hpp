// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>

/// What ranks of comm::mpi tell each other beside the data, and how they wait for it.
namespace descent::detail {

/// The collective that a rank is in, that nobody completes one, the question who lacks something of it, or that a rank
/// takes part in this one and later ones no more.
struct mpi_notice {
  enum : std::int64_t { gives_up = -1, asks = -2, leaves = -3 };
  std::int64_t number, bytes;  // or one of the above
  char text[240];
};

inline mpi_notice make_notice(std::int64_t number, std::string const& text, std::int64_t bytes) {
  mpi_notice x{number, bytes, {}};
  std::snprintf(x.text, sizeof x.text, "%s", text.c_str());
  return x;
}

/// Between two looks for messages: not at first, then shortly, after a while for longer.
inline void rest(int spins) {
  if (spins > 100) std::this_thread::sleep_for(std::chrono::microseconds(spins > 10000 ? 500 : 20));
}

}  // namespace descent::detail
