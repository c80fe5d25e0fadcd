// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

/// Containers and views as memory: a pointer, a number of elements and a shape.
namespace descent::detail {

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
      if (i > 0) b.columns *= extent;
      else b.rows = extent;
      b.count *= extent;
    }
    if (R::rank() == 1) b.rows = b.count, b.columns = 1;
    return b;
  } else {
    using element = std::remove_pointer_t<decltype(plain(std::data(r)))>;
    auto const n = std::int64_t(std::size(r));
    return block<element>{plain(std::data(r)), n, n, 1, true};
  }
}

}  // namespace descent::detail
