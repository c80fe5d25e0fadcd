// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/precision.hpp>
#include <descent/parameters.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Parameters, and pieces of what an optimizer owns, whose types are known only at run time. See any_optimizer.
namespace descent {

/// The type of elements in memory. Text is of char; other is a struct of the library or of a rule, such as
/// loss_scale_state or a rule's memory.
enum class element_type { f64, f32, f16, bf16, i64, i32, u32, u16, text, other };

/// A piece of what an optimizer owns, in the memory of the backend or of the host: see optimizer::save.
struct any_elements {
  element_type type;   ///< of an element
  std::size_t size;    ///< of an element, in bytes
  std::int64_t count;  ///< of elements
  void const* data;    ///< the first one

  std::size_t bytes() const { return size * std::size_t(count); }  ///< of all elements
};

/// What replaces a piece when a run is loaded: bytes that the answer owns, or the caller's memory on host or device,
/// which must stay valid until load() returns. Aligned for their type.
class any_answer {
 public:
  any_answer(std::vector<std::byte> bytes) : owned_(std::move(bytes)) {}
  any_answer(void const* data, std::size_t bytes) : data_(data), bytes_(bytes) {}

  void const* data() const { return data_ ? data_ : owned_.data(); }      ///< the first byte
  std::size_t bytes() const { return data_ ? bytes_ : owned_.size(); }  ///< their number

 private:
  std::vector<std::byte> owned_;
  void const* data_ = nullptr;
  std::size_t bytes_ = 0;
};

namespace detail {

template <class T> constexpr element_type element_type_of() {
  if constexpr (std::is_same_v<T, double>) return element_type::f64;
  else if constexpr (std::is_same_v<T, float>) return element_type::f32;
  else if constexpr (std::is_same_v<T, half>) return element_type::f16;
  else if constexpr (std::is_same_v<T, bfloat16>) return element_type::bf16;
  else if constexpr (std::is_same_v<T, std::int64_t>) return element_type::i64;
  else if constexpr (std::is_same_v<T, std::int32_t>) return element_type::i32;
  else if constexpr (std::is_same_v<T, std::uint32_t>) return element_type::u32;
  else if constexpr (std::is_same_v<T, std::uint16_t>) return element_type::u16;
  else if constexpr (std::is_same_v<T, char>) return element_type::text;
  else return element_type::other;
}
template <class T> any_elements elements_of(std::span<T const> x) {
  return {element_type_of<T>(), sizeof(T), std::int64_t(x.size()), x.data()};
}
inline char const* name_of(element_type t) {
  constexpr char const* names[] = {"double", "float",  "half",   "bfloat16", "int64",
                                   "int32",  "uint32", "uint16", "char",     "struct"};
  return names[int(t)];
}

}  // namespace detail

/// A parameter whose types are known only at run time, for any_optimizer::rebind and parameters_of.
struct any_parameter {
  std::string name;                         ///< as for parameters::add, like all that follows
  void *value, *gradient;                   ///< the caller's memory
  element_type value_type, gradient_type;   ///< f64, f32, f16 or bf16
  descent::shape shape;                     ///< {count, 1} unless it is a matrix
  descent::group group = {};                ///< of which the rule may have its own settings
  bool read_only = false;                  ///< whether the gradient is const
};

/// The parameters of a typed list.
template <class Value, class Gradient>
std::vector<any_parameter> any_parameters(parameters<Value, Gradient> const& list) {
  std::vector<any_parameter> all;
  for (auto const& v : list.views())
    [&]<int... I>(std::integer_sequence<int, I...>) {
      ((v.types == I ? all.push_back({v.name,
                                      v.value,
                                      v.gradient,
                                      detail::element_type_of<typename detail::types<Value>::template at<I>>(),
                                      detail::element_type_of<typename detail::types<Gradient>::template at<I>>(),
                                      {v.count / v.columns, v.columns},
                                      {v.group},
                                      !v.writes})
                     : void()),
       ...);
    }(std::make_integer_sequence<int, detail::types<Value>::count>{});
  return all;
}

/// The typed list. Throws std::invalid_argument if a parameter has another type, and like parameters::add.
template <class Value, class Gradient = Value>
parameters<Value, Gradient> parameters_of(std::vector<any_parameter> const& all) {
  parameters<Value, Gradient> list;
  for (auto const& p : all) {
    bool const added = [&]<int... I>(std::integer_sequence<int, I...>) {
      auto const add = [&]<class V, class G>(std::type_identity<V>, std::type_identity<G>) {
        if (p.value_type != detail::element_type_of<V>() || p.gradient_type != detail::element_type_of<G>())
          return false;
        auto* const value = static_cast<V*>(p.value);
        auto* const gradient = static_cast<G*>(p.gradient);
        if (p.read_only) list.add(p.name, value, static_cast<G const*>(gradient), p.shape, p.group);
        else list.add(p.name, value, gradient, p.shape, p.group);
        return true;
      };
      return (add(std::type_identity<typename detail::types<Value>::template at<I>>{},
                  std::type_identity<typename detail::types<Gradient>::template at<I>>{}) ||
              ...);
    }(std::make_integer_sequence<int, detail::types<Value>::count>{});
    if (!added)
      throw std::invalid_argument("parameter '" + p.name + "': the list has no values of " +
                                  detail::name_of(p.value_type) + " with gradients of " +
                                  detail::name_of(p.gradient_type));
  }
  return list;
}

}  // namespace descent
