// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/mpi.hpp>
#include <descent/comm/mpi_session.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/rules/adamw.hpp>

#include "support/rank_model.hpp"
#include "support/shared_clock.hpp"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>

/// usage: ranks folder replicated|sharded kind rank phase sends polls
///
/// Ranks that train, one of which ends: in a phase, after it has sent `sends` messages there and then polled `polls`
/// times for messages (MPI_Isend and MPI_Test are replaced here). Kinds: none; kill and stop (signals); exit (_exit);
/// throw (an exception after that collective); leave (an exception that leaves the scope of mpi_session). After each
/// part of the program, each rank writes to folder/RANK the part's number, a hash of the values, and the number of
/// messages it has sent in each phase so far; at the end it writes what it caught.

namespace ds = descent;
using namespace std::chrono_literals;

namespace {

constexpr auto deadline = 2s;
constexpr int steps = 5;

struct fault {
  std::string kind = "none", phase;
  long sends = 0, polls = 0;
  bool throws = false;  // after this collective
} at;
std::string phase;
std::map<std::string, long> sent;
std::FILE* out;

void happen() {
  std::string const kind = std::exchange(at.kind, "none");
  if (kind == "none") return;
  std::fprintf(out, "fault\n");
  std::fflush(out);
  if (kind == "kill" || kind == "stop" || kind == "exit") test::shared_clock::is_out();
  if (kind == "kill") raise(SIGKILL);
  else if (kind == "stop") raise(SIGSTOP);
  else if (kind == "exit") _exit(3);
  else at.throws = true;
}

}  // namespace

extern "C" int MPI_Isend(void const* data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* r) {
  int const code = PMPI_Isend(data, n, type, to, tag, comm, r);
  test::shared_clock::event();
  if (++sent[phase] == at.sends && phase == at.phase && at.polls == 0) happen();
  return code;
}
extern "C" int MPI_Test(MPI_Request* r, int* done, MPI_Status* status) {
  if (phase == at.phase && at.polls > 0 && sent[phase] >= at.sends && --at.polls == 0) happen();
  int const code = PMPI_Test(r, done, status);
  if (*done) test::shared_clock::event();
  return code;
}

namespace {

/// comm::mpi that marks the gather of values as a phase and can throw.
struct watched {
  static constexpr bool on_device = false;
  ds::comm::mpi under{MPI_COMM_WORLD, deadline};

  int rank() const { return under.rank(); }
  int size() const { return under.size(); }
  void abort(std::string const& why) noexcept { under.abort(why); }
  template <class T> void all_reduce(T* to, std::int64_t n) { under.all_reduce(to, n), check(); }
  template <class T> void reduce_scatter(T const* from, T* to, std::int64_t n) {
    under.reduce_scatter(from, to, n), check();
  }
  template <class T> void all_gather(T const* from, T* to, std::int64_t n) {
    std::string const before = phase;
    if (phase == "step") phase = "gather";
    under.all_gather(from, to, n), check();
    phase = before;
  }
  template <class T> void all_to_all(T const* from, T* to, std::int64_t n) { under.all_to_all(from, to, n), check(); }
  template <class T> void broadcast(T* data, std::int64_t n, int root) { under.broadcast(data, n, root), check(); }
  void check() {
    if (std::exchange(at.throws, false)) throw std::runtime_error("no more memory");
  }
};

struct training {
  ranks::model<float> m;
  int point = 0;

  explicit training(int rank) : m(rank) {}
  std::uint64_t hash() const {
    std::uint64_t h = 1469598103934665603u;
    for (auto const& tensor : m.value)
      for (float x : tensor) {
        std::uint32_t bits;
        std::memcpy(&bits, &x, 4);
        h = (h ^ bits) * 1099511628211u;
      }
    return h;
  }
  template <class F> void part(char const* name, F const& f) {
    phase = name;
    f();
    if (at.sends && sent[at.phase] >= at.sends) happen();
    phase = "between";
    std::fprintf(out, "point %d %s %llx", ++point, name, static_cast<unsigned long long>(hash()));
    for (auto const& [where, messages] : sent) std::fprintf(out, " %s=%ld", where.c_str(), messages);
    std::fprintf(out, "\n");
    std::fflush(out);
  }
  template <class Optimizer> void run(Optimizer& opt, int rank) {
    for (int t = 0; t < steps; ++t) {
      m.set(t, rank, rank + 1);
      part("step", [&] { opt.step(); });
      if (t % 2 == 0) {
        part("gradient_norm", [&] { opt.gradient_norm(); });
        part("swap_average", [&] { opt.swap_average(); });
        part("swap_average", [&] { opt.swap_average(); });
      }
    }
    part("last", [&] { opt.step(); });  // here at the latest, the remaining ranks notice
  }
};

template <class Policy> void train(training& all, watched& comm, Policy const& policy) {
  phase = "constructor";
  ds::optimizer opt{all.m.list(), ds::adamw{}, ds::clip_norm{1}, ds::ema{.decay = 0.5}, policy};
  all.part("constructor", [] {});
  all.run(opt, comm.rank());
}

int run(int argc, char** argv) {
  std::string const folder = argv[1], policy = argv[2], how = argv[3];
  bool const lost = how == "kill" || how == "stop" || how == "exit";
  ds::comm::mpi_session session{argc, argv, lost ? 2s : 20s};  // startup takes seconds on a busy machine
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  out = std::fopen((folder + "/" + std::to_string(rank)).c_str(), "w");
  std::fprintf(out, "pid %d\n", int(getpid()));
  if (how != "none" && std::atoi(argv[4]) == rank) at = {how, argv[5], std::atol(argv[6]), std::atol(argv[7])};
  bool const leaves = at.kind == "leave";
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  test::shared_clock::begin(test::shared_clock::in_file(folder + "/clock"), rank, size, deadline + 1ms);
  training all{rank};
  MPI_Barrier(MPI_COMM_WORLD);  // processes start at different times, which must not count towards the deadline
  try {
    watched comm;
    if (policy == "sharded") train(all, comm, ds::sharded{comm});
    else train(all, comm, ds::replicated{comm});
  } catch (std::exception const& e) {
    test::shared_clock::is_out();
    std::fprintf(out, "end %d %llx %s\n", all.point, static_cast<unsigned long long>(all.hash()), e.what());
    std::fflush(out);
    if (leaves) throw;
    return 1;
  }
  std::fprintf(out, "end %d %llx\n", all.point, static_cast<unsigned long long>(all.hash()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (std::exception const&) {
    return 2;
  }
}
