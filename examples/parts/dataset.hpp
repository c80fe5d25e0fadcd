// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace example {

/// Images of one size, one after the other, and what each of them shows.
struct labelled_images {
  std::vector<std::uint8_t> pixels{};
  std::vector<std::uint8_t> labels{};
  int features;   // pixels an image
  int brightest;  // largest value a pixel can have

  int count() const { return int(labels.size()); }
  /// Keeps the first n images only.
  void limit(int n) {
    if (n >= count()) return;
    labels.resize(std::size_t(n));
    pixels.resize(std::size_t(n) * std::size_t(features));
  }
};

struct dataset {
  std::string name;
  labelled_images train, test;
  int classes;
};

/// "digits" (built in), "fashion" (from its Debian package) or a directory with the four files of
/// MNIST. Throws std::runtime_error that names the file and what is wrong with it.
dataset load_dataset(std::string const& name);

/// Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte, with or without .gz, of a directory.
dataset load_idx_directory(std::string const& directory);

/// The handwritten digits of data/digits.inc. Every fifth is for testing.
dataset embedded_digits();

}  // namespace example
