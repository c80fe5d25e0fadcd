// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "ours.hpp"

#include <descent/version.hpp>

#include <cstdlib>
#if defined(BENCH_TBB)
#include <oneapi/tbb/global_control.h>
#endif

int main() {
#if defined(BENCH_TBB)
  char const* const given = std::getenv("OMP_NUM_THREADS");
  oneapi::tbb::global_control const limit(oneapi::tbb::global_control::max_allowed_parallelism,
                                          std::size_t(given ? std::atoi(given) : 1));
#endif
  return bench::serve(std::string("\"name\": \"descent, ") + bench::system::name() +
                      "\", \"compiler\": \"g++ " __VERSION__ "\", \"flags\": \"" BENCH_FLAGS "\"");
}
