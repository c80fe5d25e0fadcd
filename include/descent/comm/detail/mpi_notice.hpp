// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>

/// Control messages of comm::mpi and its polling wait.
namespace descent::detail {

/// A header (the collective that a rank is in and the bytes that follow), or a notice: a collective is given up, a rank
/// asks who lacks data of it, or a rank takes no part in it and later ones.
struct mpi_notice {
  enum : std::int64_t { gives_up = -1, asks = -2, leaves = -3 };
  std::int64_t number, bytes;  // `bytes` may be one of the above
  char text[240];
};

inline mpi_notice make_notice(std::int64_t number, std::string const& text, std::int64_t bytes) {
  mpi_notice x{number, bytes, {}};
  std::snprintf(x.text, sizeof x.text, "%s", text.c_str());
  return x;
}

/// Pauses between two polls: not at all at first, then 20 us, later 500 us.
inline void rest(int spins) {
  if (spins > 100) std::this_thread::sleep_for(std::chrono::microseconds(spins > 10000 ? 500 : 20));
}

}  // namespace descent::detail
