// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/comm/detail/handshake.hpp>
#include <descent/core/detail/seconds.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace descent::detail {

/// The progress of a rank: collectives its host has begun, meetings its device has begun and ended, and a text.
struct rank_position {
  std::int64_t collective = 0, begun = 0, ended = 0;
  std::string where = {};
  bool operator==(rank_position const&) const = default;
};

enum class rank_state { absent, here, left, gone, unknown };

/// What one rank knows about another.
struct rank_record {
  rank_state is = rank_state::absent;
  deadline_clock::time_point heard{};
  rank_position at{};
};

/// What rank 0 knows about all ranks, and which of them it blames if one has waited too long.
struct rank_status {
  std::vector<rank_record> ranks;
  std::chrono::nanoseconds silence;  // a rank that is silent for longer does not answer

  rank_record& operator[](int r) { return ranks[std::size_t(r)]; }
  rank_record const& operator[](int r) const { return ranks[std::size_t(r)]; }

  template <class F> std::vector<int> those(F const& f) const {
    std::vector<int> found;
    for (int r = 0; r < int(ranks.size()); ++r)
      if (f((*this)[r])) found.push_back(r);
    return found;
  }
  bool is_silent(rank_record const& r) const { return r.is == rank_state::here && since(r) > silence; }

  std::string gone() const {
    auto const ranks_gone = those([](auto const& r) { return r.is == rank_state::gone; });
    return rank_list(ranks_gone) + (ranks_gone.size() == 1 ? " is gone; " : " are gone; ") + state_of(ranks_gone[0]);
  }
  /// The ranks that are behind the others; if none, those that are silent; if none, those about which nothing is known.
  std::string blamed() const {
    auto const known = [](auto const& r) { return r.is == rank_state::here || r.is == rank_state::left; };
    rank_position most;
    bool meets = false;
    for (auto const& r : ranks) {
      if (!known(r)) continue;
      most.begun = std::max(most.begun, r.at.begun);
      most.collective = std::max(most.collective, r.at.collective);
      meets = meets || r.at.begun != r.at.ended;
    }
    auto found = those([&](auto const& r) { return known(r) && r.at.begun < most.begun; });
    // During a meeting hosts may be ahead of their devices by any number of collectives.
    if (found.empty() && !meets)
      found = those([&](auto const& r) { return known(r) && r.at.collective < most.collective; });
    if (found.empty()) found = those([&](auto const& r) { return is_silent(r); });
    if (!found.empty()) return rank_list(found) + "; " + state_of(found[0]);
    auto const others = those([&](auto const& r) { return !known(r); });
    if (!others.empty()) return "other ranks; there is no connection to " + rank_list(others);
    return "other ranks; all of them have reached the same point";
  }
  std::string state_of(int rank) const {
    rank_record const& r = (*this)[rank];
    std::string const name = "rank " + std::to_string(rank);
    std::string const had_come = r.at.where.empty() ? "" : ", had reached " + r.at.where;
    if (r.is == rank_state::left) return name + " has left" + had_come;
    if (is_silent(r)) return name + " has not answered for " + seconds_of(since(r)) + " s" + had_come;
    return name + (r.is == rank_state::here ? " has reached " : " had reached ") + r.at.where;
  }

 private:
  static std::chrono::nanoseconds since(rank_record const& r) { return deadline_clock::now() - r.heard; }
};

}  // namespace descent::detail
