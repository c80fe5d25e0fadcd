// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/loader.hpp>
#include <descent/data/sources.hpp>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

/// What tests save beside optimizers.
namespace test {

namespace ds = descent;

/// A user's object, which refuses to go below 0.
struct counters {
  std::vector<std::int64_t> n{1, 2, 3};

  template <class F> void save(F const& f) const { f(std::string("n"), std::span<std::int64_t const>(n)); }
  template <class F> void load(F const& f) {
    auto const x = f(std::string("n"), std::span<std::int64_t const>(n));
    if (x[0] < 0) throw std::runtime_error("counters: must be at least 0");
    n.assign(x.begin(), x.end());
  }
};

inline std::vector<int> const numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
inline auto const source = ds::in_memory{ds::column{ds::field<"n", int>{}, numbers}};
inline auto loader_of(std::uint64_t seed) { return ds::loader{source, ds::batches{4}, ds::shuffled{.seed = seed}}; }

}  // namespace test
