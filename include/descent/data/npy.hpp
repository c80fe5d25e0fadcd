// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/precision.hpp>
#include <descent/data/mapped_file.hpp>
#include <descent/data/source.hpp>
#include <descent/data/detail/file_records.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace descent {

namespace detail {

/// The header of an NPY file: a dictionary in Python's notation, with three keys in any order.
class npy_header {
 public:
  explicit npy_header(file_bytes const& file) : path_(file.path()) {
    auto const head = file.bytes(0, 8);
    require_at(std::memcmp(head.data(), "\x93NUMPY", 6) == 0, path_, 0, "the beginning of the file", "something else",
               "that of an NPY file");
    auto const major = std::to_integer<int>(head[6]), minor = std::to_integer<int>(head[7]);
    require_at(major >= 1 && major <= 3 && minor == 0, path_, 6, "the version of the format",
               std::to_string(major) + "." + std::to_string(minor), "1.0, 2.0 or 3.0");
    begin_ = major == 1 ? 10 : 12;
    std::int64_t const length = major == 1 ? std::int64_t(integer_at<std::uint16_t>(file, 8, std::endian::little))
                                           : std::int64_t(integer_at<std::uint32_t>(file, 8, std::endian::little));
    auto const text = file.bytes(begin_, length);
    text_ = {reinterpret_cast<char const*>(text.data()), text.size()};
    data = begin_ + length;
    parse();
  }

  std::string descr;  ///< the type of the elements: order of bytes, kind, bytes
  std::int64_t descr_offset = 0;  ///< where it is in the file
  bool fortran_order = false;  ///< whether the first index runs fastest
  std::vector<std::int64_t> shape;  ///< the extents
  std::int64_t data = 0;  ///< offset of the elements

 private:
  void parse() {
    unsigned seen = 0;
    expect('{');
    while (!taken('}')) {
      std::int64_t const offset = here();
      std::string const key = string();
      unsigned const bit = key == "descr" ? 1 : key == "fortran_order" ? 2 : key == "shape" ? 4 : 0;
      require_at(bit != 0 && !(seen & bit), path_, offset, "a key of the header", "'" + key + "'",
                 "one of 'descr', 'fortran_order' and 'shape', each once");
      seen |= bit;
      expect(':');
      if (bit == 1) descr_offset = here(), descr = string();
      else if (bit == 2) fortran_order = boolean();
      else tuple();
      if (!taken(',')) {
        expect('}');
        break;
      }
    }
    require_at(seen == 7, path_, begin_, "the header", "incomplete", "one with 'descr', 'fortran_order' and 'shape'");
    require_at(next() == 0, path_, here(), "the text after the header", "'" + rest() + "'", "spaces");
  }
  std::string string() {
    char const quote = next();
    if (quote != '\'' && quote != '"') fail("a string");
    auto const end = text_.find(quote, at_ + 1);
    auto const text = text_.substr(at_ + 1, end - at_ - 1);
    if (end == text_.npos || text.find('\\') != text.npos) fail("a string that ends and has no backslash");
    at_ = end + 1;
    return std::string(text);
  }
  bool boolean() {
    next();
    for (bool const value : {false, true}) {
      std::string_view const name = value ? "True" : "False";
      if (!text_.substr(at_).starts_with(name)) continue;
      at_ += name.size();
      return value;
    }
    fail("True or False");
  }
  void tuple() {
    expect('(');
    for (bool comma = true; !taken(')'); comma = taken(',')) {
      if (!comma) fail("',' or ')'");
      shape.push_back(integer());
      if (shape.size() == 1 && next() != ',') fail("','");  // one number in parentheses is no tuple
    }
  }
  std::int64_t integer() {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    if (!is_digit(next())) fail("an integer of at least 0");
    std::int64_t x = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
      std::int64_t const digit = text_[at_] - '0';
      if (x > (most - digit) / 10) fail("an extent below 2^63");
      x = x * 10 + digit;
    }
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 marks long integers
    return x;
  }

  /// The next character that is no space, or 0 at the end.
  char next() {
    at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool taken(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!taken(c)) fail(std::string{'\'', c, '\''});
  }
  std::int64_t here() {
    next();
    return begin_ + std::int64_t(at_);
  }
  std::string rest() const { return std::string(text_.substr(at_, 20)); }
  [[noreturn]] void fail(std::string const& expected) {
    next();
    throw data_error(path_, "offset " + std::to_string(here()), "the header",
                     at_ < text_.size() ? "'" + rest() + "'" : "at its end", expected);
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  std::string const& path_;
  std::string_view text_;
  std::int64_t begin_ = 0;
  std::size_t at_ = 0;
};

/// Whether NPY files of this type can be read.
template <class T>
inline constexpr bool is_npy_type = std::is_same_v<T, half> || (std::is_arithmetic_v<T> && sizeof(T) <= 8);
/// Kind and bytes of such a type in NPY files, as "f4".
template <class T> std::string npy_type() {
  bool const is_float = std::is_same_v<T, half> || std::is_floating_point_v<T>;
  char const kind = std::is_same_v<T, bool> ? 'b' : is_float ? 'f' : std::is_unsigned_v<T> ? 'u' : 'i';
  return kind + std::to_string(sizeof(T));
}

}  // namespace detail

/// A source that reads an NPY file, as numpy.save writes it: versions 1.0, 2.0 and 3.0. The first axis counts the
/// records, the others are the shape of the field. Its elements are the file's: bool, an integer, half, float or
/// double, in either byte order. The array must have an axis, and C order if it has several.
template <class Field> class npy_file : public detail::file_records<Field> {
  using element = typename Field::element;
  static_assert(detail::is_npy_type<element>, "npy_file: elements must be bool, an integer, half, float or double");

 public:
  /// Takes a path or contents. Throws std::runtime_error if the file cannot be opened, and data_error if it is no NPY
  /// file of this type or has not exactly the bytes that its header announces.
  explicit npy_file(file_bytes const& file) : npy_file(file, checked(file)) {}

 private:
  npy_file(file_bytes const& file, detail::npy_header const& head)
      : detail::file_records<Field>(file, head.data, head.shape[0],
                                    detail::record_shape(file.path(), head.shape, [](std::size_t) { return 8; }),
                                    head.descr[0] == other_order) {}

  static constexpr char other_order = std::endian::native == std::endian::little ? '>' : '<';

  static detail::npy_header checked(file_bytes const& file) {
    detail::npy_header head(file);
    std::string const type = detail::npy_type<element>();
    std::string const& is = head.descr;
    bool const has_order = is[0] == '<' || is[0] == '>' || (is[0] == '|' && sizeof(element) == 1);
    detail::require_at(has_order && is.substr(1) == type, file.path(), head.descr_offset, "the element type",
                       "'" + is + "'", sizeof(element) == 1 ? "'|" + type + "'" : "'<" + type + "' or '>" + type + "'");
    detail::require_at(!head.shape.empty(), file.path(), 8, "the number of axes", "0", "at least 1");
    detail::require_at(!head.fortran_order || head.shape.size() == 1, file.path(), 8, "fortran_order", "True",
                       "False for an array with several axes");
    return head;
  }
};

}  // namespace descent
