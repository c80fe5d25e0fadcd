// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/shares.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

/// Which gradients are ready to be sent.
namespace descent::detail {

/// Which gradients a meeting is about: those in memory, or those that are marked, which a look leaves so.
enum class sending { all, all_to_look, marked, marked_to_look };
inline bool needs_marks(sending s) { return s == sending::marked || s == sending::marked_to_look; }
inline bool only_looks(sending s) { return s == sending::all_to_look || s == sending::marked_to_look; }

/// The marks of one backward pass, and the buckets that were sent because of them, in their order. Those of frozen
/// groups and of no elements may lack.
class ready_marks {
 public:
  void start(division const& all) {
    all_ = &all;
    marked_.assign(all.bucket_of.size(), false);
  }
  template <class Layout> void mark(Layout const& where, std::size_t tensor) {
    if (tensor >= marked_.size())
      throw std::invalid_argument("ready(): there is no parameter " + std::to_string(tensor) + " of " +
                                  std::to_string(marked_.size()));
    if (marked_[tensor])
      throw std::logic_error("ready(): the gradient of '" + where.names[tensor] + "' is ready already, and was not " +
                             "used by a step() since");
    marked_[tensor] = true;
    any_ = true;
  }
  bool marked(std::size_t tensor) const { return marked_[tensor]; }
  bool any() const { return any_; }

  /// The next bucket to be sent.
  bool all_sent() const { return sent_ == all_->buckets.size(); }
  bucket const& next() const { return all_->buckets[sent_]; }
  bucket const& take_next() { return all_->buckets[sent_++]; }
  template <class Layout, class Groups> bool next_is_complete(Layout const& where, Groups const& groups) const {
    if (all_sent()) return false;
    bucket const& b = next();
    for (std::size_t t = b.first_tensor; t < b.first_tensor + b.tensors; ++t)
      if (lacks(where, groups, t)) return false;
    return true;
  }
  template <class Layout, class Groups>
  void require_all(Layout const& where, Groups const& groups, char const* call) const {
    std::string missing;
    int count = 0;
    for (std::size_t t = 0; t < marked_.size(); ++t)
      if (lacks(where, groups, t) && ++count <= 5) missing += (count > 1 ? ", '" : "'") + where.names[t] + "'";
    if (count > 0)
      throw std::logic_error(std::string(call) + ": no ready() for the gradient of " + missing +
                             (count > 5 ? " and " + std::to_string(count - 5) + " more" : "") +
                             "; where that is meant, missing_is_zero{} beside overlap{}");
  }
  void send_again() { sent_ = 0; }
  void reset() {
    marked_.assign(marked_.size(), false);
    any_ = false;
    sent_ = 0;
  }

 private:
  template <class Layout, class Groups>
  bool lacks(Layout const& where, Groups const& groups, std::size_t tensor) const {
    auto const& x = where.tensors[tensor];
    return !marked_[tensor] && x.count > 0 && !groups[std::size_t(x.group)].frozen;
  }

  division const* all_ = nullptr;
  std::vector<bool> marked_;
  bool any_ = false;
  std::size_t sent_ = 0;
};

}  // namespace descent::detail
