// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/io/checkpoint.hpp>
#include <descent/optimizer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

/// What tests of random calls share: an optimizer with its memory, which can be saved, restored and inspected, and
/// random numbers.
///
/// DESCENT_SEEDS=1000 tries that many seeds of each kind instead of a few; DESCENT_FIRST_SEED is the first.
namespace test {

/// What a function of the caller throws when told to.
struct refusal : std::runtime_error {
  refusal() : std::runtime_error("told to throw") {}
};
struct fragile_rate {
  bool const* throws;
  double operator()(std::int64_t step) const {
    if (*throws) throw refusal();
    return 0.02 / double(1 + step % 7);
  }
};

/// Features that only some of the optimizers have.
enum abilities {
  nothing = 0, scheduled = 1, accumulates = 2, scales = 4, unscales = 8, plateau = 16, averages = 32, overlaps = 64
};

class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) : engine_(seed) {}
  int below(int n) { return int(engine_() % std::uint64_t(n)); }
  bool one_in(int n) { return below(n) == 0; }
  double between(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }

 private:
  std::mt19937_64 engine_;
};

/// Tensors of random sizes, each starting a few elements into its memory.
struct sizes_and_places {
  std::vector<std::size_t> sizes, behind;

  explicit sizes_and_places(random_numbers& random) {
    int const tensors = 2 + random.below(5);
    for (int k = 0; k < tensors; ++k) {
      std::size_t const usual[] = {0, 1, 7, 8, 9, 63, 300, 4096 + 5};
      sizes.push_back(usual[random.below(random.one_in(8) ? 8 : 7)]);
      behind.push_back(std::size_t(random.below(4)));
    }
  }
};

using bytes = std::vector<std::byte>;
template <class Range> bytes bytes_of(Range const& x) {
  auto const* const at = reinterpret_cast<std::byte const*>(std::data(x));
  return {at, at + std::size(x) * sizeof(*std::data(x))};
}

/// Memory, an optimizer over it, and what the caller knows about it.
template <class Value, class Make> struct twin {
  using optimizer = decltype(std::declval<Make const&>()(std::declval<descent::parameters<Value> const&>(), nullptr));

  std::vector<std::vector<Value>> values, gradients;
  descent::parameters<Value> list;
  Make make;
  bool throws = false, frozen[2] = {};
  std::unique_ptr<optimizer> opt;

  twin(sizes_and_places const& x, Make const& m) : make(m) {
    for (std::size_t k = 0; k < x.sizes.size(); ++k) {
      values.emplace_back(x.sizes[k] + x.behind[k]);
      gradients.emplace_back(x.sizes[k] + x.behind[k]);
      for (std::size_t i = 0; i < values[k].size(); ++i)
        values[k][i] = descent::narrow<Value>(std::sin(double(17 * k + 3 * i + 1)));
    }
    for (std::size_t k = 0; k < x.sizes.size(); ++k)
      list.add("w" + std::to_string(k), values[k].data() + x.behind[k], gradients[k].data() + x.behind[k], x.sizes[k],
               descent::group{int(k % 2)});
    opt = std::make_unique<optimizer>(make(list, &throws));
  }

  void put_back(std::vector<std::vector<Value>> const& kept) {
    for (std::size_t k = 0; k < kept.size(); ++k) std::copy(kept[k].begin(), kept[k].end(), gradients[k].begin());
  }

  void load(std::map<std::string, bytes> const& pieces) {
    opt->load([&]<class T>(std::string const& name, std::span<T const>) {
      std::vector<T> elements(pieces.at(name).size() / sizeof(T));
      std::memcpy(static_cast<void*>(elements.data()), pieces.at(name).data(), pieces.at(name).size());
      return elements;
    });
  }
  std::map<std::string, bytes> saved() const {
    std::map<std::string, bytes> pieces;
    opt->save([&](std::string const& name, auto elements) { pieces[name] = bytes_of(elements); });
    return pieces;
  }
  /// Continues in a new optimizer with the caller's settings.
  void resume() {
    auto const pieces = saved();
    auto next = std::make_unique<optimizer>(make(list, &throws));
    for (int g = 0; g < 2; ++g) next->group(g) = opt->group(g), next->freeze(g, frozen[g]);
    opt = std::move(next);
    load(pieces);
  }
  /// Continues from a file, in a new optimizer without settings, on other values.
  void resume(std::string const& path) {
    descent::save_file(path, *opt);
    for (auto const& v : list.views()) std::fill_n(v.value, v.count, descent::narrow<Value>(7.0));
    auto next = std::make_unique<optimizer>(make(list, &throws));
    opt = std::move(next);
    descent::load_file(path, *opt);
  }
};

/// Whether an Exception is thrown.
template <class Exception, class F> bool refused(F const& f) {
  try {
    f();
  } catch (Exception const&) {
    return true;
  }
  return false;
}

inline std::uint64_t setting(char const* name, std::uint64_t otherwise) {
  char const* const text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Calls trial(seed) for each seed.
template <class Trial> void for_seeds(std::uint64_t usual, Trial const& trial) {
  std::uint64_t const first = setting("DESCENT_FIRST_SEED", 1), count = setting("DESCENT_SEEDS", usual);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    CAPTURE(seed);
    trial(seed);
  }
}

}  // namespace test
