// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/precision.hpp>
#include <descent/core/detail/block.hpp>
#include <descent/core/detail/containers.hpp>
#include <descent/core/detail/piece_names.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace descent {

/// The group of a parameter. Each group has its own copy of the rule; see optimizer::group.
struct group {
  /// The number of the group, in [0, 65535].
  int index = 0;
};

/// The shape of a parameter that is a matrix, stored row by row: usually {outputs, inputs} for a layer's weights,
/// {outputs, all inputs of one output} for a convolution, {entries, width} for an embedding. Some rules use it.
struct shape {
  /// Numbers of elements: rows at least 0, columns at least 1.
  std::int64_t rows = 0, columns = 1;
};

/// What a rank of a model_parallel{} has of a parameter (ranks/model_parallel.hpp): all of it, one of several equal
/// copies, a part, or some columns of all rows.
enum class held : std::uint8_t { whole, copy, part, columns };

/// Several types in one list of parameters. parameters<mixed<half, float>> has tensors of half and of float, each with
/// gradients of its own type; in parameters<mixed<half, float>, mixed<half, half>> both have gradients of half.
template <storage_type... Ts> struct mixed {};

namespace detail {

template <class... Sizes> constexpr std::int64_t largest_of(Sizes... sizes) {
  std::int64_t most = 0;
  ((most = sizes > most ? sizes : most), ...);
  return most;
}

template <class T> struct types {
  static constexpr bool several = false;
  static constexpr int count = 1;
  template <int> using at = T;
  using pointer = T*;
  static constexpr std::int64_t sizes[] = {sizeof(T)}, largest = sizeof(T);
  template <class U> static constexpr bool has = std::is_same_v<U, T>;
  static constexpr bool any_double = std::is_same_v<T, double>;
};
template <class... Ts> struct types<mixed<Ts...>> {
  static constexpr bool several = true;
  static constexpr int count = sizeof...(Ts);
  template <int I> using at = std::tuple_element_t<std::size_t(I), std::tuple<Ts...>>;
  using pointer = void*;
  static constexpr std::int64_t sizes[] = {sizeof(Ts)...};
  static constexpr std::int64_t largest = largest_of(std::int64_t{sizeof(Ts)}...);
  template <class U> static constexpr bool has = (std::is_same_v<U, Ts> || ...);
  static constexpr bool any_double = (std::is_same_v<Ts, double> || ...);
};

template <class T> inline constexpr bool storable = storage_type<T>;
template <class... Ts> inline constexpr bool storable<mixed<Ts...>> = true;

template <class Value, class Gradient>
concept types_of_parameters = storable<Value> && storable<Gradient> && types<Value>::count == types<Gradient>::count &&
                              types<Value>::several == types<Gradient>::several;

/// The index of the pair (V, G) among the types of values and gradients, or -1.
template <class Value, class Gradient, class V, class G> consteval int number_of_types() {
  return []<int... I>(std::integer_sequence<int, I...>) {
    int found = -1;
    ((found = found < 0 && std::is_same_v<V, typename types<Value>::template at<I>> &&
                      std::is_same_v<G, typename types<Gradient>::template at<I>>
                  ? I : found), ...);
    return found;
  }(std::make_integer_sequence<int, types<Value>::count>{});
}

/// A pointer to gradients that may not be written.
template <class P, class Gradient> concept pointer_to_const = std::is_same_v<std::remove_cvref_t<P>, Gradient const*>;

/// Whether add(name, arguments...) fits a list of one type.
template <class Value, class Gradient, class V = void, class G = void, class Count = void, class Group = group,
          class... More>
inline constexpr bool addable = std::is_convertible_v<V, Value*> && std::is_convertible_v<G, Gradient const*> &&
                                (std::integral<std::remove_cvref_t<Count>> || std::is_convertible_v<Count, shape>) &&
                                std::is_convertible_v<Group, group> && sizeof...(More) == 0;

/// A container or view whose memory add() takes, and whether add(name, arguments...) takes that.
template <class R> concept storage = array<R> || grid<R>;
template <class V = void, class G = void, class... More> inline constexpr bool addable_storage = false;
template <storage V, storage G, class... More>
inline constexpr bool addable_storage<V, G, More...> = sizeof...(More) <= 2;

}  // namespace detail

/// A list of named views over the caller's values and gradients. It copies and owns nothing: the memory must stay where
/// it is for as long as an optimizer built from the list is used. Values need not be finite.
template <class Value, class Gradient = Value> class parameters {
  static_assert(
      detail::types_of_parameters<Value, Gradient>,
      "parameters<Value, Gradient>: each must be double, float, half or bfloat16, or both mixed<...> of as many");

 public:
  /// A parameter as it was added.
  struct view {
    /// What add() was given; count is the number of elements.
    std::string name;
    typename detail::types<Value>::pointer value;
    typename detail::types<Gradient>::pointer gradient;
    std::int64_t count, columns;  // columns is 1 if no shape was given: each element is a row
    int group;
    int types;  // with mixed types, the index of the pair of types
    bool writes;  // whether the gradient may be written, as it was not added as const
    held as = held::whole;
  };

  /// Adds a parameter. A gradient that is added as const is only read: an optimizer with zero_grad{} refuses it, and
  /// zero_grad(), unscale() and transform_gradients() throw. Throws std::invalid_argument and leaves the list unchanged
  /// if the name is already taken or cannot be saved (empty, above 4000 bytes, no UTF-8, a control character, or the
  /// name of a saved piece: "step", or "W.state.m" beside "W"), the count is not in [0, 2^60], a pointer is null (with
  /// a count above 0) or not aligned for its type, the group is not in [0, 65535], or the shape has no columns.
  template <std::integral Count>
  void add(std::string name, Value* value, Gradient* gradient, Count count, group g = {})
      requires(!detail::types<Value>::several) {
    add_view(std::move(name), value, gradient, count, 1, g, 0);
  }
  template <storage_type V, storage_type G, std::integral Count>
  void add(std::string name, V* value, G* gradient, Count count, group g = {}) requires(detail::types<Value>::several) {
    add_view(std::move(name), value, gradient, count, 1, g, types_of<V, G>());
  }
  template <detail::pointer_to_const<Gradient> G, std::integral Count>
  void add(std::string name, Value* value, G gradient, Count count, group g = {}) {
    add_view(std::move(name), value, gradient, count, 1, g, 0);
  }
  template <storage_type V, storage_type G, std::integral Count>
  void add(std::string name, V* value, G const* gradient, Count count, group g = {})
      requires(detail::types<Value>::several) {
    add_view(std::move(name), value, gradient, count, 1, g, types_of<V, G>());
  }
  void add(std::string name, Value* value, Gradient* gradient, shape s, group g = {})
      requires(!detail::types<Value>::several) {
    add_matrix(std::move(name), value, gradient, s, g, 0);
  }
  template <storage_type V, storage_type G>
  void add(std::string name, V* value, G* gradient, shape s, group g = {}) requires(detail::types<Value>::several) {
    add_matrix(std::move(name), value, gradient, s, g, types_of<V, G>());
  }
  template <detail::pointer_to_const<Gradient> G>
  void add(std::string name, Value* value, G gradient, shape s, group g = {}) {
    add_matrix(std::move(name), value, gradient, s, g, 0);
  }
  template <storage_type V, storage_type G>
  void add(std::string name, V* value, G const* gradient, shape s, group g = {}) requires(detail::types<Value>::several)
  {
    add_matrix(std::move(name), value, gradient, s, g, types_of<V, G>());
  }

  /// Adds a parameter from anything contiguous: containers such as std::vector and thrust::device_vector (not
  /// temporary ones), views such as std::span and cuda::std::span, and std::mdspan in row-major order. An mdspan of
  /// several dimensions is a matrix: its first dimension is the rows. Also throws std::invalid_argument if value,
  /// gradient and shape differ in their number of elements, or in their axes (2 x 3 and 3 x 2; what has one axis fits
  /// any, and axes may be split, as 4 x 6 into 4 x 3 x 2), or an mdspan is not in row-major order.
  template <detail::storage V, detail::storage G> void add(std::string name, V&& values, G&& gradients, group g = {}) {
    auto const v = detail::block_of(values);
    add_blocks(std::move(name), v, detail::block_of(gradients), {v.rows, v.columns}, g, detail::extents_of(values),
               detail::extents_of(gradients));
  }
  template <detail::storage V, detail::storage G>
  void add(std::string name, V&& values, G&& gradients, shape s, group g = {}) {
    add_blocks(std::move(name), detail::block_of(values), detail::block_of(gradients), s, g, detail::extents_of(values),
               detail::extents_of(gradients));
  }

  /// Adds matrices of one shape that are stored back to back, such as attention heads or experts, as parameters
  /// "name.0", "name.1" and so on. Each is a separate tensor for rules, norms and the owners of sharded. Values and
  /// gradients are one pointer each; that to the gradients may be to const. Throws as add() does, and then adds none.
  template <class V, class G>
  void add_stack(std::string const& name, V* value, G* gradient, std::int64_t matrices, shape s, group g = {}) {
    if (name.empty()) refuse(name, "the name must not be empty");
    std::int64_t const room = most_views - std::int64_t(views_.size());
    if (matrices < 0 || matrices > room)
      refuse(name, "the number of matrices must be in [0, " + std::to_string(room) +
                       "], as a list has at most 2^24 parameters, is " + std::to_string(matrices));
    if (s.rows > 0 && s.columns > 0 && s.rows <= most / s.columns && matrices > most / (s.rows * s.columns))
      refuse(name, "the matrices must have at most 2^60 elements, are " + std::to_string(matrices) + " x " +
                       std::to_string(s.rows) + " x " + std::to_string(s.columns));
    std::size_t const before = views_.size(), owners_before = owners_.size();
    try {
      for (std::int64_t k = 0; k < matrices; ++k) {
        std::int64_t const first = k * s.rows * s.columns;
        add(name + '.' + std::to_string(k), value + first, gradient + first, s, g);
      }
    } catch (...) {
      for (; views_.size() > before; views_.pop_back()) names_.remove(views_.size() - 1, name_of());
      owners_.forget_after(owners_before);
      throw;
    }
  }

  /// Declared only for its static_assert message.
  template <class... Args>
  void add(std::string const&, Args&&...)
      requires(!detail::types<Value>::several && !detail::addable<Value, Gradient, Args...> &&
               !detail::addable_storage<Args...>) {
    static_assert(detail::addable<Value, Gradient, Args...>,
                  "add(name, value, gradient, count or shape{rows, columns}, group{i}): value and gradient are "
                  "pointers to the types of parameters<Value, Gradient>, values not const, and the group, if any, is a "
                  "group; "
                  "add(name, values, gradients, group{i}): containers or views, not temporary containers");
  }

  /// Marks a parameter that other ranks of a model_parallel{} have under the same name: all of them an equal copy, each
  /// a part of one tensor, such as some of its rows, or each some columns of all its rows. Parts are in the order of
  /// the ranks. Without that policy a mark changes nothing. Throws std::invalid_argument if there is no such parameter.
  void mark_copied(std::string const& name) { mark(name, held::copy); }
  void mark_part(std::string const& name) { mark(name, held::part); }
  void mark_columns(std::string const& name) { mark(name, held::columns); }

  /// The parameters, in the order in which they were added.
  std::vector<view> const& views() const { return views_; }

 private:
  void mark(std::string const& name, held as) {
    std::int64_t const i = names_.find(name, name_of());
    if (i < 0) throw std::invalid_argument("there is no parameter '" + name + "' to mark");
    views_[std::size_t(i)].as = as;
  }

  template <class V, class G> static consteval int types_of() {
    constexpr int types = detail::number_of_types<Value, Gradient, V, G>();
    static_assert(types >= 0, "parameters<mixed<...>>: no such pair of types for value and gradient in the list");
    return types;
  }

  [[noreturn]] static void refuse(std::string const& name, std::string const& what) {
    throw std::invalid_argument("parameter '" + name + "': " + what);
  }

  template <class V, class G>
  void add_matrix(std::string name, V* value, G* gradient, shape s, group g, int types) {
    if (s.rows < 0) refuse(name, "rows must be at least 0, are " + std::to_string(s.rows));
    if (s.columns < 1) refuse(name, "columns must be at least 1, are " + std::to_string(s.columns));
    if (s.rows > most / s.columns)
      refuse(name,
             "rows x columns must be at most 2^60, are " + std::to_string(s.rows) + " x " + std::to_string(s.columns));
    add_view(std::move(name), value, gradient, s.rows * s.columns, s.columns, g, types);
  }

  template <class V, class G, class ValueAxes, class GradientAxes>
  void add_blocks(std::string name, detail::block<V> const& value, detail::block<G> const& gradient, shape s, group g,
                  ValueAxes const& of_value, GradientAxes const& of_gradient) {
    using gradient_type = std::remove_const_t<G>;
    constexpr bool fits =
        detail::types<Value>::several || (std::is_same_v<V, Value> && std::is_same_v<gradient_type, Gradient>);
    static_assert(fits,
                  "add(name, values, gradients): the elements have the types of parameters<Value, Gradient>, and "
                  "values are not const");
    auto const counted = [](std::int64_t n) { return std::to_string(n) + (n == 1 ? " element" : " elements"); };
    if (!value.row_major) refuse(name, "the value is not contiguous in row-major order");
    if (!gradient.row_major) refuse(name, "the gradient is not contiguous in row-major order");
    if (std::int64_t const n = std::max(value.count, gradient.count); n > most)
      refuse(name, "count must be at most 2^60, is " + (n == INT64_MAX ? std::string("over 2^63") : std::to_string(n)));
    if (gradient.count != value.count)
      refuse(name, "the value has " + counted(value.count) + ", the gradient " + counted(gradient.count));
    if (s.columns >= 1 && s.rows >= 0 && (s.rows > most / s.columns || s.rows * s.columns != value.count))
      refuse(name, "the shape is " + std::to_string(s.rows) + " x " + std::to_string(s.columns) + ", the value has " +
                       counted(value.count));
    detail::extents<2> const matrix{{s.rows, s.columns}, s.columns == 1 ? std::size_t{1} : std::size_t{2}};
    auto const require_fit = [&](auto const& x, char const* other, auto const& y, char const* which) {
      if (!detail::shapes_fit(x, y))
        refuse(name, std::string("the ") + which + " is " + detail::text_of_extents(x) + ", the " + other + " " +
                         detail::text_of_extents(y));
    };
    require_fit(of_value, "gradient", of_gradient, "value");
    if (s.columns >= 1 && s.rows >= 0) {
      require_fit(of_value, "shape", matrix, "value");
      if (of_value.size() <= 1) require_fit(of_gradient, "shape", matrix, "gradient");
    }
    if constexpr (detail::types<Value>::several)
      add_matrix(std::move(name), value.at, gradient.at, s, g, types_of<V, gradient_type>());
    else if constexpr (fits) add_matrix(std::move(name), value.at, gradient.at, s, g, 0);
  }

  template <class V, class G, class Count>
  void add_view(std::string name, V* value, G* gradient, Count count, std::int64_t columns, group g, int types) {
    auto const fail = [&](std::string const& what) { refuse(name, what); };
    detail::require_saved_name(name);
    if (std::ssize(views_) >= most_views) fail("a list has at most 2^24 parameters");
    if (std::cmp_less(count, 0)) fail("count must be at least 0, is " + std::to_string(count));
    if (std::cmp_greater(count, most)) fail("count must be at most 2^60, is " + std::to_string(count));
    if (count != 0 && !value) fail("value is null, but count is " + std::to_string(count));
    if (count != 0 && !gradient) fail("gradient is null, but count is " + std::to_string(count));
    require_aligned(name, "value", value);
    require_aligned(name, "gradient", gradient);
    if (g.index < 0 || g.index > 65535) fail("group must be in [0, 65535], is " + std::to_string(g.index));
    if (names_.find(name, name_of()) >= 0) fail("there is already a parameter of this name");
    auto owners = detail::owners_of_piece(name, views_.size());
    for (auto const& x : owners)
      if (names_.find(x.name, name_of()) >= 0) fail("a saved piece of the parameter '" + x.name + "' has this name");
    if (auto const i = owners_.piece_of(name); i >= 0)
      fail("the parameter '" + views_[std::size_t(i)].name + "' has the name of a saved piece of it");
    owners_.reserve(owners.size());
    if (views_.size() == views_.capacity()) views_.reserve(2 * views_.size() + 1);
    names_.reserve(views_.size(), views_.size() + 1, name_of());
    views_.push_back({std::move(name), value, const_cast<std::remove_const_t<G>*>(gradient), std::int64_t(count),
                      columns, g.index, types, !std::is_const_v<G>});
    owners_.take(owners);
    names_.add(views_.size() - 1, name_of());
  }
  auto name_of() const {
    return [this](std::size_t i) -> std::string const& { return views_[i].name; };
  }

  template <class T> static void require_aligned(std::string const& name, std::string const& what, T const* p) {
    if (auto const beyond = reinterpret_cast<std::uintptr_t>(p) % alignof(T))
      refuse(name, what + " must be aligned to " + std::to_string(alignof(T)) + " bytes, is " + std::to_string(beyond) +
                       " past a multiple");
  }

  static constexpr std::int64_t most = std::int64_t{1} << 60, most_views = std::int64_t{1} << 24;
  detail::self_movable<std::vector<view>> views_;
  detail::self_movable<detail::name_table> names_;
  detail::self_movable<detail::piece_owners> owners_;
};

}  // namespace descent
