// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "experiment.hpp"

#include <cstddef>

namespace example::learn {

/// The training images, with every fifth of them as a test image: a search must not see the test images.
inline dataset held_out() {
  dataset const& all = data();
  dataset parts{all.name, {.features = all.train.features, .brightest = all.train.brightest}, {}, all.classes};
  parts.test = parts.train;
  for (int i = 0; i < all.train.count(); ++i) {
    auto& part = i % 5 == 4 ? parts.test : parts.train;
    auto const first = all.train.pixels.begin() + std::ptrdiff_t{i} * all.train.features;
    part.pixels.insert(part.pixels.end(), first, first + all.train.features);
    part.labels.push_back(all.train.labels[std::size_t(i)]);
  }
  return parts;
}

}  // namespace example::learn
