// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cstddef>
#include <type_traits>
#include <vector>

namespace descent::detail {

/// A vector of trivially copyable elements that share their code: std::vector has about sixty functions for each type,
/// and an optimizer needs several for each rule.
template <class T> class plain_vector {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

 public:
  plain_vector() = default;
  explicit plain_vector(std::size_t count, T const& x = {}) : bytes_(count * sizeof(T)) {
    for (std::size_t i = 0; i < count; ++i) (*this)[i] = x;
  }

  std::size_t size() const { return bytes_.size() / sizeof(T); }
  T* data() { return reinterpret_cast<T*>(bytes_.data()); }
  T const* data() const { return reinterpret_cast<T const*>(bytes_.data()); }
  T& operator[](std::size_t i) { return data()[i]; }
  T const& operator[](std::size_t i) const { return data()[i]; }
  T const* begin() const { return data(); }
  T const* end() const { return data() + size(); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace descent::detail
