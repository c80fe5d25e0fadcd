// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cstddef>
#include <string>
#include <string_view>

/// The kind of a file, by its first bytes, for messages about a file that cannot be read.
namespace descent::detail {

/// For example "a gzip file", with what to do if that is known; empty if the bytes are of no known kind.
inline std::string kind_of_file(std::string_view head) {
  head = head.substr(0, 4096);
  struct row { std::string_view begin, kind; };
  static constexpr row rows[] = {
      {"version https://git-lfs", "a pointer of git-lfs, for which `git lfs pull` gets the file"},
      {"\x93NUMPY", "an .npy file of NumPy"},
      {"\x1f\x8b", "a gzip file"},
      {"\x28\xb5\x2f\xfd", "a zstd file"},
      {"BZh", "a bzip2 file"},
      {"\xfd\x37zXZ", "an xz file"},
      {"\x89HDF\r\n", "an HDF5 file"},
      {"GGUF", "a GGUF file"},
      {"\x7f""ELF", "a program"},
      {"%PDF", "a PDF"},
      {"\x89PNG", "a picture"},
  };
  for (row const& r : rows)
    if (head.starts_with(r.begin)) return std::string(r.kind);
  auto const has = [&](std::string_view word) { return head.find(word) != head.npos; };
  if (head.starts_with("PK\3\4")) {
    if (has("data.pkl")) return "a zip file of torch.save";
    return has(".npy") ? "an .npz file of NumPy" : "a zip file";
  }
  if (head.size() > 1 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5)
    return head.substr(2).starts_with("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19")
               ? "a pickle of torch.save, in its format before 1.6"
               : "a pickle of Python";
  if (head.size() >= 262 && head.substr(257).starts_with("ustar")) return "a tar file";
  std::string_view text = head.starts_with("\xef\xbb\xbf") ? head.substr(3) : head;
  text.remove_prefix(text.find_first_not_of(" \t\r\n") == text.npos ? 0 : text.find_first_not_of(" \t\r\n"));
  if (text.starts_with('<') && text.size() > 1 && (text[1] == '!' || text[1] == '?' || (text[1] | 0x20) >= 'a'))
    return "a page of HTML or XML, perhaps an error of a server";
  std::size_t n = 0;
  auto const prints = [](char c, bool any) {
    auto const x = static_cast<unsigned char>(c);
    return c == '\n' || c == '\r' || c == '\t' || (x >= 0x20 && x != 0x7f && (any || x < 0x80));
  };
  while (n < text.size() && n < 64 && prints(text[n], n >= 8)) ++n;
  bool const is_text = n >= 8 && (n == 64 || n == text.size());
  if (is_text && text.starts_with('{'))
    return has("\"weight_map\"") || has("\"total_size\"")
               ? "an index of JSON, which names the safetensors files of a model"
               : "a file of JSON";
  return is_text ? "a text" : "";
}

}  // namespace descent::detail
