// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Containers and views as memory: a pointer, a number of elements and a shape.
namespace descent::detail {

/// The product of two numbers that are not negative, or 2^63 - 1 if it is larger.
inline std::int64_t limited_product(std::int64_t a, std::int64_t b) {
  return b != 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}

/// The pointer itself, or that of thrust::device_ptr.
template <class P> auto* plain(P const& p) {
  if constexpr (std::is_pointer_v<P>) return p;
  else return p.get();
}

/// A view, such as std::span, does not own its elements: it is small, and its const only keeps it from being rebound.
template <class R>
concept view = std::is_trivially_copyable_v<R> && requires(R& r, R const& constant) {
  requires std::is_same_v<decltype(plain(std::data(r))), decltype(plain(std::data(constant)))>;
};

/// A container that outlives the call, because it is an lvalue, or a view.
template <class R>
concept array = requires(std::remove_reference_t<R>& r) {
  plain(std::data(r));
  std::size(r);
} && (std::is_lvalue_reference_v<R> || view<std::remove_cvref_t<R>>);

/// std::mdspan, or another class with its interface.
template <class M>
concept grid = requires(std::remove_cvref_t<M> const& m) {
  plain(m.data_handle());
  m.extent(0);
  m.stride(0);
  std::remove_cvref_t<M>::rank();
};

template <class T> struct block {
  T* at;
  std::int64_t count;
  std::int64_t rows, columns;  // the first dimension and the product of the others
  bool row_major;
};

template <class R> auto block_of(R& r) {
  if constexpr (grid<R>) {
    using element = std::remove_pointer_t<decltype(plain(r.data_handle()))>;
    block<element> b{plain(r.data_handle()), 1, 1, 1, true};
    for (std::size_t i = R::rank(); i-- > 0;) {
      auto const extent = std::int64_t(r.extent(i));
      b.row_major = b.row_major && (extent <= 1 || std::int64_t(r.stride(i)) == b.count);
      if (i > 0) b.columns = limited_product(b.columns, extent);
      else b.rows = extent;
      b.count = limited_product(b.count, extent);
    }
    if (R::rank() == 1) b.rows = b.count, b.columns = 1;
    return b;
  } else {
    using element = std::remove_pointer_t<decltype(plain(std::data(r)))>;
    auto const n = std::int64_t(std::size(r));
    return block<element>{plain(std::data(r)), n, n, 1, true};
  }
}

/// Whether the axes of `whole` are those of `split` where neighbours are taken together: [4, 6] for [4, 3, 2].
template <class Whole, class Split> bool has_split_axes(Whole const& whole, Split const& split) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < std::size(whole); ++i) {
    auto const extent = std::int64_t(whole[i]);
    std::int64_t n = 1;
    for (; next < std::size(split) && (extent == 0 ? n > 0 : n < extent); ++next) {
      auto const by = std::int64_t(split[next]);
      if (extent == 0) n = by == 0 ? 0 : 1;
      else if (by > extent / n) return false;
      else n *= by;
    }
    if (n != extent) return false;
  }
  while (next < std::size(split) && std::int64_t(split[next]) == 1) ++next;
  return next == std::size(split);
}
/// Whether tensors with as many elements mean the same ones, row by row: one of them has a single axis, or the shapes
/// differ only in how axes are split, as the [outputs, inputs, 3, 3] of a convolution and its matrix. [2, 3] and [3, 2]
/// do not. Axes of extent 1 do not count.
template <class A, class B> bool shapes_fit(A const& a, B const& b) {
  return std::size(a) <= 1 || std::size(b) <= 1 || has_split_axes(a, b) || has_split_axes(b, a);
}
/// The extents of a container, a view or a grid.
template <std::size_t Most> struct extents {
  std::int64_t of[Most];
  std::size_t axes;
  std::size_t size() const { return axes; }
  std::int64_t operator[](std::size_t i) const { return of[i]; }
};
template <class R> auto extents_of(R const& r) {
  if constexpr (grid<R>) {
    extents<R::rank() == 0 ? 1 : R::rank()> all{{}, R::rank()};
    for (std::size_t i = 0; i < all.axes; ++i) all.of[i] = std::int64_t(r.extent(i));
    return all;
  } else {
    return extents<1>{{std::int64_t(std::size(r))}, 1};
  }
}
template <class Extents> std::string text_of_extents(Extents const& x) {
  std::string text;
  for (std::size_t i = 0; i < x.size(); ++i) text += (i ? " x " : "") + std::to_string(x[i]);
  return text;
}

}  // namespace descent::detail
