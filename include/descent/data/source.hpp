// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/data/source_ended.hpp>
#include <descent/core/detail/philox.hpp>
#include <descent/policies/noise.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Sources of records, what PyTorch calls a Dataset: named fields with a type and a shape, a number of records, and a
/// function that writes one record into the memory of a batch. Any class with these three is a source:
///
///     struct squares {
///       auto fields() const { return ds::fields{ds::field<"x", float>{2}, ds::field<"y", int>{}}; }
///       std::int64_t size() const { return 100; }
///       void read(std::int64_t i, auto const& out, ds::record_random& random) const {
///         out.template get<"x">()[0] = float(i * i);
///         ...
///       }
///     };
namespace descent {

/// The name of a field, as a template argument.
template <std::size_t N> struct field_label {
  char text[N];  ///< with its terminating zero
  /// From a string literal.
  constexpr field_label(char const (&literal)[N]) { std::copy_n(literal, N, text); }
  constexpr std::string_view view() const { return {text, N - 1}; }  ///< without the zero
};

namespace detail {

/// The limit of a record and of a batch, so that sums of them fit in 64 bits.
inline constexpr std::int64_t most_batch_bytes = std::int64_t{1} << 60;

/// The number of elements of a shape. Throws std::invalid_argument if an extent is not at least 1, or the product is
/// above 2^48.
inline std::int64_t elements_of(std::vector<std::int64_t> const& shape) {
  std::int64_t n = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    require_entry(shape[i] >= 1 && shape[i] <= (std::int64_t{1} << 48) / n, "field", "shape", i,
                  "at least 1, with a product of at most 2^48", shape[i]);
    n *= shape[i];
  }
  return n;
}

}  // namespace detail

/// A field of a record: elements of T in this shape, row after row. No extents: one element. In a template, take the
/// field as a type, not its name: nvcc 13 miscompiles a field whose name is a template parameter, which it passes on to
/// a host compiler that does not know it.
template <field_label Name, class T> class field {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "field: the elements of a field must be trivially copyable and not const");

 public:
  using element = T;  ///< the type of the elements
  static constexpr auto name = Name;  ///< the template argument
  static constexpr bool is_ragged = false;  ///< whether records have different lengths

  field() = default;
  /// Throws std::invalid_argument if an extent is not at least 1.
  field(std::initializer_list<std::int64_t> shape) : field(std::vector<std::int64_t>(shape)) {}
  explicit field(std::vector<std::int64_t> shape) : shape_(std::move(shape)), size_(detail::elements_of(shape_)) {}

  std::vector<std::int64_t> const& shape() const { return shape_; }  ///< the extents, the outermost first
  std::int64_t size() const { return size_; }  ///< elements per record
  friend bool operator==(field const&, field const&) = default;

 private:
  std::vector<std::int64_t> shape_;
  std::int64_t size_ = 1;
};

/// A field whose records have 0 to `longest` elements of T. A batch holds them as rows of the length of its longest
/// record, filled up with `padding`, and has their lengths.
template <field_label Name, class T> class ragged {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "ragged: the elements of a field must be trivially copyable and not const");

 public:
  using element = T;  ///< the type of the elements
  static constexpr auto name = Name;  ///< the template argument
  static constexpr bool is_ragged = true;  ///< whether records have different lengths

  /// Throws std::invalid_argument unless longest is in [1, 2^31).
  explicit ragged(std::int64_t longest, T padding = T{}) : shape_{longest}, padding_(padding) {
    detail::require(longest >= 1 && longest <= std::numeric_limits<std::int32_t>::max(), "ragged", "longest",
                    "in [1, 2^31)", longest);
  }

  std::vector<std::int64_t> const& shape() const { return shape_; }  ///< the greatest length
  std::int64_t size() const { return shape_[0]; }  ///< the greatest length
  T padding() const { return padding_; }  ///< what fills the rows of a batch
  /// Whether both have the same greatest length.
  friend bool operator==(ragged const& a, ragged const& b) { return a.shape_ == b.shape_; }

 private:
  std::vector<std::int64_t> shape_;
  T padding_;
};

namespace detail {

/// The number of the first field with this name, or that of the fields.
template <class... F> constexpr std::size_t place_of_field(std::string_view name) {
  std::array<std::string_view, sizeof...(F)> const names{F::name.view()...};
  return std::size_t(std::ranges::find(names, name) - names.begin());
}
template <class... F> constexpr bool names_differ() {
  std::size_t i = 0;
  return ((place_of_field<F...>(F::name.view()) == i++) && ...);
}

}  // namespace detail

/// The fields of a record, in order.
template <class... F> class fields {
  static_assert(sizeof...(F) > 0, "fields: a record needs at least one field");
  static_assert(detail::names_differ<F...>(), "fields: two fields of a record have the same name");

 public:
  /// Throws std::invalid_argument if a record has more than 2^60 bytes.
  explicit fields(F... each) : each_(std::move(each)...) {
    std::int64_t left = detail::most_batch_bytes;
    this->each([&](auto i, auto const& f) {
      std::int64_t const size = sizeof(element<i>), most = left / size;
      if (f.size() > most)
        detail::refuse("fields", ("the elements of a record's " + std::string(type<i>::name.view())).c_str(),
                       ("at most " + std::to_string(most) + ", as a record has at most 2^60 bytes").c_str(), f.size());
      left -= f.size() * size;
    });
  }

  static constexpr std::size_t count = sizeof...(F);  ///< of fields
  /// The number of the field with this name.
  template <field_label Name> static constexpr std::size_t place() {
    constexpr std::size_t i = detail::place_of_field<F...>(Name.view());
    static_assert(i < count, "fields: the record has no field of this name");
    return i < count ? i : 0;  // no second error
  }
  /// The type of the i-th field, and of its elements.
  template <std::size_t I> using type = std::tuple_element_t<I, std::tuple<F...>>;
  template <std::size_t I> using element = typename type<I>::element;

  template <std::size_t I> auto const& at() const { return std::get<I>(each_); }  ///< the i-th field
  template <field_label Name> auto const& get() const { return at<place<Name>()>(); }  ///< the field with this name
  /// Calls f(constant, field) for each field; the constant's value is its number.
  template <class Each> void each(Each const& f) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (f(std::integral_constant<std::size_t, I>(), at<I>()), ...);
    }(std::index_sequence_for<F...>());
  }
  /// Bytes of one record without padding. For a ragged field: of the longest one.
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    each([&](auto i, auto const& f) { sum += f.size() * std::int64_t(sizeof(element<i>)); });
    return sum;
  }
  /// Whether all shapes are equal.
  friend bool operator==(fields const&, fields const&) = default;

 private:
  std::tuple<F...> each_;
};

namespace detail {
template <class F> inline constexpr bool is_fields = false;
template <class... F> inline constexpr bool is_fields<fields<F...>> = true;
}  // namespace detail

/// Random numbers of one record: a function of a seed, the epoch and the place in it, so that they do not depend on the
/// thread, the process or the rank that reads the record. A record that comes twice in an epoch has other numbers each
/// time. Also a generator of 32 bits for <random>, whose distributions differ between standard libraries.
class record_random {
 public:
  using result_type = std::uint32_t;  ///< of operator()

  /// Costs nothing until the first number is taken.
  record_random(std::uint64_t seed, std::int64_t epoch, std::int64_t place)
      : key_(seed), epoch_(epoch), block_(place) {}

  static constexpr result_type min() { return 0; }  ///< of operator()
  static constexpr result_type max() { return 0xffffffff; }  ///< of operator()
  /// The next 32 bits.
  result_type operator()() {
    if (left_ == 0) {
      if (!has_key_) take_key();
      words_ = detail::random_at(key_, 0, block_++, stream);
      left_ = 4;
    }
    return words_.word[--left_];
  }
  /// The next number in [0, 1), a multiple of 2^-53.
  double uniform() {
    std::uint64_t const high = (*this)();
    return double((high << 32 | (*this)()) >> 11) * 0x1p-53;
  }
  /// The next number in [0, n), each with the same probability. Throws std::invalid_argument unless n is at least 1.
  std::int64_t below(std::int64_t n) {
    detail::require(n >= 1, "record_random", "n", "at least 1", n);
    auto const of = std::uint64_t(n);
    for (;;) {
      std::uint64_t const high = (*this)(), bits = high << 32 | (*this)();
      if (bits >= (0 - of) % of) return std::int64_t(bits % of);  // all but 2^64 mod n values
    }
  }
  /// The next number of a standard normal distribution, below 6.7 in magnitude. The same bits everywhere.
  float normal() {
    std::uint32_t const a = (*this)();
    return detail::two_normals(a, (*this)()).sin;
  }

 private:
  static constexpr int stream = 239;

  void take_key() {
    detail::random_words const r = detail::random_at(key_, epoch_, block_, stream);
    key_ = std::uint64_t(r.word[1]) << 32 | r.word[0];
    block_ = std::int64_t(r.word[2] >> 1);
    has_key_ = true;
  }

  std::uint64_t key_;  // before there is a key: the seed
  std::int64_t epoch_, block_;  // before there is a key: the place
  bool has_key_ = false;
  detail::random_words words_{};
  int left_ = 0;
};

/// Where read() writes one record. It points into a batch, and is valid during the call.
template <class Fields> class record {
  template <std::size_t I> using element = typename Fields::template element<I>;

 public:
  using fields_type = Fields;  ///< names, types and shapes

  /// `data`: where each field's elements of this record begin. `lengths`: where the length of each ragged field goes.
  record(Fields const& of, std::array<std::byte*, Fields::count> const& data,
         std::array<std::int32_t*, Fields::count> const& lengths)
      : fields_(&of), data_(data), lengths_(lengths) {}

  Fields const& fields() const { return *fields_; }  ///< names, types and shapes
  /// The elements of a field, in the order of its shape. A ragged field: memory for the longest record.
  template <field_label Name> auto get() const { return at<Fields::template place<Name>()>(); }
  template <std::size_t I> std::span<element<I>> at() const {
    return {reinterpret_cast<element<I>*>(data_[I]), std::size_t(fields_->template at<I>().size())};
  }
  /// The first element of a field, for fields of one element.
  template <field_label Name> auto& value() const { return get<Name>()[0]; }
  /// Sets how many elements the record has in a ragged field. Before that it has none. Throws std::invalid_argument
  /// unless it is in [0, longest].
  template <field_label Name> void set_length(std::int64_t n) const {
    constexpr std::size_t i = Fields::template place<Name>();
    static_assert(Fields::template type<i>::is_ragged, "record: set_length() is for ragged fields");
    std::int64_t const longest = fields_->template at<i>().size();
    detail::require(n >= 0 && n <= longest, "record", ("the length of " + std::string(Name.view())).c_str(),
                    ("in [0, " + std::to_string(longest) + "]").c_str(), n);
    *lengths_[i] = std::int32_t(n);
  }
  /// How many elements the record has in a field.
  template <field_label Name> std::int64_t length() const {
    constexpr std::size_t i = Fields::template place<Name>();
    if constexpr (Fields::template type<i>::is_ragged) return *lengths_[i];
    else return fields_->template at<i>().size();
  }
  std::array<std::byte*, Fields::count> const& data() const { return data_; }  ///< where each field begins
  std::array<std::int32_t*, Fields::count> const& lengths() const { return lengths_; }  ///< null if it is not ragged

 private:
  Fields const* fields_;
  std::array<std::byte*, Fields::count> data_;
  std::array<std::int32_t*, Fields::count> lengths_;
};

/// The fields of a source.
template <class S> using fields_of = std::remove_cvref_t<decltype(std::declval<S const&>().fields())>;
/// What read() of a source gets.
template <class S> using record_of = record<fields_of<S>>;

/// A source. read(i, out, random) writes record i, in [0, size()), to `out`. Several threads call it at the same time,
/// each for records of its own. It may throw. Its result depends on i and on `random` only, which has numbers for this
/// record. fields() and size() stay the same.
template <class S> concept source = std::move_constructible<S> && requires(S const s) {
  { s.size() } -> std::same_as<std::int64_t>;
  s.fields();
} && detail::is_fields<fields_of<S>> && requires(S const s, std::int64_t i, record_of<S> const out, record_random& r) {
  s.read(i, out, r);
};

namespace detail {

/// A source that can write `count` records, which follow each other, at once: read_run(first, count, out), where `out`
/// is the first of as many records in a row. The loader calls it where an order takes records in sequence.
template <class S>
concept reads_runs = requires(S const s, std::int64_t i, record_of<S> const out) { s.read_run(i, i, out); };

}  // namespace detail

/// Memory for one record, for sources that read from other sources.
template <class Fields> class record_memory {
 public:
  explicit record_memory(Fields const& of) : fields_(of) {
    std::size_t bytes = 0;
    fields_.each([&](auto i, auto const& f) {
      begin_[i] = bytes;
      bytes += (std::size_t(f.size()) * sizeof(typename Fields::template element<i>) + 63) / 64 * 64;
    });
    bytes_ = std::vector<std::byte>(bytes + 63);
  }

  Fields const& fields() const { return fields_; }  ///< of the record
  /// The record, with ragged fields empty. Valid as long as the memory.
  record<Fields> clear() {
    auto const address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    std::byte* const start = bytes_.data() + (64 - address % 64) % 64;
    std::array<std::byte*, Fields::count> data;
    std::array<std::int32_t*, Fields::count> lengths{};
    fields_.each([&](auto i, auto const&) {
      data[i] = start + begin_[i];
      lengths_[i] = 0;
      if constexpr (Fields::template type<i>::is_ragged) lengths[i] = &lengths_[i];
    });
    return {fields_, data, lengths};
  }

 private:
  Fields fields_;
  std::array<std::size_t, Fields::count> begin_{};
  std::array<std::int32_t, Fields::count> lengths_{};
  std::vector<std::byte> bytes_;
};

}  // namespace descent
