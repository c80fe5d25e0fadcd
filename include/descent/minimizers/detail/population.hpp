// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/host.hpp>
#include <descent/core/precision.hpp>
#include <descent/engine/host/memory.hpp>
#include <descent/engine/host/memory_check.hpp>
#include <descent/engine/step/layout.hpp>
#include <descent/policies/noise.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

/// Exact copies of all values, each in its own slot, for algorithms that keep several sets of parameters.
namespace descent::detail {

inline constexpr int mutation_stream = 244;  // and 245

/// The memory of all slots. A tensor's values are at its offset in the arena, which has room for the largest type.
template <class Value> struct snapshot_view {
  static constexpr std::int64_t largest = std::ranges::max(types<Value>::sizes);
  using real = std::conditional_t<types<Value>::any_double, double, float>;
  std::byte* data;
  std::int64_t arena;

  std::int64_t bytes_of_slot() const { return arena * largest; }
  template <class T> DESCENT_HD T* at(int slot, std::int64_t tensor) const {
    return reinterpret_cast<T*>(data + (slot * arena + tensor) * largest);
  }
};

/// Operations on a packet: the n elements from i on of the tensor whose values are `value` and whose offset in the
/// arena is `tensor`.
template <class Value> struct save_packet {
  snapshot_view<Value> slots;
  int slot;
  template <class T> DESCENT_HD void operator()(T* value, std::int64_t tensor, std::int64_t i, int n) const {
    T* to = slots.template at<T>(slot, tensor) + i;
    for (int j = 0; j < n; ++j) to[j] = value[i + j];
  }
};
template <class Value> struct load_packet {
  snapshot_view<Value> slots;
  int slot;
  template <class T> DESCENT_HD void operator()(T* value, std::int64_t tensor, std::int64_t i, int n) const {
    T const* from = slots.template at<T>(slot, tensor) + i;
    for (int j = 0; j < n; ++j) value[i + j] = from[j];
  }
};
/// slot <- (x_1 + ... + x_rho) / rho + deviation N(0, 1), rounded to the type of the values.
template <class Value> struct recombine_packet {
  using real = typename snapshot_view<Value>::real;
  snapshot_view<Value> slots;
  int slot, rho;
  int const* parents;
  real deviation;
  std::uint64_t seed;
  std::int64_t step;
  template <class T> DESCENT_HD void operator()(T*, std::int64_t tensor, std::int64_t i, int n) const {
    float z[packet_size];
    normals(z, seed, step, (tensor + i) / packet_size, mutation_stream);
    for (int j = 0; j < n; ++j) {
      real sum = 0;
      for (int r = 0; r < rho; ++r) sum = sum + widen<real>(slots.template at<T>(parents[r], tensor)[i + j]);
      slots.template at<T>(slot, tensor)[i + j] = narrow<T>(sum / real(rho) + deviation * real(z[j]));
    }
  }
};

/// Applies body to a packet of a tensor, with the type of its values.
template <class Value, int I = 0, class Record, class Body>
DESCENT_HD void on_packet(Record const& t, std::int64_t i, int n, Body const& body) {
  if constexpr (I + 1 < types<Value>::count) {
    if (t.types != I) return on_packet<Value, I + 1>(t, i, n, body);
  }
  body(static_cast<typename types<Value>::template at<I>*>(t.value), t.arena, i, n);
}

template <class Value, class Gradient, class Backend> class population;

template <class Value, class Gradient, class System> class population<Value, Gradient, host<System>> {
 public:
  /// Throws std::invalid_argument like optimizer.
  population(parameters<Value, Gradient> const& params, int slots, host<System> const&) : where_(params) {
    require_host_tensors(where_);
    snapshot_view<Value> const view{nullptr, where_.arena};
    memory_ = allocate_host(std::size_t(slots * view.bytes_of_slot()));
  }

  std::int64_t elements() const { return where_.elements; }
  std::int64_t bytes_of_slot() const { return view().bytes_of_slot(); }
  void save(int slot) const { on_packets(save_packet<Value>{view(), slot}); }
  void load(int slot) const { on_packets(load_packet<Value>{view(), slot}); }
  /// Sets the slot to the mean of the parents, which are other slots, plus noise of this deviation.
  void recombine(int slot, std::vector<int> const& parents, double deviation, std::uint64_t seed, std::int64_t step) {
    using body = recombine_packet<Value>;
    on_packets(body{view(), slot, int(parents.size()), parents.data(), typename body::real(deviation), seed, step});
  }

 private:
  snapshot_view<Value> view() const { return {memory_.get(), where_.arena}; }

  template <class Body> void on_packets(Body const& body) const {
    auto const chunk = [&](std::int64_t c) {
      auto const& t = where_.tensors[std::size_t(where_.tensor_of_chunk[std::size_t(c)])];
      auto const [begin, size] = span_of(c, t);
      for (int i = 0; i < size; i += int(packet_size))
        on_packet<Value>(t, begin + i, std::min(size - i, int(packet_size)), body);
    };
    each_of<System>(where_.elements, where_.chunks(), chunk);
  }

  layout<Value, Gradient> where_;
  host_memory memory_;
};

}  // namespace descent::detail
