// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// safetensors files: what is written is read, and a file that is damaged or was never right is refused with a sentence.
#include <descent/io/safetensors.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ds = descent;
using namespace std::string_literals;
using test::contents;
using test::temporary_folder;

static_assert(std::is_nothrow_move_constructible_v<ds::safetensors_file> &&
              std::is_move_assignable_v<ds::safetensors_file> && !std::is_copy_constructible_v<ds::safetensors_file>);
static_assert(std::is_move_constructible_v<ds::safetensors_writer> &&
              !std::is_copy_constructible_v<ds::safetensors_writer>);
static_assert(ds::dtype_of<double> == ds::dtype::f64 && ds::dtype_of<float> == ds::dtype::f32 &&
              ds::dtype_of<ds::half> == ds::dtype::f16 && ds::dtype_of<ds::bfloat16> == ds::dtype::bf16 &&
              ds::dtype_of<bool> == ds::dtype::boolean && ds::dtype_of<std::byte> == ds::dtype::u8);
static_assert(ds::dtype_of<std::uint8_t> == ds::dtype::u8 && ds::dtype_of<std::int8_t> == ds::dtype::i8 &&
              ds::dtype_of<std::uint16_t> == ds::dtype::u16 && ds::dtype_of<std::int16_t> == ds::dtype::i16 &&
              ds::dtype_of<std::uint32_t> == ds::dtype::u32 && ds::dtype_of<std::int32_t> == ds::dtype::i32 &&
              ds::dtype_of<std::uint64_t> == ds::dtype::u64 && ds::dtype_of<std::int64_t> == ds::dtype::i64 &&
              ds::dtype_of<long long> == ds::dtype::i64);
static_assert(!ds::file_element<long double> && !ds::file_element<int*> && !ds::file_element<ds::dtype>);

namespace {

using bytes = std::vector<std::byte>;

constexpr std::array<ds::dtype, 13> all_types{
    ds::dtype::boolean, ds::dtype::u8,  ds::dtype::i8,  ds::dtype::u16, ds::dtype::i16, ds::dtype::f16, ds::dtype::bf16,
    ds::dtype::u32,     ds::dtype::i32, ds::dtype::f32, ds::dtype::u64, ds::dtype::i64, ds::dtype::f64};

bytes bytes_in(std::string_view text) {
  auto const all = std::as_bytes(std::span(text));
  return {all.begin(), all.end()};
}
bytes random_bytes(std::int64_t n, std::mt19937_64& random) {
  bytes x(static_cast<std::size_t>(n));
  for (auto& b : x) b = std::byte(random());
  return x;
}

/// Tensors that own their data.
struct tensors {
  std::vector<bytes> data;
  std::vector<ds::tensor_data> all;

  tensors& add(std::string name, ds::dtype type, std::vector<std::int64_t> shape, bytes x) {
    data.push_back(std::move(x));
    all.push_back({std::move(name), type, std::move(shape), data.back()});
    return *this;
  }
  tensors& add(std::string name, ds::dtype type, std::vector<std::int64_t> shape, std::mt19937_64& random) {
    auto const n = ds::tensor_info{.type = type, .shape = shape}.count() * std::int64_t(ds::bytes_of(type));
    return add(std::move(name), type, std::move(shape), random_bytes(n, random));
  }
};

/// Whether the file has these tensors, bit for bit, and no others.
void check_holds(ds::safetensors_file const& file, std::vector<ds::tensor_data> const& wanted) {
  REQUIRE(file.tensors().size() == wanted.size());
  file.check();
  for (auto const& t : wanted) {
    INFO(t.name);
    auto const* const is = file.find(t.name);
    REQUIRE(is != nullptr);
    CHECK(is->name == t.name);
    CHECK(is->type == t.type);
    CHECK(is->shape == t.shape);
    CHECK(is->bytes == std::int64_t(t.bytes.size()));
    CHECK(is->count() * std::int64_t(ds::bytes_of(is->type)) == is->bytes);
    CHECK(std::ranges::equal(file.bytes(*is), t.bytes));
  }
}

std::string length_bytes(std::uint64_t n) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += char(n >> (8 * i) & 0xff);
  return text;
}
/// The bytes of a file with this header and `data` zeros behind it.
std::string raw(std::string const& header, std::size_t data = 0) {
  return length_bytes(header.size()) + header + std::string(data, '\0');
}
/// Reads a header from memory that ends where the file ends, so that a sanitizer sees what is read beyond.
ds::detail::safetensors_header read(std::string const& file) {
  auto const copy = std::make_unique<std::byte[]>(file.size());
  std::memcpy(copy.get(), file.data(), file.size());
  std::string const path = "F";
  return ds::detail::safetensors_reader(path, {copy.get(), file.size()}).header();
}
/// What is wrong with a file, without its name; empty if nothing is. Another exception than data_error fails the test.
std::string problem(std::string const& file) {
  std::string const said = test::message<ds::data_error>([&] { read(file); });
  if (said.empty() || said.starts_with("F is not a safetensors file")) return said;
  REQUIRE(said.starts_with("F: "));
  return said.substr(3);
}
std::string problem_of_header(std::string const& header, std::size_t data = 0) { return problem(raw(header, data)); }
/// A header with one tensor "W" of 4 bytes and with these fields in its entry.
std::string problem_of_entry(std::string const& fields) { return problem_of_header("{\"W\":{" + fields + "}}", 4); }

/// Puts the right hash into the header of a file that begins as one with hashes; other files stay.
std::string rehashed(std::string file) {
  std::uint64_t n = 0;
  if (file.size() < 8) return file;
  std::memcpy(&n, file.data(), 8);
  auto const digits = 8 + ds::detail::hashed_begin.size();
  if (n > file.size() - 8 || n + 8 < digits + 16 || !file.substr(8).starts_with(ds::detail::hashed_begin)) return file;
  return file.replace(digits, 16, ds::detail::hash_text(ds::detail::hash_of_head(file.substr(0, 8 + n))));
}

/// A small file with hashes.
std::string small_file() {
  temporary_folder const folder;
  std::array<float, 3> const w{1, 2, 3};
  std::array<std::uint8_t, 2> const b{4, 5};
  ds::save_safetensors(folder / "x",
                       {{"b", ds::dtype::u8, {2}, std::as_bytes(std::span(b))},
                        {"W", ds::dtype::f32, {1, 3}, std::as_bytes(std::span(w))}},
                       {{"made_by", "a test"}});
  return contents(folder / "x");
}

std::string const allowed_types = "BOOL, U8, I8, U16, I16, F16, BF16, U32, I32, F32, U64, I64, F64";

}  // namespace

TEST_CASE("every type, and every shape, is read as it was written") {
  temporary_folder const folder;
  std::mt19937_64 random(1);
  for (auto const type : all_types) {
    INFO(ds::name_of(type));
    tensors t;
    t.data.reserve(20);
    int n = 0;
    for (std::vector<std::int64_t> const& shape : std::vector<std::vector<std::int64_t>>{{},
                                                                                         {0},
                                                                                         {1},
                                                                                         {7},
                                                                                         {64},
                                                                                         {3, 5},
                                                                                         {0, 3},
                                                                                         {3, 0},
                                                                                         {1, 1, 1, 1, 1, 1, 1, 1},
                                                                                         {2, 1, 3, 1, 2, 1, 1, 5},
                                                                                         {1021}})
      t.add("t" + std::to_string(n++), type, shape, random);
    ds::save_safetensors(folder / "x", t.all);
    ds::safetensors_file const file(folder / "x");
    CHECK(file.hashed());
    CHECK(file.metadata().empty());
    CHECK(file.path() == folder / "x");
    CHECK(file.size() == std::int64_t(contents(folder / "x").size()));
    CHECK(file.find("t") == nullptr);
    CHECK(file.find("u") == nullptr);
    CHECK(file.find("") == nullptr);
    check_holds(file, t.all);
  }
}

TEST_CASE("the numbers of a file are those that were written") {
  temporary_folder const folder;
  std::array<double, 2> const x{-0.0, 1e300};
  std::array<ds::half, 1> const h{ds::narrow<ds::half>(1.5f)};
  ds::save_safetensors(folder / "x", {{"h", ds::dtype_of<ds::half>, {1}, std::as_bytes(std::span(h))},
                                      {"x", ds::dtype_of<double>, {2}, std::as_bytes(std::span(x))}});
  std::string const all = contents(folder / "x");
  CHECK(all.substr(all.size() - 18) == "\0\0\0\0\0\0\0\x80\x9c\x75\x00\x88\x3c\xe4\x37\x7e\x00\x3e"s);
}

TEST_CASE("files of random tensors are read as they were written") {
  temporary_folder const folder;
  std::mt19937_64 random(2);
  for (int round = 0; round < 100; ++round) {
    tensors t;
    std::size_t const count = random() % 20;
    t.data.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::int64_t> shape(random() % 5);
      for (auto& extent : shape) extent = std::int64_t(random() % 6);
      std::string name = "tensor" + std::to_string(i);
      while (random() % 2) name.insert(random() % (name.size() + 1), 1, char(' ' + random() % 95));
      if (random() % 4 == 0) name += "\u00e9\u4e16\U0001F600";
      t.add(name + std::to_string(i), all_types[random() % 13], shape, random);
    }
    ds::text_map metadata;
    while (random() % 3)
      metadata["key" + std::to_string(random() % 99)] = std::string(random() % 9, char(random() % 128));
    ds::save_safetensors(folder / "x", t.all, metadata);
    ds::safetensors_file const file(folder / "x");
    CHECK(file.metadata() == metadata);
    check_holds(file, t.all);
    CHECK(std::ranges::is_sorted(file.tensors(), {}, &ds::tensor_info::offset));
    for (auto const& each : file.tensors())
      CHECK(reinterpret_cast<std::uintptr_t>(file.bytes(each).data()) % ds::bytes_of(each.type) == 0);
    CHECK((std::size_t(file.size()) -
           (file.tensors().empty() ? 0 : std::size_t(file.tensors().back().offset + file.tensors().back().bytes))) %
              64 ==
          0);
  }
}

TEST_CASE("a file has these bytes, today and in all versions to come") {
  std::string const header = R"({"__metadata__":{"descent":"1","xxh3_header":"605a96729f28dc83",)"
                             R"("xxh3":"{\"W\":\"7977fbb9ac817d62\",\"b\":\"16260aa7bc02a0a5\"}","made_by":"a test"},)"
                             R"("W":{"dtype":"F32","shape":[1,3],"data_offsets":[0,12]},)"
                             R"("b":{"dtype":"U8","shape":[2],"data_offsets":[12,14]}})";
  std::string const file = small_file();
  REQUIRE(file.size() == 334);
  CHECK(file.substr(0, 8) == length_bytes(312));
  CHECK(file.substr(320) == "\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\4\5"s);
  CHECK(file.substr(8, 312) == header + std::string(312 - header.size(), ' '));
}

TEST_CASE("names and texts may have what JSON escapes") {
  temporary_folder const folder;
  std::string const name = "a \"quoted\" \\ name / \u00fc";
  ds::text_map const metadata{{"", ""}, {"nul \0 and \1"s, "\b\f\n\r\t\x1f\x7f\0end"s}, {"{\"W\":", "[1,2]}"}};
  bytes const x(3);
  ds::save_safetensors(folder / "x", {{name, ds::dtype::u8, {3}, x}, {"\"", ds::dtype::u8, {}, bytes_in("1")}},
                       metadata);
  ds::safetensors_file const file(folder / "x");
  CHECK(file.metadata() == metadata);
  CHECK(file.find(name) != nullptr);
  CHECK(file.find("\"") != nullptr);
  file.check();
}

TEST_CASE("a file without tensors is one") {
  temporary_folder const folder;
  ds::save_safetensors(folder / "x", {}, {{"key", "text"}});
  ds::safetensors_file file(folder / "x");
  CHECK(file.tensors().empty());
  CHECK(file.hashed());
  CHECK(file.metadata() == ds::text_map{{"key", "text"}});
  file.check();
  ds::safetensors_file const moved(std::move(file));
  CHECK(moved.metadata().size() == 1);
  moved.check();
}

TEST_CASE("a writer takes data in pieces of any size, in its order") {
  temporary_folder const folder;
  std::mt19937_64 random(3);
  tensors t;
  t.data.reserve(6);
  t.add("a", ds::dtype::u8, {5}, random)
      .add("empty", ds::dtype::i64, {0}, random)
      .add("b", ds::dtype::f64, {2}, random);
  t.add("c", ds::dtype::f32, {3}, random).add("d", ds::dtype::f64, {}, random).add("last", ds::dtype::u8, {0}, random);
  std::vector<ds::tensor_info> infos;
  for (auto const& each : t.all) infos.push_back({each.name, each.type, each.shape});
  for (std::size_t piece = 1; piece < 50; ++piece) {
    ds::safetensors_writer writer(folder / "x", infos, {{"key", "text"}});
    CHECK(writer.path() == folder / "x");
    CHECK(writer.order() == std::vector<std::size_t>{1, 2, 4, 3, 0, 5});
    bytes all;
    for (auto const i : writer.order()) all.insert(all.end(), t.data[i].begin(), t.data[i].end());
    for (std::size_t at = 0; at < all.size(); at += piece)
      writer.write(std::span(all).subspan(at, std::min(piece, all.size() - at)));
    writer.write({});
    CHECK(test::message([&] { writer.write(bytes(2)); }) ==
          "safetensors_writer: " + (folder / "x") + " has all its data, 2 bytes are too many");
    writer.commit();
    ds::safetensors_file const file(folder / "x");
    check_holds(file, t.all);
    CHECK(writer.size() == file.size());
    CHECK(writer.header_hash() == file.header_hash());
    CHECK(file.header_hash().size() == 16);
  }
  ds::safetensors_writer writer(folder / "y", infos);
  writer.write(bytes(20));
  CHECK(test::message([&] { writer.commit(); }) ==
        "safetensors_writer: " + (folder / "y") + ": tensor 'd' has 4 of 8 bytes");
  CHECK(!std::filesystem::exists(folder / "y"));
  writer.write(bytes(21));
  writer.commit();
  ds::safetensors_file(folder / "y").check();
}

TEST_CASE("what a writer cannot write is refused before there is a file") {
  temporary_folder const folder;
  auto const refused = [&](std::vector<ds::tensor_info> const& all, ds::text_map const& metadata = {}) {
    std::string const said =
        test::message<std::invalid_argument>([&] { ds::safetensors_writer(folder / "x", all, metadata); });
    CHECK(folder.names().empty());
    std::string const who = "safetensors_writer: ";
    REQUIRE(said.starts_with(who));
    return said.substr(who.size());
  };
  auto const name = [&](std::string const& is) { return refused({{is, ds::dtype::u8, {}}}); };
  std::string const names = "the name of a tensor must be 1 to 4096 bytes of UTF-8 without control characters, is ";
  CHECK(name("") == names + "empty");
  CHECK(name("a\nb") == names + "one with a control character");
  CHECK(name("a\0b"s) == names + "one with a control character");
  CHECK(name("\x7f") == names + "one with a control character");
  CHECK(name(std::string(4097, 'x')) == names + "4097 bytes long");
  CHECK(name("__metadata__") == names + "'__metadata__', which is not a tensor");
  CHECK(name("\xff") == "the name of a tensor must be UTF-8, is '?'");
  CHECK(refused({{"a", ds::dtype::u8, {}}, {"b", ds::dtype::u8, {}}, {"a", ds::dtype::u8, {}}}) ==
        "tensor 'a' comes twice");
  CHECK(refused({{"a", ds::dtype::u8, std::vector<std::int64_t>(9, 1)}}) ==
        "tensor 'a' must have at most 8 axes, has 9");
  std::string const extents = "tensor 'a' must have extents of at least 0 and less than 2^63 bytes, has shape ";
  CHECK(refused({{"a", ds::dtype::u8, {2, -1}}}) == extents + "[2, -1]");
  CHECK(refused({{"a", ds::dtype::u8, {std::int64_t{1} << 32, std::int64_t{1} << 31}}}) ==
        extents + "[4294967296, 2147483648]");
  CHECK(refused({{"a", ds::dtype::f64, {std::int64_t{1} << 60}}}) == extents + "[1152921504606846976]");
  CHECK(refused({{"a", ds::dtype::u8, {std::int64_t{1} << 62}}, {"b", ds::dtype::u8, {std::int64_t{1} << 62}}}) ==
        "all tensors together must have less than 2^63 bytes");
  for (std::string const key : {"descent", "xxh3", "xxh3_header"})
    CHECK(refused({}, {{key, ""}}) == "the key '" + key + "' of the metadata is reserved");
  CHECK(refused({}, {{"\xc3", ""}}) == "a key of the metadata must be UTF-8, is '?'");
  CHECK(refused({}, {{"a", "b\xf8"}}) == "a text of the metadata must be UTF-8, is 'b?'");
  ds::text_map const long_text{{"a", std::string(400, 'x')}};
  auto const limited = [&](std::int64_t most) {
    return test::message<std::invalid_argument>([&] { ds::detail::safetensors_head({}, long_text, {}, most); });
  };
  CHECK(limited(504) == "");
  CHECK(limited(503) ==
        "safetensors_writer: the header must have at most 503 bytes, has 504: use fewer tensors, "
        "shorter names or less metadata");
  CHECK(refused(std::vector<ds::tensor_info>(1'000'001)) == "there must be at most 1000000 tensors, are 1000001");
  bytes const x(3);
  CHECK(test::message<std::invalid_argument>([&] {
          ds::save_safetensors(folder / "x", {{"a", ds::dtype::u16, {2}, x}});
        }) == "save_safetensors: tensor 'a', U16 of shape [2], must have 4 bytes, has 3");
  CHECK(folder.names().empty());
  CHECK(test::message<std::runtime_error>([&] {
          ds::save_safetensors(folder / "no/x", {});
        }).starts_with((folder / "no/x") + ": cannot be written: its folder cannot be opened: "));
}

TEST_CASE("a file of another program is read without hashes") {
  temporary_folder const folder;
  // in another order, with holes in the alphabet, with spaces, and without alignment
  std::string const header =
      "{ \"z\" : {\"shape\":[], \"dtype\":\"F64\",\"data_offsets\":[1,9] },\"__metadata__\": {\"format\":\"pt\"},\n"
      "\"a\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]},"
      "\"m\":{\"dtype\":\"I8\",\"shape\":[0,5],\"data_offsets\":[9,9]}}   \n";
  ds::safetensors_file const file(folder.write("x", raw(header) + "123456789"));
  CHECK(!file.hashed());
  CHECK(file.header_hash().empty());
  CHECK(file.metadata() == ds::text_map{{"format", "pt"}});
  REQUIRE(file.tensors().size() == 3);
  CHECK(file.tensors()[0].name == "a");
  CHECK(file.tensors()[1].name == "z");
  CHECK(file.tensors()[2].name == "m");
  CHECK(std::ranges::equal(file.bytes(*file.find("z")), bytes_in("23456789")));
  file.check();
  CHECK(test::message<std::invalid_argument>([&] { file.check({.name = "q"}); }) ==
        "safetensors_file: " + (folder / "x") + " has no tensor 'q'");
  CHECK(problem_of_header("{}") == "");
  CHECK(problem_of_header("{\"__metadata__\":{}}") == "");
}

TEST_CASE("the length of the header is checked") {
  CHECK(problem("") == "offset 0: the number of bytes from here is 0, must be at least 8");
  CHECK(problem("1234567") == "offset 0: the number of bytes from here is 7, must be at least 8");
  auto const length = [](std::uint64_t n) { return problem(length_bytes(n) + "{}"); };
  for (auto const n : {0ull, 1ull, 100'000'001ull, 1ull << 40, 1ull << 63, ~0ull, ~0ull - 7, ~0ull - 8})
    CHECK(length(n) == "offset 0: the length of the header is " + std::to_string(n) + ", must be from 2 to 100000000");
  CHECK(length(2) == "");
  CHECK(length(3) == "offset 8: the number of bytes from here is 2, must be at least 3");
  CHECK(length(100'000'000) == "offset 8: the number of bytes from here is 2, must be at least 100000000");
}

TEST_CASE("the header is JSON in UTF-8, an object, and nothing else") {
  std::string const begin = "offset 8: the beginning of the header is ";
  CHECK(problem_of_header("[]") == begin + "'[]', must be '{'");
  CHECK(problem_of_header(" {}") == begin + "' {}', must be '{'");
  CHECK(problem_of_header("\xef\xbb\xbf{}") == begin + "'\xef\xbb\xbf{}', must be '{'");
  CHECK(problem_of_header("{}\0 {"s) == "offset 10: a character of the header is NUL, must be another one");
  auto const no_json = [](std::string const& text, int at) {
    CHECK(problem_of_header(text) ==
          "offset " + std::to_string(8 + at) + ": the header is no JSON from here on, must be JSON in UTF-8");
  };
  no_json("{}x", 2);
  no_json("{}{}", 2);
  no_json("{ ", 2);
  no_json("{'a':1}", 1);
  no_json("{\"a\" 1}", 5);
  no_json("{\"__metadata__\":{},}", 19);
  no_json("{\"\xff\":{}}", 2);
  no_json("{\"\xc0\xaf\":{}}", 2);  // an overlong '/'
  no_json("{\"\xed\xa0\x80\":{}}", 3);  // half of a pair
  no_json("{\"a\nb\":{}}", 3);
  no_json("{\"\\ud800\":{}}", 8);
  no_json("{//\n}", 1);
  no_json("{\"__metadata__\":{\"a\":\"", 22);
}

TEST_CASE("entries have what they must have, and nothing else") {
  auto const entry = [](std::string const& value) { return problem_of_header("{\"W\":" + value + "}"); };
  for (auto const& [value, got] : std::vector<std::pair<std::string, std::string>>{{"1", "the number 1"},
                                                                                   {"-1", "a negative number"},
                                                                                   {"0.5", "the number 0.5"},
                                                                                   {"null", "null"},
                                                                                   {"1e999", "the number 1e999"},
                                                                                   {"true", "a truth value"},
                                                                                   {"\"text\"", "'text'"},
                                                                                   {"[]", "an array"}})
    CHECK(entry(value) == "tensor 'W': the entry is " + got + ", must be an object with dtype, shape and data_offsets");
  std::string const shape = R"("shape":[1])", type = R"("dtype":"F32")", offsets = R"("data_offsets":[0,4])";
  CHECK(problem_of_entry(type + "," + shape + "," + offsets) == "");
  CHECK(problem_of_entry(offsets + "," + shape + "," + type) == "");
  std::string const incomplete = "tensor 'W': the entry is incomplete, must be one with dtype, shape and data_offsets";
  CHECK(problem_of_entry("") == incomplete);
  CHECK(problem_of_entry(type + "," + shape) == incomplete);
  CHECK(problem_of_entry(type + "," + offsets) == incomplete);
  CHECK(problem_of_entry(offsets + "," + shape) == incomplete);
  for (auto const& twice : {shape, type, offsets})
    CHECK(problem_of_entry(type + "," + shape + "," + offsets + "," + twice) ==
          "tensor 'W': the number of fields '" + twice.substr(1, twice.find('"', 1) - 1) + "' is 2, must be 1");
  // The reference implementation ignores the values of other fields, whatever they are.
  for (std::string const value : {"1", "-1", "0.5", "null", "true", "\"text\"", "[]", "{}", "[1,[null,{\"dtype\":7}]]",
                                  "{\"shape\":[-1],\"a\":{\"b\":[{}]}}", "18446744073709551616"}) {
    INFO(value);
    for (std::string const& at : {"\"x\":" + value + "," + type + "," + shape + "," + offsets,
                                  type + ",\"x\":" + value + "," + shape + "," + offsets,
                                  type + "," + shape + "," + offsets + ",\"x\":" + value + ",\"x\":" + value})
      CHECK(problem_of_entry(at) == "");
    CHECK(problem_of_entry("\"x\":" + value + "," + type + "," + shape) == incomplete);
  }
  CHECK(problem_of_entry("\"x\":1e999," + type + "," + shape + "," + offsets) ==
        "tensor 'W': the value of another field is the number 1e999, must be one in the range of double");
  std::string const deep(101, '['), closed(101, ']');
  CHECK(problem_of_entry("\"x\":" + deep.substr(1) + closed.substr(1) + "," + type + "," + shape + "," + offsets) ==
        "");
  CHECK(problem_of_entry("\"x\":" + deep + closed + "," + type + "," + shape + "," + offsets) ==
        "tensor 'W': the depth of a value is above 100, must be at most 100");

  auto const typed = [&](std::string const& is) {
    return problem_of_entry("\"dtype\":" + is + "," + shape + "," + offsets);
  };
  for (std::string const& name : {std::string(), std::string(101, 'x')})
    CHECK(typed('"' + name + '"').ends_with(", must be a name of 1 to 100 bytes"));
  CHECK(typed("7") == "tensor 'W': the dtype is the number 7, must be a text");
  CHECK(typed("[\"F32\"]") == "tensor 'W': the dtype is an array, must be a text");
  CHECK(typed("{}") == "tensor 'W': the dtype is an object, must be a text");

  auto const shaped = [&](std::string const& is) {
    return problem_of_entry(type + ",\"shape\":" + is + "," + offsets);
  };
  CHECK(shaped("1") == "tensor 'W': the shape is the number 1, must be an array of integers");
  CHECK(shaped("\"1\"") == "tensor 'W': the shape is '1', must be an array of integers");
  CHECK(shaped("{}") == "tensor 'W': the shape is an object, must be an array of integers");
  std::string const integer = ", must be an integer from 0 to 2^63 - 1";
  for (auto const& [value, got] :
       std::vector<std::pair<std::string, std::string>>{{"-1", "a negative number"},
                                                        {"-0", "a negative number"},
                                                        {"1.0", "the number 1.0"},
                                                        {"1e0", "the number 1e0"},
                                                        {"9223372036854775808", "the number 9223372036854775808"},
                                                        {"null", "null"},
                                                        {"true", "a truth value"},
                                                        {"18446744073709551616", "the number 18446744073709551616"},
                                                        {"\"1\"", "'1'"},
                                                        {"[1]", "an array"},
                                                        {"{}", "an object"}}) {
    CHECK(shaped("[" + value + "]") == "tensor 'W': an extent is " + got + integer);
    CHECK(problem_of_entry(type + "," + shape + ",\"data_offsets\":[0," + value + "]") ==
          "tensor 'W': one of data_offsets is " + got + integer);
  }
  CHECK(shaped("[1,1,1,1,1,1,1,1]") == "");
  CHECK(shaped("[1,1,1,1,1,1,1,1,1]") == "tensor 'W': the number of axes is above 8, must be at most 8");
  CHECK(shaped("[4294967296,2147483648]") ==
        "tensor 'W': the shape is [4294967296, 2147483648], must be one with less than 2^63 bytes");
  CHECK(shaped("[4611686018427387904]") ==
        "tensor 'W': the shape is [4611686018427387904], must be one with less than 2^63 bytes");
  CHECK(shaped("[4294967296,4294967296,0]") ==
        "tensor 'W': the shape is [4294967296, 4294967296, 0], must be one with less than 2^63 bytes");
  CHECK(shaped("[2]") == "tensor 'W': the number of bytes is 4, must be 8 for F32 of shape [2]");
  CHECK(shaped("[0]") == "tensor 'W': the number of bytes is 4, must be 0 for F32 of shape [0]");
  CHECK(shaped("[]") == "");

  auto const placed = [&](std::string const& is) {
    return problem_of_entry(type + "," + shape + ",\"data_offsets\":" + is);
  };
  CHECK(placed("[]") == "tensor 'W': the number of data_offsets is 0, must be 2");
  CHECK(placed("[0]") == "tensor 'W': the number of data_offsets is 1, must be 2");
  CHECK(placed("[0,4,4]") == "tensor 'W': the number of data_offsets is above 2, must be 2");
  CHECK(placed("4") == "tensor 'W': data_offsets is the number 4, must be an array of integers");
  CHECK(placed("[4,0]") == "tensor 'W': the beginning of the data is 4, must be at most 0, their end");
  CHECK(placed("[0,5]") == "tensor 'W': the number of bytes is 5, must be 4 for F32 of shape [1]");
  CHECK(placed("[1,5]") == "tensor 'W': the beginning of the data is 1, must be 0, as of the first tensor");
}

TEST_CASE("tensors of types that are not known are listed with what the file says, and placed like all") {
  temporary_folder const folder;
  for (std::string const type : {"F8_E4M3", "F8_E5M2", "C64", "F4", "F6_E2M3", "f32", "float32", "unknown", "X"}) {
    auto const entries = [&](std::string const& shape, std::string const& begin) {
      return "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"q\":{\"dtype\":\"" + type +
             "\",\"shape\":" + shape + ",\"data_offsets\":[" + begin +
             ",9]},\"z\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[9,10]}}";
    };
    ds::safetensors_file const file(folder.write("x", raw(entries("[2,3]", "4")) + "123456789X"));
    auto const& q = *file.find("q");
    CHECK((q.type == ds::dtype::unknown && q.type_name == type && ds::type_of(q) == type && q.bytes == 5));
    CHECK((q.shape == std::vector<std::int64_t>{2, 3} && ds::type_of(*file.find("a")) == "F32"));
    CHECK(std::ranges::equal(file.bytes(q), bytes_in("56789")));
    CHECK(std::ranges::equal(file.bytes(*file.find("z")), bytes_in("X")));
    file.check();
    CHECK(problem_of_header(entries("[2]", "5"), 10)
              .starts_with("tensor 'q': the beginning of the data is 5, must be 4"));
    CHECK(problem_of_header(entries("[2]", "10"), 10)
              .starts_with("tensor 'q': the beginning of the data is 10, must be"));
    CHECK(problem_of_header(entries("[4294967296,4294967296]", "4"), 10).ends_with("less than 2^63 bytes"));
    CHECK(test::message<std::invalid_argument>([&] { ds::safetensors_writer(folder / "y", {q}); }) ==
          "safetensors_writer: tensor 'q' must have one of the types " + allowed_types + ", has '" + type + "'");
  }
  CHECK(!std::filesystem::exists(folder / "y"));
}

TEST_CASE("a file that is something else is called what it is") {
  temporary_folder const folder;
  auto const kind = [&](std::string const& file) {
    std::string const path = folder.write("model.safetensors", file),
                      begin = path + " is not a safetensors file: it begins as ";
    std::string const said = test::message<ds::data_error>([&] { ds::safetensors_file{path}; });
    INFO(said);
    REQUIRE(said.starts_with(begin));
    return said.substr(begin.size());
  };
  CHECK(kind("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n") ==
        "a pointer of git-lfs, for which `git lfs pull` gets the file");
  CHECK(kind("{\n  \"metadata\": {\"total_size\": 8},\n  \"weight_map\": {\"W\": \"model-1-of-2.safetensors\"}\n}\n") ==
        "an index of JSON, which names the safetensors files of a model");
  CHECK(kind("{\"architectures\": [\"X\"]}") == "a file of JSON");
  CHECK(kind("PK\3\4\0\0\x08\x08\0\0\0\0archive/data.pkl\x80\2"s) == "a zip file of torch.save");
  CHECK(kind("PK\3\4\x2d\0\0\0\0\0\0\0W.npy\x93NUMPY"s) == "an .npz file of NumPy");
  CHECK(kind("PK\3\4\x2d\0\0\0\0\0\0\0a.txt"s) == "a zip file");
  CHECK(kind("\x80\2\x8a\nl\xfc\x9c"
             "F\xf9 j\xa8P\x19.\x80\2M\xe9\3."s) == "a pickle of torch.save, in its format before 1.6");
  CHECK(kind("\x80\4\x95\x10\0\0\0\0\0\0\0]"s) == "a pickle of Python");
  CHECK(kind("\x93NUMPY\1\0\x76\0{'descr'"s) == "an .npy file of NumPy");
  CHECK(kind("\x1f\x8b\x08\0\0\0\0\0\0\3"s) == "a gzip file");
  CHECK(kind("\x89HDF\r\n\x1a\n\0\0"s) == "an HDF5 file");
  CHECK(kind("GGUF\3\0\0\0\0\0"s) == "a GGUF file");
  CHECK(kind(std::string(257, '\0').replace(0, 8, "./x.bin1") + "ustar\00000000") == "a tar file");
  for (std::string const page :
       {"<!DOCTYPE html>\n<html>", "\n <html><head>", "<?xml version='1.0'?><Error>", "\xef\xbb\xbf<HTML>"})
    CHECK(kind(page) == "a page of HTML or XML, perhaps an error of a server");
  CHECK(kind("root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1\n") == "a text: 'root:x:0:0:root:/root:/bin/bash'");
  CHECK(kind("Entry not found") == "a text: 'Entry not found'");
  CHECK(test::message<ds::data_error>([&] { ds::safetensors_file{"/etc/passwd"}; })
            .starts_with("/etc/passwd is not a safetensors file: it begins as a text: '"));
  CHECK(problem(std::string(64, '\0')) == "offset 0: the length of the header is 0, must be from 2 to 100000000");
}

TEST_CASE("names are checked, and come once") {
  auto const named = [](std::string const& name) {
    return problem_of_header("{\"" + name + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})");
  };
  std::string const allowed = ", must be 1 to 4096 bytes of UTF-8 without control characters";
  CHECK(named("") == "tensor '': the name is empty" + allowed);
  CHECK(named("a\\u0000b") == "tensor 'a?b': the name is one with a control character" + allowed);
  CHECK(named("a\\n") == "tensor 'a?': the name is one with a control character" + allowed);
  CHECK(named("\x7f") == "tensor '?': the name is one with a control character" + allowed);
  CHECK(named(std::string(4096, 'x')) == "");
  CHECK(named(std::string(4097, 'x')) ==
        "tensor '" + std::string(60, 'x') + "...': the name is 4097 bytes long" + allowed);
  CHECK(named("\\u00e9\\ud83d\\ude00") == "");
  std::string const wide = "\u00e9\u4e16\U0001F600";  // messages are UTF-8 even if the file is not
  CHECK(ds::detail::in_quotes(wide) == "'" + wide + "'");
  CHECK(ds::detail::in_quotes("a\xff\xe4\xb8z\xc3") == "'a???z?'");
  CHECK(ds::detail::in_quotes(std::string(58, 'x') + wide) == "'" + std::string(58, 'x') + "\u00e9...'");
  std::string const entry = R"(:{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  CHECK(problem_of_header("{\"a\"" + entry + ",\"b\"" + entry + ",\"\\u0061\"" + entry + "}") ==
        "tensor 'a': the number of entries is 2, must be 1");
}

TEST_CASE("the tensors fill the data without overlap and without a hole") {
  auto const two = [](std::string const& a, std::string const& b, std::size_t data) {
    auto const n = [](std::string const& range) {
      return std::to_string(std::stoi(range.substr(range.find(',') + 1)) - std::stoi(range));
    };
    auto const entry = [&](std::string const& range) {
      return R"({"dtype":"U8","shape":[)" + n(range) + R"(],"data_offsets":[)" + range + "]}";
    };
    return problem_of_header("{\"a\":" + entry(a) + ",\"b\":" + entry(b) + "}", data);
  };
  CHECK(two("0,4", "4,8", 8) == "");
  CHECK(two("4,8", "0,4", 8) == "");
  CHECK(two("0,4", "4,4", 4) == "");
  CHECK(two("0,0", "0,4", 4) == "");
  CHECK(two("0,4", "0,0", 4) == "");
  CHECK(two("0,4", "3,8", 8) == "tensor 'b': the beginning of the data is 3, must be 4, the end of tensor 'a'");
  CHECK(two("0,4", "0,4", 4) == "tensor 'b': the beginning of the data is 0, must be 4, the end of tensor 'a'");
  CHECK(two("5,8", "0,4", 8) == "tensor 'a': the beginning of the data is 5, must be 4, the end of tensor 'b'");
  CHECK(two("0,4", "2,2", 4) == "tensor 'b': the beginning of the data is 2, must be 4, the end of tensor 'a'");
  CHECK(two("0,4", "5,5", 4) == "tensor 'b': the beginning of the data is 5, must be 4, the end of tensor 'a'");
  CHECK(two("0,4", "4,8", 9).ends_with(": the number of bytes from here is 9, must be 8, the bytes of all tensors"));
  CHECK(two("0,4", "4,8", 7).ends_with(": the number of bytes from here is 7, must be 8, the bytes of all tensors"));
  CHECK(problem_of_header("{}", 1) ==
        "offset 10: the number of bytes from here is 1, must be 0, the bytes of all tensors");
}

TEST_CASE("the metadata is an object of texts") {
  auto const metadata = [](std::string const& value) { return problem_of_header("{\"__metadata__\":" + value + "}"); };
  CHECK(metadata("[]") == "__metadata__: the value is an array, must be an object of texts or null");
  CHECK(metadata("\"text\"") == "__metadata__: the value is 'text', must be an object of texts or null");
  CHECK(metadata("null") == "");
  CHECK(metadata("null,\"__metadata__\":{}") == "__metadata__: the number of these keys is 2, must be 1");
  CHECK(metadata("{\"a\":1}") == "__metadata__: the value of 'a' is the number 1, must be a text");
  CHECK(metadata("{\"a\":{}}") == "__metadata__: the value of 'a' is an object, must be a text");
  CHECK(metadata("{\"a\":[]}") == "__metadata__: the value of 'a' is an array, must be a text");
  CHECK(metadata("{\"a\":null}") == "__metadata__: the value of 'a' is null, must be a text");
  CHECK(metadata("{\"a\":\"\",\"b\":\"\",\"a\":\"\"}") == "__metadata__: the number of keys 'a' is 2, must be 1");
  CHECK(problem_of_header("{\"__metadata__\":{},\"__metadata__\":{}}") ==
        "__metadata__: the number of these keys is 2, must be 1");
}

TEST_CASE("a file with hashes has all of them, at their place, and they are right") {
  std::string const good = small_file();
  REQUIRE(problem(good) == "");
  REQUIRE(rehashed(good) == good);
  /// The file with another text in its header, spaces at its end so that the length stays, and the hash of the header.
  auto const with = [&](std::string const& old, std::string const& now) {
    std::string file = good;
    REQUIRE(file.find(old) != file.npos);
    file.replace(file.find(old), old.size(), now);
    auto const data = file.find("\0\0\x80\x3f"s);
    if (now.size() <= old.size()) file.insert(data, old.size() - now.size(), ' ');
    else file.erase(data - (now.size() - old.size()), now.size() - old.size());
    REQUIRE(file.size() == good.size());
    return problem(rehashed(file));
  };
  std::string const all = ", must be there, as in all files with 'descent', 'xxh3_header' or 'xxh3'";
  CHECK(with(R"("descent":"1",)", "") == "__metadata__: 'descent' is missing" + all);
  CHECK(with("descent", "Descent") == "__metadata__: 'descent' is missing" + all);
  CHECK(with("xxh3_header", "xxh3_headeR") == "__metadata__: 'xxh3_header' is missing" + all);
  CHECK(with("\"xxh3\"", "\"xxh4\"") == "__metadata__: 'xxh3' is missing" + all);
  CHECK(problem_of_header(R"({"__metadata__":{"xxh3":""}})") == "__metadata__: 'descent' is missing" + all);
  CHECK(with(R"("1")", R"("2")") == "__metadata__: 'descent', the version of the format, is '2', must be '1'");
  CHECK(with(R"("1")", R"("")") == "__metadata__: 'descent', the version of the format, is '', must be '1'");
  CHECK(with("{\"__metadata__", "{ \"__metadata__")
            .starts_with("offset 8: the beginning of the header is '{ \"__metadata__"));
  CHECK(with(R"("a test")", R"("b test")") == "");
  CHECK(with(R"(\"W\":\")", R"(\"V\":\")") == "tensor 'W': the hash is missing, must be in 'xxh3' of the metadata");
  CHECK(with(R"("W":{)", R"("V":{)") == "tensor 'V': the hash is missing, must be in 'xxh3' of the metadata");
  CHECK(with(R"({\"W\":\")", R"({\"A\":\"\",\"W\":\")") ==
        "__metadata__: a name in 'xxh3' is 'A', must be that of a tensor");
  CHECK(with(R"({\"W\":\")", R"({\"b\":\"\",\"W\":\")") == "tensor 'b': the number of hashes is 2, must be 1");
  CHECK(with(R"({\"W\":\")", R"({\"W\":\"0)") ==
        "tensor 'W': the hash is '07977fbb9ac817d62', must be 16 digits from 0 to f");
  CHECK(with(R"(c817d62\",)", R"(c817D62\",)") ==
        "tensor 'W': the hash is '7977fbb9ac817D62', must be 16 digits from 0 to f");
  CHECK(with(R"("{\"W\")", R"("[\"W\")") == "__metadata__: 'xxh3' is an array, must be an object of hashes");
  CHECK(with(R"("{\"W\")", R"("{\"W)") == "__metadata__: 'xxh3' is no JSON, must be an object of hashes");
  CHECK(with(R"({\"W\":\")", R"({\"A\":1,\"W\":\")") == "tensor 'A': the hash is the number 1, must be a text");
  CHECK(with(R"({\"W\":\")", R"({\"A\":{},\"W\":\")") == "tensor 'A': the hash is an object, must be a text");

  std::string file = good;
  auto const digits = 8 + ds::detail::hashed_begin.size();
  std::string const hash = good.substr(digits, 16);
  file[digits] = hash[0] == '0' ? '1' : '0';
  CHECK(problem(file) == "offset 0: the XXH3 of the header is " + hash + ", must be " + file.substr(digits, 16) +
                             ", as the header says");
  file[digits] = 'g';
  CHECK(problem(file) == "__metadata__: 'xxh3_header' is 'g" + hash.substr(1) + "', must be 16 digits from 0 to f");
  // shorter than the digits that it must have
  std::string const begin(ds::detail::hashed_begin);
  CHECK(problem_of_header(begin + "\",\"xxh3\":\"\"}}") ==
        "__metadata__: 'xxh3_header' is '', must be 16 digits from 0 to f");
}

TEST_CASE("damaged data is found where it is") {
  temporary_folder const folder;
  std::string file = small_file();
  file[file.size() - 1] ^= 1;
  ds::safetensors_file const damaged(folder.write("x", file));
  damaged.check(*damaged.find("W"));
  std::string const said = test::message<ds::data_error>([&] { damaged.check(*damaged.find("b")); });
  CHECK(said.starts_with((folder / "x") + ": tensor 'b': the XXH3 of the 2 bytes from offset 332 is "));
  CHECK(said.ends_with(", must be 16260aa7bc02a0a5, as the header says"));
  CHECK(test::message<ds::data_error>([&] { damaged.check(); }) == said);
  ds::tensor_info const copy = *damaged.find("b");
  CHECK(test::message<ds::data_error>([&] { damaged.check(copy); }) == said);
}

TEST_CASE("a file with one flipped bit, and every truncated one, is refused") {
  temporary_folder const folder;
  std::string const path = folder / "x";
  auto const refused = [&] {
    return !test::message<ds::data_error>([&] { ds::safetensors_file(path).check(); }).empty();
  };
  /// Flips are made in place: a file system may synchronize a file that is truncated and written again.
  auto const flipped_refused = [&](std::string const& good, std::size_t bit) {
    ds::detail::descriptor const file(::open(path.c_str(), O_WRONLY));
    auto const put = [&](char c) { REQUIRE(::pwrite(file.get(), &c, 1, ::off_t(bit / 8)) == 1); };
    put(char(good[bit / 8] ^ (1 << bit % 8)));
    bool const is = refused();
    put(good[bit / 8]);
    return is;
  };
  std::string const small = small_file();
  folder.write("x", small);
  int missed = 0;
  for (std::size_t bit = 0; bit < small.size() * 8; ++bit) missed += !flipped_refused(small, bit);
  CHECK(missed == 0);
  CHECK(!refused());
  folder.write("x", small + '\0');
  CHECK(refused());
  for (std::size_t n = small.size(); n-- > 0;) {
    REQUIRE(::truncate(path.c_str(), ::off_t(n)) == 0);
    missed += !refused();
  }
  CHECK(missed == 0);

  std::mt19937_64 random(4);
  tensors t;
  t.data.reserve(10);
  for (int i = 0; i < 10; ++i)
    t.add("layer" + std::to_string(i) + ".weight", all_types[std::size_t(i) % 13], {i, 7}, random);
  ds::save_safetensors(path, t.all, {{"a", "b"}});
  std::string const large = contents(path);
  CHECK(large.size() > 2000);
  for (int i = 0; i < 2'000; ++i) missed += !flipped_refused(large, random() % (large.size() * 8));
  CHECK(missed == 0);
  CHECK(!refused());
  for (std::size_t n = large.size(); n-- > 0;) {
    REQUIRE(::truncate(path.c_str(), ::off_t(n)) == 0);
    missed += !refused();
  }
  CHECK(missed == 0);
}

TEST_CASE("with any other value in a byte of its header, a file is refused or read") {
  std::string foreign = raw(R"({"__metadata__":{"a":"b"},"W":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})", 8);
  int read_too = 0, refused = 0;
  for (std::size_t i = 0; i < foreign.size() - 8; ++i)
    for (int value = 0; value < 256; ++value) {
      std::string changed = foreign;
      changed[i] = char(value);
      INFO("byte " << i << " is " << value);
      ++(problem(changed).empty() ? read_too : refused);
    }
  CHECK(read_too > 256);
  CHECK(refused > 15'000);
}

TEST_CASE("nested values, and many tensors, are refused at once") {
  for (std::string const open : {"[", "{\"a\":"}) {
    std::string deep = "{\"W\":";
    for (int i = 0; i < 1'000'000; ++i) deep += open;
    CHECK(!problem_of_header(deep).empty());
  }
  std::string const path = "F";
  ds::detail::header_events events(path);
  events.start_object(1'000'001);
  events.tensors.resize(999'999);
  std::string last = "V", too_many = "W";
  events.key(last);
  CHECK(test::message<ds::data_error>([&] { events.key(too_many); }) ==
        "F: tensor 'W': the number of tensors up to this one is 1000001, must be at most 1000000");
}

TEST_CASE("a header that is mutated at random is refused or read") {
  std::mt19937_64 random(5);
  auto const below = [&](std::size_t n) { return std::size_t(random() % n); };
  std::vector<std::string> const seeds{
      small_file(),
      raw(R"({"__metadata__":{"format":"pt","x":"\u00e9\n"},"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
          R"("b":{"dtype":"I64","shape":[],"data_offsets":[12,20]},)"
          R"("c":{"dtype":"U8","shape":[0],"data_offsets":[20,20]}})",
          20),
      raw(R"({"__metadata__":null,"a":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[0,3],"x":[{"y":null}]},)"
          R"("b":{"x":{"z":[1,-2.5]},"dtype":"F4","shape":[2,2],"data_offsets":[3,5]}})",
          5),
      raw(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
          R"("b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}  )",
          2)};
  std::vector<std::string> const words{"{",
                                       "}",
                                       "[",
                                       "]",
                                       ",",
                                       ":",
                                       "\"",
                                       "\\",
                                       "0",
                                       "1",
                                       "-1",
                                       "1e9",
                                       "0.5",
                                       "null",
                                       "true",
                                       "\"a\"",
                                       "\"dtype\"",
                                       "\"shape\"",
                                       "\"F64\"",
                                       "\"data_offsets\"",
                                       "\"__metadata__\"",
                                       "9223372036854775807",
                                       "9223372036854775808",
                                       "18446744073709551615",
                                       "\\u0000",
                                       "\\ud800",
                                       "\xff",
                                       "\xc3\xa9",
                                       "\0"s,
                                       " ",
                                       "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}",
                                       "\"xxh3\":\"{}\"",
                                       "\"descent\":\"1\"",
                                       "{}",
                                       "[[[["};
  int accepted = 0, rejected = 0;
  for (int round = 0; round < 10'000; ++round) {
    std::string file = seeds[below(seeds.size())];
    std::uint64_t n = 0;
    std::memcpy(&n, file.data(), 8);
    std::string header = file.substr(8, n), data = file.substr(8 + n);
    for (std::size_t changes = 1 + below(4); changes-- > 0;) {
      std::size_t const at = below(header.size() + 1), length = std::min(below(12), header.size() - at);
      switch (below(7)) {
        case 0:
          if (at < header.size()) header[at] ^= char(1 << below(8));
          break;
        case 1: header.erase(at, length); break;
        case 2: header.insert(at, words[below(words.size())]); break;
        case 3: header.replace(at, length, words[below(words.size())]); break;
        case 4: header.insert(below(header.size() + 1), header.substr(at, length)); break;
        case 5:
          if (at < header.size() && header[at] >= '0' && header[at] <= '9') header[at] = char('0' + below(10));
          break;
        default: data.resize(below(40)); break;
      }
    }
    file = length_bytes(below(50) == 0 ? random() >> below(64) : header.size()) + header + data;
    if (below(3) != 0) file = rehashed(file);
    INFO("round " << round << ": " << header);
    ds::detail::safetensors_header is;
    if (!test::message<ds::data_error>([&] { is = read(file); }).empty()) {
      ++rejected;
      continue;
    }
    ++accepted;
    std::int64_t end = 0;
    for (auto const& t : is.tensors) {
      REQUIRE(t.offset == end);
      REQUIRE(t.bytes >= 0);
      if (t.type != ds::dtype::unknown) REQUIRE(t.count() * std::int64_t(ds::bytes_of(t.type)) == t.bytes);
      REQUIRE((t.type == ds::dtype::unknown) == !t.type_name.empty());
      REQUIRE(t.count() >= 0);
      REQUIRE(t.shape.size() <= 8);
      REQUIRE(ds::detail::problem_of_name(t.name).empty());
      end += t.bytes;
    }
    REQUIRE(is.data + end == std::int64_t(file.size()));
    REQUIRE((is.hashes.empty() || is.hashes.size() == is.tensors.size()));
  }
  CHECK(accepted > 300);
  CHECK(rejected > 3'000);
}

TEST_CASE("a file that is replaced while it is read stays readable, and one that is changed is noticed") {
  temporary_folder const folder;
  std::string const path = folder / "x";
  bytes const old = bytes_in("old data"), now = bytes_in("new");
  auto const save = [&](bytes const& x) {
    ds::save_safetensors(path, {{"x", ds::dtype::u8, {std::int64_t(x.size())}, x}});
  };
  auto const changed = [&](ds::safetensors_file const& file) {
    return test::message<std::runtime_error>([&] { file.check_unchanged(); });
  };
  auto const age = [&] {  // clocks of file systems are coarse
    std::timespec const long_ago[2]{{1'000'000'000, 0}, {1'000'000'000, 0}};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), long_ago, 0) == 0);
  };
  save(old);
  ds::safetensors_file const first(path);
  save(now);
  ds::safetensors_file const second(path);
  CHECK(std::ranges::equal(first.bytes(first.tensors()[0]), old));
  first.check();
  CHECK(changed(first) == "");
  CHECK(changed(second) == "");

  save(old);
  age();
  ds::safetensors_file third(path);
  CHECK(changed(third) == "");
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(third.size() - 1).put('x');
  CHECK(changed(third) == path + ": has changed while it was read");
  CHECK(!test::message<ds::data_error>([&] { third.check(); }).empty());

  save(old);
  age();
  third = ds::safetensors_file(path);
  CHECK(changed(third) == "");
  CHECK(changed(first) == "");
  std::ofstream(path, std::ios::app | std::ios::binary) << 'x';
  age();  // the size alone says it
  CHECK(changed(third) == path + ": has changed while it was read");
}

TEST_CASE("a file that is replaced while it is opened is the old one or the new one") {
  temporary_folder const folder;
  static std::string path;
  static int times;
  path = folder / "x";
  times = 3;
  static auto const save = [](std::size_t size) {
    ds::save_safetensors(path, {{"x", ds::dtype::u8, {std::int64_t(size)}, bytes(size)}});
    std::timespec const long_ago[2]{{1'000'000'000, 0}, {1'000'000'000, 0}};  // clocks of file systems are coarse
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), long_ago, 0) == 0);
  };
  save(1);
  ds::detail::file_calls::before_mapping = [] {
    if (times-- > 0) save(std::size_t(10 - times));
  };
  ds::safetensors_file const file(path);
  ds::detail::file_calls::before_mapping = nullptr;
  CHECK(times == -1);
  CHECK(file.tensors()[0].bytes == 10);
  file.check();
  file.check_unchanged();
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(file.size() - 1).put('x');
  CHECK(test::message<std::runtime_error>([&] { file.check_unchanged(); }) == path + ": has changed while it was read");
}

TEST_CASE("what is no file is refused when it is opened") {
  temporary_folder const folder;
  auto const said = [&](std::string const& path) {
    return test::message<std::runtime_error>([&] { ds::safetensors_file{path}; });
  };
  CHECK(said(folder / "missing").starts_with((folder / "missing") + ": cannot be opened: "));
  CHECK(said(folder.path).starts_with(folder.path + ": cannot be opened: "));
  CHECK(said("/dev/null") == "/dev/null: cannot be mapped: it is not a regular file");
  CHECK(said(folder.write("empty", "")) ==
        (folder / "empty") + ": offset 0: the number of bytes from here is 0, must be at least 8");
}
