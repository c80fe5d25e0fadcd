// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The side of C++ in cross.py:
//
//     cross write FILE      writes numbers of every type
//     cross copy FROM TO    writes what it has read
//     cross list FILE...    prints what it has read, a line for each file, as JSON: null if it is refused
#include <descent/io/safetensors.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <iostream>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace ds = descent;

namespace {

class writer {
 public:
  template <class T> void add(char const* name, std::vector<T> const& x) {
    auto const all = std::as_bytes(std::span(x));
    add(name, ds::dtype_of<T>, {std::int64_t(x.size())}, all);
  }
  void add(std::string name, ds::dtype type, std::vector<std::int64_t> shape, std::span<std::byte const> bytes) {
    data_.emplace_back(bytes.begin(), bytes.end());
    tensors_.push_back({std::move(name), type, std::move(shape), data_.back()});
  }
  void save(std::string const& path, ds::text_map const& metadata) const {
    ds::save_safetensors(path, tensors_, metadata);
  }

 private:
  std::deque<std::vector<std::byte>> data_;
  std::vector<ds::tensor_data> tensors_;
};

template <class T> void add_integers(writer& to, char const* name) {
  to.add<T>(name, {T(0), T(1), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()});
}
template <class T> void add_floats(writer& to, char const* name) {
  std::vector<T> x;
  for (float const v : {0.0f, -0.0f, 1.0f, -1.5f, 0.00390625f, 49152.0f, std::numeric_limits<float>::infinity()})
    x.push_back(ds::narrow<T>(v));
  to.add(name, x);
}

void write(std::string const& path) {
  writer to;
  bool const truth[2] = {false, true};
  to.add("bool", ds::dtype_of<bool>, {2, 1}, std::as_bytes(std::span(truth)));
  add_integers<std::uint8_t>(to, "uint8");
  add_integers<std::int8_t>(to, "int8");
  add_integers<std::uint16_t>(to, "uint16");
  add_integers<std::int16_t>(to, "int16");
  add_integers<std::uint32_t>(to, "uint32");
  add_integers<std::int32_t>(to, "int32");
  add_integers<std::uint64_t>(to, "uint64");
  add_integers<std::int64_t>(to, "int64");
  add_floats<ds::half>(to, "float16");
  add_floats<ds::bfloat16>(to, "bfloat16");
  add_floats<float>(to, "float32");
  add_floats<double>(to, "float64");
  std::int64_t const step = 1000;
  to.add("step", ds::dtype::i64, {}, std::as_bytes(std::span(&step, 1)));
  to.add("empty", ds::dtype::f32, {3, 0}, {});
  to.save(path, {{"made_by", "cross.cpp, \"quoted\" \u00e9\n"}});
}

void copy(std::string const& from, std::string const& path) {
  ds::safetensors_file const file(from);
  file.check();
  writer to;
  for (auto const& t : file.tensors()) to.add(t.name, t.type, t.shape, file.bytes(t));
  to.save(path, file.metadata());
}

nlohmann::json listed(std::string const& path) {
  ds::safetensors_file const file(path);
  file.check();
  auto all = nlohmann::json::object();
  for (auto const& t : file.tensors()) {
    std::string hex;
    for (auto const b : file.bytes(t)) {
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(b));
      hex += digits;
    }
    all[t.name] = {ds::name_of(t.type), t.shape, hex};
  }
  return {{"tensors", all}, {"metadata", file.metadata()}, {"hash", file.header_hash()}};
}

}  // namespace

int main(int argc, char** argv) try {
  std::string const what = argc > 2 ? argv[1] : "";
  if (what == "write" && argc == 3) return write(argv[2]), 0;
  if (what == "copy" && argc == 4) return copy(argv[2], argv[3]), 0;
  if (what != "list") return std::cerr << "usage: cross write FILE | copy FROM TO | list FILE...\n", 2;
  for (int i = 2; i < argc; ++i) {
    try {
      std::cout << listed(argv[i]) << '\n';
    } catch (ds::data_error const& refused) {
      std::cerr << refused.what() << '\n';
      std::cout << "null\n";
    }
  }
  return 0;
} catch (std::exception const& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
