// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "../../examples/parts/dataset.hpp"
#include "../../examples/parts/idx.hpp"

#include <doctest/doctest.h>
#include <unistd.h>
#include <zlib.h>

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

TEST_CASE("idx: a file reads the same plain and compressed") {
  temporary_directory const directory;
  auto const contents = idx({2, 3}, "abcdef");
  write(directory / "plain", contents);
  auto* const file = gzopen((directory / "packed.gz").c_str(), "wb");
  gzwrite(file, contents.data(), unsigned(contents.size()));
  gzclose(file);

  for (auto const* name : {"plain", "packed"}) {
    auto const array = read_idx(directory / name, 2);
    CHECK(array.sizes == std::vector<std::uint32_t>{2, 3});
    CHECK(std::string(array.bytes.begin(), array.bytes.end()) == "abcdef");
  }
}

TEST_CASE("idx: what is wrong with a file is said in one sentence") {
  temporary_directory const directory;
  auto const path = directory / "file";
  auto const rejects = [&](std::string const& contents, std::string const& why) {
    write(path, contents);
    CHECK_THROWS_WITH_AS(read_idx(path, 1), (path + ": " + why).c_str(), std::runtime_error);
  };
  CHECK_THROWS_WITH_AS(read_idx(path, 1), (path + ": No such file or directory").c_str(), std::runtime_error);
  rejects("", "is not an IDX file of unsigned bytes with 1 dimension");
  rejects("a text", "is not an IDX file of unsigned bytes with 1 dimension");
  rejects(idx({1, 1}, "a"), "is not an IDX file of unsigned bytes with 1 dimension");
  rejects(idx({1}, "").substr(0, 6), "is truncated: it ends within its header");
  rejects(idx({5}, "abcd"), "is truncated: its header announces 5 bytes of data, it has 4");
  rejects(idx({3}, "abcd"), "is too long: its header announces 3 bytes of data, it has 4");
  rejects(idx({0xffff'ffff}, "abcd"), "announces more than 2 GiB of data");
  rejects("\x1f\x8b\x08 not really compressed", "unknown header flags set");
}

TEST_CASE("idx: a compressed file that was cut off is truncated") {
  temporary_directory const directory;
  auto const path = directory / "file";
  auto* const file = gzopen(path.c_str(), "wb");
  std::string noise;
  for (unsigned k = 0, x = 1; k < 5000; ++k) noise += char((x = x * 1664525 + 1013904223) >> 24);
  auto const contents = idx({5000}, noise);
  gzwrite(file, contents.data(), unsigned(contents.size()));
  gzclose(file);
  fs::resize_file(path, 3000);
  CHECK_THROWS_WITH_AS(read_idx(path, 1), doctest::Contains("is truncated: its header announces 5000 bytes"),
                       std::runtime_error);
}

TEST_CASE("idx: the four files of a directory must fit each other") {
  temporary_directory const directory;
  auto const rejects = [&](std::string const& why) {
    CHECK_THROWS_WITH_AS(load_dataset(directory.path.string()), why.c_str(), std::runtime_error);
  };
  write_set(directory, "train", 3, 3);
  rejects(directory / "t10k-images-idx3-ubyte: No such file or directory");

  write_set(directory, "t10k", 2, 1);
  rejects(directory / "t10k-images-idx3-ubyte has 2 images, but " + (directory / "t10k-labels-idx1-ubyte") +
          " has 1 labels");
  write_set(directory, "t10k", 2, 2, 3);
  rejects(directory.path.string() + ": the training images have 4 pixels, the test images 9");
  write_set(directory, "t10k", 0, 0);
  rejects(directory / "t10k-images-idx3-ubyte: has no images");

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
