// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/comm/detail/handshake.hpp>
#include <descent/comm/detail/heartbeat_line.hpp>
#include <descent/comm/detail/rank_status.hpp>
#include <descent/ranks/detail/differences.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace descent::detail {

/// What rank 0 knows of why ranks cannot go on because of others, and what follows from it.
class complaints {
  using clock = deadline_clock;

 public:
  explicit complaints(int ranks) : compared_(std::size_t(ranks)) {}

  /// A rank is late (heartbeat::late), NCCL reports an error to it (heartbeat::hurt), or ranks have met in different
  /// calls (heartbeat::differs): one fact in each message, and an empty one after the last.
  void add(int rank, heartbeat::kinds kind, std::string const& text) {
    if (kind == heartbeat::differs) {
      auto& [facts, whole] = compared_[std::size_t(rank)];
      since_differ_ = std::min(since_differ_, clock::now());
      if (text.empty()) whole = true;
      else facts.push_back(text.substr(0, heartbeat::most));
      return;
    }
    std::string& first = kind == heartbeat::late ? late_ : hurt_;
    if (first.empty()) first = text, since_ = clock::now();
  }
  void add_gone() { since_gone_ = std::min(since_gone_, clock::now()); }

  /// Why all ranks end; empty if there is no reason, or more may be heard. Prefers causes to consequences: ranks that
  /// differ, then one that is gone, then one that is late, then an error from NCCL.
  std::string verdict(rank_status const& ranks) const {
    auto const passed = [now = clock::now()](clock::time_point since, std::chrono::milliseconds time) {
      return since != clock::time_point::max() && now - since >= time;
    };
    bool const differ = since_differ_ != clock::time_point::max();
    if (differ && (all_compared(ranks) || passed(since_differ_, std::chrono::milliseconds(500)))) return difference();
    if (differ) return "";
    if (since_gone_ != clock::time_point::max())  // more ranks may disappear at the same time
      return passed(since_gone_, std::chrono::milliseconds(100)) ? ranks.gone() : "";
    if (!late_.empty()) return late_ + " for " + ranks.blamed();
    return passed(since_, std::chrono::milliseconds(300)) ? hurt_ : "";
  }

 private:
  struct compared {
    std::vector<std::string> facts{};
    bool whole = false;
  };

  bool all_compared(rank_status const& ranks) const {
    for (int r = 0; r < int(compared_.size()); ++r)
      if (ranks[r].is == rank_state::here && !compared_[std::size_t(r)].whole) return false;
    return true;
  }
  /// The first fact that is not the same on all ranks that have said theirs. A rank's first fact is its call.
  std::string difference() const {
    std::vector<int> who;
    std::vector<std::vector<std::string>> facts;
    for (std::size_t r = 0; r < compared_.size(); ++r)
      if (compared_[r].whole) who.push_back(int(r)), facts.push_back(compared_[r].facts);
    std::string const what = difference_of(facts, who);
    std::string const first =
        who.empty() ? "ranks have met" : "rank " + std::to_string(who[0]) + " is in " + facts[0][0];
    return first + (what.empty() ? another_call : but_ranks_differ + what);
  }

  std::vector<compared> compared_;
  clock::time_point since_{clock::time_point::max()}, since_gone_ = since_, since_differ_ = since_;
  std::string late_, hurt_;
};

}  // namespace descent::detail
