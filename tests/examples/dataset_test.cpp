// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "../../examples/parts/dataset.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

using namespace example;
namespace fs = std::filesystem;

namespace {

struct temporary_directory {
  fs::path path = fs::temp_directory_path() / ("descent-idx-" + std::to_string(getpid()));

  temporary_directory() { fs::create_directory(path); }
  ~temporary_directory() { fs::remove_all(path); }
  std::string operator/(std::string const& name) const { return (path / name).string(); }
};

std::string idx(std::vector<unsigned> const& sizes, std::string const& data) {
  std::string text{0, 0, 8, char(sizes.size())};
  for (unsigned const size : sizes) text += {char(size >> 24), char(size >> 16), char(size >> 8), char(size)};
  return text + data;
}

void write(std::string const& path, std::string const& contents) { std::ofstream{path, std::ios::binary} << contents; }

void write_set(temporary_directory const& directory, std::string const& part, unsigned images, unsigned labels,
               unsigned size = 2) {
  write(directory / part + "-images-idx3-ubyte", idx({images, size, size}, std::string(images * size * size, 'p')));
  write(directory / part + "-labels-idx1-ubyte", idx({labels}, std::string(labels, '\3')));
}

}  // namespace

TEST_CASE("digits: 1438 images to train, 359 to test, every class in both") {
  auto const digits = embedded_digits();
  CHECK(digits.train.count() == 1438);
  CHECK(digits.test.count() == 359);
  for (auto const* part : {&digits.train, &digits.test}) {
    CHECK(part->pixels.size() == 64 * part->labels.size());
    CHECK(*std::ranges::max_element(part->pixels) == 16);
    for (int digit = 0; digit < 10; ++digit) CHECK(std::ranges::count(part->labels, digit) > 15);
  }
  CHECK(std::vector<int>(digits.train.pixels.begin(), digits.train.pixels.begin() + 8) ==
        std::vector<int>{0, 0, 5, 13, 9, 1, 0, 0});
}

TEST_CASE("idx: the four files of a directory must fit each other") {
  temporary_directory const directory;
  auto const rejects = [&](std::string const& why) {
    CHECK_THROWS_WITH_AS(load_dataset(directory.path.string()), why.c_str(), std::runtime_error);
  };
  write_set(directory, "train", 3, 3);
  rejects(directory / "t10k-images-idx3-ubyte: cannot be opened: No such file or directory");

  write_set(directory, "t10k", 2, 1);
  rejects(directory / "t10k-images-idx3-ubyte has 2 images, but " + (directory / "t10k-labels-idx1-ubyte") +
          " has 1 labels");
  write_set(directory, "t10k", 2, 2, 3);
  rejects(directory.path.string() + ": the training images have 4 pixels, the test images 9");
  write_set(directory, "t10k", 0, 0);
  rejects(directory / "t10k-images-idx3-ubyte: has no images");
  write(directory / "t10k-labels-idx1-ubyte", idx({0, 2}, ""));
  rejects(directory / "t10k-labels-idx1-ubyte: a label must be one byte");

  write_set(directory, "t10k", 2, 2);
  auto const data = load_dataset(directory.path.string());
  CHECK(data.train.count() == 3);
  CHECK(data.test.count() == 2);
  CHECK(data.train.features == 4);
  CHECK(data.classes == 4);
}

TEST_CASE("data: an unknown name is neither a set nor a directory") {
  CHECK_THROWS_WITH_AS(load_dataset("/no/such/place"),
                       "no data in \"/no/such/place\": neither \"digits\" nor \"fashion\" nor a directory",
                       std::runtime_error);
}
