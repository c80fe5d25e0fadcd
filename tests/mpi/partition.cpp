// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/mpi.hpp>
#include <descent/comm/mpi_session.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/clip.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/rules/adamw.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <unistd.h>
#include <vector>

/// usage: partition steps deadline-in-seconds
///
/// Ranks that train. Each writes to stderr the name of its host, the number of its steps, and what ended it. No
/// deadline passes before the file $DESCENT_TEST_CUT exists.

namespace ds = descent;

namespace {

int steps, deadline;

descent::detail::deadline_clock::time_point since_the_cut() {
  using clock = std::chrono::steady_clock;
  static char const* const file = std::getenv("DESCENT_TEST_CUT");
  static auto const start = clock::now();
  static bool is_cut = false;
  static auto at = start;
  if (!is_cut && file && access(file, F_OK) == 0) is_cut = true, at = clock::now();
  return is_cut ? start + (clock::now() - at) : start;
}
bool const has_own_clock = (descent::detail::deadline_clock::source = since_the_cut, true);

void train(ds::comm::mpi& comm) {
  char host[64] = {};
  gethostname(host, sizeof host - 1);
  std::fprintf(stderr, "host %s\n", host);
  std::vector<float> p(20000), g(20000);
  ds::parameters<float> list;
  list.add("w", p.data(), g.data(), p.size());
  ds::optimizer opt{list, ds::adamw{}, ds::clip_norm{1}, ds::sharded{comm}};
  for (int t = 1; t <= steps; ++t) {
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = p[i] - float(i % 17) + float(comm.rank());
    opt.step();
    std::fprintf(stderr, "step %d\n", t);
  }
}

}  // namespace

// snippet: main
int main(int argc, char** argv) {
  ds::comm::mpi_session session{argc, argv, std::chrono::seconds(2)};
  steps = std::atoi(argv[1]);
  deadline = std::atoi(argv[2]);
  try {
    ds::comm::mpi comm{MPI_COMM_WORLD, std::chrono::seconds(deadline)};
    train(comm);  // makes an optimizer with ds::replicated{comm} or ds::sharded{comm}
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
// end
