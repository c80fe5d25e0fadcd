// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>

#include <cstdint>

/// Counter-based random numbers: a function of seed, step and index, without a state.
namespace descent::detail {

struct random_words { std::uint32_t word[4]; };

/// a * b. On a device in one instruction; from 64-bit operands the compiler makes two.
DESCENT_HD inline std::uint64_t wide_product(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  std::uint64_t product;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
  return product;
#else
  return std::uint64_t{a} * b;
#endif
}

/// Philox4x32 (Salmon et al. 2011, section 3.3): four random words from a 64-bit key and a 128-bit counter. With 7
/// rounds it passes BigCrush; 10 leave a margin (table 2 there).
///
///     (c0, c1, c2, c3) <- (hi(M1 c2) ^ c1 ^ k0, lo(M1 c2), hi(M0 c0) ^ c3 ^ k1, lo(M0 c0))      in each round
///     (k0, k1)         <- (k0 + W0, k1 + W1)                                                    between them
template <int Rounds = 10>
DESCENT_HD inline random_words philox(std::uint64_t key, std::uint64_t low, std::uint64_t high) {
  std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
  std::uint32_t c0 = std::uint32_t(low), c1 = std::uint32_t(low >> 32);
  std::uint32_t c2 = std::uint32_t(high), c3 = std::uint32_t(high >> 32);
  for (int round = 0; round < Rounds; ++round) {
    std::uint64_t const even = wide_product(0xD2511F53, c0), odd = wide_product(0xCD9E8D57, c2);
    c0 = std::uint32_t(odd >> 32) ^ c1 ^ k0;
    c1 = std::uint32_t(odd);
    c2 = std::uint32_t(even >> 32) ^ c3 ^ k1;
    c3 = std::uint32_t(even);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

/// The random words of one index at one step. Streams, 0 <= stream < 256, are independent sequences: rounding uses
/// those from 0 on, noise the last ones, esgd those from 244 on, orders of records those from 240 on, records
/// 239. No two (step, index, stream) share a counter for 0 <= step < 2^56.
template <int Rounds = 10>
DESCENT_HD inline random_words random_at(std::uint64_t seed, std::int64_t step, std::int64_t index, int stream) {
  return philox<Rounds>(seed, std::uint64_t(step) | std::uint64_t(stream) << 56, std::uint64_t(index));
}

}  // namespace descent::detail
