// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

/// Owners of one thing, which can be moved. std::unique_ptr and std::function would do, but with their headers and what
/// they instantiate, a program with one optimizer takes a tenth longer to compile.
namespace descent::detail {

/// Owns what a pointer or a handle stands for; null stands for nothing.
template <class Pointer, class Delete> class sole_handle {
 public:
  sole_handle(std::nullptr_t = nullptr) {}
  explicit sole_handle(Pointer at, Delete const& with = {}) : at_(at), delete_(with) {}
  sole_handle(sole_handle&& from) noexcept : at_(std::exchange(from.at_, nullptr)), delete_(std::move(from.delete_)) {}
  sole_handle& operator=(sole_handle&& from) noexcept {
    sole_handle taken(std::move(from));
    std::swap(at_, taken.at_), std::swap(delete_, taken.delete_);
    return *this;
  }
  ~sole_handle() {
    if (at_) delete_(at_);
  }

  explicit operator bool() const { return at_; }
  Pointer get() const { return at_; }
  Pointer operator->() const { return at_; }

 private:
  Pointer at_ = nullptr;
  [[no_unique_address]] Delete delete_{};
};

/// Owns an object of any type.
using sole_any = sole_handle<void*, void (*)(void*)>;
template <class T> sole_any owned_any(T* from_new) {
  return sole_any(from_new, [](void* at) { delete static_cast<T*>(at); });
}

/// Owns a T, with the code of one type for all.
template <class T> class sole_pointer {
 public:
  sole_pointer() = default;
  explicit sole_pointer(T* from_new) : at_(owned_any(from_new)) {}

  explicit operator bool() const { return bool(at_); }
  T& operator*() const { return *static_cast<T*>(at_.get()); }
  T* operator->() const { return static_cast<T*>(at_.get()); }

 private:
  sole_any at_;
};

/// A function of Args without a result, or none.
template <class... Args> class sole_function {
 public:
  sole_function() = default;
  template <class F> requires(!std::is_same_v<F, sole_function>) explicit sole_function(F f)
      : f_(owned_any(new F(std::move(f)))), call_([](void* at, Args... args) { (*static_cast<F*>(at))(args...); }) {}

  explicit operator bool() const { return bool(f_); }
  void operator()(Args... args) const { call_(f_.get(), args...); }

 private:
  sole_any f_;
  void (*call_)(void*, Args...) = nullptr;
};

}  // namespace descent::detail
