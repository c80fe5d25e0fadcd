// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/io/detail/writer.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

/// A save of all ranks: what they must have in common, and how it becomes valid on all of them or none.
namespace descent::detail {

/// The hash of a piece and what it is called. Waits for copies from a device.
inline std::uint64_t print_of(run_entry const& e) {
  xxh3 hash;
  std::string text = e.name + shape_text(e.piece.shape) + name_of(e.piece.type);
  hash.add(text);
  each_block(e.piece, *e.memory, run_stream::half, [&](std::span<std::byte const> block) { hash.add(block); });
  return hash.value();
}
/// What must be the same on all ranks, because rank 0 writes it for all: texts, names, and all pieces but those that
/// ranks have parts of, or that an optimizer of all ranks keeps equal.
struct common_prints {
  std::vector<std::string> names;
  std::string hashes;  // hash_digits for each name

  common_prints() = default;
  explicit common_prints(run_image const& image) {
    for (auto const& [key, text] : image.texts)
      if (!key.ends_with("fingerprint")) add(key, xxh3().add(key).add(text));  // follows from the others
    for (auto const& e : image.entries) {
      std::string const name = e.of->prefix + e.piece.name;
      if (e.of->each_rank) add(name, xxh3().add(name));
      else if (!e.piece.divided && (e.of->part->ranks() == 1 || e.piece.own))
        names.push_back(name), hashes += hash_text(print_of(e));
    }
  }
  /// Throws, on all ranks, unless all have the same hashes, which come behind `before` characters.
  void require_same(std::vector<std::string> const& of_ranks, std::size_t before) const {
    for (std::size_t r = 1; r < of_ranks.size(); ++r) {
      std::string_view const first = std::string_view(of_ranks[0]).substr(before);
      std::string_view const other = std::string_view(of_ranks[r]).substr(before);
      if (first == other) continue;
      std::string const who = "save_file: ranks 0 and " + std::to_string(r) + " have ";
      if (first.size() != other.size()) throw std::invalid_argument(who + "different parts");
      std::size_t i = 0;
      while (first[i] == other[i]) ++i;
      throw std::invalid_argument(who + "different '" + names.at(i / hash_digits) +
                                  "', of which a file keeps one for all ranks: give all ranks the same, or save the "
                                  "part of each as each_rank(part)");
    }
  }

 private:
  void add(std::string const& name, xxh3 const& hash) { names.push_back(name), hashes += hash_text(hash.value()); }
};

/// Finds what is to be saved, on all ranks.
inline std::pair<run_image, run_files> prepare_save(job_ranks const& job, std::string const& path,
                                                    std::vector<named_part> const& parts, text_map const& texts) {
  std::optional<run_image> image;
  std::vector<std::string> tags;
  std::error_code later;  // writing says what is wrong
  auto const target = behind_links(path, later);
  auto const prepare = [&] {
    common_prints prints;
    tags = job.meet([&] {
      std::error_code none;
      if (std::filesystem::is_directory(path, none))  // before parts are written beside it
        throw std::runtime_error(path + ": cannot be written: " + system_message(EISDIR));
      image.emplace(parts, job.rank(), job.ranks());
      for (auto const& [key, text] : texts) image->texts[key] = text;
      if (auto const place = job.place_in_model(); !place.empty()) image->texts["model_rank"] = place;
      if (job.ranks() > 1) prints = common_prints(*image);
      return random_tag() + hash_text(hash_of(target.filename().string())) + prints.hashes;
    });
    for (std::size_t r = 1; r < tags.size(); ++r)
      if (tags[r].substr(hash_digits, hash_digits) != tags[0].substr(hash_digits, hash_digits))
        throw std::invalid_argument("save_file: ranks 0 and " + std::to_string(r) +
                                    " save to files of different names, this one to '" + target.filename().string() +
                                    "': all ranks give the same path");
    prints.require_same(tags, 2 * hash_digits);
    std::error_code none;
    return std::filesystem::absolute(target, none).lexically_normal().string();
  };
  auto const paths = job.meet_in_model(prepare);
  for (std::size_t r = 0; r < paths.size(); ++r)
    for (std::size_t before = 0; before < r; ++before)
      if (paths[before] == paths[r])
        throw std::invalid_argument("save_file: ranks " + std::to_string(before) + " and " + std::to_string(r) +
                                    " of a model save to one path, " + paths[r] + ": each has a file of its own");
  return {std::move(*image), {target, tags[0].substr(0, hash_digits), job.rank(), job.ranks()}};
}

/// Waits until all ranks have done their `first`, which is write_first(), then makes the save valid.
inline void finish_save(job_ranks const& job, run_files const& files, run_image const& image,
                        std::function<std::string()> const& first) {
  auto const undo = [&] {
    if (files.rank == 0 && image.divided()) files.remove_parts();
  };
  auto const hashes = job.meet_after(first, undo);
  if (!image.divided()) return;
  job.meet_after(
      [&] {
        if (files.rank == 0) files.write_main(image, hashes);
        return std::string();
      },
      undo);
}

inline void save_run(std::string const& path, std::vector<named_part> const& parts, text_map const& texts = {}) {
  job_ranks const job(parts);
  auto const prepared = prepare_save(job, path, parts, texts);
  run_image const& image = prepared.first;
  run_files const& files = prepared.second;
  finish_save(job, files, image, [&] { return files.write_first(image); });
}

}  // namespace descent::detail
