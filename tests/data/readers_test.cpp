// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Readers of files: they give what is in the file, and refuse a file that is truncated or corrupt with a sentence.
#include <descent/data/csv.hpp>
#include <descent/data/gzip.hpp>
#include <descent/data/idx.hpp>
#include <descent/data/mapped_file.hpp>
#include <descent/data/npy.hpp>
#include <descent/data/raw_records.hpp>
#include <descent/data/token_file.hpp>

#include <doctest/doctest.h>

#include "support/computing.hpp"
#include "support/message.hpp"

#include <random>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>
#include <zlib.h>

namespace ds = descent;
using namespace std::string_literals;

static_assert(ds::source<ds::idx_file<ds::field<"x", std::uint8_t>>> &&
              ds::source<ds::npy_file<ds::field<"x", ds::half>>> &&
              ds::source<ds::raw_records<ds::field<"x", double>>> &&
              ds::source<ds::csv_numbers<ds::field<"x", float>>> && ds::source<ds::token_file>);
static_assert(std::is_nothrow_move_constructible_v<ds::mapped_file> && !std::is_copy_constructible_v<ds::mapped_file>);
static_assert(std::is_copy_constructible_v<ds::idx_file<ds::field<"x", float>>> &&
              std::is_copy_assignable_v<ds::csv_file>);

namespace {

/// A folder for this process, removed at the end.
struct temporary_folder {
  std::string path = (std::filesystem::temp_directory_path() / "descent_readers_XXXXXX").string();
  temporary_folder() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~temporary_folder() { std::filesystem::remove_all(path); }
  std::string write(std::string const& name, std::string const& contents) const {
    std::ofstream(path + "/" + name, std::ios::binary) << contents;
    return path + "/" + name;
  }
};

/// A file that exists only in memory. Its bytes end where the memory ends, so that a sanitizer sees reads beyond.
ds::file_bytes in_memory(std::string const& contents) {
  auto const* const data = reinterpret_cast<std::byte const*>(contents.data());
  return {"F", std::vector<std::byte>(data, data + contents.size())};
}
/// The text with <n> for n spaces.
std::string spaced(std::string text) {
  for (std::size_t at = 0; (at = text.find('<', at)) != text.npos; ++at) {
    std::size_t const end = text.find('>', at);
    if (!std::isdigit(static_cast<unsigned char>(text[at + 1])) || end - at != 3) continue;
    text.replace(at, end + 1 - at, static_cast<std::size_t>(std::stoi(text.substr(at + 1))), ' ');
  }
  return text;
}
template <class T> std::string bytes_of(T const& x) { return std::string(reinterpret_cast<char const*>(&x), sizeof x); }
template <class T> std::string big_endian(T const& x) {
  std::string text = bytes_of(x);
  if (std::endian::native == std::endian::little) std::reverse(text.begin(), text.end());
  return text;
}

template <ds::field_label Name = "x", class Source> auto read(Source const& from, std::int64_t i) {
  ds::record_memory memory(from.fields());
  auto const out = memory.clear();
  ds::record_random random(0, 0, i);
  from.read(i, out, random);
  auto const x = out.template get<Name>();
  return std::vector<std::remove_cvref_t<decltype(x[0])>>(x.begin(), x.end());
}
template <class Source> void read_all(Source const& from) {
  for (std::int64_t i = 0; i < from.size(); ++i) read<Source::fields_type::template type<0>::name>(from, i);
}
/// Reads the records first, first + 1, ... at once. Whether they are those that read() gives.
template <class Source> bool runs_are_records(Source const& from, std::int64_t first, std::int64_t count) {
  using T = typename Source::fields_type::template element<0>;
  auto const n = from.fields().template at<0>().size();
  std::vector<T> run(static_cast<std::size_t>(n * count + 1));
  from.read_run(first, count, {from.fields(), {reinterpret_cast<std::byte*>(run.data())}, {}});
  bool same = true;
  for (std::int64_t k = 0; k < count; ++k)
    same = same && std::memcmp(run.data() + k * n, read(from, first + k).data(), std::size_t(n) * sizeof(T)) == 0;
  return same;
}

/// What the call throws as data_error; another exception fails the test.
template <class F> std::string refusal(F const& f) { return test::message<ds::data_error>(f); }

/// A reader refuses every truncation of a file, and one byte more.
template <class Open> void check_lengths(std::string const& whole, Open const& open) {
  CHECK(refusal([&] { open(in_memory(whole)); }) == "");
  for (std::size_t n = 0; n < whole.size(); ++n) {
    INFO("truncated to " << n);
    CHECK(refusal([&] { open(in_memory(whole.substr(0, n))); }).starts_with("F: offset "));
  }
  CHECK(refusal([&] { open(in_memory(whole + "x")); }).starts_with("F: offset "));
}
/// With any other value in a byte of its header, a file is refused, or its records can be read. Returns how many are
/// refused.
template <class Open> int check_bytes(std::string const& whole, std::size_t header, Open const& open) {
  int refused = 0;
  for (std::size_t i = 0; i < header; ++i)
    for (int value = 0; value < 256; ++value) {
      std::string changed = whole;
      changed[i] = static_cast<char>(value);
      INFO("byte " << i << " is " << value);
      CHECK_NOTHROW(refused += !refusal([&] { open(in_memory(changed)); }).empty());
    }
  return refused;
}

/// An IDX file: its type, its extents, its data.
std::string idx(int type, std::vector<std::uint32_t> const& extents, std::string const& data) {
  std::string file{0, 0, static_cast<char>(type), static_cast<char>(extents.size())};
  for (auto const n : extents) file += big_endian(n);
  return file + data;
}
template <class T> bool idx_holds(int type, std::vector<T> const& x) {
  std::string data;
  for (T const& each : x) data += big_endian(each);
  ds::idx_file<ds::field<"x", T>> const file(in_memory(idx(type, {static_cast<std::uint32_t>(x.size())}, data)));
  REQUIRE(file.size() == std::int64_t(x.size()));
  bool same = file.fields().template get<"x">().shape().empty();
  for (std::size_t i = 0; i < x.size(); ++i) same = same && bytes_of(read(file, std::int64_t(i))[0]) == bytes_of(x[i]);
  return same;
}

template <class T> void open_idx(ds::file_bytes const& file) { read_all(ds::idx_file<ds::field<"x", T>>(file)); }
template <class T> void open_npy(ds::file_bytes const& file) { read_all(ds::npy_file<ds::field<"x", T>>(file)); }

/// An NPY file of version 1.0, whose header is not padded.
std::string npy(std::string const& header, std::string const& data) {
  return "\x93NUMPY\1\0"s + static_cast<char>(header.size()) + '\0' + header + data;
}

std::string token_header(std::int32_t magic, std::int32_t version, std::int32_t tokens) {
  return bytes_of(magic) + bytes_of(version) + bytes_of(tokens) + std::string(253 * 4, '\0');
}

std::vector<std::string> row(ds::csv_file const& file, std::int64_t i) {
  std::vector<std::string> cells;
  for (std::size_t k = 0; k < file.columns().size(); ++k) cells.push_back(file.text(i, std::int64_t(k)));
  return cells;
}
using cells = std::vector<std::string>;

/// The gzip file of these contents.
std::string gzip(std::string const& contents) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&z, contents.size()) + 32, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(contents.data()));
  z.avail_in = static_cast<uInt>(contents.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}
std::string text_of(ds::file_bytes const& file) {
  return std::string(reinterpret_cast<char const*>(file.bytes().data()), file.bytes().size());
}

}  // namespace

TEST_CASE("mapped_file: the bytes of the file, until the last owner is gone") {
  temporary_folder const folder;
  for (std::size_t const n : {0u, 1u, 4095u, 4096u, 4097u, 100000u}) {
    std::string contents(n, '\0');
    for (std::size_t i = 0; i < n; ++i) contents[i] = static_cast<char>(i * 7 + i / 256);
    std::string const path = folder.write("a", contents);
    ds::mapped_file file(path);
    CHECK(file.path() == path);
    auto const bytes = file.bytes();
    CHECK(bytes.size() == n);
    ds::mapped_file moved(std::move(file));
    CHECK(moved.bytes().data() == bytes.data());
    ds::mapped_file assigned(folder.write("b", "other"));
    assigned = std::move(moved);
    CHECK(assigned.bytes().data() == bytes.data());
    std::optional<ds::file_bytes> const first(std::in_place, std::move(assigned));
    ds::file_bytes const copy = *first;
    std::filesystem::remove(path);
    CHECK(text_of(copy) == contents);
    CHECK(copy.path() == path);
  }
  std::filesystem::path const path = folder.write("c", "abc");
  auto const shared = std::make_shared<ds::mapped_file const>(path.string());
  CHECK(ds::file_bytes(shared).bytes().data() == shared->bytes().data());
  CHECK(text_of(path) == "abc");
  CHECK(text_of(path.c_str()) == "abc");
}

TEST_CASE("mapped_file: part of the bytes, or how many there are") {
  temporary_folder const folder;
  std::string const path = folder.write("a", "0123456789");
  ds::mapped_file const file(path);
  CHECK(file.bytes(3, 2).data() == file.bytes().data() + 3);
  CHECK(file.bytes(3, 7).size() == 7);
  CHECK(file.bytes(10, 0).empty());
  CHECK(refusal([&] { static_cast<void>(file.bytes(6, 5)); }) ==
        path + ": offset 6: the number of bytes from here is 4, must be at least 5");
  std::int64_t const most = std::numeric_limits<std::int64_t>::max();
  for (std::pair<std::int64_t, std::int64_t> const& p :
       {std::pair{11L, 0L}, {0L, 11L}, {-1L, 2L}, {3L, -1L}, {most, most}, {2L, most}})
    CHECK(refusal([&] { static_cast<void>(file.bytes(p.first, p.second)); }) != "");
}

TEST_CASE("mapped_file: what is no regular file is refused") {
  temporary_folder const folder;
  auto const said = [](std::string const& path) {
    return test::message<std::runtime_error>([&] { ds::mapped_file{path}; });
  };
  CHECK(said(folder.path + "/no") == folder.path + "/no: cannot be opened: No such file or directory");
  CHECK(said("") == ": cannot be opened: No such file or directory");
  CHECK(said(folder.path) == folder.path + ": cannot be opened: Is a directory");
  CHECK(said("/dev/null") == "/dev/null: cannot be mapped: it is not a regular file");
  REQUIRE(::mkfifo((folder.path + "/pipe").c_str(), 0600) == 0);
  CHECK(said(folder.path + "/pipe") == folder.path + "/pipe: cannot be mapped: it is not a regular file");
}

TEST_CASE("read_gzip: what was compressed, also several members, and zeros at the end") {
  temporary_folder const folder;
  std::string noise(200000, '\0');
  std::uint32_t state = 1;
  for (char& c : noise) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  for (std::string const& contents : {""s, "a"s, noise, std::string(3000000, 'a'), noise + std::string(100000, 'b')})
    CHECK(text_of(ds::read_gzip(folder.write("a", gzip(contents)))) == contents);
  CHECK(text_of(ds::read_gzip(folder.write("a", gzip("one ") + gzip(noise) + gzip("") + gzip("two")))) ==
        "one " + noise + "two");
  CHECK(text_of(ds::read_gzip(folder.write("a", gzip("one") + std::string(512, '\0')))) == "one");
  std::string const path = folder.write("images.gz", gzip(idx(8, {2, 3}, "abcdef")));
  CHECK(read(ds::idx_file<ds::field<"x", std::uint8_t>>(ds::read_gzip(path)), 1) ==
        std::vector<std::uint8_t>{'d', 'e', 'f'});
}

TEST_CASE("read_gzip: a file that is truncated, corrupt or not compressed is refused") {
  temporary_folder const folder;
  std::string const contents = "the quick brown fox jumps over the lazy dog, the lazy dog, the lazy dog",
                    whole = gzip(contents);
  auto const said = [&](std::string const& file) {
    std::string text = contents, message = refusal([&] { text = text_of(ds::read_gzip(folder.write("a", file))); });
    CHECK(text == contents);
    return message;
  };
  CHECK(said(whole) == "");
  for (std::size_t n = 0; n < whole.size(); ++n)
    CHECK(said(whole.substr(0, n)) ==
          folder.path + "/a: offset " + std::to_string(n) + ": the gzip data is truncated, must be complete");
  int refused = 0;
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ 1 << bit);
      refused += !said(changed).empty();  // if not, the contents are the same
    }
  CHECK(refused >= int(whole.size() - 10) * 8);  // time and system in the header may be anything
  CHECK(said("plain text") ==
        folder.path + "/a: offset 2: the gzip data is corrupt (incorrect header check), must be valid");
  CHECK(said(whole + "more") != "");
  CHECK(test::message<std::runtime_error>([&] { ds::read_gzip(folder.path + "/no"); }) ==
        folder.path + "/no: cannot be opened: No such file or directory");
}

TEST_CASE("idx_file: each element type, in the byte order of the host") {
  CHECK(idx_holds<std::uint8_t>(8, {0, 1, 255}));
  CHECK(idx_holds<std::int8_t>(9, {-128, -1, 127}));
  CHECK(idx_holds<std::int16_t>(11, {-32768, 258, -2}));
  CHECK(idx_holds<std::int32_t>(12, {-2147483647, 16909060}));
  CHECK(idx_holds<float>(13, {1.5f, -3e38f, std::numeric_limits<float>::infinity()}));
  CHECK(idx_holds<double>(14, {0.1, -1e300}));
}

TEST_CASE("idx_file: records, their shape, and runs of them, from a path") {
  temporary_folder const folder;
  std::string data;
  for (std::int16_t i = 0; i < 24; ++i) data += big_endian(i);
  ds::idx_file<ds::field<"x", std::int16_t>> const file(folder.write("a", idx(11, {4, 2, 3}, data)));
  CHECK(file.size() == 4);
  CHECK(file.fields().get<"x">().shape() == std::vector<std::int64_t>{2, 3});
  CHECK(read(file, 2) == std::vector<std::int16_t>{12, 13, 14, 15, 16, 17});
  CHECK(runs_are_records(file, 0, 4));
  CHECK(runs_are_records(file, 1, 2));
  CHECK(runs_are_records(file, 4, 0));
  auto const copy = file;
  CHECK(read(copy, 3) == read(file, 3));
  CHECK(ds::idx_file<ds::field<"x", std::uint8_t>>(in_memory(idx(8, {0, 28, 28}, ""))).size() == 0);
  CHECK(ds::idx_file<ds::field<"x", std::uint8_t>>(in_memory(idx(8, {1, 1, 1}, "a"))).size() == 1);
}

TEST_CASE("idx_file: truncated and corrupt files are refused") {
  std::string const whole = idx(12, {3, 2}, std::string(24, 'a'));
  check_lengths(whole, open_idx<std::int32_t>);
  CHECK(check_bytes(whole, 12, open_idx<std::int32_t>) == 12 * 255);
  auto const said = [](std::string const& file) { return refusal([&] { open_idx<std::uint8_t>(in_memory(file)); }); };
  CHECK(said(whole) == "F: offset 2: the element type is 12, must be 8");
  CHECK(said("\0\1\10\1"s) == "F: offset 1: the byte of an IDX file is 1, must be 0");
  CHECK(said(idx(8, {}, "a")) == "F: offset 3: the number of dimensions is 0, must be at least 1");
  CHECK(said(idx(8, {2, 3}, "abcde")) == "F: offset 12: the number of bytes from here is 5, must be 6");
  CHECK(said(idx(8, {2, 0}, "")) ==
        "F: offset 8: an extent is 0, must be at least 1, with a product of at most 2^48 per record");
  // More than 2^63 bytes; in the last file 2^64, which is 0 in 64 bits.
  CHECK(said(idx(8, {0xffffffff, 65537, 65537}, "ab")) ==
        "F: offset 16: the number of bytes from here is 2, must be 9223372036854775807");
  CHECK(said(idx(8, {1, 0xffffffff, 0xffffffff, 0xffffffff}, "ab")).starts_with("F: offset 12: an extent"));
  CHECK(said(idx(8, {0, 0x10000, 0x10000, 0x10001}, "")).starts_with("F: offset 16: an extent"));
  CHECK(said(idx(8, {0x10000, 0x10000, 0x10000, 0x10000}, "")) ==
        "F: offset 20: the number of bytes from here is 0, must be 9223372036854775807");
}

TEST_CASE("records that are not there are refused") {
  ds::idx_file<ds::field<"x", std::uint8_t>> const file(in_memory(idx(8, {3}, "abc")));
  CHECK(test::message([&] { read(file, 3); }) == "F: the record must be in [0, 3), is 3");
  CHECK(test::message([&] { read(file, -1); }) == "F: the record must be in [0, 3), is -1");
  CHECK(test::message([&] { runs_are_records(file, 4, 0); }) == "F: the first record must be in [0, 4), is 4");
  CHECK(test::message([&] { runs_are_records(file, 2, 2); }) == "F: the number of records must be in [0, 2), is 2");
}

TEST_CASE("npy_file: files by numpy 2.4.6, versions 1.0, 2.0 and 3.0, both orders of bytes") {
  auto const f4 =
      in_memory(spaced("\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }<58>\n"s
                       "\000\000\000?\000\000\240\277\346\261a\177\001\000\000\000\000\000\200\177\000\000\000\200"s));
  ds::npy_file<ds::field<"x", float>> const floats(f4);
  CHECK(floats.size() == 3);
  CHECK(floats.fields().get<"x">().shape() == std::vector<std::int64_t>{2});
  CHECK(read(floats, 0) == std::vector{0.5f, -1.25f});
  CHECK(read(floats, 1) == std::vector{3e38f, std::bit_cast<float>(1)});
  CHECK(bytes_of(read(floats, 2)[0]) == bytes_of(std::numeric_limits<float>::infinity()));
  CHECK(bytes_of(read(floats, 2)[1]) == bytes_of(-0.0f));
  CHECK(runs_are_records(floats, 1, 2));

  ds::npy_file<ds::field<"x", std::int16_t>> const shorts(
      in_memory(spaced("\223NUMPY\002\000t\000\000\000{'descr': '>i2', 'fortran_order': False, 'shape': (3,), }<58>\n"s
                       "\000\001\377\376\001,"s)));
  CHECK(shorts.size() == 3);
  CHECK(shorts.fields().get<"x">().shape().empty());
  CHECK(read(shorts, 0)[0] == 1);
  CHECK(read(shorts, 1)[0] == -2);
  CHECK(read(shorts, 2)[0] == 300);
  CHECK(runs_are_records(shorts, 0, 3));

  ds::npy_file<ds::field<"x", ds::half>> const halves(
      in_memory(spaced("\223NUMPY\003\000t\000\000\000{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }<58>\n"s
                       "\000>\377\373\001\000"s)));
  CHECK(ds::widen<float>(read(halves, 0)[0]) == 1.5f);
  CHECK(ds::widen<float>(read(halves, 1)[0]) == -65504.0f);
  CHECK(ds::widen<float>(read(halves, 2)[0]) == 0x1p-24f);

  ds::npy_file<ds::field<"x", double>> const doubles(
      in_memory(spaced("\223NUMPY\001\000v\000{'descr': '>f8', 'fortran_order': False, 'shape': (2,), }<60>\n"s
                       "@\011!\373TD-\030\3767\344<\210\000u\234"s)));
  CHECK(read(doubles, 0)[0] == 3.141592653589793);
  CHECK(read(doubles, 1)[0] == -1e300);

  ds::npy_file<ds::field<"x", bool>> const bools(in_memory(
      spaced("\223NUMPY\001\000v\000{'descr': '|b1', 'fortran_order': False, 'shape': (3, 1), }<58>\n\001\000\377"s)));
  CHECK(read(bools, 0)[0]);
  CHECK(!read(bools, 1)[0]);
  CHECK(read(bools, 2)[0]);  // the byte is 255 here

  temporary_folder const folder;
  std::string const u1 = spaced(
      "\223NUMPY\001\000v\000{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 2), }<55>\n"s
      "\000\001\002\003\004\005\006\007"s);
  ds::npy_file<ds::field<"x", std::uint8_t>> const bytes(folder.write("a", u1));
  CHECK(bytes.fields().get<"x">().shape() == std::vector<std::int64_t>{2, 2});
  CHECK(read(bytes, 1) == std::vector<std::uint8_t>{4, 5, 6, 7});

  ds::npy_file<ds::field<"x", std::int64_t>> const none(
      in_memory(spaced("\223NUMPY\001\000v\000{'descr': '<i8', 'fortran_order': False, 'shape': (0, 3), }<58>\n"s)));
  CHECK(none.size() == 0);
  CHECK(none.fields().get<"x">().shape() == std::vector<std::int64_t>{3});

  check_lengths(u1, open_npy<std::uint8_t>);
  CHECK(check_bytes(u1, 128, open_npy<std::uint8_t>) > 70 * 255);
  CHECK(refusal([&] { open_npy<double>(f4); }) == "F: offset 20: the element type is '<f4', must be '<f8' or '>f8'");
  CHECK(refusal([&] { open_npy<std::uint8_t>(f4); }) == "F: offset 20: the element type is '<f4', must be '|u1'");
}

TEST_CASE("npy_file: a header is a Python dictionary with three keys in any order") {
  auto const said = [](std::string const& header, std::string const& data = "abcd") {
    return refusal([&] {
      ds::npy_file<ds::field<"x", std::uint8_t>> const file(in_memory(npy(header, data)));
      CHECK(file.size() * file.fields().get<"x">().size() == std::int64_t(data.size()));
    });
  };
  for (char const* const fine :
       {"{'descr':'|u1','fortran_order':False,'shape':(2,2)}", "{'shape':(4,),'fortran_order':True,'descr':'|u1'}",
        " { \"fortran_order\" :\tFalse , 'shape' : ( 2 ,\n 2 , ) , 'descr' : \"|u1\" , } \r\n",
        "{'descr':'<u1','fortran_order':False,'shape':(2L,2L)}", "{'descr':'|u1','fortran_order':False,'shape':(04,)}"})
    CHECK(said(fine) == "");
  for (char const* const wrong : {"",
                                  "{",
                                  "{}",
                                  "{'descr':'|u1','fortran_order':False}",
                                  "{'descr':'|u1','fortran_order':False,'shape':(4)}",
                                  "{'descr':'|u1','fortran_order':False,'shape':(2 2)}",
                                  "{'descr':'|u1','fortran_order':False,'shape':(2,,2)}",
                                  "{'descr':'|u1','fortran_order':False,'shape':(,)}",
                                  "{'descr':'|u1','fortran_order':False,'shape':(-4,)}",
                                  "{'descr':'|u1','fortran_order':False,'shape':(4.0,)}",
                                  "{'descr':'|u1','fortran_order':False,'shape':4}",
                                  "{'descr':'|u1','fortran_order':False,'shape':(4,)",
                                  "{'descr':'|u1','fortran_order':0,'shape':(4,)}",
                                  "{'descr':'|u1','fortran_order':False,'shape':(4,),'more':1}",
                                  "{'descr':'|u1','descr':'|u1','fortran_order':False,'shape':(4,)}",
                                  "{'descr':'|u1','fortran_order':False,'shape':(4,)}}",
                                  "{'descr':'|u1','fortran_order':False 'shape':(4,)}",
                                  "{'descr':[('a','|u1')],'fortran_order':False,'shape':(4,)}",
                                  "{'descr':'|u1\",'fortran_order':False,'shape':(4,)}",
                                  "{'descr':'|u10','fortran_order':False,'shape':(4,)}",
                                  "{'descr':'','fortran_order':False,'shape':(4,)}",
                                  "{'descr':'|u1','fortran_order':False,'shape':(4,0)}",
                                  "{'descr':'|u1','fortran_order':False,'shape':(5,)}",
                                  "{'descr':'|u1','fortran_order':False,'shape':(4294967296,4294967296)}",
                                  "{'descr':'|u1','fortran_order':False,'shape':(18446744073709551620,)}"}) {
    INFO(wrong);
    CHECK(said(wrong).starts_with("F: offset "));
  }
  CHECK(said("{'descr':'|u1','fortran_order':False,'shape':(2,2;2)}") ==
        "F: offset 59: the header is ';2)}', must be ',' or ')'");
  CHECK(said("{'descr':'|u1','fortran_order':True,'shape':(2,2)}") ==
        "F: offset 8: fortran_order is True, must be False for an array with several axes");
  CHECK(said("{'descr':'|u1','fortran_order':False,'shape':()}", "a") ==
        "F: offset 8: the number of axes is 0, must be at least 1");
  CHECK(said("{'descr':'|u1',") == "F: offset 25: the header is at its end, must be a string");
  CHECK(refusal([] { open_npy<float>(in_memory("\x93NUMPY\4\0\0\0\0\0"s)); }) ==
        "F: offset 6: the version of the format is 4.0, must be 1.0, 2.0 or 3.0");
  CHECK(refusal([] { open_npy<float>(in_memory("\x93NUMPY\2\0\377\377\377\377{"s)); }) ==
        "F: offset 12: the number of bytes from here is 1, must be at least 4294967295");
  CHECK(refusal([] { open_npy<float>(in_memory("PK\3\4____")); }) ==
        "F: offset 0: the beginning of the file is something else, must be that of an NPY file");
}

TEST_CASE("csv_file: cells as in RFC 4180") {
  ds::csv_file const file(
      in_memory("a,\"b \"\"q\"\"\",c\r\n"
                "1,2,3\n"
                "\"x,y\",\"line 1\nline 2\r\nline 3\",\"\"\n"
                ",,\r\n"
                "\"\"\"\",\"\"\"\"\"\",\"a\"\"b\"\r\n"
                " s ,5\" 6\",last"));
  CHECK(file.columns() == cells{"a", "b \"q\"", "c"});
  CHECK(file.column("c") == 2);
  REQUIRE(file.size() == 5);
  CHECK(row(file, 0) == cells{"1", "2", "3"});
  CHECK(row(file, 1) == cells{"x,y", "line 1\nline 2\r\nline 3", ""});
  CHECK(row(file, 2) == cells{"", "", ""});
  CHECK(row(file, 3) == cells{"\"", "\"\"", "a\"b"});
  CHECK(row(file, 4) == cells{" s ", "5\" 6\"", "last"});
}

TEST_CASE("csv_file: ends of files, no rows, one column, marks, separators, and no header") {
  for (char const* const text : {"a,b\n1,2", "a,b\n1,2\n", "a,b\r\n1,2\r\n", "a,b\n1,2\n\n\n", "a,b\r\n1,2\r\n\r\n",
                                 "\xef\xbb\xbf"
                                 "a,b\n1,2\n",
                                 "a,b\n1,\"2\"", "a,b\n1,\"2\"\r\n"}) {
    ds::csv_file const file(in_memory(text));
    CHECK(file.columns() == cells{"a", "b"});
    REQUIRE(file.size() == 1);
    CHECK(row(file, 0) == cells{"1", "2"});
  }
  for (char const* const text : {"a", "a\n", "a\r\n\n"}) CHECK(ds::csv_file(in_memory(text)).size() == 0);
  ds::csv_file const one(in_memory("a\n1\n\n2\n\n"));
  REQUIRE(one.size() == 3);
  CHECK(one.text(1, 0) == "");
  ds::csv_file const tabs(in_memory("a\tb,c\n1\t2\n"), {.separator = '\t'});
  CHECK(tabs.columns() == cells{"a", "b,c"});
  ds::csv_file const bare(in_memory("5,6\n7,8\n"), {.has_header = false});
  CHECK(bare.columns() == cells{"0", "1"});
  REQUIRE(bare.size() == 2);
  CHECK(row(bare, 0) == cells{"5", "6"});
  CHECK(ds::csv_file(in_memory("a,b\n1,\n")).text(0, 1) == "");
}

TEST_CASE("csv_file: numbers") {
  auto const number = [](std::string const& cell) {
    return ds::csv_file(in_memory("a,x\n0," + cell + "\n")).number(0, 1);
  };
  CHECK(number("1.5") == 1.5);
  CHECK(number("-1e-3") == -1e-3);
  CHECK(number("0.1") == 0.1);
  CHECK(number("  +2") == 2);
  CHECK(number("3\t ") == 3);
  CHECK(number("\"4.25\"") == 4.25);
  CHECK(number("1e308") == 1e308);
  CHECK(number("5e-324") == 5e-324);
  CHECK(number("1e-999") == 0);
  CHECK(number("0." + std::string(400, '0') + "1") == 0);
  CHECK(number("0.00001e-99999999999999999999") == 0);
  CHECK(std::bit_cast<std::uint64_t>(number("inf")) == 0x7ff0000000000000);
  CHECK(std::bit_cast<std::uint64_t>(number("-inf")) == 0xfff0000000000000);
  CHECK((std::bit_cast<std::uint64_t>(number("nan")) & 0x7ff8000000000000) == 0x7ff8000000000000);
  for (std::string const wrong : {"", " ", "x", "1x", "1 2", "+", "+-1", "--1", "1,5", "0x10", "1e", "\"1\"\"\"",
                                  "1e309", "-1e999", "1e99999999999999999999"}) {
    INFO(wrong);
    CHECK(refusal([&] { number(wrong.find(',') == wrong.npos ? wrong : '"' + wrong + '"'); }) != "");
  }
  CHECK(refusal([&] { number(std::string(400, '1')); }) ==
        "F: line 2: column \"x\" is \"" + std::string(40, '1') + "...\", must be a number in the range of double");

  ds::csv_file const file(in_memory("a,b,c\n\"two\nlines\",0.1,1e-50\n\n"));
  float two[2];
  file.numbers(0, 1, std::span<float>(two));
  CHECK(two[0] == 0.1f);
  CHECK(two[1] == 0);
  std::int8_t small[1];
  ds::csv_file const integers(in_memory("a\n-128\n+127\n128\n1.0\n-\n"));
  integers.numbers(0, 0, std::span(small));
  CHECK(small[0] == -128);
  integers.numbers(1, 0, std::span(small));
  CHECK(small[0] == 127);
  CHECK(refusal([&] { integers.numbers(2, 0, std::span(small)); }) ==
        "F: line 4: column \"a\" is \"128\", must be an integer in the range of -128 to 127");
  CHECK(refusal([&] { integers.numbers(3, 0, std::span(small)); }) != "");
  CHECK(refusal([&] { integers.numbers(4, 0, std::span(small)); }) != "");
  float wide[1];
  CHECK(refusal([&] { ds::csv_file(in_memory("a\n1e39")).numbers(0, 0, std::span(wide)); }) ==
        "F: line 2: column \"a\" is \"1e39\", must be a number in the range of float");
}

TEST_CASE("csv_file: what is wrong, in which line") {
  auto const said = [](std::string const& text) { return refusal([&] { ds::csv_file{in_memory(text)}; }); };
  CHECK(said("") == "F: line 1: the file is empty, must be one with columns");
  CHECK(said("\n\r\n") == said(""));
  CHECK(said("\xef\xbb\xbf") == said(""));
  CHECK(said("a,b\n1,2\n3\n") == "F: line 3: the number of cells is 1, must be 2");
  CHECK(said("a,b\n\n1,2\n") == "F: line 2: the number of cells is 1, must be 2");
  CHECK(said("a,b\n\"1\n\n\",2\n3,4,5\n") == "F: line 5: the number of cells is 3, must be 2");
  CHECK(said("a\n1\n\"2\n\n") == "F: line 3: a quoted cell is without an end, must be closed by a quote");
  CHECK(said("a\n\"1\n\"x\n") == "F: line 3: the text after a quoted cell is \"x\", must be a separator or a newline");
  CHECK(said("a\n\"1\"x\n") != "");
  ds::csv_file const file(in_memory("a,a,b\n\"1\n\",2,x\n3,4,y"));
  CHECK(refusal([&] { file.number(1, 2); }) ==
        "F: line 4: column \"b\" is \"y\", must be a number in the range of double");
  CHECK(refusal([&] { file.column("c"); }) ==
        "F: line 1: the number of columns named \"c\" is 0, must be 1; columns are \"a\", \"a\", \"b\"");
  CHECK(refusal([&] { file.column("a"); }).find("named \"a\" is 2") != std::string::npos);
  CHECK(test::message([&] { file.text(2, 0); }) == "F: the row must be in [0, 2), is 2");
  CHECK(test::message([&] { file.text(-1, 0); }) == "F: the row must be in [0, 2), is -1");
  CHECK(test::message([&] { file.text(0, 3); }) == "F: the column must be in [0, 3), is 3");
  double three[3];
  CHECK(test::message([&] { file.numbers(0, 1, std::span(three)); }) ==
        "F: the number of columns must be in [0, 3), is 3");
  CHECK(test::message([] { ds::csv_file(in_memory("a"), {.separator = '"'}); }) ==
        "csv_file: separator must be no quote, CR or LF, is 34");
}

TEST_CASE("csv_file: CR alone ends a line") {
  for (std::string const end : {"\r", "\n", "\r\n"}) {
    std::string const text = "a,b" + end + "1,\"2" + end + "\"" + end + "3,4" + end + end;
    ds::csv_file const file(in_memory(text));
    REQUIRE(file.size() == 2);
    CHECK((row(file, 0) == cells{"1", "2" + end} && row(file, 1) == cells{"3", "4"}));
    CHECK(file.columns() == cells{"a", "b"});
    CHECK(refusal([&] { ds::csv_file(in_memory("a,b" + end + "1,2" + end + "3" + end)); }) ==
          "F: line 3: the number of cells is 1, must be 2");
    ds::csv_file const noted(in_memory("# x" + end + "a,b" + end + "#,," + end + "1,#" + end + "#"), {.comment = '#'});
    CHECK((noted.size() == 1 && row(noted, 0) == cells{"1", "#"}));
  }
}

TEST_CASE("csv_file: decimal commas, and a number for cells without one") {
  ds::csv_file const comma(in_memory("a;b\n1,5;-2,5e1\n1.5;\"3,25\"\n"), {.separator = ';', .decimal = ','});
  CHECK((comma.number(0, 0) == 1.5 && comma.number(0, 1) == -25 && comma.number(1, 1) == 3.25));
  CHECK(refusal([&] { comma.number(1, 0); }).find("is \"1.5\"") != std::string::npos);
  std::string const text = "a\n\"\"\nNA\nN/A\n#N/A\nnull\nNULL\n?\n NA \n7\nNAN\nNone\n";
  ds::csv_file const strict(in_memory(text)), filled(in_memory(text), {.missing = -1});
  for (std::int64_t i = 0; i < 8; ++i) {
    INFO(i);
    CHECK(filled.number(i, 0) == -1);
    int n = 0;
    filled.numbers(i, 0, std::span(&n, 1));
    CHECK(n == -1);
    unsigned u = 0;  // cannot hold -1
    CHECK(refusal([&] { filled.numbers(i, 0, std::span(&u, 1)); }) != "");
    CHECK(refusal([&] { strict.number(i, 0); }) != "");
  }
  CHECK((filled.number(8, 0) == 7 && std::isnan(filled.number(9, 0))));
  CHECK(refusal([&] { filled.number(10, 0); }) != "");
  ds::csv_file const nan(in_memory("a,b\n,1\n"), {.missing = std::nan("")});
  CHECK((std::isnan(nan.number(0, 0)) && nan.number(0, 1) == 1));
  int n = 0;
  CHECK(refusal([&] { nan.numbers(0, 0, std::span(&n, 1)); }) != "");
  CHECK(test::message([] { ds::csv_file(in_memory("a"), {.decimal = ','}); }) ==
        "csv_file: decimal must be another character than separator, is 44");
  CHECK(test::message([] { ds::csv_file(in_memory("a"), {.decimal = 'x'}); }) ==
        "csv_file: decimal must be '.' or ',', is 120");
  CHECK(refusal([] { ds::csv_file(in_memory("#"), {.comment = '#'}); }) ==
        "F: line 1: the file is nothing but comments, must be one with columns");
}

TEST_CASE("csv_file: no text of a few characters is read out of bounds, and its cells stay the same in another line") {
  // All texts of up to 6 of these characters.
  std::string const alphabet = "a\",\r\n";
  std::size_t accepted = 0;
  for (std::size_t length = 1, count = 5; length <= 6; ++length, count *= 5)
    for (std::size_t code = 0; code < count; ++code) {
      std::string text;
      for (std::size_t k = 0, rest = code; k < length; ++k, rest /= 5) text += alphabet[rest % 5];
      try {
        ds::csv_file const file(in_memory(text), {.has_header = false});
        std::vector<cells> rows;
        for (std::int64_t i = 0; i < file.size(); ++i) rows.push_back(row(file, i));
        ds::csv_file const below(in_memory(
            (file.columns().size() == 1 ? "h" : "h,h" + std::string(file.columns().size() - 2, ',')) + "\n" + text));
        bool same = below.size() == file.size();
        for (std::int64_t i = 0; same && i < file.size(); ++i) same = row(below, i) == rows[std::size_t(i)];
        if (!same) FAIL_CHECK("differs: " << text);
        ++accepted;
      } catch (ds::data_error const&) {}
    }
  CHECK(accepted > 1000);
}

TEST_CASE("csv_numbers: all or some columns, a shape, a column by name") {
  temporary_folder const folder;
  ds::csv_file const file(folder.write("a.csv", "image,x0,y0,x1,y1\nface 1.png,1,2,3,4\nface 2.png,5,6,7,8.5\n"));
  CHECK(file.text(1, file.column("image")) == "face 2.png");
  ds::csv_numbers<ds::field<"x", float>> const all(file, 1);
  CHECK(all.size() == 2);
  CHECK(all.fields().get<"x">().shape() == std::vector<std::int64_t>{4});
  CHECK(read(all, 1) == std::vector{5.0f, 6.0f, 7.0f, 8.5f});
  CHECK(read(ds::csv_numbers<ds::field<"x", float>>(file, 2, 2), 0) == std::vector{2.0f, 3.0f});
  ds::csv_numbers<ds::field<"x", float>> const points(file, 1, {2, 2});
  CHECK(points.fields().get<"x">().shape() == std::vector<std::int64_t>{2, 2});
  CHECK(read(points, 0) == std::vector{1.0f, 2.0f, 3.0f, 4.0f});
  ds::csv_numbers<ds::field<"x", std::int32_t>> const named(file, "y0");
  CHECK(named.fields().get<"x">().shape().empty());
  CHECK(read(named, 1) == std::vector{6});
  CHECK(refusal([&] { read(ds::csv_numbers<ds::field<"x", std::int32_t>>(file, 1), 1); }) ==
        file.path() +
            ": line 3: column \"y1\" is \"8.5\", must be an integer in the range of -2147483648 to 2147483647");
  CHECK(test::message([&] { read(all, 2); }) == file.path() + ": the row must be in [0, 2), is 2");
  CHECK(test::message([&] { ds::csv_numbers<ds::field<"x", float>>(file, 5); }) ==
        "csv_numbers: first_column must be in [0, 5), is 5");
  CHECK(test::message([&] { ds::csv_numbers<ds::field<"x", float>>(file, 2, 4); }) ==
        "csv_numbers: the number of columns must be at most 3, is 4");
  CHECK(refusal([&] { ds::csv_numbers<ds::field<"x", float>>(file, "z"); }) != "");
}

TEST_CASE("raw_records: records after a header") {
  temporary_folder const folder;
  std::string const path = folder.write("a", "head" + bytes_of(1.5) + bytes_of(2.5) + bytes_of(3.5) + bytes_of(4.5));
  ds::raw_records<ds::field<"x", double>> const file(path, {2}, 4);
  CHECK(file.size() == 2);
  CHECK(read(file, 1) == std::vector{3.5, 4.5});
  CHECK(runs_are_records(file, 0, 2));
  CHECK(ds::raw_records<ds::field<"x", double>>(path, {}, 4).size() == 4);
  CHECK(read(ds::raw_records<ds::field<"x", bool>>(path, {4}), 0) == std::vector{true, true, true, true});
  std::string cifar;
  for (int i = 0; i < 3; ++i)
    cifar += std::string(1, static_cast<char>(i)) + std::string(3072, static_cast<char>(10 * i));
  ds::raw_records<ds::field<"x", std::uint8_t>> const images(in_memory(cifar), {1 + 3072});
  CHECK(images.size() == 3);
  CHECK(read(images, 2)[0] == 2);
  CHECK(read(images, 2)[3072] == 20);
  auto const open = [](std::string const& text, std::int64_t header = 1) {
    return ds::raw_records<ds::field<"x", std::uint8_t>>(in_memory(text), {2, 2}, header).size();
  };
  CHECK(open("h") == 0);
  CHECK(open("habcd") == 1);
  CHECK(refusal([&] { open("habcde"); }) == "F: offset 1: the number of bytes from here is 5, must be a multiple of 4");
  CHECK(refusal([&] { open(""); }) == "F: offset 0: the number of bytes from here is 0, must be at least 1");
  CHECK(test::message([&] { open("habcd", -1); }) == "raw_records: header_bytes must be at least 0, is -1");
}

TEST_CASE("token_file: tokens, and the next ones as targets") {
  std::string text, wide;
  for (std::uint16_t k = 0; k < 10; ++k) text += bytes_of(std::uint16_t(65535 - k));
  for (std::uint32_t k = 0; k < 10; ++k) wide += bytes_of(std::uint32_t(128000 + k));
  auto const gpt = in_memory(token_header(20240520, 1, 10) + text);
  ds::token_file const file(gpt, 3);
  CHECK(file.tokens() == 10);
  CHECK(file.size() == 3);
  for (std::int32_t i = 0; i < 3; ++i) {
    std::int32_t const first = 65535 - 3 * i;
    CHECK(read<"tokens">(file, i) == std::vector{first, first - 1, first - 2});
    CHECK(read<"targets">(file, i) == std::vector{first - 1, first - 2, first - 3});
  }
  ds::token_file const llama(in_memory(token_header(20240801, 7, 10) + wide), 1);
  CHECK(llama.size() == 9);
  CHECK(read<"targets">(llama, 8) == std::vector{128009});
  for (std::int64_t length = 1; length < 13; ++length)
    for (std::int64_t stride = 1; stride < 13; ++stride) {
      std::int64_t records = 0;  // each needs a target for its last token
      while (records * stride + length + 1 <= 10) ++records;
      ds::token_file const strided(gpt, length, stride);
      CHECK(strided.size() == records);
      if (records > 0) CHECK(read<"targets">(strided, records - 1)[0] == 65535 - 1 - (records - 1) * stride);
      if (stride == length) CHECK(ds::token_file(gpt, length).size() == (10 - 1) / length);
    }
  CHECK(test::message([&] { read<"tokens">(file, 3); }) == "F: the record must be in [0, 3), is 3");
}

TEST_CASE("token_file: truncated and corrupt files are refused") {
  std::string const whole = token_header(20240520, 1, 4) + "aabbccdd";
  auto const open = [](ds::file_bytes const& file) { read_all(ds::token_file(file, 2)); };
  check_lengths(whole, open);
  CHECK(check_bytes(whole, 16, open) == 12 * 255);  // the rest of the header is reserved
  auto const said = [&](std::string const& file) { return refusal([&] { open(in_memory(file)); }); };
  CHECK(said(token_header(1, 1, 0)) == "F: offset 0: the first number is 1, must be 20240520 or 20240801");
  CHECK(said(token_header(20240520, 7, 0)) == "F: offset 4: the version is 7, must be 1");
  CHECK(said(token_header(20240801, 1, 0)) == "F: offset 4: the version is 1, must be 7");
  CHECK(said(token_header(20240520, 1, -1)) == "F: offset 8: the number of tokens is -1, must be at least 0");
  CHECK(said(token_header(20240801, 7, 2) + "abcdefg") ==
        "F: offset 1024: the number of bytes from here is 7, must be 8");
  CHECK(said(token_header(20240801, 7, 3) + std::string(8, '\0') + "\0\0\0\x80"s) ==
        "F: offset 1032: the token is 2147483648, must be below 2^31");
  CHECK(said(token_header(20240520, 1, 0)) == "");
  CHECK(said(token_header(20240520, 1, 1) + "ab") == "");
  CHECK(test::message([&] { ds::token_file(in_memory(whole), 0); }) != "");
  CHECK(test::message([&] { ds::token_file(in_memory(whole), 1, 0); }) ==
        "token_file: stride must be -1 or at least 1, is 0");
}

TEST_CASE("csv_file: numbers are read to nearest in every floating-point mode of the thread") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string const text = std::to_string(double(random() % 100000000000) * 1e-5);
    double want = 0, got = 1;
    float want_single = 0, got_single = 1;
    REQUIRE(ds::detail::parse_number(text, want));
    REQUIRE(ds::detail::parse_number(text, want_single));
    for (int rounding : test::roundings) {
      test::computing const as(rounding, true);
      ds::detail::parse_number(text, got), ds::detail::parse_number(text, got_single);
      CHECK((got == want && got_single == want_single));
    }
  }
}
