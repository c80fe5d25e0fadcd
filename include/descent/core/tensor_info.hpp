// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/precision.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

/// What a file says about its tensors.
namespace descent {

/// The types of the elements in a file. `unknown`: another one, such as F8_E4M3, which cannot be converted.
enum class dtype { boolean, u8, i8, u16, i16, f16, bf16, u32, i32, f32, u64, i64, f64, unknown };

namespace detail {

struct dtype_row {
  char const* name;
  std::size_t bytes;
};
/// In the order of dtype; the last one is no type.
inline constexpr std::size_t known_types = 13;
inline constexpr std::array<dtype_row, known_types + 1> dtype_rows{{{"BOOL", 1},
                                                                    {"U8", 1},
                                                                    {"I8", 1},
                                                                    {"U16", 2},
                                                                    {"I16", 2},
                                                                    {"F16", 2},
                                                                    {"BF16", 2},
                                                                    {"U32", 4},
                                                                    {"I32", 4},
                                                                    {"F32", 4},
                                                                    {"U64", 8},
                                                                    {"I64", 8},
                                                                    {"F64", 8},
                                                                    {"unknown", 0}}};

/// The number of elements: the product of the extents.
inline std::int64_t elements_in(std::vector<std::int64_t> const& shape) {
  std::int64_t n = 1;
  for (auto const extent : shape) n *= extent;
  return n;
}

}  // namespace detail

/// The size of an element in bytes; 0 if the type is unknown.
constexpr std::size_t bytes_of(dtype type) { return detail::dtype_rows[std::size_t(type)].bytes; }
/// The name of the type in safetensors files, as "BF16".
constexpr char const* name_of(dtype type) { return detail::dtype_rows[std::size_t(type)].name; }

/// The types in C++ that a file can hold: bool, std::byte, integers of up to 64 bits, half, bfloat16, float, double.
template <class T> concept file_element = storage_type<T> || std::is_integral_v<T> || std::is_same_v<T, std::byte>;

/// The dtype of such a type. std::byte is U8, and integers are distinguished by size and sign alone.
template <file_element T> inline constexpr dtype dtype_of = [] {
  if constexpr (std::is_same_v<T, bool>) return dtype::boolean;
  else if constexpr (std::is_same_v<T, std::byte>) return dtype::u8;
  else if constexpr (std::is_same_v<T, half>) return dtype::f16;
  else if constexpr (std::is_same_v<T, bfloat16>) return dtype::bf16;
  else if constexpr (std::is_same_v<T, float>) return dtype::f32;
  else if constexpr (std::is_same_v<T, double>) return dtype::f64;
  else if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? dtype::i8 : dtype::u8;
  else if constexpr (sizeof(T) == 2) return std::is_signed_v<T> ? dtype::i16 : dtype::u16;
  else if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? dtype::i32 : dtype::u32;
  else return std::is_signed_v<T> ? dtype::i64 : dtype::u64;
}();

/// A tensor in a file.
struct tensor_info {
  std::string name = {};  ///< UTF-8, 1 to 4096 bytes, without control characters
  dtype type = dtype::f32;  ///< of the elements
  std::vector<std::int64_t> shape = {};  ///< extents, at most 8, the last one runs fastest; none for a single number
  std::int64_t offset = 0;  ///< of the first byte, in the data section of the file
  std::int64_t bytes = 0;  ///< of all elements
  std::string type_name = {};  ///< of an unknown type, as in the file, such as "F8_E4M3"; otherwise empty

  std::int64_t count() const { return detail::elements_in(shape); }  ///< the number of elements
};

/// The name of the type of a tensor, as in the file.
inline std::string type_of(tensor_info const& t) {
  return t.type == dtype::unknown ? t.type_name : std::string(name_of(t.type));
}

/// The `__metadata__` of a file.
using text_map = std::map<std::string, std::string>;

}  // namespace descent
