// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/data/batches.hpp>
#include <descent/data/loader_options.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>

/// Positions as they are saved, of loader and resident.
namespace descent::detail {

/// Differs if records, fields, batches, random numbers or the order of an epoch do.
template <class Fields, class Places>
std::uint64_t fingerprint(std::int64_t records, Fields const& fields, batches const& cut, std::uint64_t seed,
                          Places const& places) {
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a, a word at a time
  auto const add = [&](auto x) {
    hash = (hash ^ std::uint64_t(x)) * 0x100000001B3;
    hash ^= hash >> 32;
  };
  add(records);
  fields.each([&](auto i, auto const& f) {
    for (char const c : f.name.view()) add(c);
    add(sizeof(typename Fields::template element<i>));
    for (auto const n : f.shape()) add(n);
  });
  add(cut.size), add(cut.last), add(seed), add(places.size());
  std::int64_t const step = std::max<std::int64_t>(places.size() / 64, 1);
  for (std::int64_t place = 0; place < places.size(); place += step) add(places[place]);
  return hash;
}

/// Random numbers are those of epochs below 2^56.
inline void require_epoch(std::int64_t epoch) {
  require(epoch >= 0 && epoch <= std::int64_t{1} << 55, "loader", "the epoch", "in [0, 2^55]", epoch);
}

template <class F> void save_position(F const& f, loader_position const& at, std::uint64_t print) {
  std::int64_t const position[] = {at.epoch, at.batch};
  f(std::string("loader.position"), std::span<std::int64_t const>(position));
  f(std::string("loader.fingerprint"), std::span<std::uint64_t const>(&print, 1));
}

/// Copies what f returns for a piece.
template <std::size_t N, class F, class T> void load_piece(F const& f, char const* name, T (&piece)[N]) {
  auto const saved = f(std::string(name), std::span<T const>(piece));
  require(std::size(saved) == N, "loader", (std::string("the number of elements of ") + name).c_str(),
          std::to_string(N).c_str(), std::size(saved));
  std::copy_n(std::data(saved), N, piece);
}
/// The saved position, whose epoch has print(epoch).
template <class F, class Print> loader_position load_position(F const& f, loader_position const& now,
                                                              Print const& print) {
  std::int64_t to[] = {now.epoch, now.batch};
  load_piece(f, "loader.position", to);
  require_epoch(to[0]);
  std::uint64_t const mine = print(to[0]);
  std::uint64_t theirs[] = {mine};
  load_piece(f, "loader.fingerprint", theirs);
  if (theirs[0] != mine)
    throw std::invalid_argument("loader: the position was saved with other records, batches, order or random numbers");
  return {to[0], to[1]};
}

}  // namespace descent::detail
