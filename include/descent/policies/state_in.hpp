// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/core/precision.hpp>
#include <descent/core/detail/block.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace descent {

/// The caller's memory for state, by the names of save(): "W.state.m", "W.master", "W.average", "W.slow",
/// "W.remainder". Those of a parameter without elements may be left out, as save() does.
class state_memory {
 public:
  /// A piece as it was added.
  struct entry {
    std::string name;    ///< as for save()
    void* at;            ///< the first element
    std::int64_t count;  ///< of elements, -1 if not known
    char const* type;    ///< of an element: "float", "uint16", ...
  };

  /// Memory in the backend's reach, of the type and number of elements that the optimizer stores. A container or view
  /// also has its number checked.
  template <class T> state_memory& add(std::string name, T* at) & { return take(std::move(name), at, -1); }
  template <detail::array R> state_memory& add(std::string name, R&& elements) & {
    auto const b = detail::block_of(elements);
    return take(std::move(name), b.at, b.count);
  }
  std::vector<entry> const& entries() const { return entries_; }

 private:
  template <class T> state_memory& take(std::string name, T* at, std::int64_t count) {
    static_assert(storage_type<T> || count_type<T> || std::is_same_v<T, std::uint16_t>,
                  "state_memory::add: elements are double, float, half or bfloat16, or std::uint16_t for a remainder, "
                  "std::uint32_t for a count");
    char const* type = "uint16";
    if constexpr (storage_type<T> || count_type<T>) type = type_name<T>();
    entries_.push_back({std::move(name), at, count, type});
    return *this;
  }

  std::vector<entry> entries_;
};

/// Keeps masters, states, averages and slow weights in the caller's memory, for codebases with their own tensors,
/// arenas or checkpoints. A piece that is listed for one parameter must be listed for all that have it; the optimizer
/// owns the other pieces. The memory must stay where it is, and neither overlap nor be written during a step. The
/// constructor throws std::invalid_argument for a name that is no piece of the optimizer, for another type or number of
/// elements, and for memory that is null, not aligned for its type, out of the backend's reach or in use. Cannot be
/// combined with sharded, matrices or gathered().
///
/// On CUDA, memory that is not 16-byte aligned makes its tensor's step slower.
struct state_in {
  /// The list, not null; it must outlive the optimizer.
  state_memory const* where = nullptr;
  /// Whether the memory already has its contents, as from a checkpoint: the constructor then writes nothing to it. All
  /// pieces must be in the list. Call set_step() to continue a run.
  bool initialized = false;

  using policy_kind = kind::state_memory;
  void check() const {
    if (!where) throw std::invalid_argument("state_in: the pointer to the list must not be null");
  }
};

}  // namespace descent
