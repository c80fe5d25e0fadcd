// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/nccl.cuh>
#include <descent/descent.cuh>

#include "gpu/support.cuh"
#include "nccl/launch.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

/// Ranks that are late or end, over NCCL.

namespace ds = descent;
using ds::comm_error;
using namespace std::chrono_literals;

namespace {

bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

/// What a run of steps left behind: the reason of its end, the seconds until it was known, and the values.
struct outcome {
  std::string why;
  double seconds = 0;
  std::vector<float> value;
};

std::vector<float> gradient(int rank, int t) {
  std::vector<float> g(9000);
  for (std::size_t i = 0; i < g.size(); ++i) g[i] = test::noise(i, std::uint64_t(31 * t + rank));
  return g;
}

/// Steps until something ends them; in front of step `at` a rank does what it is told.
template <class Policy, class Fault>
outcome train(ds::comm::nccl& comm, Policy policy, int steps, int at, Fault const& fault) {
  test::stream s;
  test::device_vector<float> value(std::vector<float>(9000, 1), s), g(gradient(0, 0), s);
  ds::parameters<float> list;
  list.add("w", value.data(), g.data(), 9000);
  ds::optimizer opt{list, ds::sgd{.lr = 0.5}, policy, ds::cuda{s}};
  outcome end;
  auto start = std::chrono::steady_clock::now();
  try {
    for (int t = 0; t < steps; ++t) {
      g.put(gradient(comm.rank(), t), s);
      start = std::chrono::steady_clock::now();
      if (t == at) fault(opt);
      opt.step();
      comm.wait(s);
    }
  } catch (comm_error const& e) {
    end.why = e.what();
  }
  end.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  test::cuda(cudaStreamSynchronize(s));  // ends, for the collectives were aborted
  end.value = value.get(s);
  return end;
}

}  // namespace

TEST_CASE("a rank that is late ends the others' step at the deadline; values are those of the last complete step") {
  auto const run = [](auto policy_of) {
    std::vector<float> want;
    {
      ds::comm::nccl comm{ranks::rank(), ranks::size(), ranks::hand_out, 60s};
      want = train(comm, policy_of(comm), 3, -1, [](auto&) {}).value;
    }
    ds::comm::nccl comm{ranks::rank(), ranks::size(), ranks::hand_out, 2s};
    if (comm.size() == 1) return;
    bool const late = comm.rank() == comm.size() - 1;
    outcome const end = train(comm, policy_of(comm), 6, 3, [&](auto&) {
      if (late) std::this_thread::sleep_for(4s);
    });
    INFO("rank ", comm.rank(), ": ", end.why);
    if (late) CHECK(end.why != "");
    else CHECK((has(end.why, "waited 2 s in collective ") || has(end.why, "another rank is gone")));
    CHECK(end.seconds < 4 + 2 + 5);
    CHECK(end.value == want);
    CHECK_THROWS_AS(comm.check(), comm_error);
  };
  run([](auto& comm) { return ds::replicated{comm}; });
  run([](auto& comm) { return ds::sharded{comm, ds::ordered_sum{}}; });
}

TEST_CASE("an exception on one rank ends the others before the deadline") {
  if (ranks::size() == 1) return;
  std::string why;
  auto const start = std::chrono::steady_clock::now();
  try {
    ds::comm::nccl comm{ranks::rank(), ranks::size(), ranks::hand_out, 60s};
    train(comm, ds::replicated{comm}, 4, 2, [&](auto&) {
      if (comm.rank() == 0) throw std::runtime_error("no more data");
    });
    comm.check();
  } catch (std::exception const& e) {
    why = e.what();
  }
  INFO("rank ", ranks::rank(), ": ", why);
  CHECK(why != "");
  CHECK(std::chrono::steady_clock::now() - start < 30s);
}

TEST_CASE("a group that is frozen on one rank alone ends the step of all; values are those of the last complete step") {
  if (ranks::size() == 1) return;
  std::vector<float> want;
  {
    ds::comm::nccl comm{ranks::rank(), ranks::size(), ranks::hand_out, 60s};
    want = train(comm, ds::sharded{comm}, 3, -1, [](auto&) {}).value;
  }
  ds::comm::nccl comm{ranks::rank(), ranks::size(), ranks::hand_out, 60s};
  outcome const end = train(comm, ds::sharded{comm}, 6, 3, [&](auto& opt) { opt.freeze(0, comm.rank() == 1); });
  INFO("rank ", comm.rank(), ": ", end.why);
  CHECK(end.why != "");
  CHECK((has(end.why, "others in another call or optimizer, or with another t, rate or frozen group") ||
         has(end.why, "another rank is gone")));
  CHECK(end.seconds < 10);
  CHECK(end.value == want);
}

TEST_CASE("bad input") {
  auto const nobody = [](int, int, auto&) {};
  CHECK_THROWS_WITH_AS(ds::comm::nccl(2, 2, nobody), "comm::nccl: rank must be in [0, size), is 2 of 2",
                       std::invalid_argument);
  CHECK_THROWS_AS(ds::comm::nccl(0, 1, nobody, 0s), std::invalid_argument);
}

// The last one: a process that has ended does not come back.
TEST_CASE("a rank that dies ends the others' step, which names it; they have the values of the last complete step") {
  if (ranks::size() == 1) return;
  std::vector<float> want;
  {
    ds::comm::nccl comm{ranks::rank(), ranks::size(), ranks::hand_out, 60s};
    want = train(comm, ds::sharded{comm}, 2, -1, [](auto&) {}).value;
  }
  ds::comm::nccl comm{ranks::rank(), ranks::size(), ranks::hand_out, 20s};
  outcome const end = train(comm, ds::sharded{comm}, 6, 2, [&](auto&) {
    if (comm.rank() == 1) _exit(0);
  });
  INFO("rank ", comm.rank(), ": ", end.why);
  CHECK(has(end.why, "rank " + std::to_string(comm.rank()) + " in collective "));
  CHECK(end.seconds < 20 + 5);
  CHECK(end.value == want);
}
