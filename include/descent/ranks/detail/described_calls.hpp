// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/communicator.hpp>
#include <descent/ranks/detail/agreement.hpp>
#include <descent/policies/loss_scale.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace descent::detail {

/// What an optimizer on a device compares with those of other ranks in its calls, in words. The optimizer changes it; a
/// communicator that has found a difference reads it in another thread.
class described_calls {
 public:
  /// What the host knows, and the device knew when the meeting began.
  using all_facts = std::function<std::vector<std::string>(control_block const&, loss_scale_state const&)>;

  void set_facts(all_facts facts) {
    std::lock_guard const lock(mutex_);
    facts_ = std::move(facts);
  }
  /// The next `kinds` numbers stand for the kinds of a call, as kind_of_look() has them.
  void add_call(std::uint64_t call, char const* name) {
    std::lock_guard const lock(mutex_);
    for (auto const& known : calls_)
      if (known.first == call) return;
    calls_.push_back({call, name});
  }
  /// Empty if the meeting is in no call of this optimizer.
  std::vector<std::string> facts_in(comm_progress const& p) const {
    std::lock_guard const lock(mutex_);
    for (auto const& [call, name] : calls_) {
      if (p.call - call >= kinds) continue;
      std::vector<std::string> all{name + std::string(p.call == call ? "" : " of marked gradients")};
      if (p.weight >= 0) all.push_back(fact_of_weight(p.weight));
      control_block c;
      c.step = p.step, c.skipped = p.skipped, c.unscaled = p.unscaled;
      c.plateau.value = p.plateau, c.sweep = p.sweep;
      loss_scale_state scale;
      scale.scale = decltype(scale.scale)(p.scale);
      if (facts_)
        for (auto& fact : facts_(c, scale)) all.push_back(std::move(fact));
      return all;
    }
    return {};
  }

 private:
  static constexpr std::uint64_t kinds = 2;

  all_facts facts_;
  std::vector<std::pair<std::uint64_t, char const*>> calls_;
  mutable std::mutex mutex_;
};

/// The optimizers of a communicator, which may end before it.
class described_optimizers {
 public:
  void add(std::weak_ptr<described_calls const> calls) {
    std::lock_guard const lock(mutex_);
    std::erase_if(all_, [](auto const& x) { return x.expired(); });
    auto const is_same = [&](auto const& x) { return !x.owner_before(calls) && !calls.owner_before(x); };
    if (std::none_of(all_.begin(), all_.end(), is_same)) all_.push_back(std::move(calls));
  }
  /// The first fact is the call.
  std::vector<std::string> facts_in(comm_progress const& p) const {
    std::lock_guard const lock(mutex_);
    for (auto const& one : all_)
      if (auto const calls = one.lock())
        if (auto facts = calls->facts_in(p); !facts.empty()) return facts;
    return {"a call of no optimizer that is left"};
  }

 private:
  std::vector<std::weak_ptr<described_calls const>> all_;
  mutable std::mutex mutex_;
};

}  // namespace descent::detail
