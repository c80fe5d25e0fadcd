// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/mapped_file.hpp>
#include <descent/data/source.hpp>
#include <descent/data/detail/csv_text.hpp>
#include <descent/data/detail/file_records.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace descent {

/// A CSV file as in RFC 4180: rows of cells, one row per line. A cell in double quotes may contain separators and
/// newlines, and quotes, which are written twice. Lines end with LF, CRLF or CR. Empty lines at the end and a UTF-8
/// byte order mark at the beginning are ignored. The constructor reads the file once and keeps where each row begins, 8
/// bytes per row; cells are read when they are asked for. Copies share all of this, and several threads may use it.
class csv_file {
 public:
  /// Takes a path or contents. Throws std::runtime_error if the file cannot be opened, data_error if it is empty, a
  /// quote does not end, text follows a quoted cell, or a row has more or fewer cells than the first, and
  /// std::invalid_argument for options that contradict each other. A file with a header alone has no rows.
  explicit csv_file(file_bytes file, csv_options options = {})
      : rows_(std::make_shared<detail::csv_rows const>(std::move(file), options)) {}

  std::vector<std::string> const& columns() const { return rows_->names(); }  ///< their names, in order
  /// The number of the column with this name. Throws data_error if no column or several have it.
  std::int64_t column(std::string_view name) const { return rows_->column(name); }
  std::int64_t size() const { return rows_->size(); }  ///< the number of rows, without the header
  std::string const& path() const { return rows_->path(); }  ///< of the file

  /// The text of a cell, without the quotes around it. Throws std::out_of_range if there is no such cell.
  std::string text(std::int64_t row, std::int64_t column) const {
    auto cells = rows_->from(row, column, 1);
    return rows_->text(cells.next());
  }
  /// The number in a cell, as std::from_chars reads it, so also inf and nan. Spaces around it and a leading + are
  /// ignored; a number too small for double is 0. Throws std::out_of_range if there is no such cell, and data_error if
  /// it is no number, or one beyond the range of double.
  double number(std::int64_t row, std::int64_t column) const {
    double x;
    numbers(row, column, std::span<double>(&x, 1));
    return x;
  }
  /// The numbers in as many cells of a row as `out` has elements, from first_column on: for float and double like
  /// number(). For an integer type, the cells must be decimal integers in its range. Throws like number().
  template <class T, std::size_t N>
  void numbers(std::int64_t row, std::int64_t first_column, std::span<T, N> out) const {
    static_assert(detail::csv_number<T>, "csv_file: numbers must be float, double or an integer type");
    auto cells = rows_->from(row, first_column, std::int64_t(out.size()));
    for (T& x : out) {
      auto const cell = cells.next();
      if (rows_->number(cell.text, x)) continue;
      rows_->refuse_number<T>(row, first_column + (&x - out.data()), rows_->text(cell));
    }
  }

 private:
  std::shared_ptr<detail::csv_rows const> rows_;
};

/// A source whose records are the numbers in consecutive columns of a CSV file, such as the coordinates behind the name
/// of an image:
///
///     ds::csv_file const faces("faces.csv");  // image,x0,y0,x1,y1,...
///     ds::csv_numbers<ds::field<"landmarks", float>> const landmarks(faces, 1);
///     std::string const image = faces.text(0, 0);
template <class Field> class csv_numbers {
  using element = typename Field::element;
  static_assert(detail::csv_number<element>, "csv_numbers: elements must be float, double or an integer type");

 public:
  using fields_type = descent::fields<Field>;  ///< one field

  /// `columns` columns from first_column on, or all from there on if it is -1: the shape is {columns}. Throws
  /// std::invalid_argument if the file has no such columns.
  explicit csv_numbers(csv_file file, std::int64_t first_column = 0, std::int64_t columns = -1)
      : csv_numbers(file, first_column, std::vector{columns == -1 ? of(file) - first_column : columns}) {}
  /// As many columns as this shape has elements.
  csv_numbers(csv_file file, std::int64_t first_column, std::vector<std::int64_t> shape)
      : file_(std::move(file)), fields_(Field(checked(file_, first_column, std::move(shape)))), first_(first_column) {
    auto const most = of(file_) - first_, n = fields_.template at<0>().size();
    detail::require(n <= most, "csv_numbers", "the number of columns", ("at most " + std::to_string(most)).c_str(), n);
  }
  /// The column with this name: one number, no extents. Throws data_error if no column or several have it.
  csv_numbers(csv_file const& file, std::string_view column)
      : csv_numbers(file, file.column(column), std::vector<std::int64_t>()) {}

  fields_type const& fields() const { return fields_; }  ///< the name, and the shape of a record
  std::int64_t size() const { return file_.size(); }  ///< the number of rows
  /// Parses row i. Throws std::out_of_range if there is none, and data_error if a cell is no number of the field's
  /// type.
  void read(std::int64_t i, record<fields_type> const& out, record_random&) const {
    file_.numbers(i, first_, out.template at<0>());
  }

 private:
  static std::int64_t of(csv_file const& file) { return std::int64_t(file.columns().size()); }
  static std::vector<std::int64_t> checked(csv_file const& file, std::int64_t first, std::vector<std::int64_t> shape) {
    detail::require(first >= 0 && first < of(file), "csv_numbers", "first_column",
                    ("in [0, " + std::to_string(of(file)) + ")").c_str(), first);
    return shape;
  }

  csv_file file_;
  fields_type fields_;
  std::int64_t first_;
};

}  // namespace descent
