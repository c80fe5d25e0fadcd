// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace descent {

/// What load_file() does with a tensor that a part asks for and the file does not have.
enum class missing_tensors {
  refuse,  ///< it is an error
  /// It stays as it is, and the report names it; a file that has none of them is refused. Masters and slow weights
  /// follow a value that is loaded, as with reload_values().
  keep
};

/// How load_file() deals with a file that differs from what is loaded.
struct load_options {
  bool convert = false;  ///< convert between floating-point types, rounding to nearest; otherwise types must be equal
  bool partial = false;  ///< leave out tensors of the file that nothing asks for; otherwise they are an error
  bool hyperparameters = true;  ///< restore the fields of all groups' rules, and which groups are frozen
  bool saturate = false;  ///< with `convert`, numbers beyond the range of a type become its largest one of their sign;
  ///< otherwise they are an error. Infinities and NaN stay.
  missing_tensors missing = missing_tensors::refuse;  ///< for example `keep`, if a layer is new in the program
};

/// What load_file() has loaded.
struct load_report {
  std::int64_t tensors = 0, bytes = 0;  ///< their number, and their bytes in the file
  std::int64_t converted = 0;  ///< tensors whose type was converted
  std::vector<std::string> left_over;  ///< with `partial`, names of tensors that nothing asked for
  bool same_configuration =
      true;  ///< whether rules, tensors, groups and settings of policies are those that were saved
  std::string version;  ///< the version that wrote the file; empty for a file of another program
  std::vector<std::string> kept;  ///< with `.missing = keep`, names of tensors that the file does not have
  std::int64_t saturated = 0;  ///< with `saturate`, the numbers that were beyond the range of their type
};

}  // namespace descent
