// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Sources in memory, sources made of others, and the random numbers of a record.
#include <descent/data/batch.hpp>
#include <descent/data/mixture.hpp>
#include <descent/data/sources.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds = descent;
using test::message;

namespace {

std::vector<int> from(int first, int n) {
  std::vector<int> all(std::size_t(n), 0);
  std::iota(all.begin(), all.end(), first);
  return all;
}
/// n records with one number each.
auto numbers(std::vector<int> const& of) { return ds::in_memory{ds::column{ds::field<"n", int>{}, of}}; }

using numbers_source = decltype(numbers({}));

struct lines {
  auto fields() const { return ds::fields{ds::ragged<"t", char>(4, '.'), ds::field<"n", int>{}}; }
  std::int64_t size() const { return 6; }
  void read(std::int64_t i, auto const& out, ds::record_random&) const {
    if (i != 1) out.template set_length<"t">(i);
  }
};
/// The sum of record i and all behind it: reads a map of its own type while it is read.
struct next {
  numbers_source of;
  void operator()(auto const& in, auto const& out, ds::record_random& random) const {
    int const before = in.template value<"n">();
    if (before < 9) {
      ds::record_memory memory(ds::fields{ds::field<"sum", int>{}});
      auto const r = memory.clear();
      ds::map{of, ds::fields{ds::field<"sum", int>{}}, next{of}}.read(before + 1, r, random);
      out.template value<"sum">() = in.template value<"n">() + r.template value<"sum">();
    } else {
      out.template value<"sum">() = in.template value<"n">();
    }
  }
};

/// What a source has in a field of one element.
template <ds::field_label Name = "n", class S> std::vector<int> all_of(S const& s) {
  ds::record_memory memory(s.fields());
  std::vector<int> all;
  for (std::int64_t i = 0; i < s.size(); ++i) {
    auto const record = memory.clear();
    ds::record_random random(1, 2, i);
    s.read(i, record, random);
    all.push_back(int(record.template value<Name>()));
  }
  return all;
}

}  // namespace

TEST_CASE("sources: records in memory have the elements of each column, read one by one or several at once") {
  std::vector<float> const x{0, 1, 2, 3, 4, 5, 6, 7};
  std::array<std::int8_t, 4> const y{-1, -2, -3, -4};
  ds::in_memory const s{ds::column{ds::field<"x", float>{2, 1}, x}, ds::column{ds::field<"y", std::int8_t>{}, y}};
  REQUIRE(s.size() == 4);
  CHECK(s.fields().get<"x">().shape() == std::vector<std::int64_t>{2, 1});
  CHECK(s.fields().bytes() == 9);
  ds::record_memory memory(s.fields());
  ds::record_random random(0, 0, 0);
  auto const record = memory.clear();
  for (std::size_t i = 0; i < 4; ++i) {
    s.read(std::int64_t(i), record, random);
    CHECK(std::ranges::equal(record.get<"x">(), std::array{x[2 * i], x[2 * i + 1]}));
    CHECK(record.value<"y">() == y[i]);
    CHECK(reinterpret_cast<std::uintptr_t>(record.get<"x">().data()) % 64 == 0);
  }
  std::array<float, 6> three{};
  std::array<std::int8_t, 3> labels{};
  s.read_run(1, 3,
             ds::record(s.fields(),
                        {reinterpret_cast<std::byte*>(three.data()), reinterpret_cast<std::byte*>(labels.data())}, {}));
  CHECK(std::ranges::equal(three, std::array<float, 6>{2, 3, 4, 5, 6, 7}));
  CHECK(labels == std::array<std::int8_t, 3>{-2, -3, -4});
}

TEST_CASE("sources: map, subset, concat, zip and repeat have the records that they say, also in each other") {
  auto const ten = from(0, 10), five = from(100, 5);
  auto const s = numbers(ten);
  CHECK(all_of(ds::map{s, [](auto const& r, ds::record_random&) { r.template value<"n">() *= 3; }}) ==
        std::vector{0, 3, 6, 9, 12, 15, 18, 21, 24, 27});
  auto const squares = ds::map{s, ds::fields{ds::field<"q", double>{2}}, [](auto const& in, auto const& out, auto&) {
                                 out.template get<"q">()[0] = out.template get<"q">()[1] =
                                     std::pow(in.template value<"n">(), 2);
                               }};
  CHECK(all_of<"q">(squares) == std::vector{0, 1, 4, 9, 16, 25, 36, 49, 64, 81});
  CHECK(all_of(ds::subset{s, 2, 3}) == std::vector{2, 3, 4});
  CHECK(all_of(ds::subset{s, {7, 7, 0}}) == std::vector{7, 7, 0});
  CHECK(all_of(ds::subset{ds::subset{s, {5, 3, 1}}, {2, 0}}) == std::vector{1, 5});
  CHECK(all_of(ds::concat{ds::subset{s, 0, 2}, ds::subset{s, 4, 0}, ds::subset{s, 8, 2}}) == std::vector{0, 1, 8, 9});
  CHECK(ds::concat{s, numbers(five)}.sizes() == std::vector<std::int64_t>{10, 5});
  CHECK(all_of(ds::repeat{ds::subset{s, 1, 2}, 3}) == std::vector{1, 2, 1, 2, 1, 2});
  CHECK(all_of(ds::repeat{s, 0}).empty());

  auto const negative = ds::map{s, ds::fields{ds::field<"minus", int>{}}, [](auto const& in, auto const& out, auto&) {
                                  out.template value<"minus">() = -in.template value<"n">();
                                }};
  auto const both = ds::zip{s, negative, squares};
  CHECK(all_of(both) == ten);
  CHECK(all_of<"minus">(both) == std::vector{0, -1, -2, -3, -4, -5, -6, -7, -8, -9});
  CHECK(all_of<"q">(both) == all_of<"q">(squares));
  CHECK(decltype(both.fields())(both.fields()).bytes() == 4 + 4 + 16);
}

TEST_CASE("sources: a record that a map reads from is its own, also where maps of one type read each other") {
  auto const ten = from(0, 10);
  auto const s = numbers(ten);
  ds::map const sums{s, ds::fields{ds::field<"sum", int>{}}, next{s}};
  CHECK(all_of<"sum">(sums) == std::vector{45, 45, 44, 42, 39, 35, 30, 24, 17, 9});
}

TEST_CASE("sources: split has each record in one of its parts, the same for the same seed") {
  auto const hundred = from(0, 101);
  auto const s = numbers(hundred);
  auto const [train, test] = ds::split(s, 0.8, 7);
  CHECK(train.size() == 81);
  auto both = all_of(train);
  auto const rest = all_of(test);
  CHECK(both == all_of(ds::split_at(s, 81, 7).first));
  CHECK(both != all_of(ds::split_at(s, 81, 8).first));
  both.insert(both.end(), rest.begin(), rest.end());
  CHECK(both != hundred);
  std::ranges::sort(both);
  CHECK(both == hundred);
  CHECK(ds::split(s, 1).second.size() == 0);
  CHECK(ds::split(s, 0).first.size() == 0);
}

TEST_CASE("sources: ragged records have the length that they set, at most the longest") {
  static_assert(ds::source<lines>);
  ds::record_memory memory(lines{}.fields());
  ds::record_random random(0, 0, 0);
  for (std::int64_t const i : {4, 1}) {
    auto const r = memory.clear();
    lines{}.read(i, r, random);
    CHECK(r.length<"t">() == (i == 1 ? 0 : i));
    CHECK(r.length<"n">() == 1);
  }
  // Sources of sources, whose fields() are values: the fields live as long as they are used.
  ds::concat const many{ds::subset{lines{}, 2, 2}, ds::repeat{ds::subset{lines{}, 0, 1}, 2}};
  CHECK(many.fields() == lines{}.fields());
  ds::zip const both{many, ds::map{many, ds::fields{ds::field<"m", int>{}}, [](auto const& in, auto const& out, auto&) {
                                     out.template value<"m">() = int(in.template length<"t">());
                                   }}};
  CHECK(all_of<"m">(both) == std::vector{2, 3, 0, 0});
  CHECK(message([&] { lines{}.read(5, memory.clear(), random); }) == "record: the length of t must be in [0, 4], is 5");
}

namespace {
/// A source that says that it has so many records.
struct sized {
  std::int64_t count;
  auto fields() const { return ds::fields{ds::field<"n", int>{}}; }
  std::int64_t size() const { return count; }
  void read(std::int64_t, auto const&, ds::record_random&) const {}
};
}  // namespace

TEST_CASE("sources: sums and products of sizes have limits, and none of them overflows") {
  constexpr std::int64_t most = std::int64_t{1} << 48;
  CHECK(ds::concat{sized{most - 1}, sized{1}}.size() == most);
  auto const refused = [](std::int64_t a, std::int64_t b) { return message([&] { ds::concat{sized{a}, sized{b}}; }); };
  CHECK(refused(INT64_MAX, INT64_MAX) ==
        "concat: the sizes of the sources[0] must be in [0, 281474976710656], as all have at most 2^48 records, is "
        "9223372036854775807");
  CHECK(refused(1, most) ==
        "concat: the sizes of the sources[1] must be in [0, 281474976710655], as all have at most 2^48 records, is "
        "281474976710656");
  CHECK(refused(3, -2).starts_with("concat: the sizes of the sources[1] must be in [0, "));
  struct wide { char bytes[1 << 12]; };
  std::int64_t const half = std::int64_t{1} << 47;
  CHECK(ds::fields{ds::field<"a", wide>{half}, ds::field<"b", std::byte>{half}}.bytes() == half * 4097);
  CHECK(message([&] { ds::fields{ds::field<"a", wide>{most}, ds::field<"b", std::byte>{1}}; }) ==
        "fields: the elements of a record's b must be at most 0, as a record has at most 2^60 bytes, is 1");
  // 2^48 records of 2^17 bytes would be 2^65 bytes.
  CHECK(message([&] { ds::detail::batch_layout(ds::fields{ds::field<"a", wide>{32}}, most); }) ==
        "batch: the number of records must be at most 8795824594943, as a batch has at most 2^60 bytes, is "
        "281474976710656");
}

TEST_CASE("sources: impossible arguments are refused with their values") {
  CHECK(message([] {
          ds::column{ds::field<"n", int>{}, std::span(reinterpret_cast<int const*>(std::uintptr_t{64}), 3)};
        }) == "column: the memory of n is not host memory: there is none at 0x40; for device memory use the backend "
              "cuda{stream}");
  auto const three = from(0, 3), five = from(0, 5);
  std::vector<float> const x(7);
  CHECK(message([&] { ds::column{ds::field<"x", float>{2}, x}; }) ==
        "column: the number of elements of x must be a multiple of 2, is 7");
  CHECK(message([&] {
          ds::in_memory{ds::column{ds::field<"x", float>{}, x}, ds::column{ds::field<"n", int>{}, three}};
        }) == "in_memory: the number of records of n must be that of the first column, 7, is 3");
  CHECK(message([&] { ds::subset{numbers(three), 2, 2}; }) == "subset: count must be in [0, 1], is 2");
  CHECK(message([&] { ds::subset{numbers(three), std::int64_t(INT64_MAX), 2}; }) ==
        "subset: first must be in [0, 3], is 9223372036854775807");
  CHECK(message([&] { ds::subset{numbers(three), {0, 3}}; }) == "subset: records[1] must be in [0, 3), is 3");
  CHECK(message([&] { ds::split(numbers(three), std::nan("")); }) == "split: the fraction must be in [0, 1], is nan");
  CHECK(message([&] { ds::split_at(numbers(three), 4); }) == "split_at: count must be in [0, 3], is 4");
  CHECK(message([&] {
          ds::concat{ds::in_memory{ds::column{ds::field<"x", float>{}, x}},
                     ds::in_memory{ds::column{ds::field<"x", float>{7}, x}}};
        }) == "concat: source 1 has other shapes than source 0");
  CHECK(message([&] { ds::zip{numbers(three), ds::in_memory{ds::column{ds::field<"m", int>{}, five}}}; }) ==
        "zip: the sizes of the sources[1] must be that of the first, 3, is 5");
  CHECK(message([&] { ds::repeat{numbers(three), -1}; }).starts_with("repeat: times must be in [0, "));
  CHECK(message([&] { ds::repeat{numbers(three), INT64_MAX}; }).starts_with("repeat: times must be in [0, "));
  CHECK(message([] { ds::field<"x", float>{2, 0}; }) ==
        "field: shape[1] must be at least 1, with a product of at most 2^48, is 0");
  CHECK(message([] { ds::field<"x", float>{1 << 30, 1 << 30}; }) ==
        "field: shape[1] must be at least 1, with a product of at most 2^48, is 1073741824");
  CHECK(message([] { ds::ragged<"x", float>(0); }) == "ragged: longest must be in [1, 2^31), is 0");
}

TEST_CASE("sources: the random numbers of a record are a function of seed, epoch and place, and are uniform") {
  auto const first = [](std::uint64_t seed, std::int64_t epoch, std::int64_t place) {
    return ds::record_random(seed, epoch, place)();
  };
  std::set<std::uint32_t> different;
  for (std::uint64_t seed : {0, 1})
    for (std::int64_t epoch : {0, 1, 2})
      for (std::int64_t place : {0, 1, 2, 1 << 30}) different.insert(first(seed, epoch, place));
  CHECK(different.size() == 2 * 3 * 4);
  CHECK(first(1, 2, 3) == first(1, 2, 3));

  ds::record_random random(5, 0, 0);
  double sum = 0, squares = 0;
  std::array<int, 7> counts{};
  constexpr int n = 70000;
  for (int i = 0; i < n; ++i) {
    double const u = random.uniform(), z = random.normal();
    CHECK_UNARY(u >= 0 && u < 1);
    sum += u;
    squares += z * z;
    ++counts[std::size_t(random.below(7))];
  }
  CHECK(std::abs(sum / n - 0.5) < 5 / std::sqrt(12.0 * n));
  CHECK(std::abs(squares / n - 1) < 5 * std::sqrt(2.0 / n));
  double chi2 = 0;
  for (int const c : counts) chi2 += std::pow(c - n / 7.0, 2) / (n / 7.0);
  CHECK(chi2 < 27);  // 6 degrees of freedom: 1e-4
  CHECK(message([&] { random.below(0); }) == "record_random: n must be at least 1, is 0");
}

TEST_CASE("mixture: an epoch has each source's share, and a source's records come once before one comes again") {
  ds::mixture const order{.sizes = {10, 3, 0, 40}, .weights = {0.5, 0.25, 0, 0.25}, .draws = 16, .seed = 3};
  std::vector<std::vector<std::int64_t>> drawn(4);
  for (std::int64_t epoch = 0; epoch < 30; ++epoch) {
    std::array<int, 4> counts{};
    std::vector<std::int64_t> sequence;
    auto const places = order.epoch(53, epoch);
    REQUIRE(places.size() == 16);
    for (std::int64_t p = 0; p < 16; ++p) {
      std::int64_t const r = places[p];
      REQUIRE_UNARY(r >= 0 && r < 53);
      ++counts[r < 10 ? 0 : r < 13 ? 1 : 3];
      drawn[r < 10 ? 0 : r < 13 ? 1 : 3].push_back(r);
    }
    CHECK(counts == std::array{8, 4, 0, 4});
  }
  // After 30 epochs: 240 draws of 10, 120 of 3, 120 of 40, so each record of a source as often as any other.
  for (auto const& of : drawn) {
    std::map<std::int64_t, std::size_t> times;
    for (auto const r : of) ++times[r];
    for (auto const& [r, n] : times) CHECK(n == of.size() / times.size());
  }
  CHECK(drawn[3] != drawn[0]);
  auto const odd = ds::mixture{.sizes = {5, 5, 5}, .weights = {1, 1, 1}, .draws = 4}.epoch(15, 0);
  CHECK(odd.size() == 4);

  CHECK(message([] { ds::mixture{{4, 5}, {1, 1}, 3}.epoch(10, 0); }) ==
        "mixture: the sum of sizes must be the number of records, 10, is 9");
  CHECK(message([] { ds::mixture{{4, 7}, {1, 1}, 3}.epoch(10, 0); }) ==
        "mixture: sizes[1] must be at least 0, with a sum of 10, is 7");
  CHECK(message([] { ds::mixture{{10, 0}, {1, 1}, 3}.epoch(10, 0); }) ==
        "mixture: weights[1] must be 0, for a source without records, is 1");
  CHECK(message([] { ds::mixture{{10}, {1, 1}, 3}.epoch(10, 0); }) ==
        "mixture: the number of weights must be that of the sources, 1, is 2");
  CHECK(message([] {
          ds::mixture{{10}, {1}, 3}.epoch(10, INT64_MAX);
        }).starts_with("mixture: the epoch must be in [0, "));
}
