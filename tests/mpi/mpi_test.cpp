// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/mpi.hpp>
#include <descent/comm/mpi_session.hpp>
#include <descent/matrices/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/clip.hpp>
#include <descent/ranks/model_parallel.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sm3.hpp>

#include <doctest/doctest.h>
#include "support/ranks.hpp"
#include "support/shared_clock.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

/// Ranks that are processes. Each runs this whole file, in the same order.

namespace ds = descent;
using ds::half, ds::comm_error;
using ranks::has, ranks::thrown;
using namespace std::chrono_literals;

extern "C" int MPI_Isend(void const* data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* r) {
  test::shared_clock::event();
  return PMPI_Isend(data, n, type, to, tag, comm, r);
}
extern "C" int MPI_Test(MPI_Request* r, int* done, MPI_Status* status) {
  int const code = PMPI_Test(r, done, status);
  if (*done) test::shared_clock::event();
  return code;
}

namespace {

/// The number of rank r at i; sums of such numbers are rounded.
template <class T> T number(int r, std::int64_t i) {
  return ds::narrow<T>(std::sin(double(i % 9973) + 0.37 * r) * std::pow(2.0, double(i % 5) - r % 3));
}
template <class T> std::vector<T> numbers(int r, std::int64_t n, std::int64_t first = 0) {
  std::vector<T> x;
  for (std::int64_t i = 0; i < n; ++i) x.push_back(number<T>(r, first + i));
  return x;
}
template <class T> T sum_at(int ranks, std::int64_t i) {
  using real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  real sum = ds::widen<real>(number<T>(0, i));
  for (int r = 1; r < ranks; ++r) sum += ds::widen<real>(number<T>(r, i));
  return ds::narrow<T>(sum);
}
template <class T> bool same(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T> void collectives(ds::comm::mpi& comm, std::int64_t n) {
  int const ranks = comm.size(), rank = comm.rank();
  INFO("rank ", rank, ", ", n, " ", ds::type_name<T>());
  std::vector<T> want, whole = numbers<T>(rank, n);
  for (std::int64_t i = 0; i < n; ++i) want.push_back(sum_at<T>(ranks, i));
  comm.all_reduce(whole.data(), n);
  CHECK(same(whole, want));

  std::vector<T> part(static_cast<std::size_t>(n));
  auto const parts = numbers<T>(rank, ranks * n);
  want.clear();
  for (std::int64_t i = 0; i < n; ++i) want.push_back(sum_at<T>(ranks, rank * n + i));
  comm.reduce_scatter(parts.data(), part.data(), n);
  CHECK(same(part, want));

  std::vector<T> all(std::size_t(ranks * n));
  want.clear();
  for (int r = 0; r < ranks; ++r) {
    auto const one = numbers<T>(r, n);
    want.insert(want.end(), one.begin(), one.end());
  }
  auto const mine = numbers<T>(rank, n);
  comm.all_gather(mine.data(), all.data(), n);
  CHECK(same(all, want));
  std::fill(all.begin(), all.end(), T{});
  std::copy(mine.begin(), mine.end(), all.begin() + rank * n);
  comm.all_gather(all.data() + rank * n, all.data(), n);  // in place
  CHECK(same(all, want));

  want.clear();
  for (int r = 0; r < ranks; ++r) {
    auto const one = numbers<T>(r, n, rank * n);
    want.insert(want.end(), one.begin(), one.end());
  }
  comm.all_to_all(parts.data(), all.data(), n);
  CHECK(same(all, want));

  auto given = numbers<T>(rank, n);
  comm.broadcast(given.data(), n, ranks - 1);
  CHECK(same(given, numbers<T>(ranks - 1, n)));
}

/// Deadlines use a clock of all ranks, which advances when the waiting ranks miss only ranks that are out.
class own_clock {
 public:
  explicit own_clock(std::chrono::nanoseconds deadline) {
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Aint const bytes = rank == 0 ? MPI_Aint(sizeof(test::shared_clock::memory)) : 0;
    test::shared_clock::memory* memory = nullptr;
    MPI_Aint there = 0;
    int unit = 1;
    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window_);
    MPI_Win_shared_query(window_, 0, &there, &unit, &memory);
    if (rank == 0) new (memory) test::shared_clock::memory{};
    MPI_Barrier(MPI_COMM_WORLD);
    test::shared_clock::begin(memory, rank, size, deadline + 1ms);
  }
  own_clock(own_clock const&) = delete;
  ~own_clock() {
    test::shared_clock::end();
    MPI_Win_free(&window_);
  }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
};

/// The seconds after "waited".
double waited(std::string const& text) {
  std::size_t const at = text.find("waited ");
  return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + 7, nullptr);
}

}  // namespace

TEST_CASE("collectives: every rank has the same bits, sums are in the order of the ranks") {
  ds::comm::mpi comm{MPI_COMM_WORLD, 60s};
  for (std::int64_t n : {0, 1, 7, 4096, 4097, 30011}) {
    collectives<float>(comm, n);
    collectives<double>(comm, n);
    collectives<half>(comm, n);
    collectives<ds::bfloat16>(comm, n);
  }
  ds::comm::mpi pieces{MPI_COMM_WORLD, 60s, 100};  // no message above 100 bytes
  collectives<float>(pieces, 5003);
}

TEST_CASE("a rank that ends without an exception ends the others' next collective at once, with its name") {
  for (int which : {0, -1}) {
    int rank = 0, size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (which < 0) which = size - 1;
    std::string const why = thrown<comm_error>([&] {
      ds::comm::mpi comm{MPI_COMM_WORLD, 60s};
      double x = 1;
      comm.all_reduce(&x, 1);
      CHECK(x == size);
      if (rank == which) return;
      std::vector<float> longer(10000, 1);
      comm.all_reduce(longer.data(), 10000);
    });
    INFO("rank ", rank, ": ", why);
    if (rank == which) CHECK(why == "");
    else CHECK(has(why, ": rank " + std::to_string(which) + " has left after collective 1"));
  }
}

TEST_CASE("arguments that cannot be are refused before anything is sent") {
  ds::comm::mpi comm{MPI_COMM_WORLD, 60s};
  float x = 1;
  std::int64_t const most = std::int64_t(PTRDIFF_MAX / sizeof x) / comm.size();
  for (std::int64_t n : {std::int64_t(-1), most + 1, INT64_MAX}) {
    INFO(n);
    std::string const want = "comm::mpi: all_reduce of " + std::to_string(n) + " float: the count must be in [0, " +
                             std::to_string(most) + "]";
    CHECK_THROWS_WITH_AS(comm.all_reduce(&x, n), want.c_str(), std::invalid_argument);
    CHECK_THROWS_AS(comm.reduce_scatter(&x, &x, n), std::invalid_argument);
    CHECK_THROWS_AS(comm.all_gather(&x, &x, n), std::invalid_argument);
    CHECK_THROWS_AS(comm.all_to_all(&x, &x, n), std::invalid_argument);
    CHECK_THROWS_AS(comm.broadcast(&x, n, 0), std::invalid_argument);
  }
  CHECK_THROWS_AS(comm.broadcast(&x, 1, -1), std::invalid_argument);
  CHECK_THROWS_AS(comm.broadcast(&x, 1, comm.size()), std::invalid_argument);
  CHECK_THROWS_WITH_AS((ds::comm::mpi{MPI_COMM_WORLD, 0s}), "comm::mpi: the deadline must be above 0, is 0 s",
                       std::invalid_argument);
  CHECK_THROWS_AS((ds::comm::mpi{MPI_COMM_WORLD, 1s, 0}), std::invalid_argument);
  CHECK_THROWS_AS((ds::comm::mpi{MPI_COMM_NULL, 1s}), std::invalid_argument);
  int argc = 0;
  char** argv = nullptr;
  CHECK_THROWS_WITH_AS((ds::comm::mpi_session{argc, argv, -1s}),
                       "comm::mpi_session: the grace period must be above 0, is -1 s", std::invalid_argument);
  CHECK_THROWS_AS((ds::comm::mpi_session{argc, argv}), std::logic_error);  // main has one already
  comm.all_reduce(&x, 1);
  CHECK(x == comm.size());
}

TEST_CASE("memory that cannot be allocated is an error before anything is sent: the next collective works") {
  ds::comm::mpi comm{MPI_COMM_WORLD, 60s};
  float x = 1;
  std::int64_t const most = std::int64_t(PTRDIFF_MAX / sizeof x) / comm.size();
  CHECK_THROWS_AS(comm.all_gather(&x, &x, most), std::bad_alloc);
  comm.all_reduce(&x, 1);
  CHECK(x == comm.size());
}

TEST_CASE("a communicator has its own messages: two of them in turn") {
  ds::comm::mpi one{MPI_COMM_WORLD, 60s}, two{MPI_COMM_WORLD, 60s};
  std::vector<float> a(9000), b(5);
  for (int t = 0; t < 20; ++t) {
    std::fill(a.begin(), a.end(), float(one.rank() + t));
    std::fill(b.begin(), b.end(), float(two.rank() - t));
    one.all_reduce(a.data(), std::int64_t(a.size()));
    two.all_reduce(b.data(), std::int64_t(b.size()));
    float const ranks = float(one.size() * (one.size() - 1) / 2), times = float(one.size() * t);
    CHECK(a == std::vector<float>(a.size(), ranks + times));
    CHECK(b == std::vector<float>(b.size(), ranks - times));
  }
}

TEST_CASE("a rank that does not construct its communicator: the others say so within the deadline") {
  MPI_Comm world;
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  int rank, size;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  own_clock const clock(500ms);
  if (rank == size - 1) test::shared_clock::is_out();
  if (rank < size - 1) {
    std::string const why = thrown<comm_error>([&] { ds::comm::mpi{world, 500ms}; });
    INFO(why);
    CHECK(has(why, "rank " + std::to_string(rank) + " waited "));
    CHECK(has(why, " s in MPI_Comm_idup of "));
    CHECK(waited(why) == 0.501);
    test::shared_clock::is_out();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == size - 1) thrown<comm_error>([&] { ds::comm::mpi{world, 500ms}; });
}

TEST_CASE("processes do what one process does with the sum of their gradients") {
  ds::comm::mpi comm{MPI_COMM_WORLD, 60s};
  auto const check = [&](auto const& rule, auto policy, auto... policies) {
    auto const want = ranks::alone<float, float>(comm.size(), rule, policies...);
    ranks::model<float> m(comm.rank());  // values differ until the constructor broadcasts those of rank 0
    ds::optimizer opt{m.list(), rule, policies..., policy};
    for (int t = 0; t < ranks::steps; ++t) {
      m.set(t, comm.rank(), comm.rank() + 1);
      opt.step();
    }
    CHECK(m == want);
  };
  check(ds::adamw{}, ds::replicated{comm}, ds::clip_norm{1});
  check(ds::adamw{}, ds::sharded{comm}, ds::clip_norm{1}, ds::matrices{ds::sm3{}});
  check(ds::lamb{}, ds::replicated{comm, ds::ordered_sum{}});
  check(ds::lamb{}, ds::sharded{comm, ds::ordered_sum{}});
}

TEST_CASE("processes with parts of one model do what one process does with all of it") {
  ds::comm::mpi comm{MPI_COMM_WORLD, 60s};
  ranks::model<float> want, m;
  auto const has_tensor = [&](std::size_t k) { return int(k) * comm.size() / int(m.value.size()) == comm.rank(); };
  ds::parameters<float> all, part;
  for (std::size_t k = 0; k < m.value.size(); ++k) {
    all.add("w" + std::to_string(k), want.value[k], want.gradient[k]);
    if (has_tensor(k)) part.add("w" + std::to_string(k), m.value[k], m.gradient[k]);
  }
  ds::optimizer whole{all, ds::lamb{.lr = 0.01}, ds::clip_norm{0.5}};
  ds::optimizer opt{part, ds::lamb{.lr = 0.01}, ds::clip_norm{0.5}, ds::model_parallel{comm}};
  for (int t = 0; t < 3; ++t) want.set(t, 0, 1), m.set(t, 0, 1), whole.step(), opt.step();
  for (std::size_t k = 0; k < m.value.size(); ++k)
    if (has_tensor(k)) CHECK(same(m.value[k], want.value[k]));
  CHECK(opt.report().grad_norm == whole.report().grad_norm);
}

TEST_CASE("a rank that is late is named by all others, within the deadline; it hears of it, too") {
  own_clock const clock(1s);
  ds::comm::mpi comm{MPI_COMM_WORLD, 1s};
  if (comm.size() == 1) return;
  double x = 1;
  comm.all_reduce(&x, 1);
  int const late = comm.size() - 1;
  if (comm.rank() == late) {
    test::shared_clock::is_out();
    MPI_Barrier(MPI_COMM_WORLD);  // the others have given up
  }
  std::string const why = thrown<comm_error>([&] { comm.all_reduce(&x, 1); });
  if (comm.rank() != late) {
    test::shared_clock::is_out();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  INFO(why);
  CHECK(has(why, "collective 2, all_reduce of 1 double for rank " + std::to_string(late)));
  CHECK(waited(why) == 1);
  std::string const again = thrown<comm_error>([&] { comm.all_reduce(&x, 1); });
  CHECK(has(again, "rank " + std::to_string(comm.rank()) + " in all_reduce"));
}

TEST_CASE("ranks in different collectives all get an error that says so") {
  ds::comm::mpi comm{MPI_COMM_WORLD, 60s};
  if (comm.size() == 1) return;
  std::vector<float> x(8);
  std::string const why = thrown<comm_error>([&] {
    if (comm.rank() == 0) comm.all_reduce(x.data(), 8);
    else comm.broadcast(x.data(), 8, 0);
  });
  INFO(why);
  CHECK(has(why, "disagree about collective 1"));
}

TEST_CASE("an exception on one rank ends the calls of the others at once, with its number") {
  if (ds::comm::mpi{MPI_COMM_WORLD, 60s}.size() == 1) return;
  std::string const why = thrown([&] {
    ds::comm::mpi comm{MPI_COMM_WORLD, 60s};
    double x = 1;
    comm.all_reduce(&x, 1);
    if (comm.rank() == 1) throw std::runtime_error("no more data");
    comm.all_reduce(&x, 1);
  });
  CHECK((why == "no more data" || has(why, "rank 1 ended with an exception")));
}

TEST_CASE("ranks that disagree about the training setup throw the same sentence") {
  ds::comm::mpi comm{MPI_COMM_WORLD, 60s};
  if (comm.size() == 1) return;
  std::vector<float> p(9), g(9);
  ds::parameters<float> list;
  list.add("w", p.data(), g.data(), comm.rank() == 1 ? 8 : 9);
  std::string const why =
      thrown<std::invalid_argument>([&] { ds::optimizer{list, ds::adamw{}, ds::replicated{comm}}; });
  CHECK(has(why, "ranks disagree about the training setup: parameter 0 'w' of 9 elements"));
}
