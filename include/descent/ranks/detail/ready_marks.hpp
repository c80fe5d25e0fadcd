// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/sending.hpp>
#include <descent/ranks/detail/partition.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

/// Which gradients are ready to be sent.
namespace descent::detail {

/// The marks of one backward pass, and which buckets have been sent. Buckets are sent in order. Tensors of frozen
/// groups and tensors without elements need no mark.
class ready_marks {
 public:
  template <class Layout> void start(Layout const& where, partition const& all) {
    all_ = &all;
    names_ = where.names;
    for (auto const& x : where.tensors) group_.push_back(x.count > 0 ? x.group : nobody);
    marked_.assign(names_.size(), false);
  }
  void mark(std::size_t tensor) {
    if (tensor >= marked_.size())
      throw std::invalid_argument("ready(): the parameter must be in [0, " + std::to_string(marked_.size()) + "), is " +
                                  std::to_string(tensor));
    if (marked_[tensor])
      throw std::logic_error("ready(): the gradient of '" + names_[tensor] + "' is already marked, and no step() has " +
                             "used it since");
    marked_[tensor] = any_ = zero_unmarked_ = true;
  }
  bool any() const { return any_; }
  /// Whether this gradient counts as zero.
  bool lacks(std::size_t tensor) const { return zero_unmarked_ && !marked_[tensor]; }

  template <class Groups> bool next_is_complete(Groups const& groups) {
    if (all_sent()) return false;
    bucket const& b = all_->buckets[sent_];
    while (there_ < b.tensors && !awaited(groups, b.first_tensor + there_)) ++there_;
    return there_ == b.tensors;
  }
  bool all_sent() const { return sent_ == all_->buckets.size(); }
  std::size_t take_next() {
    there_ = 0;
    return sent_++;
  }

  /// Throws std::logic_error if marks are missing.
  template <class Groups> void require_all(Groups const& groups, char const* call) const {
    std::string missing;
    int count = 0;
    for (std::size_t t = 0; t < marked_.size(); ++t)
      if (awaited(groups, t) && ++count <= 5) missing += (count > 1 ? ", '" : "'") + names_[t] + "'";
    if (count > 0)
      throw std::logic_error(std::string(call) + ": no ready() for the gradient of " + missing +
                             (count > 5 ? " and " + std::to_string(count - 5) + " more" : "") +
                             "; if that is intended, add missing_is_zero{} to overlap{}");
  }
  void begin(sending how) {
    zero_unmarked_ = by_marks(how);
    if (!zero_unmarked_ && how != sending::rest) sent_ = there_ = 0;
  }
  void end(sending how) {
    if (how == sending::marked_to_measure) return;
    sent_ = there_ = 0;
    if (looks(how)) return;
    marked_.assign(marked_.size(), false);
    any_ = false;
  }

 private:
  static constexpr std::int32_t nobody = -1;
  template <class Groups> bool awaited(Groups const& groups, std::size_t tensor) const {
    std::int32_t const g = group_[tensor];
    return !marked_[tensor] && g != nobody && !groups[std::size_t(g)].frozen;
  }

  partition const* all_ = nullptr;
  std::vector<std::string> names_;
  std::vector<std::int32_t> group_;
  std::vector<bool> marked_;
  bool any_ = false, zero_unmarked_ = false;
  std::size_t sent_ = 0, there_ = 0;  // buckets sent; tensors of the next bucket that are known to be complete
};

}  // namespace descent::detail
