// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "dataset.hpp"
#include "options.hpp"
#include "training_state.hpp"

#include <descent/any_optimizer.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace example {

namespace ds = descent;

/// The files of --save and --resume. Each is a safetensors file of the parameters, the optimizer, the training state,
/// and the options that the result depends on.
class run_file {
 public:
  /// Creates the folder of the file. Throws std::runtime_error if the file cannot be written.
  run_file(options const& o, dataset const& data);

  bool resumes() const { return !resume_.empty(); }
  bool saves() const { return !save_.empty(); }
  /// Whether this step is to be saved.
  bool due(training_state const& at) const;

  /// Replaces the file of --save. Throws std::runtime_error with the reason if that fails; the file is then the one
  /// that was there.
  void save(ds::any_optimizer const& opt, training_state const& at) const;
  /// Reads the file of --resume. Throws std::invalid_argument if it was saved with options that lead to another result,
  /// and std::runtime_error if it is damaged.
  void load(ds::any_optimizer& opt, training_state& at) const;
  /// Only an any_optimizer, which is not compiled for the file once more, can be saved.
  template <class Optimizer> void save(Optimizer const&, training_state const&) const { refuse(); }
  template <class Optimizer> void load(Optimizer&, training_state&) const { refuse(); }

  /// What is said when a run ends early.
  std::string how_to_resume(training_state const& at) const;

 private:
  [[noreturn]] static void refuse();
  void require_fit(std::string const& options, std::int64_t ended, std::int64_t step) const;

  std::string save_, resume_, command_;
  std::int64_t every_, images_, steps_;
  std::size_t batch_;
  std::vector<std::pair<std::string, std::string>> settings_;
};

}  // namespace example
