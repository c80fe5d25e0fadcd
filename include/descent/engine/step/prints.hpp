// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>
#include <descent/engine/step/owned.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

/// Fingerprints of what ranks own.
namespace descent::detail {

/// Mixes the bits and the index of an element. A buffer's fingerprint is the sum over its elements modulo 2^64, which
/// does not depend on the order of addition.
DESCENT_HD inline std::uint64_t print_of(std::uint64_t bits, std::int64_t place) {
  std::uint64_t x = bits ^ (std::uint64_t(place) * 0x9e3779b97f4a7c15 + 0x632be59bd9b4e019);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}
/// The bits of element i of a buffer with elements of 2, 4 or 8 bytes.
DESCENT_HD inline std::uint64_t bits_at(void const* buffer, std::int64_t i, std::int64_t size) {
  auto const* const at = static_cast<std::byte const*>(buffer) + i * size;
  auto const as = [&](auto x) {
#if defined(__CUDA_ARCH__)
    x = *reinterpret_cast<decltype(x) const*>(at);
#else
    std::memcpy(&x, at, sizeof x);
#endif
    return std::uint64_t(x);
  };
  return size == 2 ? as(std::uint16_t{}) : size == 4 ? as(std::uint32_t{}) : as(std::uint64_t{});
}

/// The number of a tensor's fingerprints: one of its value, and one of each owned buffer if each rank has all of them.
template <class Plan> inline constexpr std::size_t prints_of_tensor = 1 + (Plan::shards ? 0 : owned_count<Plan>);

}  // namespace descent::detail
