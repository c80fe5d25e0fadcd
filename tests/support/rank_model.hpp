// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/precision.hpp>
#include <descent/parameters.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

/// What a rank trains in tests: values, and gradients that depend on the rank and the step.
namespace ranks {

/// Tensors of odd sizes, also 0 and several chunks; fewer with the thread sanitizer.
#if defined(DESCENT_THREAD_SANITIZER)
inline std::vector<std::size_t> const sizes{4099, 1, 0, 7};
#else
inline std::vector<std::size_t> const sizes{4099, 1, 0, 8195, 7, 4096};
#endif

inline double some(std::uint64_t seed) {
  seed = (seed ^ seed >> 31) * 0x9e3779b97f4a7c15;
  seed = (seed ^ seed >> 29) * 0xbf58476d1ce4e5b9;
  return double(std::int64_t(seed >> 20) % 2048 - 1024) / 1024;
}

inline double gradient_of(int rank, int step, std::size_t tensor, std::size_t i) {
  return some(i + 31 * tensor + 1009 * std::uint64_t(step) + 999983 * std::uint64_t(rank));
}

/// Values and gradients of one rank. Gradients are multiples of 2^-10 in [-1, 1]: sums over a few ranks are exact.
template <class Value, class Gradient = Value> struct model {
  std::vector<std::vector<Value>> value;
  std::vector<std::vector<Gradient>> gradient;

  explicit model(int seed = 0, std::vector<std::size_t> const& of = sizes) {
    for (std::size_t t = 0; t < of.size(); ++t) {
      value.emplace_back(of[t]);
      gradient.emplace_back(of[t]);
      for (std::size_t i = 0; i < of[t]; ++i)
        value[t][i] = descent::narrow<Value>(some(i + 77 * t + 1000003u * std::uint64_t(seed)));
    }
  }
  /// Every second one has a shape, with the fewest columns above 1 that divide its size: rows cross chunks and ranks.
  descent::parameters<Value, Gradient> list() {
    descent::parameters<Value, Gradient> all;
    for (std::size_t t = 0; t < value.size(); ++t) {
      auto const size = std::int64_t(value[t].size());
      std::int64_t columns = t % 2 && size > 1 ? 2 : 1;
      while (columns > 1 && size % columns != 0) ++columns;
      all.add("w" + std::to_string(t), value[t].data(), gradient[t].data(), descent::shape{size / columns, columns},
              descent::group{int(t % 2)});
    }
    return all;
  }
  /// Sets the sum of the gradients of ranks first, ..., last - 1 at step t, times a factor.
  void set(int t, int first, int last, double factor = 1) {
    for (std::size_t k = 0; k < value.size(); ++k)
      for (std::size_t i = 0; i < value[k].size(); ++i) {
        double sum = 0;
        for (int r = first; r < last; ++r) sum += gradient_of(r, t, k, i);
        gradient[k][i] = descent::narrow<Gradient>(sum * factor);
      }
  }
  bool operator==(model const& other) const {
    for (std::size_t t = 0; t < value.size(); ++t) {
      std::size_t const bytes = value[t].size() * sizeof(Value);
      if (bytes && std::memcmp(value[t].data(), other.value[t].data(), bytes) != 0) return false;
    }
    return true;
  }
};

/// The tensors of one of `of` ranks, in order. An empty copy gives each rank both groups.
template <class Model> auto share(Model& m, int rank = 0, int of = 1) {
  auto all = m.list();
  decltype(all) some;
  some.add("both groups", m.value[0].data(), m.gradient[0].data(), 0, descent::group{1});
  some.mark_copied("both groups");
  for (std::size_t k = 0; k < all.views().size(); ++k)
    if (auto const& v = all.views()[k]; int(k) * of / int(all.views().size()) == rank)
      some.add(v.name, v.value, v.gradient, descent::shape{v.count / v.columns, v.columns}, descent::group{v.group});
  return some;
}
/// Whether the rank's tensors are those of the whole model.
template <class Model> bool equal_share(Model const& a, Model const& b, int rank, int of) {
  for (std::size_t k = 0; k < a.value.size(); ++k)
    if (int(k) * of / int(a.value.size()) == rank && !std::ranges::equal(a.value[k], b.value[k], [](auto x, auto y) {
          return descent::widen<double>(x) == descent::widen<double>(y);
        }))
      return false;
  return true;
}

}  // namespace ranks
