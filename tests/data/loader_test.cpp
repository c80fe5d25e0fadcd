// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The loader: what it delivers depends on source, order, batches and seed, and on nothing else.
#include <descent/data/resident.hpp>
#include <descent/comm/threads.hpp>
#include <descent/data/distributed_sampler.hpp>
#include <descent/data/loader.hpp>
#include <descent/data/sources.hpp>

#include <doctest/doctest.h>

#include "support/child.hpp"
#include "support/computing.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"

#include <cstring>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ds = descent;
using ranks::has, test::message;

namespace {

/// Records that tell everything: their number, random numbers, and a ragged field of `number mod 5` random letters.
struct telling {
  std::int64_t n;
  std::int64_t bad = -1;  // throws
  std::int64_t first = 0;
  auto fields() const {
    return ds::fields{ds::field<"i", std::int64_t>{}, ds::field<"u", double>{2}, ds::ragged<"t", char>(4, '.')};
  }
  std::int64_t size() const { return n; }
  void read(std::int64_t i, auto const& out, ds::record_random& random) const {
    out.template value<"i">() = first + i;
    for (double& u : out.template get<"u">()) u = random.uniform();
    if (i == bad) throw std::runtime_error("bad");
    out.template set_length<"t">(i % 5);
    for (std::int64_t k = 0; k < i % 5; ++k) out.template get<"t">()[std::size_t(k)] = char('a' + random.below(26));
  }
};

#if defined(DESCENT_THREAD_SANITIZER)
constexpr int stops = 500;
std::vector<int> const lengths{23};
#else
constexpr int stops = 4000;
std::vector<int> const lengths{1, 37};
#endif

/// One record as text.
std::string text(std::int64_t i, double u, double v, std::string const& letters) {
  return std::to_string(i) + " " + std::to_string(u) + " " + std::to_string(v) + " " + letters;
}
/// The records of a batch. Checks what a batch says about itself.
template <class Batch> std::vector<std::string> told(Batch const& b) {
  std::vector<std::string> all;
  auto const width = b.template shape<"t">()[1];
  std::int64_t longest = 0;
  for (std::int64_t k = 0; k < b.size(); ++k) {
    std::int64_t const n = b.template lengths<"t">()[std::size_t(k)];
    longest = std::max(longest, n);
    std::string const row(b.template get<"t">().data() + k * width, std::size_t(width));
    CHECK(row.substr(std::size_t(n)) == std::string(std::size_t(width - n), '.'));
    auto const u = b.template get<"u">();
    std::int64_t const i = b.template get<"i">()[std::size_t(k)];
    CHECK(b.records()[std::size_t(k)] == i);
    all.push_back(text(i, u[std::size_t(2 * k)], u[std::size_t(2 * k + 1)], row.substr(0, std::size_t(n))));
  }
  CHECK(width == longest);
  CHECK(b.template shape<"u">() == std::vector<std::int64_t>{b.size(), 2});
  CHECK(b.template get<"i">().size() == std::size_t(b.size()));
  CHECK(b.records().size() == std::size_t(b.size()));
  return all;
}

/// What the batches of an epoch have to be: a plain loop.
std::vector<std::vector<std::string>> expected(telling const& s, ds::batches const& cut, auto const& order,
                                               std::int64_t epoch, std::uint64_t seed) {
  auto const places = order.epoch(s.size(), epoch);
  std::vector<std::vector<std::string>> all;
  ds::record_memory memory(s.fields());
  for (std::int64_t b = 0; b < cut.count(places.size()); ++b) {
    auto const part = cut.slice(b, places.size());
    auto& batch = all.emplace_back();
    for (std::int64_t k = 0; k < part.count; ++k) {
      std::int64_t const place = part.place(k, places.size()), i = places[place];
      if (i == s.bad) continue;
      ds::record_random random(seed, epoch, place);
      auto const r = memory.clear();
      s.read(i, r, random);
      batch.push_back(text(i, r.template get<"u">()[0], r.template get<"u">()[1],
                           std::string(r.template get<"t">().data(), std::size_t(i % 5))));
    }
  }
  return all;
}

using batches_told = std::vector<std::vector<std::string>>;

/// A piece of a saved loader.
struct saved_position {
  std::vector<std::int64_t> position;
  std::vector<std::uint64_t> fingerprint;

  template <class T> void operator()(std::string const& name, std::span<T const> elements) {
    constexpr bool is_position = std::is_same_v<T, std::int64_t>;
    CHECK(name == (is_position ? "loader.position" : "loader.fingerprint"));
    if constexpr (is_position) position.assign(elements.begin(), elements.end());
    else fingerprint.assign(elements.begin(), elements.end());
  }
  auto back() const {
    return [this]<class T>(std::string const&, std::span<T const>) -> std::vector<T> const& {
      if constexpr (std::is_same_v<T, std::int64_t>) return position;
      else return fingerprint;
    };
  }
};
template <class Loader> saved_position saved(Loader& from) {
  saved_position to;
  from.save([&](std::string const& name, auto elements) { to(name, elements); });
  return to;
}

/// Blocks readers of a record until it is opened.
struct gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  int waiting = 0;
  void pass() {
    std::unique_lock lock(mutex);
    ++waiting;
    changed.notify_all();
    changed.wait(lock, [&] { return open; });
  }
  void release() {
    std::lock_guard const lock(mutex);
    open = true;
    changed.notify_all();
  }
};
struct gated {
  gate* at;
  std::int64_t closed;
  auto fields() const { return ds::fields{ds::field<"i", std::int64_t>{}}; }
  std::int64_t size() const { return 40; }
  void read(std::int64_t i, auto const& out, ds::record_random&) const {
    if (i == closed) at->pass();
    out.template value<"i">() = i;
  }
};

/// Throws the first times that a record is read.
struct failing {
  std::atomic<int>* times;
  std::int64_t bad;
  auto fields() const { return ds::fields{ds::field<"i", std::int64_t>{}}; }
  std::int64_t size() const { return 40; }
  void read(std::int64_t i, auto const& out, ds::record_random&) const {
    if (i == bad && (*times)-- > 0) throw std::runtime_error("disk is gone");
    if (i == bad + 1 && *times == -1000) throw 5;
    out.template value<"i">() = i;
  }
};

}  // namespace

TEST_CASE("loader: the same records in the same batches for any number of workers, any ahead and any number of ranks") {
  constexpr std::uint64_t seed = 11;
  std::size_t turn = 0;
  for (std::int64_t const n : lengths)
    for (std::int64_t const bad : {-1, 4})
      for (ds::batches const cut :
           {ds::batches{1}, ds::batches{8, ds::last_batch::keep}, ds::batches{8, ds::last_batch::drop},
            ds::batches{5, ds::last_batch::pad}, ds::batches{100}}) {
        telling const source{n, bad};
        if (cut.count(n) == 0) continue;  // refused
        ds::shuffled const order{.seed = 3};
        std::vector<batches_told> want;
        for (std::int64_t epoch = 0; epoch < 3; ++epoch) want.push_back(expected(source, cut, order, epoch, seed));
        for (int const threads : {0, 1, 3, 16})
          for (int const ahead : {0, 1, 5})
            for (int const ranks : {1, 3, 8}) {
              if (threads == 0 && ahead > 0) continue;
              if (++turn % 7 > 1) continue;  // two of seven; others for each source and batches
              batches_told got[3];
              for (int rank = 0; rank < ranks; ++rank) {
                ds::loader loader{
                    source, cut, order,
                    ds::workers{.threads = threads, .ahead = ahead, .on_error = ds::on_error::skip, .seed = seed},
                    ds::rank_slice{rank, ranks}};
                for (std::size_t epoch = 0; epoch < 3; ++epoch) {
                  std::size_t index = 0;
                  for (auto const& b : loader.epoch()) {
                    CHECK(b.epoch() == std::int64_t(epoch));
                    CHECK(b.index() == std::int64_t(index));
                    CHECK(b.is_last() == (index + 1 == want[epoch].size()));
                    auto const mine = told(b);
                    if (rank == 0) got[epoch].emplace_back();
                    REQUIRE(index < got[epoch].size());
                    auto& batch = got[epoch][index++];
                    batch.insert(batch.end(), mine.begin(), mine.end());
                  }
                  CHECK(index == want[epoch].size());
                  CHECK(loader.position() == ds::loader_position{std::int64_t(epoch) + 1, 0});
                }
              }
              for (std::size_t epoch = 0; epoch < 3; ++epoch) CHECK(got[epoch] == want[epoch]);
            }
      }
}

TEST_CASE("loader: runs of records in memory are those read one by one") {
  std::vector<float> x(3 * 100);
  std::iota(x.begin(), x.end(), 0.f);
  ds::in_memory const source{ds::column{ds::field<"x", float>{3}, x}};
  auto const order = ds::ordered_by{[](std::int64_t, std::int64_t p) { return p < 50 ? p : p < 60 ? 59 - p + 50 : p; }};
  for (int const threads : {0, 2}) {
    ds::loader loader{source, ds::batches{.size = 16}, order, ds::workers{.threads = threads}};
    for (auto const& b : loader.epoch())
      for (std::size_t k = 0; k < std::size_t(b.size()); ++k) {
        std::int64_t const i = b.records()[k];
        CHECK(i == order.record(0, b.index() * 16 + std::int64_t(k)));
        CHECK(b.get<"x">()[3 * k + 2] == float(3 * i + 2));
      }
  }
}

TEST_CASE(
    "loader: a run stopped anywhere resumes with the records that it would have seen, with other workers and ranks") {
  telling const source{53};
  ds::batches const cut{.size = 7};
  std::vector<batches_told> want;
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) want.push_back(expected(source, cut, ds::shuffled{5}, epoch, 2));
  std::mt19937 random(1);
  saved_position at{{0, 0}, {}};
  for (int stop = 0; stop < stops; ++stop) {
    int const threads = stop % 50 == 0 ? int(random() % 4) : 0, ranks = 1 + int(random() % 3);
    ds::loader loader{source, cut, ds::shuffled{5},
                      ds::workers{.threads = threads, .ahead = threads > 0 ? int(random() % 3) : 0, .seed = 2},
                      ds::rank_slice{int(random() % std::uint32_t(ranks)), ranks}};
    if (at.fingerprint.empty()) at = saved(loader);
    loader.load(at.back());
    CHECK(loader.position() == ds::loader_position{at.position[0], at.position[1]});
    for (int steps = int(random() % 4); steps > 0; --steps) {
      auto const b = loader.next();
      auto const& all = want[std::size_t(b.epoch())][std::size_t(b.index())];
      auto const mine = told(b);
      CHECK_UNARY(mine.empty() || std::search(all.begin(), all.end(), mine.begin(), mine.end()) != all.end());
      CHECK(b.global_size() == std::int64_t(all.size()));
      if (ranks == 1) CHECK(mine == all);
    }
    at = saved(loader);
    if (loader.position().epoch == 4)
      at.position = {0, 0}, at.fingerprint = (loader.seek({0, 0}), saved(loader).fingerprint);
  }
}

TEST_CASE("loader: breaking out of a loop keeps the position; seek and position_after reach any place") {
  for (int const threads : {0, 2}) {
    ds::loader loader{telling{20}, ds::batches{.size = 6}, ds::sequential{}, ds::workers{.threads = threads}};
    for (auto const& b : loader.epoch())
      if (b.index() == 1) break;
    CHECK(loader.position() == ds::loader_position{0, 2});
    std::int64_t first = -1;
    for (auto const& b : loader.epoch()) {
      if (first < 0) first = b.get<"i">()[0];
    }
    CHECK(first == 12);
    CHECK(loader.position() == ds::loader_position{1, 0});
    CHECK(loader.position_after(9) == ds::loader_position{2, 1});
    loader.seek({7, 3});
    CHECK(loader.next().get<"i">()[0] == 18);
    CHECK(loader.next().epoch() == 8);
    CHECK(loader.batches_in(0) == 4);
    CHECK(message([&] { loader.seek({0, 4}); }) == "loader: the batch must be in [0, 4), is 4");
    CHECK(message([&] { loader.seek({-1, 0}); }) == "loader: the epoch must be in [0, 2^55], is -1");
    CHECK(message([&] { loader.seek({INT64_MAX, 0}); }) ==
          "loader: the epoch must be in [0, 2^55], is 9223372036854775807");
    CHECK(message([&] { loader.position_after(-1); }) == "loader: the number of batches must be at least 0, is -1");
    CHECK(loader.position() == ds::loader_position{8, 1});
  }
}

TEST_CASE("loader: more records and batches than 2^31") {
  constexpr std::int64_t n = (std::int64_t{1} << 40) + 4;
  ds::loader loader{telling{n}, ds::batches{.size = 3}, ds::shuffled{.seed = 1}, ds::workers{.threads = 1}};
  std::int64_t const last = loader.batches_in(2) - 1;
  CHECK(last == n / 3);
  loader.seek({2, last - 1});
  auto const places = ds::shuffled{.seed = 1}.epoch(n, 2);
  CHECK(loader.next().records()[2] == places[3 * last - 1]);
  auto const b = loader.next();
  CHECK(b.size() == n - 3 * last);
  CHECK(b.get<"i">()[1] == places[n - 1]);
  CHECK(loader.position() == ds::loader_position{3, 0});
  CHECK(loader.position_after(4 * n) == ds::loader_position{4 * n / (last + 1), 4 * n % (last + 1)});
}

TEST_CASE("loader: an epoch without batches is empty, and no source is too small") {
  for (int const threads : {0, 2}) {
    ds::workers const w{.threads = threads};
    for (auto const last : {ds::last_batch::keep, ds::last_batch::drop, ds::last_batch::pad})
      CHECK(message<std::invalid_argument>([&] {
              ds::loader(telling{0}, ds::batches{4, last}, ds::sequential{}, w);
            }) == "loader: the number of records in the first epoch must be at least 1, is 0");
    CHECK(message<std::invalid_argument>(
              [&] { ds::loader(telling{100}, ds::batches{1024, ds::last_batch::drop}, ds::shuffled{}, w); }) ==
          "loader: the number of records in the first epoch must be at least 1024, the size of a batch, with "
          "last_batch::drop, is 100");
    ds::loader(telling{4}, ds::batches{4, ds::last_batch::drop}, ds::sequential{}, w);
    // Epochs of different sizes: the second is empty.
    auto const order = ds::listed(std::vector<std::int64_t>{});
    struct shrinking {
      auto epoch(std::int64_t, std::int64_t e) const { return ds::sequential::places{e == 1 ? 0 : 5}; }
    };
    ds::loader some{telling{5}, ds::batches{.size = 2}, shrinking{}, w};
    std::vector<int> counts;
    for (int epoch = 0; epoch < 3; ++epoch) {
      counts.push_back(0);
      for ([[maybe_unused]] auto const& b : some.epoch()) ++counts.back();
    }
    CHECK(counts == std::vector{3, 0, 3});
  }
}

TEST_CASE("loader: a record that has failed is read again only if its batch is asked for again") {
  for (int const threads : {0, 1, 3}) {
    std::atomic<int> times{100};
    ds::loader loader{failing{&times, 7}, ds::batches{.size = 4}, ds::sequential{}, ds::workers{.threads = threads}};
    CHECK(loader.next().size() == 4);
    CHECK_THROWS_AS(loader.next(), ds::loader_error);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(times == 99);
    CHECK_THROWS_AS(loader.next(), ds::loader_error);
    CHECK(times == 98);
    loader.seek({0, 2});
    CHECK(loader.next().size() == 4);
    CHECK(times == 98);
  }
}

TEST_CASE("loader: an error comes with the batch to which it belongs, and the batch can be asked for again") {
  for (int const threads : {0, 3}) {
    std::atomic<int> times{1};
    ds::loader loader{failing{&times, 18}, ds::batches{.size = 4}, ds::sequential{}, ds::workers{.threads = threads}};
    std::vector<std::int64_t> seen;
    auto const take = [&] {
      for (auto const& b : loader.epoch()) seen.insert(seen.end(), b.records().begin(), b.records().end());
    };
    std::string said;
    try {
      take();
    } catch (ds::loader_error const& e) {
      said = e.what();
      CHECK(e.epoch == 0);
      CHECK(e.batch == 4);
      CHECK(e.record == 18);
      CHECK((e.worker >= 0) == (threads > 0));
      CHECK(message<std::runtime_error>([&] { std::rethrow_if_nested(e); }) == "disk is gone");
    }
    CHECK(said.starts_with("loader: batch 4 of epoch 0: record 18"));
    CHECK(said.ends_with("disk is gone"));
    CHECK(seen.size() == 16);
    CHECK(loader.position() == ds::loader_position{0, 4});
    take();
    std::vector<std::int64_t> all(40);
    std::iota(all.begin(), all.end(), 0);
    CHECK(seen == all);

    // The error of the first record of a batch is told, whoever reads it; the batch can be left out.
    std::atomic<int> always{1000};
    ds::loader other{failing{&always, 18}, ds::batches{.size = 20}, ds::sequential{}, ds::workers{.threads = threads}};
    for (int i = 0; i < 3; ++i) {
      try {
        other.next();
        FAIL("no error");
      } catch (ds::loader_error const& e) {
        CHECK(e.record == 18);
      }
    }
    other.seek({0, 1});
    CHECK(other.next().records()[0] == 20);
    auto const often = ds::map{telling{40}, [](auto const& out, ds::record_random&) {
                                 if (out.template value<"i">() % 7 == 3) throw std::runtime_error("every seventh");
                               }};
    ds::loader several{often, ds::batches{.size = 20}, ds::sequential{}, ds::workers{.threads = threads}};
    CHECK(message<ds::loader_error>([&] { several.next(); }).starts_with("loader: batch 0 of epoch 0: record 3"));
    always = -999;  // -1000 when the next record is read
    other.seek({0, 0});
    CHECK(message<ds::loader_error>([&] { other.next(); }).ends_with("an exception other than std::exception"));
  }
}

TEST_CASE("loader: the end of a source is an error also where records that fail are left out") {
  auto const source = ds::map{telling{40}, [](auto const& out, ds::record_random&) {
                                std::int64_t const i = out.template value<"i">();
                                if (i >= 13) throw ds::source_ended("the disk is gone");
                                if (i % 7 == 3) throw std::runtime_error("every seventh");
                              }};
  for (int const threads : {0, 3}) {
    ds::loader loader{source, ds::batches{.size = 4}, ds::sequential{},
                      ds::workers{.threads = threads, .on_error = ds::on_error::skip}};
    for (int const left : {3, 4, 3}) CHECK(loader.next().size() == left);
    for (int times = 0; times < 2; ++times) {
      try {
        loader.next();
        FAIL("no error");
      } catch (ds::loader_error const& e) {
        CHECK(e.record == 13);
        CHECK(message<ds::source_ended>([&] { std::rethrow_if_nested(e); }) == "the disk is gone");
      }
    }
  }
}

#if !defined(DESCENT_THREAD_SANITIZER)  // which does not follow fork() beside threads
TEST_CASE("loader: in a child of fork() its workers are missing: each call says so, and it ends") {
  for (int const threads : {0, 1, 3}) {
    std::optional<ds::loader<telling>> loader;
    loader.emplace(telling{40}, ds::batches{.size = 4}, ds::sequential{}, ds::workers{.threads = threads});
    CHECK(loader->next().records()[0] == 0);
    CHECK(test::in_child([&] {
            bool right = true;
            auto const refused = [&](auto const& f) {
              right = right && message<std::logic_error>(f).find("threads of process") != std::string::npos;
            };
            if (threads == 0) {
              right = loader->next().records()[0] == 4;
            } else {
              refused([&] { loader->next(); });
              refused([&] { loader->seek({0, 3}); });
              refused([&] { loader->report(); });
              refused([&] { loader->batches_in(0); });
              refused([&] { loader->save([](auto const&...) {}); });
              right = right && loader->position() == ds::loader_position{0, 1};
            }
            loader.reset();
            return right;
          }) == 0);
    CHECK(loader->next().records()[0] == 4);
  }
}

TEST_CASE("comm::threads: in a child of fork() the other ranks are missing: each call says so, and it ends") {
  std::optional<ds::comm::threads> world;
  world.emplace(2);
  std::atomic<bool> there{false};
  world->before = [&](int rank, std::int64_t) {
    if (rank == 1) there = true;
    return ds::comm::threads::fault::none;
  };
  double sum = 0;
  std::thread other([&] {
    auto comm = world->rank(1);
    double x = 2;
    comm.all_reduce(&x, 1);
    sum = x;
  });
  while (!there) std::this_thread::yield();
  std::optional<ds::comm::threads::member> mine(world->rank(0));
  CHECK(test::in_child([&] {
          double x = 1;
          bool const right =
              message<ds::comm_error>([&] { mine->all_reduce(&x, 1); }).find("threads of process") != std::string::npos;
          mine->abort("nobody hears it");
          mine.reset();
          world.reset();
          return right;
        }) == 0);
  double x = 1;
  mine->all_reduce(&x, 1);
  other.join();
  CHECK(x == 3);
  CHECK(sum == 3);
}
#endif

TEST_CASE("loader: what an order throws or finds is an error of the batch") {
  auto const order = [](int threads) {
    return ds::loader{telling{10}, ds::batches{.size = 4}, ds::ordered_by{[](std::int64_t epoch, std::int64_t p) {
                        if (p == 6 && epoch == 0) return std::int64_t(10);
                        if (p == 6) throw std::runtime_error("no place");
                        return p;
                      }},
                      ds::workers{.threads = threads}};
  };
  struct broken {
    auto epoch(std::int64_t n, std::int64_t e) const {
      if (e == 1) throw std::invalid_argument("no such epoch");
      return ds::sequential::places{n};
    }
  };
  for (int const threads : {0, 2}) {
    auto loader = order(threads);
    loader.next();
    std::string const said = "loader: batch 1 of epoch 0: the order has record 10 at place 6, must be in [0, 10)";
    CHECK(message<ds::loader_error>([&] { loader.next(); }) == said);
    loader.seek({1, 1});
    CHECK(message<ds::loader_error>([&] { loader.next(); }) == "loader: batch 1 of epoch 1: no place");
    ds::loader other{telling{10}, ds::batches{.size = 5}, broken{}, ds::workers{.threads = threads}};
    other.next(), other.next();
    CHECK(message<ds::loader_error>([&] { other.next(); }) == "loader: batch 0 of epoch 1: no such epoch");
    CHECK(other.position() == ds::loader_position{1, 0});
    other.seek({2, 0});
    CHECK(other.next().size() == 5);
  }
}

TEST_CASE("loader: the deadline names the record that takes long, and nothing is lost by it") {
  gate at;
  ds::loader loader{gated{&at, 5}, ds::batches{.size = 4}, ds::sequential{},
                    ds::workers{.threads = 2, .ahead = 1, .deadline = std::chrono::milliseconds(50)}};
  auto const taken = [&] {  // however slow the machine is
    for (;;) {
      try {
        return loader.next().records()[0];
      } catch (ds::loader_error const& e) {
        CHECK(e.batch == loader.position().batch);
        std::rethrow_if_nested(e);  // nothing was thrown first
      }
    }
  };
  CHECK(taken() == 0);
  {
    std::unique_lock lock(at.mutex);
    at.changed.wait(lock, [&] { return at.waiting == 1; });
  }
  for (;;) {
    std::string const said = message<ds::loader_error>([&] { loader.next(); });
    CHECK(said.starts_with("loader: batch 1 of epoch 0 is not ready after 0.05 s"));
    if (said.find("has been reading record 5 for ") != std::string::npos) break;  // or another worker is slower
  }
  at.release();
  CHECK(taken() == 4);
  CHECK(taken() == 8);
}

TEST_CASE("loader: it ends with full queues, in the middle of a batch, after an error, and moved") {
  for (int i = 0; i < 50; ++i) {
    ds::loader loader{telling{1000, i % 3 == 0 ? 9 : -1}, ds::batches{.size = 3}, ds::shuffled{1},
                      ds::workers{.threads = 1 + i % 4, .ahead = i % 7}};
    auto other = std::move(loader);
    try {
      for (int k = 0; k < i % 5; ++k) other.next();
    } catch (ds::loader_error const&) {}
  }
}

TEST_CASE("loader: a position is refused where records, batches, order or random numbers differ") {
  auto const make = [](std::int64_t n, ds::batches cut, std::uint64_t order, std::uint64_t seed) {
    return ds::loader{telling{n}, cut, ds::shuffled{order}, ds::workers{.seed = seed}};
  };
  auto from = make(30, {4}, 1, 2);
  for (int i = 0; i < 10; ++i) from.next();
  auto const at = saved(from);
  CHECK(at.position == std::vector<std::int64_t>{1, 2});
  auto same = make(30, {4}, 1, 2);
  same.load(at.back());
  CHECK(told(same.next()) == told(from.next()));
  std::string const differs = "loader: the position was saved with other records, batches, order or random numbers";
  for (auto&& other : {make(31, {4}, 1, 2), make(30, {5}, 1, 2), make(30, {4, ds::last_batch::pad}, 1, 2),
                       make(30, {4}, 2, 2), make(30, {4}, 1, 3)}) {
    auto& to = const_cast<std::remove_cvref_t<decltype(other)>&>(other);
    to.next();
    CHECK(message([&] { to.load(at.back()); }) == differs);
    CHECK(to.position() == ds::loader_position{0, 1});
  }
  saved_position wrong{{1}, at.fingerprint};
  CHECK(message([&] { same.load(wrong.back()); }) ==
        "loader: the number of elements of loader.position must be 2, is 1");
  wrong = {{1, 99}, at.fingerprint};
  CHECK(message([&] { same.load(wrong.back()); }) == "loader: the batch must be in [0, 8), is 99");
  wrong = {{-1, 0}, at.fingerprint};
  CHECK(message([&] { same.load(wrong.back()); }) == "loader: the epoch must be in [0, 2^55], is -1");
  CHECK(same.position() == ds::loader_position{1, 3});
}

TEST_CASE("loader: impossible settings are refused") {
  telling const s{10};
  auto const refusal = [&](ds::workers const& w) {
    return message([&] { ds::loader{s, ds::batches{}, ds::sequential{}, w}; });
  };
  CHECK(refusal({.threads = -1}) == "workers: threads must be in [0, 1024], is -1");
  CHECK(refusal({.threads = 2, .ahead = -2}) == "workers: ahead must be -1 or in [0, 4096], is -2");
  CHECK(refusal({.ahead = 1}) == "workers: ahead must be 0 without threads, is 1");
  CHECK(refusal({.deadline = std::chrono::seconds(1)}) ==
        "workers: deadline must be 0 ns without threads, is 1000000000");
  CHECK(refusal({.threads = 1, .deadline = std::chrono::nanoseconds::min()})
            .starts_with("workers: deadline must be at least"));
  CHECK(message([&] { ds::loader{s, ds::batches{0}}; }) == "batches: size must be in [1, 2^48], is 0");
  CHECK(message([&] { ds::loader{s, ds::batches{INT64_MAX}}; }) ==
        "batches: size must be in [1, 2^48], is 9223372036854775807");
  CHECK(message([&] { ds::loader{s, ds::batches{std::int64_t(1) << 47}}; }) ==
        "loader: the size of a batch must be at most 2^46 bytes, with 28 bytes per record, is 140737488355328");
  CHECK(message([&] { ds::loader{s, ds::batches{2}, ds::sequential{}, ds::workers{}, ds::rank_slice{3, 3}}; }) ==
        "batches: rank must be in [0, 3), is 3");
}

TEST_CASE("loader: ranks share the data, or report what differs") {
  auto const on = [](int ranks, auto const& work) {
    ds::comm::threads world{ranks, std::chrono::seconds(60)};
    return ranks::on_ranks(world, work);
  };
  std::vector<std::int64_t> seen(40);
  std::mutex counting;
  CHECK(ranks::none(on(3, [&](auto& comm) {
    ds::loader loader{telling{40}, ds::batches{7}, ds::shuffled{.seed = 5}, ds::workers{.threads = comm.rank()}, comm};
    for (auto const& b : loader.epoch()) {
      std::lock_guard const lock(counting);
      for (auto const record : b.records()) ++seen[std::size_t(record)];
    }
  })));
  CHECK(seen == std::vector<std::int64_t>(40, 1));

  // All ranks throw the same.
  auto const refused = [&](auto const& make) {
    auto const why = on(3, [&](auto& comm) { make(comm, comm.rank()); });
    CHECK(why[0] == why[1]);
    CHECK(why[0] == why[2]);
    return why[0];
  };
  auto const loaded = [&](auto const& source_of, auto const& order_of, auto const& cut_of) {
    return refused(
        [&](auto& comm, int r) { ds::loader{source_of(r), cut_of(r), order_of(r), ds::workers{.seed = 3}, comm}; });
  };
  auto const records = [](int) { return telling{40}; };
  auto const order = [](int) { return ds::shuffled{.seed = 1}; };
  auto const cut = [](int) { return ds::batches{8}; };
  CHECK(loaded(records, order, cut) == "");
  CHECK(loaded([](int r) { return telling{r == 1 ? 39 : 40}; }, order, cut) ==
        "ranks disagree about the data: 40 records (rank 0, 2); 39 records (rank 1)");
  CHECK(loaded(records, [](int r) { return ds::shuffled{.seed = std::uint64_t(r) / 2}; }, cut) ==
        "ranks disagree about the data: an order of seed 0 (rank 0, 1); an order of seed 1 (rank 2)");
  CHECK(loaded(records, order, [](int r) { return ds::batches{r ? 8 : 9}; }) ==
        "ranks disagree about the data: batches of 9 records, of which a smaller last one is kept (rank 0); "
        "batches of 8 records, of which a smaller last one is kept (rank 1, 2)");
  auto const ends = [](int r) { return ds::batches{8, r ? ds::last_batch::drop : ds::last_batch::keep}; };
  CHECK(
      has(loaded(records, order, ends), "one is kept (rank 0); batches of 8 records, of which a smaller last one is"));
  // An order of PyTorch's for each rank is no order of all.
  CHECK(has(loaded(records, [](int r) { return ds::distributed_sampler{.size = 40, .ranks = 3, .rank = r}; }, cut),
            "14 places in epoch 0"));
  CHECK(has(loaded([](int r) { return telling{40, -1, 100 * r}; }, order, cut), "record 0 with contents"));
  CHECK(has(loaded([](int r) { return telling{40, r ? -1 : 39}; }, order, cut), "record 39 that cannot be read: bad"));
  CHECK(has(refused([&](auto& comm, int r) {
              ds::loader{telling{40}, ds::batches{8}, ds::sequential{}, ds::workers{.seed = std::uint64_t(r)}, comm};
            }), "random numbers of seed 0 (rank 0)"));
  // What one rank refuses is its own error, and what the others are told.
  auto const why = on(2, [&](auto& comm) {
    ds::loader{telling{40}, ds::batches{comm.rank() ? 0 : 8}, ds::sequential{}, ds::workers{}, comm};
  });
  CHECK(why[1] == "batches: size must be in [1, 2^48], is 0");
  CHECK(why[0] == "ranks disagree about the data: a loader (rank 0); no loader: " + why[1] + " (rank 1)");
}

TEST_CASE("loader: ranks resume from one position, or all report what differs") {
  auto const resumed = [](auto const& seek) {
    ds::comm::threads world{2, std::chrono::seconds(60)};
    return ranks::on_ranks(world, [&](auto& comm) {
      auto const made = [&] {
        return ds::loader{telling{40}, ds::batches{8}, ds::shuffled{.seed = 1}, ds::workers{.threads = 1}, comm};
      };
      auto from = made();
      from.seek(seek(comm.rank()));
      auto const at = saved(from);
      auto loader = made();
      loader.next();
      try {
        loader.load(at.back());
      } catch (std::exception const&) {
        CHECK(loader.position() == ds::loader_position{0, 1});
        throw;
      }
      CHECK(loader.position() == from.position());
    });
  };
  CHECK(ranks::none(resumed([](int) { return ds::loader_position{2, 3}; })));
  auto const why = resumed([](int r) { return ds::loader_position{2, 3 + r}; });
  CHECK(why[0] == "ranks disagree about the data: epoch 2, batch 3 (rank 0); epoch 2, batch 4 (rank 1)");
  CHECK(why[1] == why[0]);
}

TEST_CASE("loader: the report counts what was delivered and says what limits the rate") {
  for (int const threads : {0, 2}) {
    ds::loader loader{telling{25, 3}, ds::batches{.size = 10}, ds::sequential{},
                      ds::workers{.threads = threads, .on_error = ds::on_error::skip}};
    CHECK(loader.report().bottleneck() == "no batch has been delivered");
    for ([[maybe_unused]] auto const& b : loader.epoch()) {}
    auto const r = loader.report();
    CHECK(r.batches == 3);
    CHECK(r.records == 24);
    CHECK(r.skipped == 1);
    // number, two doubles, letters of the longest record of the batch, a length
    CHECK(r.bytes == 24 * (8 + 16 + 4 + 4));
    CHECK(r.threads == threads);
    CHECK(r.filled > 0);
    CHECK(r.waited <= r.seconds);
    CHECK_UNARY(r.ready >= 0 && r.ready <= (threads ? 4 : 0));  // of the slots: two ahead, two more with threads
  }
  auto const says = [](double waited, double filled, double copied, int threads) {
    return ds::loader_report{
        .batches = 1, .seconds = 10, .waited = waited, .filled = filled, .copied = copied, .threads = threads}
        .bottleneck();
  };
  CHECK(says(0.1, 5, 0, 2) == "the step is the bottleneck: 1 % of the time was spent waiting for batches");
  CHECK(says(6, 6, 0, 0) ==
        "the source is the bottleneck: 60 % of the time was spent waiting for batches, without worker threads");
  CHECK(says(6, 19, 0, 2) ==
        "the source is the bottleneck: 60 % of the time was spent waiting for batches, with 2 workers busy for 95 %");
  CHECK(says(6, 19, 9, 2) == "the copies to the device are the bottleneck: they take 90 % of the time");
}

TEST_CASE("loader: DistributedSampler's indices are an order of this rank's own batches") {
  ds::distributed_sampler const order{.size = 23, .ranks = 3, .rank = 1, .seed = 4};
  ds::loader loader{telling{23}, ds::batches{.size = 5}, order};
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::int64_t> seen;
    for (auto const& b : loader.epoch()) seen.insert(seen.end(), b.records().begin(), b.records().end());
    CHECK(seen == order.indices(epoch));
  }
  CHECK(message([&] { ds::loader(telling{24}, ds::batches{}, order).batches_in(0); }) ==
        "distributed_sampler: the number of records must be size, 23, is 24");
}

namespace {
/// Computes, so that its records depend on the mode of the thread that reads them.
struct computed {
  auto fields() const { return ds::fields{ds::field<"x", float>{}, ds::field<"tiny", float>{}}; }
  std::int64_t size() const { return 40; }
  void read(std::int64_t i, auto const& out, ds::record_random&) const {
    float const volatile n = float(i + 1), small = 0x1p-120f;
    out.template value<"x">() = 1 / n;
    out.template value<"tiny">() = small * (1 / n);
  }
};
std::vector<std::uint32_t> as_bits(std::vector<float> const& all) {
  std::vector<std::uint32_t> bits(all.size());
  std::memcpy(bits.data(), all.data(), all.size() * 4);
  return bits;
}
}  // namespace

TEST_CASE("loader and resident: the same bytes whatever the floating-point mode of the threads") {
  std::vector<float> want;
  for (std::int64_t i = 0; i < computed().size(); ++i) {
    float const volatile n = float(i + 1), small = 0x1p-120f;
    want.push_back(1 / n), want.push_back(small * (1 / n));
  }
  auto const read = [](auto&& data, std::int64_t batches) {
    std::vector<float> all;
    for (std::int64_t t = 0; t < batches; ++t) {
      auto const batch = data.next();
      for (std::int64_t k = 0; k < batch.size(); ++k)
        for (float x : {batch.template get<"x">()[std::size_t(k)], batch.template get<"tiny">()[std::size_t(k)]})
          all.push_back(x);
    }
    return as_bits(all);
  };
  auto const bits = as_bits(want);
  ds::batches const cut{4, ds::last_batch::keep};
  for (int threads : {0, 2})
    for (int made : {FE_TONEAREST, FE_DOWNWARD})
      for (int used : test::roundings) {
        CAPTURE(threads);
        CAPTURE(made);
        CAPTURE(used);
        auto loader = [&] {
          test::computing const as(made, made == FE_DOWNWARD);
          return ds::loader(computed(), cut, ds::sequential(), ds::workers{.threads = threads});
        }();
        auto const got = [&] {
          test::computing const as(used, used != FE_TONEAREST);
          return read(loader, 10);
        }();
        CHECK(got == bits);
      }
  for (int mode : test::roundings) {
    CAPTURE(mode);
    auto const got = [&] {
      test::computing const as(mode, true);
      ds::resident data(computed(), cut, ds::sequential());
      return read(data, 10);
    }();
    CHECK(got == bits);
  }
}
