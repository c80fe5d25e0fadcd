// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/io/safetensors.hpp>

#include <cstddef>
#include <cstring>
#include <string>

namespace test {

/// What is different in two safetensors files, apart from the order of the data; empty if nothing is. Throws if one is
/// damaged.
inline std::string file_difference(std::string const& a, std::string const& b) {
  descent::safetensors_file const one(a), other(b);
  one.check(), other.check();
  if (one.tensors().size() != other.tensors().size()) return "the number of tensors";
  for (auto const& t : one.tensors()) {
    auto const* const same = other.find(t.name);
    if (!same || t.type != same->type || t.shape != same->shape) return "type or shape of " + t.name;
    if (t.bytes && std::memcmp(one.bytes(t).data(), other.bytes(*same).data(), std::size_t(t.bytes)) != 0)
      return "the data of " + t.name;
  }
  for (auto const& [key, text] : one.metadata())
    if (!other.metadata().contains(key) || other.metadata().at(key) != text) return "the text '" + key + "'";
  return one.metadata().size() == other.metadata().size() ? "" : "the number of texts";
}

}  // namespace test
