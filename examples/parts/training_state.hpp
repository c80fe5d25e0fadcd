// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace example {

/// Sums over images, one for each place in a batch. Adding them up early would round differently.
struct totals_by_place {
  std::vector<double> loss;
  std::vector<std::int64_t> correct;
};

/// Where a loader is, as it is saved.
struct loader_place {
  std::array<std::int64_t, 2> position{};
  std::array<std::uint64_t, 1> fingerprint{};
};
template <class T> auto& piece_of(loader_place& place) {
  if constexpr (std::is_same_v<T, std::int64_t>) return place.position;
  else return place.fingerprint;
}

/// How far a training run is: everything but the optimizer and its parameters. Times, rate, norm and skipped steps are
/// those of an epoch_record.
struct training_state {
  std::vector<epoch_record> epochs{};  // that have ended
  std::int64_t step = 0;               // made so far

  // of the epoch that has not ended
  std::int64_t seen = 0;  // images
  totals_by_place totals{};
  double seconds = 0, optimizer_seconds = 0;

  double learning_rate = 0, gradient_norm = 0;
  std::int64_t skipped = 0;
  loader_place place{};
};

}  // namespace example
