// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/data/order.hpp>
#include <descent/data/source.hpp>
#include <descent/engine/host/memory_check.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Sources in memory, and sources made of others: `map` changes records, `subset` and `split` take some, `concat` and
/// `repeat` append, `zip` joins fields. They hold their sources by value and read when they are read.
namespace descent {

namespace detail {

/// A record of some of the fields: those from the first on.
template <class Fields, std::size_t First, class Record> record<Fields> part_of(Fields const& of, Record const& out) {
  std::array<std::byte*, Fields::count> data;
  std::array<std::int32_t*, Fields::count> lengths;
  for (std::size_t i = 0; i < Fields::count; ++i)
    data[i] = out.data()[First + i], lengths[i] = out.lengths()[First + i];
  return {of, data, lengths};
}

/// Memory for one record of a thread. It is kept from one read to the next, unless a source reads itself.
template <class Source, class F> void with_record(fields_of<Source> const& of, F const& f) {
  thread_local std::optional<record_memory<fields_of<Source>>> kept;
  auto memory = std::exchange(kept, std::nullopt);
  if (!memory || !(memory->fields() == of)) memory.emplace(of);
  f(memory->clear());
  kept = std::move(memory);
}

}  // namespace detail

/// One field of records in the caller's memory: the elements of all records, one after another.
///
///     column{field<"x", float>{28, 28}, pixels}       with a vector, an array or a span
template <class Field> class column {
 public:
  using element = typename Field::element;  ///< the type of the elements

  /// Refers to the elements. Throws std::invalid_argument if they are no whole number of records, or not in memory of
  /// the host.
  template <class Range> column(Field const& of, Range const& elements) : field_(of), elements_(elements) {
    detail::require(std::int64_t(elements_.size()) % of.size() == 0, "column",
                    ("the number of elements of " + std::string(Field::name.view())).c_str(),
                    ("a multiple of " + std::to_string(of.size())).c_str(), elements_.size());
    detail::require_host_memory({elements_.data(), std::int64_t(elements_.size_bytes()), 1,
                                 "column: the memory of " + std::string(Field::name.view())});
  }

  Field const& as_field() const { return field_; }  ///< name, type and shape
  std::int64_t size() const { return std::int64_t(elements_.size()) / field_.size(); }  ///< of records
  element const* row(std::int64_t i) const { return elements_.data() + i * field_.size(); }  ///< where record i begins

 private:
  Field field_;
  std::span<element const> elements_;
};
template <class Field, class Range> column(Field, Range const&) -> column<Field>;

/// Records in the caller's memory, a column for each field: PyTorch's TensorDataset. The memory must outlive the
/// source.
template <class... Field> class in_memory {
 public:
  /// Throws std::invalid_argument if columns have different numbers of records.
  explicit in_memory(column<Field>... columns) : fields_(columns.as_field()...), columns_(std::move(columns)...) {
    each([&](auto i, auto const& c) {
      detail::require(c.size() == size(), "in_memory",
                      ("the number of records of " + std::string(fields_.template at<i>().name.view())).c_str(),
                      ("that of the first column, " + std::to_string(size())).c_str(), c.size());
    });
  }

  auto const& fields() const { return fields_; }  ///< of the columns
  std::int64_t size() const { return std::get<0>(columns_).size(); }  ///< of each column
  /// Copies one record.
  template <class Record> void read(std::int64_t i, Record const& out, record_random&) const { read_run(i, 1, out); }
  /// Copies records that follow each other.
  template <class Record> void read_run(std::int64_t first, std::int64_t n, Record const& out) const {
    each([&](auto i, auto const& c) {
      std::memcpy(out.data()[i], c.row(first), std::size_t(n * c.as_field().size()) * sizeof(*c.row(0)));
    });
  }

 private:
  template <class F> void each(F const& f) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (f(std::integral_constant<std::size_t, I>(), std::get<I>(columns_)), ...);
    }(std::index_sequence_for<Field...>());
  }

  descent::fields<Field...> fields_;
  std::tuple<column<Field>...> columns_;
};

/// A source whose records are changed by a function, which threads call at the same time:
///
///     map{source, f}              f(out, random) changes the record where it lies
///     map{source, fields, f}      f(in, out, random) makes a record of other fields from the source's
///
/// `random` continues the record's numbers after those that the source took.
template <source S, class Fields, class F> class map {
  static constexpr bool in_place =
      std::is_same_v<Fields, fields_of<S>> && std::is_invocable_v<F const&, record<Fields> const&, record_random&>;
  static_assert(
      in_place || std::is_invocable_v<F const&, record_of<S> const&, record<Fields> const&, record_random&>,
      "map: the function must be f(out, random), or f(in, out, random) if fields are given, and be callable if const");

 public:
  map(S from, F f) requires std::is_same_v<Fields, fields_of<S>>
      : from_(std::move(from)), fields_(from_.fields()), f_(std::move(f)) {}
  map(S from, Fields to, F f) : from_(std::move(from)), fields_(std::move(to)), f_(std::move(f)) {}

  Fields const& fields() const { return fields_; }  ///< after the function
  std::int64_t size() const { return from_.size(); }  ///< of the source
  /// Reads record i of the source and calls the function.
  template <class Record> void read(std::int64_t i, Record const& out, record_random& random) const {
    if constexpr (in_place) {
      from_.read(i, out, random);
      f_(out, random);
    } else {
      detail::with_record<S>(from_.fields(), [&](record_of<S> const& in) {
        from_.read(i, in, random);
        f_(in, out, random);
      });
    }
  }

 private:
  S from_;
  Fields fields_;
  F f_;
};
template <class S, class F> map(S, F) -> map<S, fields_of<S>, F>;
template <class S, class Fields, class F> map(S, Fields, F) -> map<S, Fields, F>;

/// Some records of a source: those at so many places from the first on, see order.hpp.
template <source S, epoch_places Places> class subset {
 public:
  /// The records [first, first + count).
  subset(S from, std::int64_t first, std::int64_t count) requires std::same_as<Places, sequential::places>
      : subset(std::move(from), sequential::places{count}, first, count) {}
  /// The records of a list.
  subset(S from, std::vector<std::int64_t> records) requires std::same_as<Places, listed>
      : from_(std::move(from)), places_(std::move(records)), count_(places_.size()) {
    std::string const range = "in [0, " + std::to_string(from_.size()) + ")";
    for (std::int64_t i = 0; i < count_; ++i)
      detail::require_entry(places_[i] >= 0 && places_[i] < from_.size(), "subset", "records", std::size_t(i),
                            range.c_str(), places_[i]);
  }
  /// The records at the places [first, first + count). Throws std::invalid_argument if they are not there.
  subset(S from, Places places, std::int64_t first, std::int64_t count)
      : from_(std::move(from)), places_(std::move(places)), first_(first), count_(count) {
    std::int64_t const n = from_.size();
    detail::require(first >= 0 && first <= n, "subset", "first", ("in [0, " + std::to_string(n) + "]").c_str(), first);
    detail::require(count >= 0 && count <= n - first, "subset", "count",
                    ("in [0, " + std::to_string(n - first) + "]").c_str(), count);
  }

  decltype(auto) fields() const { return from_.fields(); }  ///< of the source
  std::int64_t size() const { return count_; }  ///< of the subset
  /// Reads the i-th record of the subset.
  template <class Record> void read(std::int64_t i, Record const& out, record_random& random) const {
    from_.read(places_[first_ + i], out, random);
  }

 private:
  S from_;
  Places places_;
  std::int64_t first_ = 0, count_;
};
template <class S> subset(S, std::int64_t, std::int64_t) -> subset<S, sequential::places>;
template <class S> subset(S, std::vector<std::int64_t>) -> subset<S, listed>;

/// Two subsets that have each record once, for training and validation: `count` records drawn by the seed, and the
/// rest. Throws std::invalid_argument unless count is in [0, size()].
template <source S> auto split_at(S const& from, std::int64_t count, std::uint64_t seed = 0) {
  std::int64_t const n = from.size();
  detail::require(count >= 0 && count <= n, "split_at", "count", ("in [0, " + std::to_string(n) + "]").c_str(), count);
  permutation const order(n, seed, 0);
  return std::pair(subset<S, permutation>(from, order, 0, count),
                   subset<S, permutation>(from, order, count, n - count));
}
/// The same with a fraction of the records, rounded to the nearest number. Throws std::invalid_argument unless it is in
/// [0, 1].
template <source S> auto split(S const& from, double fraction, std::uint64_t seed = 0) {
  detail::require(fraction >= 0 && fraction <= 1, "split", "the fraction", "in [0, 1]", fraction);
  return split_at(from, std::min(std::int64_t(fraction * double(from.size()) + 0.5), from.size()), seed);
}

/// The records of one source after those of another, with the same fields: PyTorch's ConcatDataset.
template <source... S> class concat {
  using first_fields = fields_of<std::tuple_element_t<0, std::tuple<S...>>>;
  static_assert((std::is_same_v<fields_of<S>, first_fields> && ...),
                "concat: all sources must have fields of the same names and types, in the same order");

 public:
  /// Throws std::invalid_argument if shapes differ, or if all sources together have more than 2^48 records.
  explicit concat(S... sources) : sources_(std::move(sources)...) {
    std::size_t k = 0;
    std::int64_t sum = 0;
    each([&](auto const& s) {
      if (!(s.fields() == fields()))
        throw std::invalid_argument("concat: source " + std::to_string(k) + " has other shapes than source 0");
      std::int64_t const n = s.size(), room = detail::most_examples - sum;
      detail::require_entry(n >= 0 && n <= room, "concat", "the sizes of the sources", k,
                            ("in [0, " + std::to_string(room) + "], as all have at most 2^48 records").c_str(), n);
      sizes_[k++] = n, sum += n;
    });
  }

  decltype(auto) fields() const { return std::get<0>(sources_).fields(); }  ///< of each source
  std::int64_t size() const { return sum_of(sizes_); }  ///< of all sources together
  std::vector<std::int64_t> sizes() const { return {sizes_.begin(), sizes_.end()}; }  ///< of each source
  /// Reads the record from the source that has it.
  template <class Record> void read(std::int64_t i, Record const& out, record_random& random) const {
    std::size_t k = 0;
    bool found = false;
    each([&](auto const& s) {
      if (found) return;
      if (i < sizes_[k]) found = true, s.read(i, out, random);
      else i -= sizes_[k++];
    });
  }

 private:
  template <class F> void each(F const& f) const {
    std::apply([&](S const&... s) { (f(s), ...); }, sources_);
  }
  static std::int64_t sum_of(std::array<std::int64_t, sizeof...(S)> const& sizes) {
    std::int64_t sum = 0;
    for (auto const n : sizes) sum += n;
    return sum;
  }

  std::tuple<S...> sources_;
  std::array<std::int64_t, sizeof...(S)> sizes_{};
};

/// Records with the fields of all sources, which have the same number of records: PyTorch's StackDataset.
template <source... S> class zip {
  template <class... F, class... G> static auto joined(descent::fields<F...> const& a, descent::fields<G...> const& b) {
    return [&]<std::size_t... I, std::size_t... J>(std::index_sequence<I...>, std::index_sequence<J...>) {
      return descent::fields<F..., G...>(a.template at<I>()..., b.template at<J>()...);
    }(std::index_sequence_for<F...>(), std::index_sequence_for<G...>());
  }
  template <class A> static A all(A a) { return a; }
  template <class A, class B, class... More> static auto all(A const& a, B const& b, More const&... more) {
    return all(joined(a, b), more...);
  }

 public:
  /// Throws std::invalid_argument if sources have different numbers of records.
  explicit zip(S... sources) : fields_(all(sources.fields()...)), sources_(std::move(sources)...) {
    std::apply(
        [&](auto const&... s) {
          std::size_t k = 0;
          (detail::require_entry(s.size() == size(), "zip", "the sizes of the sources", k++,
                                 ("that of the first, " + std::to_string(size())).c_str(), s.size()),
           ...);
        },
        sources_);
  }

  auto const& fields() const { return fields_; }  ///< of all sources, in order
  std::int64_t size() const { return std::get<0>(sources_).size(); }  ///< of each source
  /// Reads the record of each source.
  template <class Record> void read(std::int64_t i, Record const& out, record_random& random) const {
    each_part(out, [&](auto const& s, auto const& part) { s.read(i, part, random); });
  }
  /// The same for records that follow each other, if all sources can.
  template <class Record> void read_run(std::int64_t first, std::int64_t n, Record const& out) const
      requires(detail::reads_runs<S> && ...) {
    each_part(out, [&](auto const& s, auto const& part) { s.read_run(first, n, part); });
  }

 private:
  static constexpr std::size_t begin_of(std::size_t source) {
    std::array<std::size_t, sizeof...(S)> const counts{fields_of<S>::count...};
    std::size_t begin = 0;
    for (std::size_t k = 0; k < source; ++k) begin += counts[k];
    return begin;
  }
  template <std::size_t K, class Record, class F> void with_part(Record const& out, F const& f) const {
    auto const& s = std::get<K>(sources_);
    auto const& of = s.fields();  // lives as long as the record
    f(s, detail::part_of<std::remove_cvref_t<decltype(of)>, begin_of(K)>(of, out));
  }
  template <class Record, class F> void each_part(Record const& out, F const& f) const {
    [&]<std::size_t... K>(std::index_sequence<K...>) { (with_part<K>(out, f), ...); }(std::index_sequence_for<S...>());
  }

  decltype(all(std::declval<S const&>().fields()...)) fields_;
  std::tuple<S...> sources_;
};

/// The records of a source several times, one round after another.
template <source S> class repeat {
 public:
  /// Throws std::invalid_argument unless times is at least 0 and there are at most 2^48 records then.
  repeat(S from, std::int64_t times) : from_(std::move(from)), times_(times) {
    std::int64_t const most = detail::most_examples / std::max<std::int64_t>(from_.size(), 1);
    detail::require(times >= 0 && times <= most, "repeat", "times", ("in [0, " + std::to_string(most) + "]").c_str(),
                    times);
  }

  decltype(auto) fields() const { return from_.fields(); }  ///< of the source
  std::int64_t size() const { return from_.size() * times_; }  ///< of all rounds
  /// Reads record i mod the source's size.
  template <class Record> void read(std::int64_t i, Record const& out, record_random& random) const {
    from_.read(i % from_.size(), out, random);
  }

 private:
  S from_;
  std::int64_t times_;
};

}  // namespace descent
