// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/source.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace descent {

namespace detail {

/// Where the fields of a batch lie in one block of memory: for each field the rows of all records, then the lengths of
/// ragged ones. Each begins at a multiple of 256 bytes.
template <class Fields> struct batch_layout {
  static constexpr std::size_t count = Fields::count;

  /// Throws std::invalid_argument if the records have more than 2^60 bytes.
  batch_layout(Fields const& of, std::int64_t records) : fields(of) {
    std::int64_t const most = most_batch_bytes / (of.bytes() + std::int64_t(count * sizeof(std::int32_t)));
    if (records < 0 || records > most)
      refuse("batch", "the number of records",
             ("at most " + std::to_string(most) + ", as a batch has at most 2^60 bytes").c_str(), records);
    auto const take = [&](std::size_t size) { return std::exchange(bytes, bytes + (size + 255) / 256 * 256); };
    fields.each([&](auto i, auto const& f) {
      row_bytes[i] = std::size_t(f.size()) * sizeof(typename Fields::template element<i>);
      begin[i] = take(row_bytes[i] * std::size_t(records));
    });
    fields.each([&](auto i, auto const&) {
      if constexpr (Fields::template type<i>::is_ragged) lengths[i] = take(sizeof(std::int32_t) * std::size_t(records));
    });
  }

  std::int32_t* lengths_at(std::size_t i, std::byte* block) const {
    return lengths[i] == 0 ? nullptr : reinterpret_cast<std::int32_t*>(block + lengths[i]);
  }
  /// Record k of the batch at `block`.
  record<Fields> row(std::byte* block, std::int64_t k) const {
    std::array<std::byte*, count> data;
    std::array<std::int32_t*, count> n{};
    for (std::size_t i = 0; i < count; ++i) {
      data[i] = block + begin[i] + std::size_t(k) * row_bytes[i];
      if (lengths[i] != 0) n[i] = lengths_at(i, block) + k;
    }
    return {fields, data, n};
  }
  /// Moves record `from` to the place of an earlier one.
  void move_row(std::byte* block, std::int64_t from, std::int64_t to) const {
    for (std::size_t i = 0; i < count; ++i) {
      std::byte* const data = block + begin[i];
      std::memcpy(data + std::size_t(to) * row_bytes[i], data + std::size_t(from) * row_bytes[i], row_bytes[i]);
      if (lengths[i] != 0) lengths_at(i, block)[to] = lengths_at(i, block)[from];
    }
  }
  /// Makes the rows of ragged fields as long as their longest record, fills them up, and returns the lengths of rows.
  std::array<std::int64_t, count> pad(std::byte* block, std::int64_t records) const {
    std::array<std::int64_t, count> width;
    fields.each([&](auto i, auto const& f) {
      width[i] = f.size();
      if constexpr (Fields::template type<i>::is_ragged) {
        auto* const data = reinterpret_cast<typename Fields::template element<i>*>(block + begin[i]);
        std::int32_t const* const n = lengths_at(i, block);
        width[i] = records == 0 ? 0 : *std::max_element(n, n + records);
        for (std::int64_t k = 0; k < records; ++k) {
          auto* const row = data + k * width[i];
          std::copy_n(data + k * f.size(), n[k], row);
          std::fill(row + n[k], row + width[i], f.padding());
        }
      }
    });
    return width;
  }

  /// Where the elements of so many records lie, with rows of these lengths, and how many such parts there are.
  template <class Used>
  std::size_t used(Used& parts, std::int64_t records, std::array<std::int64_t, count> const& width) const {
    std::size_t n = 0;
    fields.each([&](auto i, auto const&) {
      std::size_t const rows = std::size_t(records * width[i]) * sizeof(typename Fields::template element<i>);
      if (rows > 0) parts[n++] = {begin[i], rows};
      if (lengths[i] != 0 && records > 0) parts[n++] = {lengths[i], sizeof(std::int32_t) * std::size_t(records)};
    });
    return n;
  }

  Fields fields;
  std::array<std::size_t, count> row_bytes{}, begin{}, lengths{};  // lengths: 0 for fields that are not ragged
  std::size_t bytes = 0;
};

/// What a batch refers to.
template <class Fields> struct batch_data {
  batch_layout<Fields> const* layout = nullptr;
  std::byte* block = nullptr;  // where the user reads it
  std::array<std::int64_t, Fields::count> width{};  // elements of a row
  std::int64_t size = 0, global_size = 0, epoch = 0, index = 0;
  bool is_last = false;
  std::vector<std::int64_t> records{};
};

}  // namespace detail

/// A batch of records, or the part of it that this rank takes. Its memory belongs to the loader and is valid until the
/// next batch is asked for: host memory, or with a CUDA backend device memory, ready in the order of the stream.
template <class Fields> class batch {
 public:
  explicit batch(detail::batch_data<Fields> const& of) : of_(&of) {}

  /// The elements of a field: size() rows, one after another. A row has the elements of the field's shape, or of a
  /// ragged field as many as the longest record of this batch.
  template <field_label Name> auto get() const {
    constexpr std::size_t i = Fields::template place<Name>();
    using element = typename Fields::template element<i>;
    return std::span<element>(reinterpret_cast<element*>(of_->block + of_->layout->begin[i]),
                              std::size_t(of_->size * of_->width[i]));
  }
  /// The extents of get(): size(), and those of a row.
  template <field_label Name> std::vector<std::int64_t> shape() const {
    constexpr std::size_t i = Fields::template place<Name>();
    std::vector<std::int64_t> all = of_->layout->fields.template at<i>().shape();
    if (Fields::template type<i>::is_ragged) all = {of_->width[i]};
    all.insert(all.begin(), of_->size);
    return all;
  }
  /// The lengths of the records in a ragged field, beside the elements.
  template <field_label Name> std::span<std::int32_t const> lengths() const {
    constexpr std::size_t i = Fields::template place<Name>();
    static_assert(Fields::template type<i>::is_ragged, "batch: only ragged fields have lengths");
    return {of_->layout->lengths_at(i, of_->block), std::size_t(of_->size)};
  }

  /// Records here: the weight of this rank, see optimizer::step(weight).
  std::int64_t size() const { return of_->size; }
  std::int64_t global_size() const { return of_->global_size; }  ///< places of the batch on all ranks together
  std::int64_t epoch() const { return of_->epoch; }  ///< from 0 on
  std::int64_t index() const { return of_->index; }  ///< of the batch in its epoch, from 0 on
  bool is_last() const { return of_->is_last; }  ///< of its epoch
  std::span<std::int64_t const> records() const { return of_->records; }  ///< their numbers in the source; on the host

 private:
  detail::batch_data<Fields> const* of_;
};

}  // namespace descent
