// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/mapped_file.hpp>
#include <descent/data/source.hpp>
#include <descent/data/detail/file_records.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace descent {

/// A source that reads a token file of llm.c: a header of 256 std::int32_t, then the tokens of a text, little endian.
/// The header begins with 20240520, 1 and the number of tokens if they are std::uint16_t (GPT-2), or with 20240801, 7
/// and that number if they are std::uint32_t (Llama 3). Record i has `length` tokens from i * stride on, and as targets
/// those that follow each of them. Tokens at the end that make no whole record are left out.
class token_file {
 public:
  using fields_type = descent::fields<field<"tokens", std::int32_t>, field<"targets", std::int32_t>>;  ///< two rows

  /// Takes a path or contents. `length`: tokens per record. `stride`: tokens from one record to the next, -1 for
  /// `length`. Throws std::runtime_error if the file cannot be opened, data_error if it is no token file or has not
  /// exactly the tokens that its header announces, and std::invalid_argument if length or stride is not at least 1.
  token_file(file_bytes file, std::int64_t length, std::int64_t stride = -1)
      : file_(std::move(file)), fields_({length}, {length}), length_(length), stride_(stride == -1 ? length : stride) {
    detail::require(stride_ >= 1, "token_file", "stride", "-1 or at least 1", stride);
    std::int64_t const magic = word(0), format = word(1);
    detail::require_at(magic == 20240520 || magic == 20240801, path(), 0, "the first number", std::to_string(magic),
                       "20240520 or 20240801");
    token_bytes_ = magic == 20240520 ? 2 : 4;
    std::int64_t const wanted_format = token_bytes_ == 2 ? 1 : 7;
    detail::require_at(format == wanted_format, path(), 4, "the version", std::to_string(format),
                       std::to_string(wanted_format));
    tokens_ = word(2);
    detail::require_at(tokens_ >= 0, path(), 8, "the number of tokens", std::to_string(tokens_), "at least 0");
    file_.bytes(0, header_bytes);
    std::int64_t const wanted = tokens_ * token_bytes_, rest = file_.size() - header_bytes;
    detail::require_at(rest == wanted, path(), header_bytes, "the number of bytes from here", std::to_string(rest),
                       std::to_string(wanted));
  }

  fields_type const& fields() const { return fields_; }  ///< "tokens" and "targets"
  std::int64_t size() const { return tokens_ <= length_ ? 0 : (tokens_ - 1 - length_) / stride_ + 1; }  ///< of records
  std::int64_t tokens() const { return tokens_; }  ///< the number of tokens in the file
  std::string const& path() const { return file_.path(); }  ///< of the file
  /// Writes record i. Throws std::out_of_range if there is none, and data_error if a token is not below 2^31.
  void read(std::int64_t i, record<fields_type> const& out, record_random&) const {
    detail::require_index(path(), "the record", i, size());
    std::int64_t const offset = header_bytes + i * stride_ * token_bytes_;
    if (token_bytes_ == 2) copy<std::uint16_t>(offset, out);
    else copy<std::uint32_t>(offset, out);
  }

 private:
  static constexpr std::int64_t header_bytes = 256 * 4;

  std::int32_t word(std::int64_t i) const {
    return detail::integer_at<std::int32_t>(file_, 4 * i, std::endian::little);
  }
  template <class Token> void copy(std::int64_t offset, record<fields_type> const& out) const {
    auto const n = std::size_t(length_);
    std::byte const* const from = file_.bytes().data() + offset;
    auto const token = [&](std::size_t k) {
      Token x;
      detail::copy_file_elements(from + k * sizeof x, &x, 1, std::endian::native != std::endian::little);
      return std::int32_t(x);
    };
    std::int32_t* const tokens = out.get<"tokens">().data();
    std::int32_t* const targets = out.get<"targets">().data();
    std::int32_t all = tokens[0] = token(0);
    for (std::size_t k = 1; k < n; ++k) all |= tokens[k] = token(k);
    std::memcpy(targets, tokens + 1, (n - 1) * sizeof *tokens);
    all |= targets[n - 1] = token(n);
    if (all >= 0) return;
    std::size_t k = 0;
    while (token(k) >= 0) ++k;
    throw data_error(path(), "offset " + std::to_string(offset + std::int64_t(k * sizeof(Token))), "the token",
                     std::to_string(std::uint32_t(token(k))), "below 2^31");
  }

  file_bytes file_;
  fields_type fields_;
  std::int64_t length_, stride_, tokens_ = 0, token_bytes_ = 0;
};

}  // namespace descent
