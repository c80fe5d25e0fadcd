// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/core/math.hpp>
#include <descent/io/detail/folder.hpp>
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
  std::int64_t step;             ///< the step passed to save()
  std::string path;              ///< to load_file() it
  std::optional<double> metric;  ///< if one other than NaN was given
};

/// A checkpoint that cannot be read.
struct damaged_checkpoint {
  std::int64_t step;  ///< as its name says
  std::string path;   ///< of the file
  std::string why;    ///< with its path
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

  /// Saves like save_file(), then removes what is not to be kept. A checkpoint without a metric, or with NaN, is never
  /// among the best. Throws std::invalid_argument, with nothing written, if step is negative, if the folder has a
  /// checkpoint of a later step (as after going back: see remove_after()), or if the ranks' steps or metrics differ.
  template <class... Parts> void save(std::int64_t step, std::optional<double> metric, Parts&&... parts) {
    auto const all = detail::make_parts(parts...);
    detail::job_ranks const job(all);
    detail::save_run(prepare(job, step, metric), all, texts(metric));
    if (job.rank() == 0) remove_others();
  }
  /// Saves in the background. What is not to be kept is removed at the next save.
  template <class... Parts>
  void save(async_save& by, std::int64_t step, std::optional<double> metric, Parts&&... parts) {
    by.wait();
    auto all = detail::make_parts(parts...);
    detail::job_ranks const job(all);
    std::string const path = prepare(job, step, metric);
    if (job.rank() == 0) remove_others();
    by.start(path, std::move(all), texts(metric));
  }
  /// Removes all checkpoints of later steps, damaged ones too: call it after loading an earlier one, to continue
  /// in the same folder. Any rank, or all, may call it before the next save. Throws std::runtime_error if the
  /// system does.
  void remove_after(std::int64_t step) const {
    for (auto const& c : by_step())
      if (c.step > step) std::filesystem::remove(c.path);
    remove_orphans();
  }

  /// The complete checkpoints in the folder, by step, without those that are damaged: of each, the header is read and
  /// the headers of its parts. Throws std::runtime_error if a file cannot be opened.
  std::vector<checkpoint_file> list() const { return look().good; }
  /// Those that list() leaves out, by step, with what is wrong.
  std::vector<damaged_checkpoint> damaged() const { return look().damaged; }
  /// That of the largest step that is not damaged, if any. damaged() says whether there are later ones.
  std::optional<checkpoint_file> newest() const {
    return last([](checkpoint_file& c) { return examine_headers(c); });
  }
  /// The same, but also reads the data and checks their hashes: use it after load_file() has found damage.
  std::optional<checkpoint_file> last_good() const {
    return last([](checkpoint_file& c) { return examine(c, [](detail::saved_run const& run) { run.check(); }); });
  }
  /// That with the best metric, the newest of equals, if any.
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
    bool const as_saved =
        error == std::errc() && stop == last && std::to_string(step).size() == std::size_t(last - first);
    return as_saved && step >= 0 ? std::optional(step) : std::nullopt;
  }
  /// Without metrics, which are in the files.
  std::vector<checkpoint_file> by_step() const {
    std::vector<checkpoint_file> all;
    for (auto const& name : detail::names_in(folder_)) {
      std::error_code none;
      auto const path = std::filesystem::path(folder_) / name;
      if (auto const step = step_in(name); step && !std::filesystem::is_directory(path, none))
        all.push_back({*step, path.string(), {}});
    }
    std::ranges::sort(all, {}, &checkpoint_file::step);
    return all;
  }
  struct looked_at {
    std::vector<checkpoint_file> good;
    std::vector<damaged_checkpoint> damaged;
  };
  /// What is wrong with a checkpoint, if anything; else reads its metric. check(run) may throw data_error, too. Throws
  /// what is no damage, unless the file is gone: another process may remove it.
  template <class Check> static std::optional<std::string> examine(checkpoint_file& c, Check const& check) {
    try {
      detail::saved_run const run(c.path);
      double metric = 0;
      std::string const text = detail::text_in(run.main(), metric_key);
      if (!text.empty() && detail::set_from_text(metric, text) && !is_nan(metric)) c.metric = metric;
      check(run);
      return {};
    } catch (data_error const& e) {
      return e.what();
    } catch (std::runtime_error const& e) {
      if (std::filesystem::exists(c.path)) throw;
      return e.what();
    }
  }
  static std::optional<std::string> examine_headers(checkpoint_file& c) {
    return examine(c, [](detail::saved_run const&) {});
  }
  looked_at look() const {
    looked_at all;
    for (auto& c : by_step()) {
      if (auto const why = examine_headers(c)) all.damaged.push_back({c.step, c.path, *why});
      else all.good.push_back(std::move(c));
    }
    std::erase_if(all.damaged, [](auto const& c) { return !std::filesystem::exists(c.path); });
    return all;
  }
  template <class Examine> std::optional<checkpoint_file> last(Examine const& why_damaged) const {
    auto all = by_step();
    while (!all.empty() && why_damaged(all.back())) all.pop_back();
    return all.empty() ? std::nullopt : std::optional(all.back());
  }
  static text_map texts(std::optional<double> metric) {
    return metric && !is_nan(*metric) ? text_map{{metric_key, detail::text_of_setting(*metric)}} : text_map();
  }

  /// The path of a checkpoint, in a folder that is there.
  std::string prepare(detail::job_ranks const& job, std::int64_t step, std::optional<double> metric) const {
    auto const of_ranks = job.meet([&] {
      detail::require(step >= 0, "checkpoints", "the step", "at least 0", step);
      if (job.rank() == 0) refuse_later(step);
      std::filesystem::create_directories(folder_);
      std::string const of_metric = !metric ? "" : is_nan(*metric) ? "NaN" : detail::text_of_setting(*metric);
      return "step " + std::to_string(step) + (metric ? " with metric " + of_metric : "");
    });
    for (std::size_t r = 1; r < of_ranks.size(); ++r)
      if (of_ranks[r] != of_ranks[0])
        throw std::invalid_argument("checkpoints: rank " + std::to_string(r) + " saves " + of_ranks[r] +
                                    ", rank 0 saves " + of_ranks[0] + ": all ranks must give the same");
    return (std::filesystem::path(folder_) / (before_step + std::to_string(step) + after_step)).string();
  }
  /// A run that has gone back would otherwise lose what it saves: the later steps are the newest.
  void refuse_later(std::int64_t step) const {
    auto all = by_step();
    for (; !all.empty() && all.back().step > step; all.pop_back())
      if (!examine_headers(all.back()))
        throw std::invalid_argument("checkpoints: " + all.back().path + " is newer than step " + std::to_string(step) +
                                    ", which is to be saved: a run that resumes from an earlier checkpoint first calls "
                                    "remove_after(its step), or saves to another folder");
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
    for (auto& c : by_step()) try {
        if (!examine_headers(c)) all.push_back(std::move(c));
      } catch (std::runtime_error const&) {}  // cannot be opened: stays, too
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
    remove_orphans();
    detail::remove_abandoned(folder_, [](std::string_view target) { return step_in(std::string(target)).has_value(); });
  }
  /// Removes parts of checkpoints that are gone, or were never complete.
  void remove_orphans() const {
    std::error_code ignored;
    std::filesystem::path const folder(folder_);
    for (auto const& name : detail::names_in(folder_)) {
      std::string const manifest = detail::manifest_of(name);
      if (step_in(manifest) && !std::filesystem::exists(folder / manifest))
        std::filesystem::remove(folder / name, ignored);
    }
  }

  std::string folder_;
  descent::keep keep_;
};

}  // namespace descent
