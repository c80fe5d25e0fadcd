// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include "nccl/launch.hpp"
#include "support/listener.hpp"

#include <cuda_runtime_api.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

/// A test that leaves a CUDA error fails the run.
struct no_error_left : test::listener {
  static inline bool found = false;
  std::string name;

  explicit no_error_left(doctest::ContextOptions const&) {}
  void test_case_start(doctest::TestCaseData const& test) override { name = test.m_name; }
  void test_case_end(doctest::CurrentTestCaseStats const&) override {
    cudaError_t const left = cudaPeekAtLastError();
    if (left == cudaSuccess) return;
    found = true;
    std::printf("rank %d: \"%s\" leaves %s behind\n", ranks::rank(), name.c_str(), cudaGetErrorName(left));
    cudaGetLastError();
  }
};
REGISTER_LISTENER("no_error_left", 1, no_error_left);

/// Without a rank in the environment, starts as many processes as the first argument says, each a rank that runs all
/// tests, and reports how they ended. They may share one device: each claims to be on its own host, so that NCCL allows
/// it, and communicates over sockets.
int main(int argc, char** argv) {
  if (ranks::is_rank()) {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return 77;
    if (cudaSetDevice(ranks::rank() % devices) != cudaSuccess) return 3;
    doctest::Context context(argc, argv);
    context.setOption("minimal", ranks::rank() != 0);
    int const code = context.run();
    return code == 0 && no_error_left::found ? 1 : code;
  }
  int const size = argc > 1 ? std::atoi(argv[1]) : 0;
  if (size < 1) {
    std::printf("usage: %s ranks [options of doctest]\n", argv[0]);
    return 2;
  }
  std::string folder = std::filesystem::temp_directory_path() / "ranks.XXXXXX";
  if (!mkdtemp(folder.data())) return 2;
  std::vector<pid_t> started;
  for (int r = 0; r < size; ++r) {
    pid_t const child = fork();
    if (child == 0) {
      auto const set = [](char const* name, std::string const& value) { setenv(name, value.c_str(), 1); };
      set("DESCENT_TEST_RANK", std::to_string(r));
      set("DESCENT_TEST_RANKS", std::to_string(size));
      set("DESCENT_TEST_FOLDER", folder);
      set("NCCL_HOSTID", folder + std::to_string(r));
      for (char const* off : {"NCCL_MNNVL_ENABLE", "NCCL_NVLS_ENABLE", "NCCL_RAS_ENABLE"}) set(off, "0");
      for (char const* on : {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"}) set(on, "1");
      set("NCCL_SOCKET_IFNAME", "lo");
      set("NCCL_MAX_CTAS", "2");
      argv[1] = argv[0];
      execv("/proc/self/exe", argv + 1);
      _exit(4);
    }
    started.push_back(child);
  }
  int worst = 0;
  for (int r = 0; r < size; ++r) {
    int status = 0;
    waitpid(started[std::size_t(r)], &status, 0);
    int const code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code == 77) {
      if (r == 0) std::puts("skipped: there is no CUDA device");
    } else if (code != 0) {
      std::printf("rank %d of %d ended with exit code %d\n", r, size, code);
    }
    worst = worst > code ? worst : code;
  }
  std::filesystem::remove_all(folder);
  return worst;
}
