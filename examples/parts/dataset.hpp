// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace example {

/// Images of one size, one after another, and their labels.
struct labelled_images {
  std::vector<std::uint8_t> pixels{};
  std::vector<std::uint8_t> labels{};
  int features;   // pixels per image
  int brightest;  // largest possible value of a pixel

  int count() const { return int(labels.size()); }
  /// Keeps only the first n images.
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

/// "digits" (built in), "fashion" (from its Debian package) or a directory with the four files of MNIST. Throws
/// std::runtime_error with the file and the mistake.
dataset load_dataset(std::string const& name);

/// Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte, with or without .gz, from a directory.
dataset load_idx_directory(std::string const& directory);

/// The handwritten digits of data/digits.inc. Every fifth is a test image.
dataset embedded_digits();

}  // namespace example
