// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/optimizer/detail/run_part.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace descent::detail {

/// A part and what comes before its names.
struct named_part {
  std::string prefix;
  std::unique_ptr<run_part> part;
  bool each_rank = false;  // whether each rank has its own, see each_rank()

  /// What comes before the names of a rank's pieces in a file.
  std::string prefix_on(int rank) const { return (each_rank ? rank_prefix(rank) : "") + prefix; }
  static std::string rank_prefix(int rank) { return rank_begin + std::to_string(rank) + "."; }
  static constexpr char const* rank_begin = "rank.";
};

/// The ranks that save or load together: those of the first part that has several; and those of the model of the first
/// part that is one of a model.
class job_ranks {
 public:
  explicit job_ranks(std::vector<named_part> const& parts) {
    for (auto const& p : parts) {
      if (!model_ && p.part->model_ranks() > 1) model_ = p.part.get();
      if (p.part->ranks() == 1) continue;
      if (p.each_rank)
        throw std::invalid_argument("each_rank(part): the part must be without ranks, is one of all ranks");
      if (!of_) of_ = p.part.get();
      else if (of_->rank() != p.part->rank() || of_->ranks() != p.part->ranks())
        throw std::invalid_argument("save_file and load_file: the optimizers have different ranks");
    }
  }
  int rank() const { return of_ ? of_->rank() : 0; }
  int ranks() const { return of_ ? of_->ranks() : 1; }
  /// "0 of 2" for the first of two ranks of a model; empty without one.
  std::string place_in_model() const {
    return model_ ? std::to_string(model_->model_rank()) + " of " + std::to_string(model_->model_ranks()) : "";
  }

  /// Runs f on this rank and returns what each rank's f returned. Throws on all ranks if f throws on one.
  std::vector<std::string> meet(std::function<std::string()> const& f) const {
    if (!of_) return {f()};
    std::exception_ptr error;
    std::string mine;
    run(f, mine, error);
    return settle(of_->exchange(mine), error);
  }
  /// The same for the ranks of a model.
  std::vector<std::string> meet_in_model(std::function<std::string()> const& f) const {
    if (!model_) return {f()};
    std::exception_ptr error;
    std::string mine;
    run(f, mine, error);
    return settle(model_->exchange_in_model(mine), error);
  }
  /// The same in another thread, for what may take longer than the deadline of a collective. f may use a part's memory.
  /// Calls undo() if f has thrown on a rank: all ranks know it then, and none goes on.
  std::vector<std::string> meet_after(std::function<std::string()> const& f,
                                      std::function<void()> const& undo = nothing) const {
    std::exception_ptr error;
    std::string mine;
    if (!of_) {
      run(f, mine, error);
      return settle({mine}, error, undo);
    }
    auto const done = std::async(std::launch::async, [&] { run(f, mine, error); });
    for (;;) {
      bool const ready = done.wait_for(std::chrono::milliseconds(100)) == std::future_status::ready;
      auto const all = of_->exchange(ready ? mine : working);
      bool complete = true;
      for (auto const& text : all) complete = complete && text != working;
      if (complete) return settle(all, error, undo);
    }
  }

 private:
  static constexpr char const* working = "";
  static constexpr char succeeded = '+', failed = '-';
  static void nothing() {}

  static void run(std::function<std::string()> const& f, std::string& mine, std::exception_ptr& error) {
    try {
      mine = succeeded + f();
    } catch (std::exception const& e) {
      mine = failed + std::string(e.what());
      error = std::current_exception();
    } catch (...) {
      mine = failed + std::string("something was thrown");
      error = std::current_exception();
    }
  }
  static std::vector<std::string> settle(std::vector<std::string> all, std::exception_ptr const& error,
                                         std::function<void()> const& undo = nothing) {
    for (auto const& text : all)
      if (text.at(0) == failed) {
        undo();
        break;
      }
    if (error) std::rethrow_exception(error);
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (all[r].at(0) == failed) throw std::runtime_error("rank " + std::to_string(r) + ": " + all[r].substr(1));
      all[r].erase(0, 1);
    }
    return all;
  }

  run_part *of_ = nullptr, *model_ = nullptr;
};

}  // namespace descent::detail
