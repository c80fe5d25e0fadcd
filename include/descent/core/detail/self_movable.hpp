// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <utility>

namespace descent::detail {

/// A T that self-move does not change; a plain container could be left empty.
template <class T> struct self_movable : T {
  using T::T;
  self_movable() = default;
  self_movable(T x) : T(std::move(x)) {}
  self_movable(self_movable const&) = default;
  self_movable(self_movable&&) = default;
  self_movable& operator=(self_movable const&) = default;
  self_movable& operator=(self_movable&& from) noexcept {
    if (this != &from) T::operator=(std::move(from));
    return *this;
  }
};

}  // namespace descent::detail
