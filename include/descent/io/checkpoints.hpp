// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/io/async_save.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace descent {

/// Which checkpoints stay. One stays if any of the three wants it.
struct keep {
  int last = 3;                  ///< the newest ones, at least 1
  std::int64_t every = 0;        ///< those whose step is a multiple of it; 0: none
  int best = 0;                  ///< those with the best metrics
  bool largest_is_best = false;  ///< whether a larger metric is better, as for an accuracy
};

/// A checkpoint in a folder.
struct checkpoint_file {
  std::int64_t step;             ///< as it was given to save()
  std::string path;              ///< to load_file() it
  std::optional<double> metric;  ///< if one was given
};

/// A folder of checkpoints, step-STEP.safetensors, of which some are kept.
///
///     checkpoints folder{"run", {.last = 2, .best = 1}};
///     folder.save(step, validation_loss, opt, batches);
///     ...
///     if (auto const newest = folder.newest()) load_file(newest->path, opt, batches);
///
/// Two jobs must not save to one folder. With ranks, all of them call save().
class checkpoints {
 public:
  /// Makes the folder when it first saves. Throws std::invalid_argument for settings out of range.
  explicit checkpoints(std::string folder, descent::keep k = {}) : folder_(std::move(folder)), keep_(k) {
    detail::require(keep_.last >= 1, "checkpoints", "last", "at least 1", keep_.last);
    detail::require(keep_.every >= 0, "checkpoints", "every", "at least 0", keep_.every);
    detail::require(keep_.best >= 0, "checkpoints", "best", "at least 0", keep_.best);
  }

  /// Saves like save_file(), then removes what is not to be kept. Without a metric, the checkpoint is none of the best.
  /// Throws std::invalid_argument if step is negative or the metric is NaN.
  template <class... Parts> void save(std::int64_t step, std::optional<double> metric, Parts&&... parts) {
    auto const all = detail::make_parts(parts...);
    detail::run_team const team(all);
    detail::save_run(prepare(team, step, metric), all, texts(metric));
    if (team.rank() == 0) remove_others();
  }
  /// Saves in the background. What is not to be kept is removed at the next save.
  template <class... Parts>
  void save(async_save& by, std::int64_t step, std::optional<double> metric, Parts&&... parts) {
    by.wait();
    auto all = detail::make_parts(parts...);
    detail::run_team const team(all);
    std::string const path = prepare(team, step, metric);
    if (team.rank() == 0) remove_others();
    by.start(path, std::move(all), texts(metric));
  }

  /// The complete checkpoints in the folder, by step. Throws data_error if one is damaged.
  std::vector<checkpoint_file> list() const {
    auto all = by_step();
    for (auto& c : all) c.metric = metric_in(c.path);
    return all;
  }
  /// That of the largest step, if any. Throws data_error if it is damaged.
  std::optional<checkpoint_file> newest() const {
    auto all = by_step();
    if (all.empty()) return {};
    all.back().metric = metric_in(all.back().path);
    return all.back();
  }
  /// That with the best metric, the newest of equals, if any. Throws data_error if one is damaged.
  std::optional<checkpoint_file> best() const {
    auto const order = by_metric(list());
    return order.empty() ? std::nullopt : std::optional(order.front());
  }

 private:
  static constexpr char const *before_step = "step-", *after_step = ".safetensors", *metric_key = "metric";

  static std::optional<std::int64_t> step_in(std::string const& name) {
    std::string const prefix = before_step, suffix = after_step;
    if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() <= prefix.size() + suffix.size()) return {};
    char const *const first = name.data() + prefix.size(), *const last = name.data() + name.size() - suffix.size();
    std::int64_t step = 0;
    auto const [stop, error] = std::from_chars(first, last, step);
    return error == std::errc() && stop == last ? std::optional(step) : std::nullopt;
  }
  /// Without metrics, which are in the files.
  std::vector<checkpoint_file> by_step() const {
    std::vector<checkpoint_file> all;
    std::error_code none;
    for (std::filesystem::directory_iterator i(folder_, none), end; !none && i != end; i.increment(none))
      if (auto const step = step_in(i->path().filename().string())) all.push_back({*step, i->path().string(), {}});
    std::ranges::sort(all, {}, &checkpoint_file::step);
    return all;
  }
  static std::optional<double> metric_in(std::string const& path) {
    std::string const text = detail::text_in(safetensors_file(path), metric_key);
    double metric = 0;
    return text.empty() || !detail::set_field_from(metric, text) ? std::nullopt : std::optional(metric);
  }
  static text_map texts(std::optional<double> metric) {
    return metric ? text_map{{metric_key, detail::text_of_field(*metric)}} : text_map();
  }

  /// The path of a checkpoint, in a folder that is there.
  std::string prepare(detail::run_team const& team, std::int64_t step, std::optional<double> metric) const {
    team.meet([&] {
      detail::require(step >= 0, "checkpoints", "the step", "at least 0", step);
      if (metric) detail::require(true, "checkpoints", "the metric", "a number", *metric);
      std::filesystem::create_directories(folder_);
      return std::string();
    });
    return (std::filesystem::path(folder_) / (before_step + std::to_string(step) + after_step)).string();
  }
  std::vector<checkpoint_file> by_metric(std::vector<checkpoint_file> all) const {
    std::erase_if(all, [](auto const& c) { return !c.metric; });
    std::ranges::reverse(all);  // the newest of equals first
    std::ranges::stable_sort(all, [this](double a, double b) { return keep_.largest_is_best ? a > b : a < b; },
                             [](auto const& c) { return *c.metric; });
    return all;
  }
  /// Damaged checkpoints stay, and do not count.
  void remove_others() const {
    std::vector<checkpoint_file> all;
    for (auto const& c : by_step()) try {
        all.push_back({c.step, c.path, metric_in(c.path)});
      } catch (std::runtime_error const&) {}
    auto const best = by_metric(all);
    auto const is_best = [&](checkpoint_file const& c) {
      auto const place = std::ranges::find(best, c.step, &checkpoint_file::step);
      return place != best.end() && place - best.begin() < keep_.best;
    };
    std::error_code ignored;  // what is left is removed by the next save
    for (std::size_t i = 0; i < all.size(); ++i) {
      bool const is_last = all.size() - i <= std::size_t(keep_.last);
      if (is_last || (keep_.every > 0 && all[i].step % keep_.every == 0) || is_best(all[i])) continue;
      std::filesystem::remove(all[i].path, ignored);
    }
    std::vector<std::filesystem::path> orphans;  // parts of checkpoints that are gone, or were never complete
    for (std::filesystem::directory_iterator i(folder_, ignored), end; !ignored && i != end; i.increment(ignored)) {
      std::string const manifest = detail::manifest_of(i->path().filename().string());
      if (step_in(manifest) && !std::filesystem::exists(i->path().parent_path() / manifest))
        orphans.push_back(i->path());
    }
    for (auto const& path : orphans) std::filesystem::remove(path, ignored);
    detail::remove_abandoned(folder_, [](std::string_view target) { return step_in(std::string(target)).has_value(); });
  }

  std::string folder_;
  descent::keep keep_;
};

}  // namespace descent
