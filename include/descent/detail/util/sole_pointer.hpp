// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <memory>

namespace descent::detail {

/// std::unique_ptr<T> with the code of one type: unique_ptr itself has forty functions for each.
template <class T> class sole_pointer {
 public:
  sole_pointer() = default;
  explicit sole_pointer(T* from_new) : at_(from_new, [](void* at) { delete static_cast<T*>(at); }) {}

  explicit operator bool() const { return bool(at_); }
  T& operator*() const { return *static_cast<T*>(at_.get()); }
  T* operator->() const { return static_cast<T*>(at_.get()); }

 private:
  std::unique_ptr<void, void (*)(void*)> at_{nullptr, nullptr};
};

}  // namespace descent::detail
