// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/optimizer/detail/run_part.hpp>
#include <descent/io/detail/conversion.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>

/// What follows a value that is loaded from a file that does not have it.
namespace descent::detail {

/// The name of the parameter of which this piece is a copy, or the bits that its value lacks; else empty.
inline std::string value_followed_by(std::string const& piece) {
  auto const dot = std::min(piece.rfind('.'), piece.size());
  std::string const last = piece.substr(dot);
  return last == ".master" || last == ".slow" || last == ".remainder" ? piece.substr(0, dot) : "";
}
/// Fills such a piece, which a file does not have, from the value that is loaded.
inline void fill_from_value(run_piece const& value, std::span<std::byte const> loaded, run_piece const& piece,
                            std::byte* to) {
  std::size_t const size = descent::bytes_of(value.type);
  if (piece.type == dtype::u16) std::memset(to, 0, piece.bytes());
  else convert_elements(value.type, loaded.subspan(std::size_t(piece.begin - value.begin) * size,
                                                   std::size_t(piece.count) * size), piece.type, to);
}

}  // namespace descent::detail
