// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "dataset.hpp"
#include "random.hpp"
#include "share.hpp"
#include "training_state.hpp"

#include <descent/data/loader.hpp>
#include <descent/data/order.hpp>
#include <descent/data/sources.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace example {

namespace ds = descent;

/// Labelled images, one after another, in the memory of the device.
struct image_rows {
  std::uint8_t const *pixels, *labels;
  int count, features;
  float scale;  // of a pixel to [0, 1]

  image_rows part(run_of_images const& run) const {
    return {pixels + std::int64_t{run.first} * features, labels + run.first, run.count, features, scale};
  }
};

/// All images, on the host.
inline image_rows rows_of(labelled_images const& images) {
  return {images.pixels.data(), images.labels.data(), images.count(), images.features, 1.f / images.brightest};
}

/// Each epoch has the order of the epoch before, shuffled.
struct reshuffled {
  std::uint64_t seed;

  ds::listed epoch(std::int64_t images, std::int64_t epoch) const {
    random_source shuffling{seed, 1};
    auto order = in_order(std::size_t(images));
    for (std::int64_t e = 0; e <= epoch; ++e) shuffling.shuffle(order);
    return ds::listed({order.begin(), order.end()});
  }
};

/// The images as the records of a loader.
inline auto source_of(labelled_images const& images) {
  return ds::in_memory{ds::column{ds::field<"pixels", std::uint8_t>{images.features}, images.pixels},
                       ds::column{ds::field<"label", std::uint8_t>{}, images.labels}};
}

/// Batches of images in the memory of the device, of which each rank has its part.
template <class Device, class Order>
auto batches_of(labelled_images const& images, ds::batches const& cut, Order const& order, Device const& device,
                ds::workers const& workers = {}, share const& mine = {}) {
  return ds::loader{source_of(images), cut, order, workers, ds::rank_slice{mine.rank, mine.ranks}, device.backend()};
}

/// The place of the next batch.
template <class Loader> loader_place place_of(Loader& batches) {
  loader_place place;
  batches.save([&]<class T>(std::string const&, std::span<T const> piece) {
    std::ranges::copy(piece, piece_of<T>(place).begin());
  });
  return place;
}
/// Goes on there. Throws std::invalid_argument if it is the place of another loader.
template <class Loader> void go_to(loader_place place, Loader& batches) {
  batches.load([&]<class T>(std::string const&, std::span<T const>) { return piece_of<T>(place); });
}

template <class Batch> image_rows rows_of(Batch const& batch, labelled_images const& images) {
  return {batch.template get<"pixels">().data(), batch.template get<"label">().data(), int(batch.size()),
          images.features, 1.f / images.brightest};
}

}  // namespace example
