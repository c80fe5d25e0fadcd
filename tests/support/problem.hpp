// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/precision.hpp>
#include <descent/parameters.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

/// Tensors whose start values and gradients come from a formula: all in +-[1/8, 1), with seven bits, so that every
/// storage type holds them exactly.
namespace test {

inline double noise(std::uint64_t tensor, std::uint64_t element, std::uint64_t t) {
  std::uint64_t x = tensor * 0x9e3779b97f4a7c15 + element * 0xbf58476d1ce4e5b9 + t * 0x94d049bb133111eb + 1;
  for (int round = 0; round < 2; ++round) x = (x ^ (x >> 29)) * 0xd6e8feb86659fd93;
  x ^= x >> 32;
  return double(std::int64_t(16 + x % 112)) / (x & 0x10000 ? 128 : -128);
}
inline double start(std::uint64_t tensor, std::uint64_t i) { return noise(tensor, i, 0); }
inline double gradient(std::uint64_t tensor, std::uint64_t i, std::int64_t t) {
  return noise(tensor, i, std::uint64_t(t));
}

template <class Value, class Gradient = Value> struct problem {
  std::vector<std::vector<Value>> value;
  std::vector<std::vector<Gradient>> grad;
  std::vector<int> group;

  explicit problem(std::vector<std::size_t> const& sizes) : group(sizes.size()) {
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      value.emplace_back(sizes[k]);
      grad.emplace_back(sizes[k]);
      for (std::size_t i = 0; i < sizes[k]; ++i) value[k][i] = descent::narrow<Value>(start(k, i));
    }
  }

  static std::string name(std::size_t k) { return "tensor" + std::to_string(k); }

  descent::parameters<Value, Gradient> parameters() {
    descent::parameters<Value, Gradient> list;
    for (std::size_t k = 0; k < value.size(); ++k) add(list, k);
    return list;
  }
  void add(descent::parameters<Value, Gradient>& list, std::size_t k) {
    list.add(name(k), value[k].data(), grad[k].data(), value[k].size(), descent::group{group[k]});
  }

  void set_gradients(std::int64_t t, double scale = 1) {
    for (std::size_t k = 0; k < grad.size(); ++k)
      for (std::size_t i = 0; i < grad[k].size(); ++i)
        grad[k][i] = descent::narrow<Gradient>(scale * gradient(k, i, t));
  }
};

template <class T> bool same_bits(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}
template <class T>
bool same_bits(std::vector<std::vector<T>> const& a, std::vector<std::vector<T>> const& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t k = 0; k < a.size(); ++k)
    if (!same_bits(a[k], b[k])) return false;
  return true;
}

}  // namespace test
