// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "dataset.hpp"

#include "arguments.hpp"

#include <descent/data/gzip.hpp>
#include <descent/data/idx.hpp>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace example {
namespace {

namespace ds = descent;

constexpr char const* fashion_directory = "/usr/share/datasets/fashion-mnist";

/// The contents of a file or, if there is none, of the one with .gz behind its name.
ds::file_bytes open(std::string const& path) {
  bool const packed = !std::filesystem::exists(path) && std::filesystem::exists(path + ".gz");
  return packed ? ds::read_gzip(path + ".gz") : ds::file_bytes(path);
}

template <class Source> std::vector<std::uint8_t> all_of(Source const& source) {
  std::vector<std::uint8_t> bytes(std::size_t(source.size() * source.fields().bytes()));
  source.read_run(0, source.size(), ds::record(source.fields(), {reinterpret_cast<std::byte*>(bytes.data())}, {}));
  return bytes;
}

labelled_images load_images(std::string const& images_path, std::string const& labels_path) {
  ds::idx_file<ds::field<"image", std::uint8_t>> const images(open(images_path));
  ds::idx_file<ds::field<"label", std::uint8_t>> const labels(open(labels_path));
  if (images.size() != labels.size())
    throw std::runtime_error(images_path + " has " + std::to_string(images.size()) + " images, but " + labels_path +
                             " has " + std::to_string(labels.size()) + " labels");
  if (labels.fields().bytes() != 1) throw std::runtime_error(labels_path + ": a label must be one byte");
  if (images.size() == 0) throw std::runtime_error(images_path + ": has no images");
  return {
      .pixels = all_of(images), .labels = all_of(labels), .features = int(images.fields().bytes()), .brightest = 255};
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
  if (!std::filesystem::is_directory(name)) {
    auto const meant = did_you_mean(name, {"digits", "fashion"});
    throw std::runtime_error("no data in " + example::quoted(name) +
                             (meant.empty() ? ": neither \"digits\" nor \"fashion\" nor a directory" : meant));
  }
  return load_idx_directory(name);
}

}  // namespace example
