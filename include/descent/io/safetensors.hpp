// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/mapped_file.hpp>
#include <descent/io/detail/safetensors_header.hpp>
#include <descent/io/replace_file.hpp>
#include <descent/core/tensor_info.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <sys/stat.h>
#include <unordered_set>
#include <utility>
#include <vector>

/// Files in the format safetensors. They are read strictly, and written with hashes in their `__metadata__`, under the
/// keys `descent`, `xxh3_header` and `xxh3`, so that a damaged file is noticed. Needs nlohmann-json and xxHash.
namespace descent {

/// A safetensors file, mapped into memory. The constructor checks all but the data: length, JSON, names, types, shapes,
/// offsets, that the tensors fill the data without overlap or hole, and the hash of the header if it has one. A file of
/// another program is read without hashes. Tensors of a type that is not in dtype are listed as dtype::unknown; what
/// entries have besides type, shape and offsets is ignored. No one may shorten the file while it is open; see
/// mapped_file.
class safetensors_file {
 public:
  /// Throws std::runtime_error if the file cannot be opened, and data_error with what is wrong in it.
  explicit safetensors_file(std::string path) : file_(opened(std::move(path))), header_(read()) {}

  std::string const& path() const { return file_.path(); }  ///< the path passed to the constructor
  std::int64_t size() const { return std::int64_t(file_.bytes().size()); }  ///< of the file, in bytes
  /// The tensors, in the order of their data.
  std::vector<tensor_info> const& tensors() const { return header_.tensors; }
  /// The tensor with this name, or null.
  tensor_info const* find(std::string const& name) const {
    auto const name_at = [&](std::size_t i) -> std::string const& { return header_.tensors[i].name; };
    auto const at = std::ranges::lower_bound(header_.by_name, name, {}, name_at);
    return at == header_.by_name.end() || name_at(*at) != name ? nullptr : &header_.tensors[*at];
  }
  /// The elements of a tensor of this file, little-endian. Their address is a multiple of their size in a file that
  /// safetensors_writer has written, but not in every file. Valid until the safetensors_file is destroyed.
  std::span<std::byte const> bytes(tensor_info const& t) const { return file_.bytes(header_.data + t.offset, t.bytes); }
  /// The texts in `__metadata__`, without those of the three reserved keys.
  text_map const& metadata() const { return header_.metadata; }

  /// Whether the file has hashes of its header and of each tensor.
  bool hashed() const { return !header_.hash.empty(); }
  /// The hash of the header, which depends on all hashes, as 16 digits; empty if the file is not hashed.
  std::string const& header_hash() const { return header_.hash; }
  /// Reads the bytes of a tensor of this file. Throws data_error if the file has another hash for them.
  void check(tensor_info const& t) const {
    tensor_info const* const mine = find(t.name);
    if (!mine)
      throw std::invalid_argument("safetensors_file: " + path() + " has no tensor " + detail::in_quotes(t.name));
    if (!hashed()) return;
    std::uint64_t const must = header_.hashes[std::size_t(mine - header_.tensors.data())];
    if (std::uint64_t const is = detail::xxh3().add(bytes(*mine)).value(); is != must)
      throw data_error(path(), "tensor " + detail::in_quotes(t.name),
                       "the XXH3 of the " + std::to_string(mine->bytes) + " bytes from offset " +
                           std::to_string(header_.data + mine->offset),
                       detail::hash_text(is), detail::hash_text(must) + ", as the header says");
  }
  /// The same for all tensors.
  void check() const {
    for (tensor_info const& t : tensors()) check(t);
  }
  /// Throws std::runtime_error if somebody has written to the file since it was opened: its size or the time of its
  /// last change differs. A file that has replaced it at its path does not matter: this one stays readable.
  void check_unchanged() const {
    struct stat const now = about();
    if (now.st_size != then_.st_size || now.st_mtim.tv_sec != then_.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != then_.st_mtim.tv_nsec)
      throw std::runtime_error(path() + ": has changed while it was read");
  }

 private:
  /// Maps the file and keeps a descriptor of the same one, even if another file replaces it between the two calls.
  mapped_file opened(std::string path) {
    for (;;) {
      descriptor_ = detail::descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
      then_ = about();
      if (auto const test = detail::file_calls::before_mapping.load(std::memory_order_relaxed)) test();
      mapped_file file(path);  // throws if open has failed
      struct stat there;
      if (::stat(path.c_str(), &there) == 0 && there.st_dev == then_.st_dev && there.st_ino == then_.st_ino)
        return file;
    }
  }
  struct stat about() const {
    struct stat is{};
    ::fstat(descriptor_.get(), &is);
    return is;
  }
  detail::safetensors_header read() const { return detail::safetensors_reader(path(), file_.bytes()).header(); }

  detail::descriptor descriptor_;
  struct stat then_{};
  mapped_file file_;
  detail::safetensors_header header_;
};

/// Writes a safetensors file with hashes, which replaces the one at its path as replace_file does. The tensors are
/// announced, then their data is given in order().
class safetensors_writer {
 public:
  /// Takes name, type and shape of each tensor; offset and bytes are computed here. Throws std::invalid_argument,
  /// before a file is opened, for names that are not allowed or come twice, shapes with negative extents, more than 8
  /// axes or 2^63 bytes, texts that are no UTF-8, and reserved keys. Throws like replace_file.
  safetensors_writer(std::string path, std::vector<tensor_info> tensors, text_map metadata = {})
      : tensors_(std::move(tensors)), metadata_(std::move(metadata)), order_(arranged()), hashes_(tensors_.size()),
        head_(detail::safetensors_head(tensors_, metadata_, hashes_)), file_(std::move(path)) {
    file_.write(std::as_bytes(std::span(head_)));
  }

  /// The order of the data, as indices of the tensors that were announced: by decreasing element size, then in
  /// the order given.
  std::vector<std::size_t> const& order() const { return order_; }
  /// Appends to the data of the tensor that is not complete yet, in pieces of any size, which may extend into the
  /// next tensor. Throws std::logic_error if there are more bytes than announced.
  void write(std::span<std::byte const> bytes);
  /// Writes the hashes and makes the file visible. Throws std::logic_error with the tensor that is not complete.
  void commit();

  std::string const& path() const { return file_.path(); }  ///< the path passed to the constructor
  std::int64_t size() const { return file_.size(); }  ///< bytes that are written, with the header
  /// The hash of the header after commit(), as 16 digits.
  std::string header_hash() const { return head_.substr(8 + detail::hashed_begin.size(), detail::hash_digits); }

 private:
  std::vector<std::size_t> arranged();
  void check(tensor_info const& t) const;
  /// Takes the hashes of tensors that are complete, the empty ones among them.
  void close_tensors() {
    for (; at_ < tensors_.size() && in_tensor_ == tensors_[at_].bytes; ++at_, in_tensor_ = 0) {
      hashes_[at_] = hash_.value();
      hash_.restart();
    }
  }

  std::vector<tensor_info> tensors_;  ///< in the order of their data
  text_map metadata_;
  std::vector<std::size_t> order_;
  std::vector<std::uint64_t> hashes_;
  std::string head_;
  replace_file file_;
  detail::xxh3 hash_;
  std::size_t at_ = 0;  ///< the tensor whose data comes
  std::int64_t in_tensor_ = 0;  ///< bytes of it that are written
};

inline void safetensors_writer::check(tensor_info const& t) const {
  auto const refuse = [](std::string const& what) { throw std::invalid_argument("safetensors_writer: " + what); };
  if (auto const problem = detail::problem_of_name(t.name); !problem.empty())
    refuse("the name of a tensor must be " + std::string(detail::allowed_name) + ", is " + problem);
  if (t.shape.size() > detail::most_axes)
    refuse("tensor " + detail::in_quotes(t.name) + " must have at most 8 axes, has " + std::to_string(t.shape.size()));
  if (t.type == dtype::unknown)
    refuse("tensor " + detail::in_quotes(t.name) + " must have one of the types " + detail::known_type_names() +
           ", has " + detail::in_quotes(t.type_name));
  if (!detail::bytes_of_shape(t.type, t.shape))
    refuse("tensor " + detail::in_quotes(t.name) +
           " must have extents of at least 0 and less than 2^63 bytes, has shape " + detail::shape_text(t.shape));
}

inline std::vector<std::size_t> safetensors_writer::arranged() {
  if (tensors_.size() > detail::most_tensors)
    throw std::invalid_argument("safetensors_writer: there must be at most 1000000 tensors, are " +
                                std::to_string(tensors_.size()));
  std::unordered_set<std::string> names;
  for (tensor_info const& t : tensors_) {
    check(t);
    if (!names.insert(t.name).second)
      throw std::invalid_argument("safetensors_writer: tensor " + detail::in_quotes(t.name) + " comes twice");
  }
  for (auto const& [key, text] : metadata_)
    if (detail::is_reserved(key))
      throw std::invalid_argument("safetensors_writer: the key " + detail::in_quotes(key) +
                                  " of the metadata is reserved");
  std::vector<std::size_t> order(tensors_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return bytes_of(tensors_[i].type); });
  std::vector<tensor_info> ordered;
  std::int64_t end = 0;
  for (std::size_t const i : order) {
    tensor_info& t = ordered.emplace_back(std::move(tensors_[i]));
    t.offset = end;
    t.bytes = *detail::bytes_of_shape(t.type, t.shape);
    if (t.bytes > std::numeric_limits<std::int64_t>::max() - detail::most_header_bytes - 8 - end)
      throw std::invalid_argument("safetensors_writer: all tensors together must have less than 2^63 bytes");
    end += t.bytes;
  }
  tensors_ = std::move(ordered);
  return order;
}

inline void safetensors_writer::write(std::span<std::byte const> bytes) {
  constexpr std::size_t piece = 1 << 20;  // is still in the cache when it is written
  while (!bytes.empty()) {
    close_tensors();
    if (at_ == tensors_.size())
      throw std::logic_error("safetensors_writer: " + path() + " has all its data, " + std::to_string(bytes.size()) +
                             " bytes are too many");
    auto const left = std::size_t(tensors_[at_].bytes - in_tensor_);
    auto const now = bytes.first(std::min({bytes.size(), left, piece}));
    hash_.add(now);
    file_.write(now);
    in_tensor_ += std::int64_t(now.size());
    bytes = bytes.subspan(now.size());
  }
}

inline void safetensors_writer::commit() {
  close_tensors();
  if (at_ < tensors_.size())
    throw std::logic_error("safetensors_writer: " + path() + ": tensor " + detail::in_quotes(tensors_[at_].name) +
                           " has " + std::to_string(in_tensor_) + " of " + std::to_string(tensors_[at_].bytes) +
                           " bytes");
  head_ = detail::safetensors_head(tensors_, metadata_, hashes_);
  file_.write_at(0, std::as_bytes(std::span(head_)));
  file_.commit();
}

/// A tensor in host memory.
struct tensor_data {
  std::string name = {};  ///< like tensor_info's
  dtype type = dtype::f32;  ///< of the elements
  std::vector<std::int64_t> shape = {};  ///< like tensor_info's
  std::span<std::byte const> bytes = {};  ///< all elements
};

/// Writes a safetensors file with these tensors. Throws like safetensors_writer, and std::invalid_argument, before a
/// file is opened, if a tensor's bytes do not match its type and shape.
inline void save_safetensors(std::string const& path, std::vector<tensor_data> const& tensors,
                             text_map const& metadata = {}) {
  std::vector<tensor_info> infos;
  for (tensor_data const& t : tensors) {
    auto const needed = detail::bytes_of_shape(t.type, t.shape);
    if (needed && *needed != std::int64_t(t.bytes.size()))
      throw std::invalid_argument("save_safetensors: tensor " + detail::in_quotes(t.name) + ", " + name_of(t.type) +
                                  " of shape " + detail::shape_text(t.shape) + ", must have " +
                                  std::to_string(*needed) + " bytes, has " + std::to_string(t.bytes.size()));
    infos.push_back({.name = t.name, .type = t.type, .shape = t.shape});
  }
  safetensors_writer file(path, std::move(infos), metadata);
  for (std::size_t const i : file.order()) file.write(tensors[i].bytes);
  file.commit();
}

}  // namespace descent
