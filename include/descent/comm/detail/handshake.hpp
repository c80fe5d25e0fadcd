// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/detail/seconds.hpp>
#include <descent/core/detail/descriptor.hpp>
#include <descent/core/detail/hash.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>

/// What ranks exchange before there is a communicator.
namespace descent::detail {

/// A point in time at which a wait ends.
class time_limit {
 public:
  explicit time_limit(std::chrono::nanoseconds of) : of_(cut_wait(of)), end_(deadline_clock::now() + of_) {}
  bool passed() const { return deadline_clock::now() >= end_; }
  /// The time left, for poll(): in [0, 100].
  int milliseconds() const {
    auto const left = std::chrono::ceil<std::chrono::milliseconds>(end_ - deadline_clock::now());
    return int(std::clamp<std::int64_t>(left.count(), 0, 100));
  }
  /// Sleeps, longer each time, up to 50 ms.
  void pause() {
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(2 * pause_, std::chrono::milliseconds(50));
  }
  std::string text() const { return seconds_of(of_) + " s"; }

 private:
  std::chrono::nanoseconds of_;
  deadline_clock::time_point end_;
  std::chrono::milliseconds pause_{1};
};

/// "rank 2" or "ranks 2, 3", with at most eight numbers.
inline std::string rank_list(std::vector<int> const& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min<std::size_t>(ranks.size(), 8); ++i)
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  return ranks.size() > 8 ? text + " and " + std::to_string(ranks.size() - 8) + " more" : text;
}

inline std::uint64_t random_number() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device() | 1;
}

/// The header of a message or file; a body of `bytes` follows. In the machine's byte order, which `magic` reveals.
struct note {
  static constexpr std::uint64_t our_magic = 0x6d656574696e6731;
  static constexpr std::uint32_t our_version = 1;
  static constexpr std::size_t most = 256;
  enum kinds : std::uint32_t { here = 1, value = 2, refused = 3 };

  std::uint64_t magic = our_magic;
  std::uint32_t version = our_version, kind = here;
  std::int32_t rank = 0, size = 0;
  std::uint64_t value_bytes = 0;  // of rank 0's value
  std::uint64_t from = 0, to = 0;  // random numbers of the sender's call, and of the peer's call it answers
  std::uint64_t bytes = 0;
  char token[most] = {};
  std::uint64_t sum = 0;
};
static_assert(std::has_unique_object_representations_v<note>);

inline note make_note(std::uint32_t kind, int rank, int size, std::size_t value_bytes, std::string const& token) {
  note n;
  n.kind = kind;
  n.rank = rank;
  n.size = size;
  n.value_bytes = value_bytes;
  std::memcpy(n.token, token.data(), std::min(token.size(), note::most - 1));
  return n;
}

inline std::uint64_t sum_of(note n, std::span<std::byte const> body) {
  n.sum = 0;
  return hash_of({reinterpret_cast<char const*>(body.data()), body.size()},
                 hash_of({reinterpret_cast<char const*>(&n), sizeof n}));
}
inline std::vector<std::byte> sealed(note n, std::span<std::byte const> body = {}) {
  n.bytes = body.size();
  n.sum = sum_of(n, body);
  auto const head = std::as_bytes(std::span(&n, 1));
  std::vector<std::byte> all(head.begin(), head.end());
  all.insert(all.end(), body.begin(), body.end());
  return all;
}

/// Compares the tokens in constant time.
inline bool same_token(note const& a, note const& b) {
  unsigned char difference = 0;
  for (std::size_t i = 0; i < note::most; ++i)
    difference = (unsigned char)(difference | ((unsigned char)a.token[i] ^ (unsigned char)b.token[i]));
  return difference == 0;
}

/// What is wrong with a header for a call with the header `own`, or empty. Does not check the checksum.
inline std::string problem_of(note const& n, note const& own) {
  if (n.magic != note::our_magic) return "it is not from descent, or from a machine with another byte order";
  if (n.version != note::our_version)
    return "it has version " + std::to_string(n.version) + " instead of " + std::to_string(note::our_version);
  if (!same_token(n, own)) return "it belongs to another job";
  if (n.size != own.size)
    return "it is for " + std::to_string(n.size) + " ranks instead of " + std::to_string(own.size);
  if (n.rank < 0 || n.rank >= n.size)
    return "its rank must be in [0, " + std::to_string(n.size) + "), is " + std::to_string(n.rank);
  if (n.value_bytes != own.value_bytes)
    return "its value has " + std::to_string(n.value_bytes) + " bytes instead of " + std::to_string(own.value_bytes);
  return "";
}

inline std::string wrong_sum(note const& n, std::span<std::byte const> body) {
  return n.sum == sum_of(n, body) ? "" : "its checksum is wrong";
}
inline std::string wrong_size(std::uint64_t bytes, std::uint64_t wanted) {
  return bytes == wanted ? "" : "it has " + std::to_string(bytes) + " bytes instead of " + std::to_string(wanted);
}

/// The ranks whose entry is 0 or false.
template <class T> std::vector<int> ranks_without(std::vector<T> const& of_ranks) {
  std::vector<int> ranks;
  for (std::size_t r = 0; r < of_ranks.size(); ++r)
    if (!of_ranks[r]) ranks.push_back(int(r));
  return ranks;
}

/// Throws std::invalid_argument if the arguments of a rendezvous are not valid.
inline void require_meeting(std::string const& who, int rank, int size, std::string const& field,
                            std::string const& token, std::chrono::nanoseconds deadline,
                            std::size_t most = note::most - 1) {
  auto const refuse = [&](std::string const& what, std::string const& allowed, std::string const& is) {
    throw std::invalid_argument(who + ": " + what + " must be " + allowed + ", is " + is);
  };
  if (size < 1) refuse("size", "at least 1", std::to_string(size));
  if (rank < 0 || rank >= size) refuse("rank", "in [0, " + std::to_string(size) + ")", std::to_string(rank));
  checked_wait(who, "deadline", deadline);
  if (size > 1 && (token.empty() || token.size() > most || token.find('\0') != token.npos))
    refuse(field, "1 to " + std::to_string(most) + " characters, the same on all ranks and in no other job",
           token.empty() ? "empty" : "'" + token + "'");
}

}  // namespace descent::detail
