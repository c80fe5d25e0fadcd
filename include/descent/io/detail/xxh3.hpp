// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/detail/hash.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

namespace descent::detail {

/// XXH3 with 64 bits and seed 0, over bytes that come in pieces.
class xxh3 {
 public:
  xxh3() : state_(XXH3_createState()) {
    if (!state_) throw std::bad_alloc();
    restart();
  }
  void restart() { XXH3_64bits_reset(state_.get()); }
  /// Not inline: GCC would warn of array bounds in xxhash.h where it knows the bytes.
  [[gnu::noinline]] xxh3& add(std::span<std::byte const> bytes) {
    if (!bytes.empty()) XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
    return *this;
  }
  xxh3& add(std::string_view text) { return add(std::as_bytes(std::span(text))); }
  std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct release {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, release> state_;
};

/// The hash with this text; empty if hash_text() would not write it so.
inline std::optional<std::uint64_t> parse_hash(std::string_view text) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != text.npos) return {};
  std::uint64_t hash = 0;
  for (char const c : text) hash = hash << 4 | std::uint64_t(c <= '9' ? c - '0' : c - 'a' + 10);
  return hash;
}

}  // namespace descent::detail
