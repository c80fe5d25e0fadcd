// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/io/detail/folder.hpp>
#include <descent/io/detail/job_ranks.hpp>
#include <descent/io/detail/texts.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

/// How the parts of a run become a file, or one file for each rank and a manifest.
namespace descent::detail {

/// A piece with its name in the file, and whose memory it is in.
struct run_entry {
  std::string name;
  run_piece piece;
  run_memory* memory;
  named_part const* of;
};

inline std::vector<run_entry> entries_of(std::vector<named_part> const& parts, int rank, int ranks) {
  std::vector<run_entry> all;
  for (auto const& p : parts)
    for (auto& piece : p.part->pieces()) {
      std::string name = p.prefix_on(rank) + piece.name;
      if (p.each_rank) piece.divided = ranks > 1;
      all.push_back({std::move(name), std::move(piece), &p.part->memory(), &p});
    }
  std::vector<std::string> names;
  for (auto const& e : all) names.push_back(e.name);
  std::ranges::sort(names);
  if (auto const twice = std::ranges::adjacent_find(names); twice != names.end())
    throw std::invalid_argument("two parts have the name '" + *twice +
                                "': give one a prefix with named(\"...\", part)");
  return all;
}

/// Writes the bytes of entries in the order of the file. The next bytes are copied from a device while the last ones
/// are written.
class run_stream {
 public:
  static inline std::size_t half = std::size_t{32} << 20;  // bytes of each of the two copies; tests take fewer

  explicit run_stream(safetensors_writer& to) : to_(to) {}

  void add(run_entry const& e) {
    auto const* const data = static_cast<std::byte const*>(e.piece.data);
    if (e.piece.own || e.memory->on_host()) {
      flush();
      return to_.write({data, e.piece.bytes()});
    }
    for (std::size_t done = 0; done < e.piece.bytes();) {
      if (memory_ != e.memory || used_ == half) turn(e.memory);
      std::size_t const n = std::min(half - used_, e.piece.bytes() - done);
      memory_->copy(now() + used_, data + done, n);
      used_ += n, done += n;
    }
  }
  /// Writes what was copied.
  void flush() {
    if (used_ > 0) turn(memory_);
    write_last();
  }

 private:
  std::byte* now() const { return staging_.get() + which_ * half; }
  /// Goes on with the other half of the staging memory.
  void turn(run_memory* memory) {
    if (memory_ != memory) {
      if (used_ > 0) turn(memory_);
      write_last();
      memory_ = memory, staging_ = memory->staging(2 * half);
    }
    auto copied = memory_->mark();
    write_last();
    last_ = {now(), used_}, last_copied_ = std::move(copied);
    which_ = 1 - which_, used_ = 0;
  }
  void write_last() {
    if (last_.empty()) return;
    last_copied_();
    to_.write(std::exchange(last_, {}));
  }

  safetensors_writer& to_;
  run_memory* memory_ = nullptr;
  staging_memory staging_;
  std::size_t which_ = 0, used_ = 0;
  std::span<std::byte const> last_;
  sole_function<> last_copied_;
};

/// What a save writes, found before anything is written.
struct run_image {
  std::vector<run_entry> entries;
  text_map texts, own_texts;  // the second ones are in the part of this rank

  run_image(std::vector<named_part> const& parts, int rank, int ranks) : entries(entries_of(parts, rank, ranks)) {
    texts["library"] = version;
    for (auto const& p : parts) {
      if (p.each_rank) texts["each_rank"] = std::to_string(ranks);
      auto const* const s = p.part->summary();
      if (s) add_summary(p.each_rank && ranks > 1 ? own_texts : texts, p.prefix_on(rank), *s);
    }
  }
  bool divided() const {
    return std::ranges::any_of(entries, [](run_entry const& e) { return e.piece.divided; });
  }
};

/// Writes those entries of which each rank has parts, or the others. Returns the hash of the file's header.
inline std::string write_entries(std::string const& path, run_image const& image, bool divided, text_map texts) {
  std::vector<run_entry const*> chosen;
  std::vector<tensor_info> tensors;
  std::map<std::string, tensor_range> ranges;
  for (auto const& e : image.entries) {
    if (e.piece.divided != divided) continue;
    chosen.push_back(&e);
    auto const shape = divided ? std::vector{e.piece.count} : e.piece.shape;
    tensors.push_back({.name = e.name, .type = e.piece.type, .shape = shape});
    if (divided) ranges[e.name] = {e.piece.begin, e.piece.shape};
  }
  if (divided) texts["ranges"] = text_of_ranges(ranges);
  safetensors_writer to(path, tensors, texts);
  run_stream stream(to);
  for (std::size_t const i : to.order()) stream.add(*chosen[i]);
  stream.flush();
  to.commit();
  return to.header_hash();
}

/// The manifest of a part file, which is called MANIFEST.<16 hex digits>.<rank>-of-<ranks>, or of what a rank has left
/// that was killed while it wrote one; empty for other names.
inline std::string manifest_of(std::string const& name) {
  std::string_view left = name;
  auto const drop = [&](char const* characters, std::size_t least, std::size_t most) {
    std::size_t const n = left.size() - (left.find_last_not_of(characters) + 1);
    left.remove_suffix(n);
    return n >= least && n <= most;
  };
  auto const drop_text = [&](std::string_view text) {
    bool const is = left.ends_with(text);
    if (is) left.remove_suffix(text.size());
    return is;
  };
  if (drop_text(".tmp") &&
      !(drop("0123456789abcdef", 16, 16) && drop_text("-") && drop("0123456789", 1, 10) && drop_text(".")))
    return "";
  bool const is = drop("0123456789", 1, 9) && drop_text("-of-") && drop("0123456789", 1, 9) && drop_text(".") &&
                  drop("0123456789abcdef", 16, 16) && drop_text(".");
  return is ? std::string(left) : std::string();
}
/// Removes part files that the manifest does not name: those of the run it replaced, and of saves that did not end.
inline void remove_other_parts(std::filesystem::path const& manifest, std::vector<part_file> const& parts) {
  std::error_code ignored;  // what is left is removed by the next save
  auto const folder = manifest.has_parent_path() ? manifest.parent_path() : std::filesystem::path(".");
  for (auto const& name : names_in(folder.string())) {
    bool const named = std::ranges::any_of(parts, [&](part_file const& p) { return p.name == name; });
    if (!named && manifest_of(name) == manifest.filename().string()) std::filesystem::remove(folder / name, ignored);
  }
}

inline std::string random_tag() {
  std::random_device random;
  return hash_text(std::uint64_t(random()) << 32 | random());
}

/// The files of one save: a part of each rank, if they share the state, and what rank 0 writes.
struct run_files {
  std::filesystem::path path;
  std::string tag;  // of this save
  int rank, ranks;

  std::string part_name(int of) const {
    return path.filename().string() + "." + tag + "." + std::to_string(of) + "-of-" + std::to_string(ranks);
  }
  /// Writes what this rank has of divided tensors. Returns the hash of the header.
  std::string write_part(run_image const& image) const {
    text_map texts = image.own_texts;
    texts["library"] = version;
    return write_entries((path.parent_path() / part_name(rank)).string(), image, true, texts);
  }
  /// Writes what comes first on this rank: its part, or all if the state is not divided.
  std::string write_first(run_image const& image) const {
    if (image.divided()) return write_part(image);
    if (rank == 0) write_main(image, {});
    return "";
  }
  /// Removes the parts of a save that has failed, unless the file names them already. Only on rank 0: another one that
  /// has waited in vain could remove what rank 0 is about to name.
  void remove_parts() const {
    std::error_code ignored;  // what is left is removed by the next save
    try {
      if (std::filesystem::exists(path, ignored) &&
          text_in(safetensors_file(path.string()), "parts").find(tag) != std::string::npos)
        return;
    } catch (std::runtime_error const&) {
      return;
    }
    for (int r = 0; r < ranks; ++r) std::filesystem::remove(path.parent_path() / part_name(r), ignored);
  }
  /// Writes what is not divided, which makes the save valid. `hashes` are those of all parts, if there are any.
  void write_main(run_image const& image, std::vector<std::string> const& hashes) const {
    std::vector<part_file> parts;
    for (std::size_t r = 0; r < hashes.size(); ++r) {
      parts.push_back({part_name(int(r)), hashes[r]});
      require_there(parts.back(), int(r));
    }
    text_map texts = image.texts;
    if (!parts.empty()) texts["parts"] = text_of_parts(parts);
    write_entries(path.string(), image, false, texts);
    remove_other_parts(path, parts);
  }

 private:
  void require_there(part_file const& p, int of) const {
    try {
      safetensors_file const there((path.parent_path() / p.name).string());
    } catch (std::runtime_error const& e) {
      throw std::runtime_error(std::string(e.what()) + "; rank " + std::to_string(of) +
                               " has written it: all ranks must save to the same folder");
    }
  }
};

}  // namespace descent::detail
