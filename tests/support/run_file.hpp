// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/io/safetensors.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

/// Files of runs, to be looked at and changed by tests.
namespace test {

using bytes = std::vector<std::byte>;

inline bytes copied(std::span<std::byte const> x) { return {x.begin(), x.end()}; }
template <class T> inline bytes copied(std::vector<T> const& x) { return copied(std::as_bytes(std::span(x))); }

/// Name, type and shape of each tensor.
inline std::vector<std::string> listed(std::string const& path) {
  descent::safetensors_file const file(path);
  std::vector<std::string> all;
  for (auto const& t : file.tensors())
    all.push_back(t.name + " " + descent::name_of(t.type) + " " + descent::detail::shape_text(t.shape));
  std::ranges::sort(all);
  return all;
}

/// Writes a file like another one, with what `change` does to its tensors and texts.
template <class Change> std::string edited(std::string const& from, std::string const& to, Change const& change) {
  descent::safetensors_file const file(from);
  std::map<std::string, bytes> data;
  for (auto const& t : file.tensors()) data[t.name] = copied(file.bytes(t));
  auto texts = file.metadata();
  change(data, texts);
  std::vector<descent::tensor_data> tensors;
  for (auto const& t : file.tensors())
    if (auto const at = data.find(t.name); at != data.end()) tensors.push_back({t.name, t.type, t.shape, at->second});
  descent::save_safetensors(to, tensors, texts);
  return to;
}
inline void replace(std::string& text, std::string const& what, std::string const& by) {
  auto const at = text.find(what);
  REQUIRE_MESSAGE(at != text.npos, what << " is not in " << text);
  text.replace(at, what.size(), by);
}
template <class T> void put(bytes& to, T const& x) {
  REQUIRE(to.size() == sizeof x);
  std::memcpy(to.data(), &x, sizeof x);
}

}  // namespace test
