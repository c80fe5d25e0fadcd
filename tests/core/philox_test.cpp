// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/core/detail/philox.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

using descent::detail::philox, descent::detail::random_at, descent::detail::random_words;

namespace {

auto words(random_words const& r) { return std::tuple(r.word[0], r.word[1], r.word[2], r.word[3]); }

int changed_bits(random_words const& a, random_words const& b) {
  int n = 0;
  for (int i = 0; i < 4; ++i) n += std::popcount(a.word[i] ^ b.word[i]);
  return n;
}

}  // namespace

// kat_vectors of Random123 1.14, lines "philox4x32 10"
TEST_CASE("philox: known answers") {
  CHECK(words(philox<7>(0, 0, 0)) == std::tuple(0x5f6fb709u, 0x0d893f64u, 0x4f121f81u, 0x4f730a48u));
  CHECK(words(philox<7>(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e)) ==
        std::tuple(0x4dfccabau, 0x190a87f0u, 0xc47362bau, 0xb6b5242au));
  CHECK(words(philox(0, 0, 0)) == std::tuple(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  CHECK(words(philox(~0ull, ~0ull, ~0ull)) == std::tuple(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  CHECK(words(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e)) ==
        std::tuple(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

TEST_CASE("philox: every bit of key and counter changes about half of the words' bits") {
  auto const base = philox(1, 2, 3);
  for (int bit = 0; bit < 192; ++bit) {
    std::uint64_t const flip = std::uint64_t{1} << bit % 64;
    auto const other =
        philox(1 ^ (bit < 64 ? flip : 0), 2 ^ (bit >= 64 && bit < 128 ? flip : 0), 3 ^ (bit >= 128 ? flip : 0));
    int const changed = changed_bits(base, other);
    CAPTURE(bit);
    CHECK(changed >= 38);  // 64 is the mean, 5.7 the standard deviation
    CHECK(changed <= 90);
  }
}

TEST_CASE("philox: each bit of the words is set in half of all counters") {
  constexpr int n = 1 << 16;
  std::vector<int> set(128);
  for (int i = 0; i < n; ++i) {
    auto const r = philox(7, 11, std::uint64_t(i));
    for (int bit = 0; bit < 128; ++bit) set[std::size_t(bit)] += r.word[bit / 32] >> bit % 32 & 1;
  }
  for (int count : set) {
    CHECK(count > n / 2 - 5 * 128);  // 128 is the standard deviation
    CHECK(count < n / 2 + 5 * 128);
  }
}

TEST_CASE("random_at: step, index and stream are all of the counter, and no two share one") {
  auto const at = [](std::int64_t step, std::int64_t index, int stream) {
    return words(random_at(5, step, index, stream));
  };
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>> seen;
  std::int64_t const steps[] = {0, 1, 2, 255, 256, 1ll << 32, (1ll << 56) - 1};
  std::int64_t const indices[] = {0, 1, 2, 255, 256, 1ll << 32, 1ll << 56, (1ll << 57) - 1};
  int const streams[] = {0, 1, 2, 127, 128, 254, 255};
  for (auto step : steps)
    for (auto index : indices)
      for (auto stream : streams) seen.insert(at(step, index, stream));
  CHECK(seen.size() == std::size(steps) * std::size(indices) * std::size(streams));
  CHECK(at(0, 0, 0) == words(philox(5, 0, 0)));
  CHECK(at(3, 4, 0) == words(philox(5, 3, 4)));
  CHECK(words(random_at(6, 3, 4, 0)) != at(3, 4, 0));
}
