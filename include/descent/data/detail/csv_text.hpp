// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/data/mapped_file.hpp>
#include <descent/data/detail/file_records.hpp>
#include <descent/core/detail/floating_point_mode.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace descent {

/// How a CSV file is written.
struct csv_options {
  char separator = ',';  ///< between cells; no quote, CR or LF
  bool has_header = true;  ///< whether the first line names the columns; otherwise they are named "0", "1", ...
  char comment = 0;  ///< lines that begin with it are ignored; 0: there are none
  char decimal = '.';  ///< '.' or ',', which needs another separator, such as ';'
  std::optional<double> missing = {};  ///< the number in cells that are empty, NA, N/A, #N/A, null, NULL or ?; without
  ///< one, they are refused when they are read as numbers
};

}  // namespace descent

namespace descent::detail {

/// What the cells of a CSV file can be read as: float, double and the integer types.
template <class T>
concept csv_number = (std::integral<T> || std::same_as<T, float> || std::same_as<T, double>) &&
                     requires(char const* text, T& x) { std::from_chars(text, text, x); };

/// Whether a decimal number beyond the range of its type is close to 0, rather than large.
inline bool is_tiny(std::string_view number) {
  auto const e = std::min(number.find_first_of("eE"), number.size());
  auto const digits = number.substr(0, e);
  auto const point = std::int64_t(std::min(digits.find('.'), digits.size()));
  auto const first = std::int64_t(std::min(digits.find_first_not_of("-0."), digits.size()));
  auto power = number.substr(std::min(e + 1, number.size()));
  if (power.starts_with('+')) power.remove_prefix(1);
  std::int64_t exponent = 0;
  if (std::from_chars(power.data(), power.data() + power.size(), exponent).ec == std::errc::result_out_of_range)
    return power.starts_with('-');
  return exponent < first - point;
}
/// Reads a number with spaces around it. Whether there is one, and T can hold it.
template <csv_number T> bool parse_number(std::string_view text, T& x) {
  auto const first = text.find_first_not_of(" \t");
  if (first == text.npos) return false;
  text = text.substr(first, text.find_last_not_of(" \t") + 1 - first);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  floating_point_scope const to_nearest;  // from_chars rounds as the thread does
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (end != text.data() + text.size()) return false;
  if constexpr (std::is_floating_point_v<T>)
    if (error == std::errc::result_out_of_range && is_tiny(text)) {
      x = text.starts_with('-') ? -T(0) : T(0);
      return true;
    }
  return error == std::errc();
}

/// A cell: its text without the quotes around it, whether quotes in it are doubled, and where the separator, the
/// newline or the end of the file behind it is.
struct csv_cell {
  std::string_view text;
  bool doubled;
  std::size_t end;
};

/// The rows of a CSV file: where each begins. All rows have as many cells as the first.
class csv_rows {
 public:
  /// Cells from one on. next() may be called as long as the file has cells.
  struct cursor {
    csv_rows const& rows;
    std::size_t at;
    csv_cell next() {
      csv_cell const cell = rows.cell(at);
      at = cell.end + 1;
      return cell;
    }
  };

  csv_rows(file_bytes file, csv_options const& options) : file_(std::move(file)), options_(options) {
    char const separator = options.separator;
    require(options.decimal == '.' || options.decimal == ',', "csv_file", "decimal", "'.' or ','",
            int(options.decimal));
    require(options.decimal != separator, "csv_file", "decimal", "another character than separator",
            int(options.decimal));
    require(
        options.comment != '"' && options.comment != '\n' && options.comment != '\r' && options.comment != separator,
        "csv_file", "comment", "0, or a character other than separator, quote, CR and LF", int(options.comment));
    require(separator != '"' && separator != '\n' && separator != '\r', "csv_file", "separator", "no quote, CR or LF",
            int(separator));
    all_ = {reinterpret_cast<char const*>(file_.bytes().data()), file_.bytes().size()};
    all_ = all_.substr(0, all_.find_last_not_of("\r\n") + 1);
    std::size_t const begin = all_.starts_with("\xef\xbb\xbf") ? 3 : 0;
    if (begin == all_.size()) throw data_error(path(), "line 1", "the file", "empty", "one with columns");
    for (cursor at{*this, begin}; at.at < all_.size();) {
      if (options.comment != 0 && all_[at.at] == options.comment) {
        at.at = end_of_line(at.at) + 1;
        continue;
      }
      starts_.push_back(at.at);
      std::size_t cells = 0;
      for (bool more = true; more; ++cells) {
        csv_cell const cell = at.next();
        if (starts_.size() == 1) names_.push_back(options.has_header ? text(cell) : std::to_string(cells));
        more = cell.end < all_.size() && all_[cell.end] == options_.separator;
      }
      if (cells != names_.size())
        throw data_error(path(), line(starts_.back()), "the number of cells", std::to_string(cells),
                         std::to_string(names_.size()));
    }
    if (names_.empty()) throw data_error(path(), "line 1", "the file", "nothing but comments", "one with columns");
    if (options.has_header) starts_.erase(starts_.begin());
  }
  csv_rows(csv_rows const&) = delete;

  std::vector<std::string> const& names() const { return names_; }
  std::int64_t size() const { return std::int64_t(starts_.size()); }
  std::string const& path() const { return file_.path(); }

  std::int64_t column(std::string_view name) const {
    auto const at = std::ranges::find(names_, name);
    auto const count = std::count(at, names_.end(), name);
    if (count == 1) return at - names_.begin();
    std::string known;
    for (std::size_t i = 0; i < names_.size() && i < 8; ++i) known += (i ? ", " : "") + quoted(names_[i]);
    throw data_error(path(), "line 1", "the number of columns named " + quoted(name), std::to_string(count),
                     "1; columns are " + known + (names_.size() > 8 ? ", ..." : ""));
  }
  /// `count` cells of a row from this column on.
  cursor from(std::int64_t row, std::int64_t column, std::int64_t count) const {
    auto const columns = std::int64_t(names_.size());
    require_index(path(), "the row", row, size());
    require_index(path(), "the column", column, columns + (count == 0));
    require_index(path(), "the number of columns", count, columns - column + 1);
    cursor at{*this, starts_[std::size_t(row)]};
    for (std::int64_t i = 0; i < column && count > 0; ++i) at.next();
    return at;
  }
  /// Reads the number in a cell with the options of the file. Whether there is one.
  template <csv_number T> bool number(std::string_view text, T& x) const {
    if (options_.missing && is_missing(text)) {
      double const y = *options_.missing;
      if constexpr (std::is_integral_v<T>) {
        double const limit = 2.0 * double(T(1) << (std::numeric_limits<T>::digits - 1));  // the first that is too large
        if (!(y >= double(std::numeric_limits<T>::min()) && y < limit && y == std::floor(y))) return false;
      }
      return x = T(y), true;
    }
    if (options_.decimal == '.') return parse_number(text, x);
    if (text.find('.') != text.npos) return false;
    std::string copy(text);
    for (char& c : copy)
      if (c == ',') c = '.';
    return parse_number(copy, x);
  }
  std::string text(csv_cell const& cell) const {
    std::string copy(cell.text);
    if (cell.doubled)
      for (std::size_t at = 0; (at = copy.find("\"\"", at)) != copy.npos; ++at) copy.erase(at, 1);
    return copy;
  }
  template <class T>
  [[noreturn]] void refuse_number(std::int64_t row, std::int64_t column, std::string const& is) const {
    std::string kind = std::is_same_v<T, float> ? "float" : "double";
    if constexpr (std::is_integral_v<T>)
      kind = std::to_string(std::numeric_limits<T>::min()) + " to " + std::to_string(std::numeric_limits<T>::max());
    throw data_error(path(), line(starts_[std::size_t(row)]), "column " + quoted(names_[std::size_t(column)]),
                     quoted(is),
                     (std::is_integral_v<T> ? "an integer in the range of " : "a number in the range of ") + kind);
  }

 private:
  csv_cell cell(std::size_t at) const {
    if (at == all_.size() || all_[at] != '"') {
      std::size_t end = at;
      while (end < all_.size() && all_[end] != options_.separator && !ends_line(end)) ++end;
      return {all_.substr(at, end - at), false, last_of_newline(end)};
    }
    bool doubled = false;
    std::size_t close = all_.find('"', at + 1);
    for (; close != all_.npos && all_.substr(close + 1, 1) == "\""; close = all_.find('"', close + 2)) doubled = true;
    if (close == all_.npos) throw data_error(path(), line(at), "a quoted cell", "without an end", "closed by a quote");
    std::size_t const end = close + 1;
    if (end < all_.size() && all_[end] != options_.separator && !ends_line(end))
      throw data_error(path(), line(close), "the text after a quoted cell", quoted(all_.substr(end, 1)),
                       "a separator or a newline");
    return {all_.substr(at + 1, close - at - 1), doubled, last_of_newline(end)};
  }
  /// Lines end with LF, CR and LF, or CR alone.
  bool ends_line(std::size_t at) const { return all_[at] == '\n' || all_[at] == '\r'; }
  std::size_t last_of_newline(std::size_t at) const { return at + (all_.substr(at, 2) == "\r\n"); }
  std::size_t end_of_line(std::size_t at) const {
    return last_of_newline(std::min(all_.find_first_of("\r\n", at), all_.size()));
  }
  static bool is_missing(std::string_view text) {
    auto const first = text.find_first_not_of(" \t");
    if (first == text.npos) return true;
    text = text.substr(first, text.find_last_not_of(" \t") + 1 - first);
    for (std::string_view const name : {"NA", "N/A", "#N/A", "null", "NULL", "?"})
      if (text == name) return true;
    return false;
  }
  /// The line with this character, from 1.
  std::string line(std::size_t at) const {
    std::int64_t n = 1;
    for (std::size_t i = 0; i < at; ++i) n += ends_line(i) && last_of_newline(i) == i;
    return "line " + std::to_string(n);
  }
  static std::string quoted(std::string_view text) {
    return '"' + std::string(text.substr(0, 40)) + (text.size() > 40 ? "...\"" : "\"");
  }

  file_bytes file_;
  csv_options options_;
  std::string_view all_;
  std::vector<std::string> names_;
  std::vector<std::size_t> starts_;
};

}  // namespace descent::detail
