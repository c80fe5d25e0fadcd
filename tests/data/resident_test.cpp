// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Data that stay in memory: the batches of the loader.
#include <descent/comm/threads.hpp>
#include <descent/data/loader.hpp>
#include <descent/data/resident.hpp>
#include <descent/data/sources.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "support/ranks.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace ds = descent;
using test::message;

namespace {

std::vector<int> counted(int n) {
  std::vector<int> all(std::size_t(n), 0);
  std::iota(all.begin(), all.end(), 0);
  return all;
}
auto source_of(std::vector<int> const& numbers) {
  return ds::map{ds::in_memory{ds::column{ds::field<"n", int>{}, numbers}},
                 ds::fields{ds::field<"n", int>{}, ds::field<"s", short>{3}},
                 [](auto const& in, auto const& out, auto&) {
                   int const n = out.template value<"n">() = in.template value<"n">();
                   for (short& s : out.template get<"s">()) s = short(-n);
                 }};
}

}  // namespace

TEST_CASE("resident: batches are those of the loader, in each epoch, for each rank, from anywhere") {
  auto const numbers = counted(23);
  auto const source = source_of(numbers);
  for (ds::batches const cut : {ds::batches{5, ds::last_batch::drop}, ds::batches{5, ds::last_batch::pad},
                                ds::batches{23}, ds::batches{30, ds::last_batch::pad}, ds::batches{1}})
    for (int const ranks : {1, 3})
      for (int rank = 0; rank < ranks; ++rank) {
        ds::shuffled const order{.seed = 4};
        ds::rank_slice const mine{rank, ranks};
        ds::loader loader{source, cut, order, ds::workers{}, mine};
        ds::resident data{source, cut, order, mine};
        CHECK(data.batches_per_epoch() == loader.batches_in(0));
        for (int t = 0; t < 40; ++t) {
          CHECK(data.position() == loader.position());
          auto const want = loader.next(), got = data.next();
          CHECK(got.global_size() == want.global_size());
          CHECK(std::ranges::equal(got.get<"n">(), want.get<"n">()));
          CHECK(std::ranges::equal(got.get<"s">(), want.get<"s">()));
          CHECK(std::ranges::equal(data.records(), want.records()));
        }
        std::vector<std::int64_t> position;
        std::uint64_t print = 0;
        data.save([&]<class T>(std::string const&, std::span<T const> piece) {
          if constexpr (std::is_same_v<T, std::int64_t>) position.assign(piece.begin(), piece.end());
          else print = piece[0];
        });
        loader.seek({0, 0});
        loader.load([&]<class T>(std::string const&, std::span<T const>) {
          if constexpr (std::is_same_v<T, std::int64_t>) return position;
          else return std::vector{print};
        });
        CHECK(data.position() == loader.position());
        ds::resident other{source, cut, order, mine};
        other.load([&]<class T>(std::string const&, std::span<T const>) {
          if constexpr (std::is_same_v<T, std::int64_t>) return position;
          else return std::vector{print};
        });
        CHECK(other.position() == data.position());
        data.seek({2, 0});
        CHECK(data.next().get<"n">().size() == std::size_t(data.records().size()));
      }
}

TEST_CASE("resident: impossible settings are refused, and a source's error names the record") {
  auto const numbers = counted(10);
  auto const source = source_of(numbers);
  CHECK(
      message([&] { ds::resident{source, ds::batches{4}, ds::sequential{}}; }) ==
      "resident: the size of a batch must be a divisor of the number of records, 10, unless last is drop or pad, is 4");
  CHECK(message([&] { ds::resident{source, ds::batches{11, ds::last_batch::drop}, ds::sequential{}}; }) ==
        "resident: the number of batches must be at least 1, is 0");
  CHECK(message([&] { ds::resident{ds::subset{source, 0, 0}, ds::batches{1}, ds::sequential{}}; }) ==
        "resident: the number of records must be at least 1, is 0");
  ds::resident data{source, ds::batches{5}, ds::sequential{}};
  CHECK(message([&] { data.seek({0, 2}); }) == "resident: the batch must be in [0, 2), is 2");
  CHECK(message([&] { data.seek({INT64_MAX, 0}); }).starts_with("resident: the epoch must be in [0, "));
  auto const failing = ds::map{source, [](auto const& r, auto&) {
                                 if (r.template value<"n">() == 7) throw std::runtime_error("bad");
                               }};
  CHECK(message<ds::loader_error>([&] { ds::resident{failing, ds::batches{5}, ds::sequential{}}; }) ==
        "resident: record 7: bad");
}

TEST_CASE("resident: ranks share the data, or report what differs, or why another rank has none") {
  auto const numbers = counted(24);
  auto const thrown = [&](auto const& cut, auto const& order, std::int64_t batch) {
    ds::comm::threads world{2, std::chrono::seconds(60)};
    return ranks::on_ranks(world, [&](auto& comm) {
      ds::resident data{source_of(numbers), cut(comm.rank()), order(comm.rank()), comm};
      CHECK(data.next().size() == 3);
      auto const next = batch * comm.rank();
      data.load([&]<class T>(std::string const&, std::span<T const> now) {
        std::vector<T> piece(now.begin(), now.end());
        if constexpr (std::is_same_v<T, std::int64_t>) piece[1] = next;
        return piece;
      });
      CHECK(data.position() == ds::loader_position{0, next});
    });
  };
  auto const six = [](int) { return ds::batches{6}; };
  auto const order = [](int) { return ds::shuffled{.seed = 1}; };
  CHECK(ranks::none(thrown(six, order, 0)));
  auto const same = [](std::vector<std::string> const& why) {
    CHECK(why[0] == why[1]);
    return why[0];
  };
  CHECK(same(thrown(six, order, 2)) ==
        "ranks disagree about the data: epoch 0, batch 0 (rank 0); epoch 0, batch 2 (rank 1)");
  CHECK(same(thrown(six, [](int r) { return ds::shuffled{.seed = std::uint64_t(r)}; }, 0)) ==
        "ranks disagree about the data: an order of seed 0 (rank 0); an order of seed 1 (rank 1)");
  auto const why = thrown([](int r) { return ds::batches{r ? 5 : 6}; }, order, 0);
  CHECK(why[1].starts_with("resident: the size of a batch must be a divisor of the number of records"));
  CHECK(why[0] == "ranks disagree about the data: a loader (rank 0); no resident data: " + why[1] + " (rank 1)");
}
