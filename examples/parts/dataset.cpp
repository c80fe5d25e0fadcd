// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "dataset.hpp"

#include "idx.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace example {
namespace {

constexpr char const* fashion_directory = "/usr/share/datasets/fashion-mnist";

labelled_images load_images(std::string const& images_path, std::string const& labels_path) {
  auto images = read_idx(images_path, 3);
  auto labels = read_idx(labels_path, 1);
  if (images.sizes[0] != labels.sizes[0])
    throw std::runtime_error(images_path + " has " + std::to_string(images.sizes[0]) + " images, but " + labels_path +
                             " has " + std::to_string(labels.sizes[0]) + " labels");
  if (images.bytes.empty()) throw std::runtime_error(images_path + ": has no images");
  return {.pixels = std::move(images.bytes),
          .labels = std::move(labels.bytes),
          .features = int(images.sizes[1] * images.sizes[2]),
          .brightest = 255};
}

}  // namespace

dataset load_idx_directory(std::string const& directory) {
  auto const load = [&](std::string const& part) {
    auto const start = directory + "/" + part;
    return load_images(start + "-images-idx3-ubyte", start + "-labels-idx1-ubyte");
  };
  dataset data{.name = directory, .train = load("train"), .test = load("t10k"), .classes = 0};
  if (data.train.features != data.test.features)
    throw std::runtime_error(directory + ": the training images have " + std::to_string(data.train.features) +
                             " pixels, the test images " + std::to_string(data.test.features));
  data.classes = 1 + std::max(*std::max_element(data.train.labels.begin(), data.train.labels.end()),
                              *std::max_element(data.test.labels.begin(), data.test.labels.end()));
  return data;
}

dataset load_dataset(std::string const& name) {
  if (name == "digits") return embedded_digits();
  if (name == "fashion") {
    if (!std::filesystem::exists(fashion_directory))
      throw std::runtime_error(std::string{fashion_directory} + " does not exist; on Debian and " +
                               "Ubuntu, `apt-get install dataset-fashion-mnist` brings it");
    auto data = load_idx_directory(fashion_directory);
    data.name = name;
    return data;
  }
  if (!std::filesystem::is_directory(name))
    throw std::runtime_error("no data in \"" + name + "\": neither \"digits\" nor \"fashion\" nor a directory");
  return load_idx_directory(name);
}

}  // namespace example
