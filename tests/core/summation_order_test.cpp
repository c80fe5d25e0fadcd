// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The order of every sum, bit for bit, against a plain recursion over the documented tree.
#include <descent/engine/step/double_sums.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace reduce = descent::detail;

namespace {

/// Numbers of very different magnitudes and signs, so that any other order gives other bits.
std::vector<double> wild(std::size_t n, unsigned seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<double> x(n);
  for (double& one : x) one = std::ldexp(double(random()) - 0x1p63, int(random() % 60) - 90);
  return x;
}

/// Neighbours first: a balanced tree.
double tree(std::span<double const> x) {
  if (x.size() == 1) return x[0];
  return tree(x.first(x.size() / 2)) + tree(x.last(x.size() / 2));
}

/// A tree over each warp, then the warps in order.
double block(std::vector<double> const& lane) {
  double sum = tree({lane.data(), 32});
  for (std::size_t i = 32; i < lane.size(); i += 32) sum = sum + tree({lane.data() + i, 32});
  return sum;
}

/// Value i to lane i mod lanes, in order.
double strided(std::vector<double> const& x, std::size_t lanes) {
  std::vector<double> lane(lanes, 0.0);
  for (std::size_t l = 0; l < lanes; ++l)
    for (std::size_t i = l; i < x.size(); i += lanes) lane[l] = lane[l] + x[i];
  return block(lane);
}

template <int Lanes> void check_strided(std::size_t count) {
  auto const x = wild(count, unsigned(count) + Lanes);
  auto const at = [&](std::int64_t i) { return x[std::size_t(i)]; };
  CHECK(reduce::add_strided<Lanes>(at, std::int64_t(count)) == strided(x, Lanes));
}

}  // namespace

TEST_CASE("the sizes that fix the order are part of the contract") {
  CHECK(reduce::chunk_threads == 256);
  CHECK(reduce::total_threads == 512);
  CHECK(reduce::warp == 32);
}

TEST_CASE("four accumulators fold evens, then odds, then both") {
  for (unsigned seed = 1; seed < 50; ++seed) {
    auto const x = wild(4, seed);
    double const a[4] = {x[0], x[1], x[2], x[3]};
    CHECK(reduce::fold(a) == (x[0] + x[2]) + (x[1] + x[3]));
  }
}

TEST_CASE("a warp adds neighbours first") {
  for (unsigned seed = 1; seed < 50; ++seed) {
    auto x = wild(32, seed);
    double const want = tree(x);
    CHECK(reduce::add_block(x.data(), 32) == want);
  }
}

template <class Real> void check_four(unsigned seed) {
  auto const x = wild(16, seed);
  double four[4][4];
  for (std::size_t i = 0; i < 16; ++i) four[i / 4][i % 4] = x[i];
  double const want = (reduce::fold(four[0]) + reduce::fold(four[1])) + (reduce::fold(four[2]) + reduce::fold(four[3]));
  CHECK(reduce::fold_four<Real, false>(four[0], four[1], four[2], four[3]) == want);
  for (auto& of_four : four)
    for (double& one : of_four) one = std::fabs(one);
  double const largest = std::fabs(*std::ranges::max_element(x, {}, [](double one) { return std::fabs(one); }));
  CHECK(reduce::fold_four<Real, true>(four[0], four[1], four[2], four[3]) == largest);
}

TEST_CASE("four sums may lie anywhere: they are cleared, added to, enlarged and folded in packs as out of them") {
  if (!reduce::has_lanes()) return;
  alignas(32) double room[17];
  auto& four = *reinterpret_cast<double (*)[4][4]>(room + 1);
  auto const x = wild(8);
  reduce::pack p;
  reduce::eight_doubles eight;
  for (std::size_t j = 0; j < 8; ++j) eight.lane[j] = p.lane[j] = std::fabs(float(x[j]));
  reduce::double_pack in_lanes;
  to_doubles(in_lanes, p);
  double want[4] = {1, 2, 3, 4};
  add(want, eight), enlarge(want, eight), add(want, eight);
  for (auto& sum : four) {
    reduce::clear<reduce::pack>(sum);
    for (int j = 0; j < 4; ++j) {
      CHECK(sum[j] == 0);
      sum[j] = j + 1;
    }
    add(sum, in_lanes), enlarge(sum, in_lanes), add(sum, in_lanes);
    for (int j = 0; j < 4; ++j) CHECK(sum[j] == want[j]);
  }
  CHECK(reduce::fold_four<reduce::pack, false>(four[0], four[1], four[2], four[3]) == 4 * reduce::fold(want));
}

TEST_CASE("sums of four lanes, in a pack and out of it, are what a warp adds first") {
  for (unsigned seed = 1; seed < 50; ++seed) {
    check_four<double>(seed);
    if (reduce::has_lanes()) check_four<reduce::pack>(seed);
    auto x = wild(256, seed);
    std::vector<double> fours;
    for (std::size_t i = 0; i < x.size(); i += 4) fours.push_back((x[i] + x[i + 1]) + (x[i + 2] + x[i + 3]));
    CHECK(reduce::add_block(fours.data(), 64, reduce::warp / 4) == reduce::add_block(x.data(), 256));
  }
}

TEST_CASE("a block adds its warps in order") {
  for (std::size_t lanes : {32u, 64u, 256u, 512u})
    for (unsigned seed = 1; seed < 20; ++seed) {
      auto x = wild(lanes, seed);
      double const want = block(x);
      CHECK(reduce::add_block(x.data(), int(lanes)) == want);
    }
}

TEST_CASE("any count of values goes to lanes in turn") {
  for (std::size_t count : {0u, 1u, 2u, 31u, 32u, 33u, 255u, 511u, 512u, 513u, 1024u, 1500u, 5000u}) {
    check_strided<reduce::warp>(count);
    check_strided<reduce::chunk_threads>(count);
    check_strided<reduce::total_threads>(count);
  }
}

TEST_CASE("the largest of any count of values, which is not a number when one of them is not") {
  double const no_number = std::numeric_limits<double>::quiet_NaN();
  CHECK(reduce::larger(1, 2) == 2);
  CHECK(reduce::larger(2, 1) == 2);
  for (double const bad : {no_number, -no_number}) {  // on a GPU abs() may leave the sign
    CHECK(std::isnan(reduce::larger(bad, 1)));
    CHECK(std::isnan(reduce::larger(1, bad)));
    CHECK_FALSE(reduce::is_at_most(bad, 1));
  }
  double const four[] = {1, 5, 3, 2};
  CHECK(reduce::fold<true>(four) == 5);
  for (std::int64_t count : {1, 31, 32, 33, 600, 1500})
    for (std::int64_t at : {std::int64_t(0), count / 2, count - 1})
      for (double one : {7., no_number}) {
        auto const value = [&](std::int64_t i) { return i == at ? one : 1. / double(i + 1); };
        double const found = reduce::add_strided<reduce::total_threads, true>(value, count);
        double const by_a_warp = reduce::add_strided<reduce::warp, true>(value, count);
        CHECK((found == one || (std::isnan(one) && std::isnan(found))));
        CHECK((by_a_warp == one || (std::isnan(one) && std::isnan(by_a_warp))));
      }
}
