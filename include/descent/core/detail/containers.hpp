// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Containers, owners and algorithms, most of which the standard library also has. But every unit with an optimizer
/// would pay for its headers and for what they instantiate: <memory> and <functional> alone make a program with one
/// optimizer take a tenth longer to compile.
namespace descent::detail {

/// A vector of trivially copyable elements that share their code: std::vector has about sixty functions for each type,
/// and an optimizer needs several for each rule.
template <class T> class plain_vector {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__,
                "a rule and its memory must be trivially copyable, with at most the alignment that operator new gives");

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

/// Sorts numbers, pointers or plain structs by std::qsort. `before` captures nothing.
template <class T, class Before> void sort_plain(std::vector<T>& all, Before) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (all.size() < 2) return;
  std::qsort(all.data(), all.size(), sizeof(T), [](void const* a, void const* b) {
    auto const &x = *static_cast<T const*>(a), &y = *static_cast<T const*>(b);
    return int(Before{}(y, x)) - int(Before{}(x, y));
  });
}

/// Finds the index of a name in a list: a hash table with open addressing, at most half full. It does not copy the
/// names; name_of(i) returns the name with index i.
class name_table {
  struct element_of {
    std::vector<std::string> const& names;
    std::string const& operator()(std::size_t i) const { return names[i]; }
  };

 public:
  name_table() = default;
  /// Of a list of strings. Of equal names the last one counts.
  explicit name_table(std::vector<std::string> const& names) {
    reserve(0, names.size(), element_of{names});
    for (std::size_t i = 0; i < names.size(); ++i) add(i, element_of{names});
  }

  /// -1 if the name is not in the list.
  template <class NameOf> std::int64_t find(std::string const& name, NameOf const& name_of) const {
    return places_.empty() ? none : places_[slot_of(name, name_of)];
  }
  std::int64_t find(std::string const& name, std::vector<std::string> const& names) const {
    return find(name, element_of{names});
  }

  /// Makes room for `count` names, of which `there` are in the table. If it throws, nothing has changed.
  template <class NameOf> void reserve(std::size_t there, std::size_t count, NameOf const& name_of) {
    std::size_t slots = places_.size();
    while (slots <= 2 * count) slots = 2 * slots + 2;
    if (slots == places_.size()) return;
    name_table larger;
    larger.places_.resize(slots, none);
    for (std::size_t i = 0; i < there; ++i) larger.add(i, name_of);
    places_.swap(larger.places_);
  }
  /// Adds a name, for which there is room.
  template <class NameOf> void add(std::size_t i, NameOf const& name_of) {
    places_[slot_of(name_of(i), name_of)] = std::int32_t(i);
  }
  /// Removes all names, and keeps the room.
  void clear() {
    for (auto& place : places_) place = none;
  }
  /// Removes the name that was added last.
  template <class NameOf> void remove(std::size_t i, NameOf const& name_of) {
    places_[slot_of(name_of(i), name_of)] = none;
  }

 private:
  static constexpr std::int32_t none = -1;

  template <class NameOf> std::size_t slot_of(std::string const& name, NameOf const& name_of) const {
    std::size_t slot = std::hash<std::string>{}(name) % places_.size();
    while (places_[slot] != none && name_of(std::size_t(places_[slot])) != name) slot = (slot + 1) % places_.size();
    return slot;
  }

  std::vector<std::int32_t> places_;
};

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
