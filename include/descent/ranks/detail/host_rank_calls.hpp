// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/ranks/detail/agreement.hpp>

#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace descent::detail {

/// Calls in which the ranks of a communicator wait for each other.
template <class Comm> class rank_calls {
 public:
  explicit rank_calls(Comm& comm) : comm_(comm), ranks_(comm.size()) {}
  rank_calls(rank_calls const&) = delete;
  rank_calls& operator=(rank_calls const&) = delete;

  /// Marks the optimizer as complete.
  void start() { started_ = true; }
  /// Aborts the other ranks if the optimizer was not completed: they wait for it.
  ~rank_calls() {
    if (joined_ && !started_) abort_with("could not make its optimizer");
  }

  /// Runs a part of a step in which ranks wait for each other. An exception on one rank ends the calls of all ranks.
  template <class F> void together(F const& f) {
    require_ranks();
    try {
      f();
    } catch (std::exception const& e) {
      give_up(e.what());
      throw;
    } catch (...) {
      give_up("something was thrown");
      throw;
    }
  }

  /// The hash of the rules of matrices, which ranks compare, and the rules as facts.
  void set_matrix_rules(std::uint64_t hash, std::vector<std::string> facts) {
    matrix_rules_ = hash, matrix_facts_ = std::move(facts);
  }
  /// hash_of_call() for a call of this optimizer; `kind` tells calls of one name apart.
  double hash_of(char const* name, control_block const& c, loss_scale_state const& scale,
                 std::uint64_t kind = 0) const {
    return hash_of_call(call_of(name, number_) + kind, c, scale, groups_ + matrix_rules_);
  }
  /// Throws, and says what differs. Waits for all ranks, which have found that their calls differ. `facts` are those of
  /// this rank's call.
  [[noreturn]] void refuse_call(char const* name, std::vector<std::string> facts) const {
    facts.push_back("optimizer " + std::to_string(number_) + " of the program");
    facts.insert(facts.end(), matrix_facts_.begin(), matrix_facts_.end());
    std::uint64_t none = 0;
    std::string const difference = difference_in(comm_, facts, none, but_ranks_differ);
    throw comm_error("rank " + std::to_string(comm_.rank()) + " is in " + name +
                     (difference.empty() ? another_call : difference));
  }

 protected:
  void require_ranks() const {
    if (broken_) throw std::logic_error("this optimizer lost its ranks in an earlier call: make a new one");
  }
  /// Waits for all ranks. Throws std::invalid_argument if their facts differ, or for what meet() finds on all of them.
  template <class Facts, class Meet> void join_with(Facts const& facts, Meet const& meet) {
    std::string difference;
    together([&] {
      difference = difference_in(comm_, facts(), number_);
      if (difference.empty()) difference = meet();
    });
    if (!difference.empty()) throw std::invalid_argument(difference);
    joined_ = true;
  }

  /// The hash of the groups, which ranks compare.
  void set_groups_hash(std::uint64_t hash) { groups_ = hash; }

  Comm& comm_;
  int ranks_;

 private:
  void give_up(char const* why) noexcept {
    if (!std::exchange(broken_, true)) abort_with(why);
  }
  void abort_with(char const* why) noexcept {
    try {
      comm_.abort("rank " + std::to_string(comm_.rank()) + ": " + why);
    } catch (std::bad_alloc const&) {
      comm_.abort("out of memory");  // a string this short allocates nothing
    }
  }

  bool broken_ = false, joined_ = false, started_ = false;
  std::uint64_t number_ = next_number();  // of the optimizer; join_with() makes it the same on all ranks
  std::uint64_t groups_ = 0, matrix_rules_ = 0;
  std::vector<std::string> matrix_facts_;
};

}  // namespace descent::detail
