// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/detail/hash.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

/// Comparisons over ranks: what each of them has as text, and what differs.
namespace descent::detail {

/// Meetings of ranks outside of a step, with collectives on host memory. Those over communicators for device memory are
/// in ranks/detail/cuda_rank_calls.cuh. Only meet(comm, backend, name, f) is called, which calls f(collectives).
template <bool OnDevice> struct host_meeting;
template <> struct host_meeting<false> {
  template <class Comm, class Backend, class F>
  static void meet(Comm& comm, Backend const&, char const*, F const& f) {
    f(comm);
  }
};

/// The numbers, or the text, of each rank in turn. Ranks have as many numbers each. Waits for all ranks.
template <class Comm, class T> std::vector<T> gathered(Comm&& comm, std::vector<T> const& mine) {
  std::vector<T> all(mine.size() * std::size_t(comm.size()));
  comm.all_gather(reinterpret_cast<std::byte const*>(mine.data()), reinterpret_cast<std::byte*>(all.data()),
                  std::int64_t(mine.size() * sizeof(T)));
  return all;
}
template <class Comm> std::vector<std::string> gathered_texts(Comm&& comm, std::string const& mine) {
  auto const lengths = gathered(comm, std::vector<std::uint64_t>{mine.size()});
  std::size_t const room = *std::max_element(lengths.begin(), lengths.end());
  if (room == 0) return std::vector<std::string>(lengths.size());
  std::vector<char> padded(mine.begin(), mine.end());
  padded.resize(room);
  auto const all = gathered(comm, padded);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < lengths.size(); ++r) texts.emplace_back(all.data() + r * room, lengths[r]);
  return texts;
}

/// Names of types as a user knows them.
inline std::string without_detail(std::string text) {
  constexpr std::string_view ours = "descent::detail::";
  for (std::size_t at = 0; (at = text.find(ours, at)) != text.npos;) text.erase(at, ours.size());
  return text;
}
/// " TEXT (rank 0, 2); TEXT (rank 1)": what each of these ranks has.
inline std::string texts_of_ranks(std::vector<std::string> const& texts, std::vector<int> const& ranks) {
  std::vector<std::string> said, who;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto const at = std::find(said.begin(), said.end(), texts[i]);
    if (at == said.end()) said.push_back(texts[i]), who.push_back(std::to_string(ranks[i]));
    else who[std::size_t(at - said.begin())] += ", " + std::to_string(ranks[i]);
  }
  std::string message;
  for (std::size_t i = 0; i < said.size(); ++i)
    message += (i ? "; " : " ") + without_detail(said[i]) + " (rank " + who[i] + ")";
  return message;
}
inline constexpr char const* no_more_facts = "nothing more";

/// After "rank R is in CALL": what differs follows, or is not known.
inline constexpr char const* but_ranks_differ = ", but ranks differ:";
inline constexpr char const* another_call =
    ", but others are in another call or optimizer, or differ in t, loss scale, frozen groups, fields of a rule or, in "
    "a model, weights";

/// The first fact that differs, as each of these ranks has it; empty if all are equal.
inline std::string difference_of(std::vector<std::vector<std::string>> const& facts, std::vector<int> const& ranks) {
  std::size_t most = 0;
  for (auto const& of : facts) most = std::max(most, of.size());
  for (std::size_t i = 0; i < most; ++i) {
    std::vector<std::string> texts;
    for (auto const& of : facts) texts.push_back(i < of.size() ? of[i] : no_more_facts);
    if (std::find_if(texts.begin(), texts.end(), [&](auto const& t) { return t != texts[0]; }) != texts.end())
      return texts_of_ranks(texts, ranks);
  }
  return "";
}

/// Compares facts over all ranks. Returns an empty string if they are equal, otherwise a message, the same on every
/// rank: the first fact that differs, as each rank has it. Sets `number` to that of rank 0. Waits for all ranks.
template <class Comm>
std::string difference_in(Comm&& comm, std::vector<std::string> const& facts, std::uint64_t& number,
                          char const* but = "ranks disagree about the training setup:") {
  auto const n = std::size_t(comm.size());
  std::uint64_t whole = hash_of_nothing;
  std::vector<std::uint64_t> hashes;
  for (auto const& f : facts) hashes.push_back(hash_of(f)), whole = hash_of(f + '\n', whole);
  auto const first = gathered(comm, std::vector<std::uint64_t>{facts.size(), whole, number});
  number = first[2];
  bool same = true;
  std::size_t fewest = facts.size();
  for (std::size_t r = 0; r < n; ++r) {
    same = same && first[3 * r] == first[0] && first[3 * r + 1] == first[1];
    fewest = std::min(fewest, std::size_t(first[3 * r]));
  }
  if (same) return "";

  hashes.resize(fewest);
  auto const all = gathered(comm, hashes);
  std::size_t differs = 0;
  auto const agreed = [&](std::size_t i) {
    for (std::size_t r = 1; r < n; ++r)
      if (all[r * fewest + i] != all[i]) return false;
    return true;
  };
  while (differs < fewest && agreed(differs)) ++differs;

  std::vector<int> ranks(n);
  for (std::size_t r = 0; r < n; ++r) ranks[r] = int(r);
  return but + texts_of_ranks(gathered_texts(comm, differs < facts.size() ? facts[differs] : no_more_facts), ranks);
}

/// The demangled name of a type, if the compiler's library can demangle it.
inline std::string readable(char const* name) {
#if __has_include(<cxxabi.h>)
  std::unique_ptr<char, decltype(&std::free)> const text(abi::__cxa_demangle(name, nullptr, nullptr, nullptr),
                                                         &std::free);
  if (text) return text.get();
#endif
  return name;
}

/// The name of a type; with RTTI the same from all compilers.
template <class T> std::string type_text() {
#if defined(__cpp_rtti)
  return readable(typeid(T).name());
#else
  return __PRETTY_FUNCTION__;
#endif
}

}  // namespace descent::detail
