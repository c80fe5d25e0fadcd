// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/io/detail/conversion.hpp>
#include <descent/io/detail/writer.hpp>
#include <descent/core/detail/block.hpp>
#include <descent/io/load_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

/// How a file, or a manifest with the files of several ranks, becomes the parts of a run again.
namespace descent::detail {

/// The tensors of a file and of the part files that it names.
class saved_run {
 public:
  struct run {
    safetensors_file const* file;
    tensor_info const* at;
    std::int64_t begin;  // of the tensor's elements
  };
  struct tensor {
    dtype type;
    std::vector<std::int64_t> shape;
    std::vector<run> runs;  // in order, without gaps
    std::string type_name{};  // of an unknown type
    std::int64_t count() const { return elements_in(shape); }
  };

  explicit saved_run(std::string const& path) {
    files_.emplace_back(path);
    texts_ = main().metadata();
    for (auto const& t : main().tensors()) tensors_[t.name] = {t.type, t.shape, {{&main(), &t, 0}}, t.type_name};
    auto const parts = main().metadata().find("parts");
    if (parts == main().metadata().end()) return;
    for (auto const& p : parts_in(path, parts->second)) add_part(p);
    for (auto& [name, t] : tensors_) require_whole(name, t);
  }

  safetensors_file const& main() const { return files_.front(); }
  std::map<std::string, tensor> const& tensors() const { return tensors_; }
  std::deque<safetensors_file> const& files() const { return files_; }
  /// The metadata of the file, with that of what each rank has for itself.
  text_map const& texts() const { return texts_; }
  /// Reads everything. Throws data_error if something has another hash than the file says.
  void check() const {
    for (auto const& file : files_) file.check();
  }

 private:
  void add_part(part_file const& p) {
    std::error_code none;  // the file is open
    std::string const path = (behind_links(main().path(), none).parent_path() / p.name).string();
    if (!std::filesystem::exists(path, none))
      throw data_error(main().path(), "__metadata__", "the part '" + p.name + "'", "missing", "there");
    safetensors_file const& file = files_.emplace_back(path);
    if (file.header_hash() != p.header_hash)
      throw data_error(path, "__metadata__", "'xxh3_header'", file.header_hash(),
                       p.header_hash + ", as " + main().path() + " says");
    for (auto const& [key, text] : file.metadata())
      if (key.starts_with(named_part::rank_begin)) texts_[key] = text;
    auto const ranges = ranges_in(path, text_in(file, "ranges"));
    for (auto const& t : file.tensors()) {
      auto const range = ranges.find(t.name);
      if (range == ranges.end())
        throw data_error(path, "__metadata__", "the range of '" + t.name + "'", "missing", "there");
      if (!bytes_of_shape(t.type, range->second.shape))
        throw data_error(path, "'" + t.name + "'", "the shape of the whole tensor", shape_text(range->second.shape),
                         "extents of at least 0 and less than 2^63 bytes");
      auto const [place, is_new] = tensors_.try_emplace(t.name, tensor{t.type, range->second.shape, {}, t.type_name});
      tensor& whole = place->second;
      if (!is_new && (whole.type != t.type || whole.type_name != t.type_name || whole.shape != range->second.shape))
        throw data_error(path, "'" + t.name + "'", "the type and shape",
                         std::string(name_of(t.type)) + " " + shape_text(range->second.shape),
                         std::string(name_of(whole.type)) + " " + shape_text(whole.shape) + ", as in other parts");
      whole.runs.push_back({&file, &t, range->second.begin});
    }
  }
  void require_whole(std::string const& name, tensor& t) const {
    std::ranges::sort(t.runs, [](run const& a, run const& b) {
      return std::pair(a.begin, a.at->count()) < std::pair(b.begin, b.at->count());
    });
    std::int64_t next = 0;
    for (run const& r : t.runs) {
      if (r.begin != next)
        throw data_error(r.file->path(), "'" + name + "'", "the first element", std::to_string(r.begin),
                         std::to_string(next));
      next += r.at->count();
    }
    if (next != t.count())
      throw data_error(main().path(), "'" + name + "'", "the number of elements of all parts", std::to_string(next),
                       std::to_string(t.count()));
  }

  std::deque<safetensors_file> files_;
  std::map<std::string, tensor> tensors_;
  text_map texts_;
};

/// One load: finds all that is wrong before a part is changed.
class run_loading {
 public:
  run_loading(std::string const& path, load_options const& options, std::vector<named_part> const& parts,
              job_ranks const& job)
      : path_(path), options_(options), parts_(parts), rank_(job.rank()), ranks_(job.ranks()),
        in_model_(job.place_in_model()) {}

  /// Lists what the parts want.
  void list() { entries_ = entries_of(parts_, rank_, ranks_); }
  /// Reads and checks everything that the file itself can say.
  void read() {
    from_ = std::make_unique<saved_run>(path_);
    match();
    for (auto const& e : entries_)
      if (from_->tensors().contains(e.name)) answer(e);
    for (auto const& e : entries_)
      if (!from_->tensors().contains(e.name)) keep(e);
    refuse(beyond_);
    report_.version = text_in(from_->main(), "library");
  }
  /// What tells the file from others; empty if another program wrote it.
  std::string const& hash() const { return from_->main().header_hash(); }
  /// The step of the first optimizer; empty if there is none.
  std::string step() const {
    for (auto const& p : parts_)
      if (auto const found = from_->texts().find(p.prefix_on(rank_) + "step"); found != from_->texts().end())
        return found->second;
    return "";
  }
  /// Asks the parts whether they can take it.
  void check() {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      std::string const prefix = parts_[i].prefix_on(rank_);
      auto const& fields = summaries_[i].fields;
      parts_[i].part->check([this, prefix](std::string const& name) { return answer_of(prefix + name); },
                            fields && options_.hyperparameters ? &*fields : nullptr);
    }
    for (auto const& file : from_->files()) file.check_unchanged();
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (auto const* now = parts_[i].part->summary())
        report_.same_configuration &= hash_text(now->fingerprint) == summaries_[i].fingerprint;
    taken_.reserve(parts_.size());
  }
  /// The parts that may refuse.
  std::vector<run_part*> refusable() const {
    std::vector<run_part*> all;
    for (auto const& p : parts_)
      if (p.part->may_refuse()) all.push_back(p.part.get());
    return all;
  }
  void take(run_part* part) { part->take(), taken_.push_back(part); }
  /// Puts back what was taken before the exception that is being handled. Throws another one if a part refuses.
  void undo() {
    std::string lost;
    for (; !taken_.empty(); taken_.pop_back()) try {
        taken_.back()->undo();
      } catch (std::exception const& e) {
        lost = e.what();
      } catch (...) {
        lost = "something was thrown";
      }
    if (lost.empty()) return;
    try {
      throw;
    } catch (std::exception const& e) {
      throw std::runtime_error(std::string(e.what()) + "; what was loaded before cannot be put back: " + lost);
    }
  }
  /// Lets the others take it, which throws nothing.
  load_report finish() {
    for (auto const& p : parts_)
      if (!p.part->may_refuse()) p.part->take();
    return std::move(report_);
  }

 private:
  /// Throws one message with everything that does not fit.
  void match() {
    std::vector<std::string> problems;
    std::string const saved_by = text_in(from_->main(), "each_rank");
    bool const other_ranks = !saved_by.empty() && saved_by != std::to_string(ranks_);
    std::string const of_model = text_in(from_->main(), "model_rank");
    if (!of_model.empty() && !in_model_.empty() && of_model != in_model_)
      problems.push_back("saved by rank " + of_model + " of a model, this is rank " + in_model_ +
                         ": each has a file of its own");
    for (auto const& p : parts_) {
      std::string const prefix = p.prefix_on(rank_);
      auto& saved = summaries_.emplace_back(summary_in(path_, from_->texts(), prefix));
      auto const* const mine = p.part->summary();
      if (!mine || (p.each_rank && other_ranks)) continue;
      bool const may_lack = keeps() && !has_state(p, *mine);
      if (!saved.made_by && !may_lack) problems.push_back("missing: '" + prefix + "made_by'");
      if (saved.made_by && *saved.made_by != mine->made_by)
        problems.push_back("saved by '" + *saved.made_by + "', loaded by '" + mine->made_by + "'");
      if (!saved.fields && options_.hyperparameters && !may_lack)
        problems.push_back("missing: hyperparameters, '" + prefix +
                           "groups'; load_options{.hyperparameters = false} keeps those of the program");
    }
    std::set<std::string> wanted;
    std::vector<std::string> missing;
    for (auto const& e : entries_) {
      wanted.insert(e.name);
      std::string const without_rank = e.of->prefix + e.piece.name;
      for (int r = 0; e.of->each_rank && r < ranks_; ++r) wanted.insert(named_part::rank_prefix(r) + without_rank);
      if (e.of->each_rank && other_ranks) {
        problems.push_back("'" + without_rank + "' is there for each of " + saved_by + " ranks, there are now " +
                           std::to_string(ranks_) + ": leave the part out, with load_options{.partial = true}");
        continue;
      }
      auto const found = from_->tensors().find(e.name);
      if (found == from_->tensors().end()) missing.push_back("missing: '" + e.name + "'");
      else if (std::string const why = mismatch(e, found->second); !why.empty())
        problems.push_back("'" + e.name + "' is " + why);
    }
    if (!keeps() || missing.size() == entries_.size()) problems.insert(problems.end(), missing.begin(), missing.end());
    for (auto const& [name, t] : from_->tensors()) {
      if (wanted.contains(name)) continue;
      if (options_.partial) report_.left_over.push_back(name);
      else problems.push_back("left over: '" + name + "'");
    }
    refuse(problems);
  }
  bool keeps() const { return options_.missing == missing_tensors::keep; }
  /// Whether the file has something of an optimizer beside values, to which the rule gives its meaning.
  bool has_state(named_part const& p, run_summary const& mine) const {
    std::set<std::string> values;
    for (auto const& [name, group] : mine.parameters) values.insert(name);
    return std::ranges::any_of(entries_, [&](run_entry const& e) {
      return e.of == &p && !values.contains(e.piece.name) && from_->tensors().contains(e.name);
    });
  }
  /// Answers with what is there, which the part then takes like all.
  void keep(run_entry const& e) {
    auto& copy = copies_.emplace_back(e.piece.bytes());
    if (e.piece.own && !copy.empty()) std::memcpy(copy.data(), e.piece.data, copy.size());
    if (!e.piece.own) e.memory->copy(copy.data(), e.piece.data, copy.size()), e.memory->mark()();
    auto const value = loaded_.find(e.of->part->summary() ? value_followed_by(e.name) : "");
    if (value != loaded_.end()) fill_from_value(*value->second, answers_.at(value->first), e.piece, copy.data());
    answers_[e.name] = copy;
    report_.kept.push_back(e.name);
  }
  void refuse(std::vector<std::string> const& problems) const {
    if (problems.empty()) return;
    std::string text = path_ + " does not fit:";
    for (auto const& p : problems) text += "\n  " + p;
    throw std::invalid_argument(text);
  }
  std::string mismatch(run_entry const& e, saved_run::tensor const& t) const {
    auto const& [type, shape] = std::tie(e.piece.type, e.piece.shape);
    bool const fits =
        e.piece.any_count ? t.shape.size() == 1 : t.count() == elements_in(shape) && shapes_fit(t.shape, shape);
    bool const converts = options_.convert && is_floating(t.type) && is_floating(type);
    if (fits && (t.type == type || converts)) return "";
    bool const unknown = t.type == dtype::unknown;
    return (unknown ? t.type_name : std::string(name_of(t.type))) + " " + shape_text(t.shape) + " in the file" +
           (unknown ? ", which is none of the types " + known_type_names() : "") + ", must be " + name_of(type) + " " +
           shape_text(shape);
  }

  /// Finds the bytes of an entry: in the file where they lie, or copied where they must be put together, converted or
  /// aligned.
  void answer(run_entry const& e) {
    auto const& t = from_->tensors().at(e.name);
    std::size_t const in_file = descent::bytes_of(t.type), size = descent::bytes_of(e.piece.type);
    std::int64_t const begin = e.piece.begin, end = e.piece.any_count ? t.count() : begin + e.piece.count;
    bool const whole = t.runs.size() == 1;
    std::byte* to = nullptr;
    std::int64_t saturated = 0;
    for (auto const& r : t.runs) {
      std::int64_t const first = std::max(begin, r.begin), last = std::min(end, r.begin + r.at->count());
      if (first >= last && !(whole && begin == end)) continue;
      check_once(r);
      auto const bytes = r.file->bytes(*r.at).subspan(std::size_t(first - r.begin) * in_file,
                                                      std::size_t(std::max(last - first, std::int64_t{0})) * in_file);
      if (e.piece.type == dtype::boolean) require_bools(e.name, r.file->path(), bytes);
      bool const aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % e.piece.alignment == 0;
      if (t.type == e.piece.type && aligned && first == begin && last == end) {
        answers_[e.name] = bytes;
        break;
      }
      if (!to) {
        auto& copy = copies_.emplace_back(std::size_t(end - begin) * size);
        answers_[e.name] = copy;
        to = copy.data();
      }
      std::byte* const at = to + std::size_t(first - begin) * size;
      if (t.type == e.piece.type) std::memcpy(at, bytes.data(), bytes.size());
      else saturated += convert_elements(t.type, bytes, e.piece.type, at);
    }
    if (saturated > 0 && !options_.saturate)
      beyond_.push_back("'" + e.name + "' has " + std::to_string(saturated) + " of " + std::to_string(end - begin) +
                        " numbers beyond the range of " + name_of(e.piece.type) +
                        "; load_options{.saturate = true} takes its largest number for them");
    report_.saturated += saturated;
    answers_.try_emplace(e.name);
    loaded_[e.name] = &e.piece;
    report_.tensors += 1;
    report_.bytes += (end - begin) * std::int64_t(in_file);
    report_.converted += t.type != e.piece.type;
  }
  std::span<std::byte const> answer_of(std::string const& name) const {
    auto const found = answers_.find(name);
    if (found == answers_.end())
      throw std::invalid_argument("load(f) of a part asks for '" + name + "', which its save(f) does not give");
    return found->second;
  }
  /// Another byte is no bool in C++.
  static void require_bools(std::string const& name, std::string const& path, std::span<std::byte const> bytes) {
    for (std::byte const x : bytes)
      if (int(x) > 1)
        throw data_error(path, "tensor '" + name + "'", "a byte of a BOOL", std::to_string(int(x)), "0 or 1");
  }
  void check_once(saved_run::run const& r) {
    if (checked_.insert(r.at).second) r.file->check(*r.at);
  }

  std::string const& path_;
  load_options const& options_;
  std::vector<named_part> const& parts_;
  int rank_, ranks_;
  std::string in_model_;
  std::vector<run_entry> entries_;
  std::unique_ptr<saved_run> from_;
  std::vector<saved_summary> summaries_;
  std::unordered_map<std::string, std::span<std::byte const>> answers_;
  std::unordered_map<std::string, run_piece const*> loaded_;
  std::deque<std::vector<std::byte>> copies_;
  std::set<tensor_info const*> checked_;
  std::vector<std::string> beyond_;  // what saturates and was not asked to
  std::vector<run_part*> taken_;
  load_report report_;
};

}  // namespace descent::detail
