// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

namespace example {

/// A view of a row-major matrix, or of its transpose.
template <class T> struct matrix {
  T* data;
  int rows, columns;
  bool transposed = false;

  matrix t() const { return {data, rows, columns, !transposed}; }
  int height() const { return transposed ? columns : rows; }
  int width() const { return transposed ? rows : columns; }
};
template <class T> matrix(T*, int, int) -> matrix<T>;

}  // namespace example
