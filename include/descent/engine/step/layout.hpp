// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/core/math.hpp>
#include <descent/core/detail/containers.hpp>
#include <descent/parameters.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// Where every element is. Each tensor is divided into chunks of a fixed size, numbered across all tensors. A chunk is
/// a sequence of packets. Nothing here depends on threads, blocks or devices.
namespace descent::detail {

inline constexpr std::int64_t packet_size = 8;     // a 16-bit packet is one 16-byte access
inline constexpr std::int64_t chunk_size = 4096;   // elements; each chunk has one partial sum
inline constexpr std::int64_t chunk_packets = chunk_size / packet_size;
inline constexpr std::int64_t arena_alignment = 64;  // elements
/// The limit for all tensors: beyond any memory, but the bytes of all buffers on all ranks still fit in 64 bits.
inline constexpr std::int64_t most_elements = std::int64_t{1} << 48;

/// One tensor as kernels see it. Its offset `arena` is the same in every buffer of masters and states.
template <class Value, class Gradient> struct alignas(16) tensor_record {
  typename types<Value>::pointer value;
  typename types<Gradient>::pointer gradient;
  std::int64_t count, first_chunk, arena;
  std::int32_t group;
  bool aligned;  // every packet of value and gradient is 16-byte aligned
  std::uint8_t types;
  bool matrix;  // updated by the matrix rule

  std::int64_t value_size() const { return detail::types<Value>::sizes[types]; }
  std::int64_t gradient_size() const { return detail::types<Gradient>::sizes[types]; }
};

/// The elements of a tensor in one of its chunks.
struct chunk_span {
  std::int64_t begin;
  int size;
};
template <class Record> DESCENT_HD chunk_span span_of(std::int64_t chunk, Record const& tensor) {
  std::int64_t const begin = (chunk - tensor.first_chunk) * chunk_size, left = tensor.count - begin;
  return {begin, int(left < chunk_size ? left : chunk_size)};
}

/// A packet of any storage type takes a multiple of 16 bytes.
inline bool packets_aligned(void const* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

DESCENT_HD inline std::int64_t chunks_of(std::int64_t count) { return (count + chunk_size - 1) / chunk_size; }
inline std::int64_t arena_of(std::int64_t count) {
  return (count + arena_alignment - 1) / arena_alignment * arena_alignment;
}

/// New addresses of a tensor, and whether every packet is 16-byte aligned there: of the value, and of both.
struct tensor_addresses {
  void *value, *gradient;
  bool value_aligned, aligned;
};

/// A tensor's gradients in the caller's memory, and the bytes of one element.
struct gradient_memory {
  void* at;
  std::int64_t size;
};

struct sum_over_ranks {};

/// Memory, and what it is called in messages.
struct memory_range {
  std::uintptr_t begin, end;
  char const* what;         // "the value", or null if the name says it
  std::string const* name;  // null if `what` says it

  static memory_range of(void const* p, std::int64_t bytes, char const* what, std::string const& name) {
    auto const begin = reinterpret_cast<std::uintptr_t>(p);
    return {begin, begin + std::size_t(bytes), what, &name};
  }
  /// Memory that `what` alone describes.
  static memory_range called(char const* what, void const* p, std::int64_t bytes) {
    auto const begin = reinterpret_cast<std::uintptr_t>(p);
    return {begin, begin + std::size_t(bytes), what, nullptr};
  }
  std::string text() const {
    if (!name) return what;
    return what ? std::string(what) + " of '" + *name + "'" : "'" + *name + "'";
  }
};
/// A step writes all that it is given, so no two ranges may overlap.
inline void refuse_overlaps(std::vector<memory_range>& ranges) {
  sort_plain(ranges, [](memory_range const& a, memory_range const& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end)
      throw std::invalid_argument(ranges[i - 1].text() + " overlaps " + ranges[i].text() + " in memory");
}

/// A run of chunks and its range in an arena.
struct chunk_run { std::int64_t first_chunk = 0, chunks = 0, first = 0, size = 0; };

/// Converts an offset in the arena to one in another buffer, where `first` becomes `part`.
struct arena_offset {
  std::int64_t first = 0, part = 0;
  DESCENT_HD std::int64_t operator()(std::int64_t arena) const { return arena - first + part; }
};

/// Some of a tensor's elements.
struct tensor_part { std::int64_t begin, size; };

/// What this rank keeps state for, in buffers of `size` elements: all elements, unless ranks share the state.
struct own_shard {
  std::int64_t size = 0;
  // If shared:
  std::vector<std::int64_t> chunks;  // of this rank, those of matrices last
  std::int64_t rule_chunks = 0;      // the others
  std::vector<tensor_part> parts;    // of each tensor
  std::vector<arena_offset> arena_offsets;  // of each tensor's part
  // With matrices, which have no state of the optimizer's rule: the elements that have it, and their places in it.
  std::int64_t rule_size = 0;
  std::vector<arena_offset> rule_offsets;
};

template <class Value, class Gradient> struct layout {
  std::vector<tensor_record<Value, Gradient>> tensors;
  std::vector<std::int32_t> tensor_of_chunk;
  std::vector<std::string> names;
  std::vector<std::int64_t> columns;  // of each tensor
  std::vector<held> holdings;         // of each tensor, if ranks share the model
  std::vector<double> costs;  // of each tensor's matrix products, if ranks share the matrices
  std::string read_only;  // the first tensor whose gradient is const, or empty
  std::int64_t elements = 0, arena = 0;
  int groups = 1;
  std::int64_t rule_chunks = 0, rule_arena = 0;  // of what the rule updates; matrices come after
  std::vector<gradient_memory> own_gradients;  // if the step reads a sum over ranks instead
  own_shard own;

  // Own is deduced because parameters<Value, Gradient> may be invalid: Gradient can be the type of a sum over ranks.
  template <std::same_as<Gradient> Own>
  explicit layout(parameters<Value, Own> const& params) : layout(params, [](auto const&) { return false; }) {}

  /// is_matrix(view): whether the matrix rule updates the view.
  template <std::same_as<Gradient> Own, class IsMatrix>
  layout(parameters<Value, Own> const& params, IsMatrix const& is_matrix) {
    for (auto const& v : params.views()) {
      tensors.push_back({v.value, v.gradient, v.count, 0, 0, v.group,
                         packets_aligned(v.value) && packets_aligned(v.gradient), std::uint8_t(v.types), is_matrix(v)});
      names.push_back(v.name);
      columns.push_back(v.columns);
      holdings.push_back(v.as);
      if (!v.writes && read_only.empty()) read_only = v.name;
      elements += v.count;
      require(elements <= most_elements, "parameters", "the elements of all together", "at most 2^48", elements);
      if (v.group >= groups) groups = v.group + 1;
    }
    places_ = name_table(names);
    auto ranges = memory_ranges();
    refuse_overlaps(ranges);
    arrange_all();
    own.size = arena;
  }

  /// Tensors without addresses: those of a model that ranks share.
  layout(std::vector<tensor_record<Value, Gradient>> records, std::vector<std::string> all_names,
         std::vector<std::int64_t> all_columns)
      : tensors(std::move(records)), names(std::move(all_names)), columns(std::move(all_columns)), places_(names) {
    for (auto const& x : tensors) {
      elements += x.count;
      require(elements <= most_elements, "model_parallel", "the elements of all ranks", "at most 2^48", elements);
      if (x.group >= groups) groups = x.group + 1;
    }
    arrange_all();
  }

  /// The same elements with the sum over ranks, which is in the engine's memory, as the gradient.
  template <class Own>
  layout(sum_over_ranks, layout<Value, Own> const& given)
      : tensor_of_chunk(given.tensor_of_chunk), names(given.names), columns(given.columns), holdings(given.holdings),
        read_only(given.read_only), elements(given.elements), arena(given.arena), groups(given.groups),
        rule_chunks(given.rule_chunks), rule_arena(given.rule_arena), places_(given.places_) {
    for (auto const& x : given.tensors) {
      tensors.push_back(
          {x.value, nullptr, x.count, x.first_chunk, x.arena, x.group, packets_aligned(x.value), x.types, x.matrix});
      own_gradients.push_back({x.gradient, x.gradient_size()});
    }
    own.size = arena;
  }

  /// Where a chunk begins in the arena; for chunks(), where the arena ends.
  std::int64_t arena_at(std::int64_t chunk) const {
    if (chunk == chunks()) return arena;
    auto const& x = tensors[std::size_t(tensor_of_chunk[std::size_t(chunk)])];
    return x.arena + (chunk - x.first_chunk) * chunk_size;
  }
  std::int64_t chunks() const { return std::int64_t(tensor_of_chunk.size()); }

  gradient_memory callers_gradient(std::size_t tensor) const {
    if (!own_gradients.empty()) return own_gradients[tensor];
    return {tensors[tensor].gradient, tensors[tensor].gradient_size()};
  }

  /// The addresses that the same tensors have in another list, in this one's order. Throws std::invalid_argument if the
  /// lists differ in more than addresses and order.
  template <class Own> std::vector<tensor_addresses> addresses_in(layout<Value, Own> const& list) const {
    auto const counted = [](std::size_t n) { return std::to_string(n) + (n == 1 ? " parameter" : " parameters"); };
    if (list.tensors.size() != tensors.size())
      throw std::invalid_argument("rebind: the optimizer has " + counted(tensors.size()) + ", the list has " +
                                  std::to_string(list.tensors.size()));
    std::vector<tensor_addresses> all;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      auto const fail = [&](std::string const& what) {
        throw std::invalid_argument("rebind: parameter '" + names[t] + "' " + what);
      };
      std::int64_t const place = list.place_of(names[t]);
      if (place < 0) fail("is not in the list");
      auto const& now = list.tensors[std::size_t(place)];
      std::int64_t const of = columns[t], is = list.columns[std::size_t(place)];
      if (now.count != tensors[t].count || is != of)
        fail("has " + std::to_string(tensors[t].count) + " elements in rows of " + std::to_string(of) +
             ", in the list " + std::to_string(now.count) + " in rows of " + std::to_string(is));
      if (now.types != tensors[t].types) fail("has other types in the list");
      if (now.group != tensors[t].group)
        fail("is in group " + std::to_string(tensors[t].group) + ", in the list in group " + std::to_string(now.group));
      bool const value_aligned = packets_aligned(now.value);
      all.push_back({now.value, now.gradient, value_aligned, value_aligned && packets_aligned(now.gradient)});
    }
    return all;
  }
  void rebind(std::vector<tensor_addresses> const& addresses) {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      auto& x = tensors[t];
      tensor_addresses const& to = addresses[t];
      x.value = static_cast<decltype(x.value)>(to.value);
      x.aligned = own_gradients.empty() ? to.aligned : to.value_aligned;
      if (own_gradients.empty()) x.gradient = static_cast<decltype(x.gradient)>(to.gradient);
      else own_gradients[t].at = to.gradient;
    }
  }

  /// Where values and the caller's gradients are.
  std::vector<tensor_addresses> addresses() const {
    std::vector<tensor_addresses> all;
    for (std::size_t t = 0; t < tensors.size(); ++t)
      all.push_back({tensors[t].value, callers_gradient(t).at, packets_aligned(tensors[t].value), tensors[t].aligned});
    return all;
  }
  /// The values and gradients of all tensors that are not empty.
  std::vector<memory_range> memory_ranges() const { return ranges_at(addresses()); }
  /// The same at other addresses.
  std::vector<memory_range> ranges_at(std::vector<tensor_addresses> const& addresses) const {
    std::vector<memory_range> ranges;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      std::int64_t const n = tensors[t].count;
      if (n == 0) continue;
      ranges.push_back(memory_range::of(addresses[t].value, n * tensors[t].value_size(), "the value", names[t]));
      ranges.push_back(memory_range::of(addresses[t].gradient, n * callers_gradient(t).size, "the gradient", names[t]));
    }
    return ranges;
  }

  std::size_t find(std::string const& name) const {
    std::int64_t const t = place_of(name);
    if (t < 0) throw std::invalid_argument("there is no parameter '" + name + "'");
    return std::size_t(t);
  }
  /// The same, but -1 if there is none.
  std::int64_t place_of(std::string const& name) const { return places_.find(name, names); }

 private:
  template <class, class> friend struct layout;

  /// Assigns chunks and offsets in the arenas, to the matrices last.
  void arrange_all() {
    arrange(false);
    rule_chunks = chunks(), rule_arena = arena;
    arrange(true);
  }
  void arrange(bool matrices) {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      auto& x = tensors[t];
      if (x.matrix != matrices) continue;
      x.first_chunk = chunks();
      x.arena = arena;
      tensor_of_chunk.resize(tensor_of_chunk.size() + std::size_t(chunks_of(x.count)), std::int32_t(t));
      arena += arena_of(x.count);
    }
  }

  name_table places_;
};

}  // namespace descent::detail
