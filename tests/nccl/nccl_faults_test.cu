// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/nccl.cuh>
#include <descent/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/policies/clip.hpp>
#include <descent/ranks/model_parallel.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/rules/sgd.hpp>

#include "nccl/ranks.cuh"
#include "support/clock.hpp"
#include "support/shared_clock.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

/// Ranks that are late or end, over NCCL.

namespace ds = descent;
using ds::comm_error;
using ranks::has, ranks::thrown, test::joined, test::shared_clock;
using namespace std::chrono_literals;

static std::atomic<bool> abort_hangs = false;

/// NCCL's own function, or one that never returns.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  for (; abort_hangs; pause()) shared_clock::is_out();
  static auto const own = reinterpret_cast<decltype(&ncclCommAbort)>(dlsym(RTLD_NEXT, "ncclCommAbort"));
  return own(comm);
}

/// The result of the last sum of this number of doubles. An aborted sum leaves this instead of its own result, as NCCL
/// may: its kernels continue with what is in their buffers.
static struct {
  std::size_t count = 0;
  double* last = nullptr;
  bool gives_up = false;
} watched;
ncclResult_t ncclAllReduce(void const* from, void* to, std::size_t n, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t s) {
  static auto const own = reinterpret_cast<decltype(&ncclAllReduce)>(dlsym(RTLD_NEXT, "ncclAllReduce"));
  bool const is_watched = n == watched.count && type == ncclFloat64;
  auto const copy = [&](void* to, void const* from) {
    test::cuda(cudaMemcpyAsync(to, from, n * sizeof(double), cudaMemcpyDeviceToDevice, s));
  };
  if (is_watched && watched.gives_up) return copy(to, watched.last), ncclSuccess;
  ncclResult_t result = own(from, to, n, type, op, comm, s);
  while (is_watched && result == ncclInProgress)
    if (ncclCommGetAsyncError(comm, &result) != ncclSuccess) break;  // until it is enqueued
  if (is_watched) copy(watched.last, to);
  return result;
}

namespace {

/// A path in the folder in which ranks, and the processes that they start, find each other.
std::filesystem::path folder_of(std::string const& name) {
  return std::filesystem::path(std::getenv("DESCENT_TEST_FOLDER")) / name;
}

/// A deadline by own_clock, and one that never passes in a test.
constexpr auto brief = 200ms;
constexpr auto patience = 60s;  // the default of joined

/// Deadlines use a clock of all ranks. It advances once a rank is late or gone, and only while the watcher of each
/// other rank has had its turn: a slow rank is never taken for late. Must be made before the communicator.
class own_clock {
 public:
  explicit own_clock(std::chrono::nanoseconds step) {
    static int number = 0;
    auto* const shared = shared_clock::in_file(folder_of("clock." + std::to_string(number++)));
    shared_clock::does_not_count();
    shared_clock::begin(shared, ranks::rank(), ranks::size(), step, 12);
  }
  own_clock(own_clock const&) = delete;
  ~own_clock() {
    shared_clock::is_out();
    shared_clock::end();
  }
};

/// The results of a run: the reason of its end, and the values.
struct outcome {
  std::string why;
  std::vector<float> value;
};

std::vector<float> gradient(int rank, int t) {
  std::vector<float> g(9000);
  for (std::size_t i = 0; i < g.size(); ++i) g[i] = test::noise(i, std::uint64_t(31 * t + rank));
  return g;
}

/// A model of which each rank has a part. Whether to skip a step is decided for all of it.
auto const in_parts = [](auto& comm) { return ds::model_parallel{comm}; };

template <class Policy> auto optimizer_of(ds::parameters<float> const& list, Policy policy, ds::cuda on) {
  return ds::optimizer{list, ds::sgd{.lr = 0.5}, policy, on};
}
template <class Comm>
auto optimizer_of(ds::parameters<float> const& list, ds::model_parallel<Comm> policy, ds::cuda on) {
  return ds::optimizer{list, ds::sgd{.lr = 0.5}, ds::skip_nonfinite{}, policy, on};
}

/// Steps until something ends them; before step `at`, each rank runs `fault`.
template <class Policy, class Fault>
outcome train(ds::comm::nccl& comm, Policy policy, int steps, int at, Fault const& fault) {
  test::stream s;
  test::device_vector<float> value(std::vector<float>(9000, 1), s), g(gradient(0, 0), s);
  ds::parameters<float> list;
  list.add("w", value.data(), g.data(), 9000);
  list.mark_part("w");
  auto opt = optimizer_of(list, policy, ds::cuda{s});
  outcome end;
  try {
    for (int t = 0; t < steps; ++t) {
      g.put(gradient(comm.rank(), t), s);
      if (t == at) fault(opt);
      opt.step();
      comm.wait(s);
    }
  } catch (comm_error const& e) {
    end.why = e.what();
  }
  test::cuda(cudaStreamSynchronize(s));  // this returns, since the collectives were aborted
  end.value = value.get(s);
  return end;
}

std::string name_of(int rank) { return "rank " + std::to_string(rank); }

/// The step before which ranks run their fault.
constexpr int at = 3;

/// The number of the next meeting that this rank's device begins.
std::int64_t next_meeting(ds::comm::nccl const& comm) {
  return __atomic_load_n(&comm.marks()->begun, __ATOMIC_ACQUIRE) + 1;
}
/// Whether the devices of all other ranks wait in this meeting.
bool others_wait(std::int64_t meeting) {
  return test::comes_true([&] { return shared_clock::others_have_come(meeting); });
}
/// The others wait for this rank until they end.
void is_late(ds::comm::nccl const& comm) {
  CHECK(others_wait(next_meeting(comm)));
  shared_clock::is_late();
  CHECK(test::comes_true(shared_clock::others_are_out));
}
/// The same for a process that is stopped, as by `kill -STOP`.
void is_stopped(ds::comm::nccl const& comm) {
  std::int64_t const meeting = next_meeting(comm);  // a forked process may not reach the device's memory
  pid_t const stopped = getpid(), helper = fork();
  if (helper == 0) {
    kill(stopped, SIGSTOP);
    bool const waited = others_wait(meeting);
    shared_clock::is_out();
    bool const ended = test::comes_true(shared_clock::others_are_out);
    shared_clock::is_out(false);
    kill(stopped, SIGCONT);
    _exit(waited && ended ? 0 : 1);
  }
  int status = 1;
  waitpid(helper, &status, 0);
  CHECK(status == 0);
}

/// Runs a test again in its own process with these environment settings; returns its exit code.
int in_own_process(std::string const& test, std::string const& name, std::string const& settings) {
  std::filesystem::create_directories(folder_of(name));
  std::string const program = std::filesystem::read_symlink("/proc/self/exe");
  std::string const again =
      settings + " DESCENT_TEST_FOLDER='" + folder_of(name).string() + "' '" + program + "' --test-case='" + test + "'";
  int const status = std::system(again.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// The values after this number of steps of ranks that all go on.
template <class PolicyOf> std::vector<float> reference(PolicyOf const& policy_of, int steps) {
  joined comm;
  return train(comm, policy_of(comm), steps, -1, [](auto&) {}).value;
}

/// All ranks step, but one makes the others wait. They name it, and report where and how long they waited.
template <class PolicyOf, class Fault>
void check_waited_for(int which, PolicyOf const& policy_of, Fault const& fault, std::string const& what_it_does) {
  if (ranks::size() == 1) return;
  auto const want = reference(policy_of, at);
  own_clock const clock(brief / 20);
  joined comm{brief};
  shared_clock::counts_here(&comm.marks()->begun);
  outcome const end = train(comm, policy_of(comm), 6, at, [&](auto&) {
    if (comm.rank() == which) fault(comm);
  });
  INFO("rank ", comm.rank(), ": ", end.why);
  CHECK(end.why.starts_with(name_of(comm.rank()) + " "));
  CHECK(has(end.why, " waited 0.2 s in collective "));
  CHECK(has(end.why, " for " + name_of(which) + "; " + name_of(which) + " " + what_it_does));
  if (comm.rank() != which) CHECK(end.why.starts_with(name_of(comm.rank()) + " waited "));
  CHECK(end.value == want);
  CHECK_THROWS_AS(comm.check(), comm_error);
}

}  // namespace

TEST_CASE("a rank that is late ends the others' step at the deadline; values are those of the last complete step") {
  check_waited_for(ranks::size() - 1, ranks::replicated, is_late, "has reached collective ");
  check_waited_for(0, ranks::sharded_ordered, is_late, "has reached collective ");
  check_waited_for(0, in_parts, is_late, "has reached collective ");
}

TEST_CASE("a rank that is stopped is named, whichever it is; values are those of the last complete step") {
  check_waited_for(ranks::size() - 1, ranks::sharded, is_stopped, "has not answered for ");
}

TEST_CASE("an exception on one rank ends the others at once; its text reaches them by abort()") {
  if (ranks::size() == 1) return;
  auto const run = [](int which, bool tells) {
    own_clock const clock(100ms);
    std::string const why = thrown([&] {
      joined comm;
      try {
        train(comm, ds::replicated{comm}, 6, at, [&](auto&) {
          if (comm.rank() != which) return;
          shared_clock::is_late();
          throw std::runtime_error("no more data");
        });
        comm.check();
      } catch (std::exception const& e) {
        if (tells) comm.abort(e.what());
        throw;
      }
    });
    INFO("rank ", ranks::rank(), ": ", why);
    if (ranks::rank() == which) CHECK(why == "no more data");
    else CHECK(why.ends_with(": " + name_of(which) + (tells ? " ended: no more data" : " ended with an exception")));
  };
  run(0, false);
  run(1, false);
  run(0, true);
  run(ranks::size() - 1, true);
}

TEST_CASE("a group that is frozen or changed on one rank alone ends the step of all, and all say what differs") {
  if (ranks::size() == 1) return;
  auto const others = [](std::string const& have) {
    std::string text = have + " (rank 0";
    for (int r = 2; r < ranks::size(); ++r) text += ", " + std::to_string(r);
    return text + "); ";
  };
  auto const check = [&](auto const& policy_of, std::string const& fact, auto const& change) {
    auto const want = reference(policy_of, at);
    joined comm;
    outcome const end = train(comm, policy_of(comm), 6, at, [&](auto& opt) {
      if (comm.rank() == 1) change(opt);
    });
    INFO("rank ", comm.rank(), ": ", end.why);
    CHECK(has(end.why, "rank 0 is in step(), but ranks differ: " + fact + " (rank 1)"));
    CHECK(end.value == want);
  };
  check(ranks::sharded, others("group 0 is not frozen") + "group 0 is frozen", [](auto& opt) { opt.freeze(0); });
  auto const changes = [](auto& opt) { opt.group(0).weight_decay = 0.5; };
  auto const decay = others("weight_decay of group 0 is 0") + "weight_decay of group 0 is 0.5";
  check(ranks::sharded, decay, changes);
  check(in_parts, decay, changes);
}

TEST_CASE("no step uses what an abandoned sum left of an earlier one") {
  auto const check = [](std::size_t count, auto const& policy_of) {
    joined comm;
    test::stream s;
    test::device_vector<double> last(std::vector<double>(4), s);
    test::device_vector<float> value(std::vector<float>(9000, 1), s), g(gradient(0, 0), s);
    ds::parameters<float> list;
    list.add("w", value.data(), g.data(), 9000);
    ds::optimizer opt{list, ds::sgd{.lr = 0.5}, ds::skip_nonfinite{}, policy_of(comm), ds::cuda{s}};
    watched = {count, last.data(), false};
    auto const step = [&](float first) {
      auto now = gradient(comm.rank(), 1);
      now[0] = first;
      g.put(now, s);
      opt.step();
    };
    step(1);
    CHECK(opt.report().applied);
    step(INFINITY);
    CHECK(opt.report().skipped == 1);  // so that t and the rates are the same in the next step
    auto const before = value.get(s);
    watched.gives_up = true;
    static_cast<void>(thrown([&] { step(1); }));  // may throw, if the fault is noticed before its end
    s.wait();
    watched = {};
    CHECK(value.get(s) == before);
  };
  check(ds::detail::collective_sum_count, ranks::replicated);
  check(ds::detail::collective_sum_count, ranks::sharded);
  check(1, ranks::sharded);  // the sum of the gather
}

// ---- ranks that do not begin ---------------------------------------------------------------------------------------

namespace {

template <class Policy> void make_and_step(joined& comm, ds::parameters<float> const& list, Policy policy) {
  test::stream s;
  ds::optimizer opt{list, ds::sgd{.lr = 0.5}, policy, ds::cuda{s}};
  opt.step();
  comm.wait(s);
}

/// What a rank throws when the last one lacks something while it makes its second optimizer. It throws at once, not at
/// the deadline.
template <class PolicyOf, class Lack>
std::string ended_by(std::size_t count, PolicyOf const& policy_of, Lack const& lack) {
  joined comm;
  test::stream s;
  test::device_vector<float> const value(std::vector<float>(count, 1), s), g(std::vector<float>(count, 1), s);
  ds::parameters<float> list;
  list.add("w", value.data(), g.data(), count);
  std::string const why = thrown([&] {
    make_and_step(comm, list, policy_of(comm));
    auto const missing = lack(comm.rank() == comm.size() - 1);
    make_and_step(comm, list, policy_of(comm));
  });
  INFO("rank ", comm.rank(), ": ", why);
  CHECK(why != "");
  CHECK(!has(why, " waited " + std::to_string(patience.count()) + " s"));
  CHECK_THROWS_AS(comm.check(), comm_error);
  return why;
}

/// No memory can be allocated during a capture.
class capture_elsewhere {
 public:
  explicit capture_elsewhere(bool here) : here_(here) {
    if (here) test::cuda(cudaStreamBeginCapture(other_, cudaStreamCaptureModeGlobal));
  }
  ~capture_elsewhere() {
    cudaGraph_t broken = nullptr;
    if (here_) cudaStreamEndCapture(other_, &broken);
    if (broken) cudaGraphDestroy(broken);
    cudaGetLastError();
  }

 private:
  test::stream other_;
  bool here_;
};

/// Takes all memory of the device; of a simulated one, all but `but` bytes.
class almost_all_memory {
 public:
  almost_all_memory(bool here, std::size_t but) {
    std::size_t free = 0, total = 0;
    test::cuda(cudaMemGetInfo(&free, &total));
    void* p = nullptr;
    if (here && test::in_software()) {
      test::cuda(cudaMallocManaged(&p, free - but));  // which counts there
      taken_.push_back(p);
    } else if (here) {
      for (std::size_t size = free; size >= 4096; size /= 2)
        while (cudaMalloc(&p, size) == cudaSuccess) taken_.push_back(p);
      cudaGetLastError();
    }
  }
  almost_all_memory(almost_all_memory const&) = delete;
  ~almost_all_memory() {
    for (void* p : taken_) cudaFree(p);
  }

 private:
  std::vector<void*> taken_;
};

}  // namespace

TEST_CASE("an allocation that fails in one rank's constructor ends the calls of all at once") {
  bool const last = ranks::rank() == ranks::size() - 1;
  auto const at_first = [&](auto const& policy_of) {
    auto const why = ended_by(9000, policy_of, [](bool here) { return capture_elsewhere(here); });
    CHECK(has(why, "cudaMalloc failed: cudaErrorStreamCaptureUnsupported"));
    if (!last) CHECK(has(why, name_of(ranks::size() - 1) + " could not make its optimizer: "));
  };
  at_first(ranks::replicated);
  at_first(ranks::sharded);
  auto const why = ended_by(100000, ranks::sharded, [](bool here) { return almost_all_memory(here, 100000); });
  if (test::in_software()) CHECK(has(why, "cudaMalloc failed: cudaErrorMemoryAllocation"));
}

TEST_CASE("memory on one rank that is not its device's: nobody's values change" *
          doctest::skip(!test::host_memory_is_out_of_reach())) {
  bool const wrong = ranks::rank() == ranks::size() - 1;
  std::vector<float> const before(7, float(ranks::rank()));
  test::stream s;
  test::device_vector<float> const value(before, s), gradient(before, s);
  std::vector<float> elsewhere(7);
  ds::parameters<float> list;
  list.add("w", value.data(), wrong ? elsewhere.data() : gradient.data(), 7);
  std::string const why = thrown([&] {
    joined comm;
    make_and_step(comm, list, ds::replicated{comm});
  });
  INFO("rank ", ranks::rank(), ": ", why);
  if (wrong) CHECK(has(why, "parameter 'w': its gradient is "));
  else CHECK(why.ends_with(": " + name_of(ranks::size() - 1) + " ended with an exception"));
  CHECK(value.get(s) == before);
}

TEST_CASE("two ranks on one GPU are refused, with what to do about it") {
  if (ranks::size() == 1) return;
  char const* const inside = "DESCENT_TEST_ONE_GPU";
  if (!std::getenv(inside)) {  // NCCL reads its environment once
    CHECK(in_own_process("two ranks on one GPU*", "one_gpu",
                         std::string(inside) + "=1 NCCL_HOSTID=one CUDASIM_NCCL_SAME_GPU=1") == 0);
    return;
  }
  test::cuda(cudaSetDevice(0));
  std::string const why = thrown<comm_error>([] { joined comm; });
  INFO("rank ", ranks::rank(), ": ", why);
  CHECK(why.starts_with(name_of(ranks::rank()) + " "));
  CHECK(has(why, " in joining: NCCL reports "));
  CHECK(why.ends_with("; give each rank a device of its own, by cudaSetDevice(local_rank) or CUDA_VISIBLE_DEVICES"));
}

TEST_CASE("an abort that hangs ends the process with its own exit code, while the late rank is still alive") {
  if (ranks::size() == 1) return;
  int const last = ranks::size() - 1;
  auto const mark = [](std::filesystem::path const& in, int r) { return in / ("ended." + std::to_string(r)); };
  if (!std::getenv("DESCENT_TEST_ABORT_HANGS")) {
    int const code = in_own_process("an abort that hangs*", "abort", "DESCENT_TEST_ABORT_HANGS=1");
    CHECK(code == (ranks::rank() == last ? 0 : ds::comm::nccl::abort_hangs));
    std::ofstream{mark(folder_of("abort"), ranks::rank())};
    return;
  }
  abort_hangs = ranks::rank() != last;  // the last one also hears why all end
  own_clock const clock(brief / 20);
  joined comm{brief, 1s};
  train(comm, ds::replicated{comm}, 6, at, [&](auto&) {
    if (comm.rank() != last) return;
    shared_clock::is_late();
    bool const all_ended = test::comes_true([&] {
      for (int r = 0; r < last; ++r)
        if (!std::filesystem::exists(mark(folder_of(""), r))) return false;
      return true;
    });
    _exit(all_ended ? 0 : 1);
  });
}

TEST_CASE("bad input") {
  auto const nobody = [](int, int, auto&) {};
  CHECK_THROWS_WITH_AS(ds::comm::nccl(2, 2, nobody), "comm::nccl: rank must be in [0, size), is 2 of 2",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(ds::comm::nccl(0, 1, nobody, 0s), "comm::nccl: the deadline must be above 0, is 0 s",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(ds::comm::nccl(0, 1, nobody, 1s, -1s), "comm::nccl: the grace period must be above 0, is -1 s",
                       std::invalid_argument);
}

// This test must be the last: an ended process does not come back.
TEST_CASE("a rank that dies is named by all others at once; they have the values of the last complete step") {
  if (ranks::size() == 1) return;
  auto const want = reference(ranks::sharded, at);
  own_clock const clock(100ms);
  joined comm;
  shared_clock::counts_here(&comm.marks()->begun);
  outcome const end = train(comm, ds::sharded{comm}, 6, at, [&](auto&) {
    if (comm.rank() != 1) return;
    bool const waited = others_wait(next_meeting(comm));
    shared_clock::is_out();
    _exit(waited ? 0 : 1);
  });
  INFO("rank ", comm.rank(), ": ", end.why);
  CHECK(end.why.starts_with(name_of(comm.rank()) + " waited "));
  CHECK(has(end.why, " s in collective "));
  CHECK(!has(end.why, " waited " + std::to_string(patience.count()) + " s"));
  CHECK(has(end.why, ": rank 1 is gone; rank 1 had reached "));
  CHECK(end.value == want);
}
