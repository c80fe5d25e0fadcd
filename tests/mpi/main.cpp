// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#define DOCTEST_CONFIG_IMPLEMENT
#include <descent/comm/mpi.hpp>

#include <doctest/doctest.h>

/// Every process runs all tests; only the first reports results.
int main(int argc, char** argv) {
  descent::comm::mpi_session session{argc, argv};
  doctest::Context context(argc, argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  context.setOption("minimal", rank != 0);
  return context.run();
}
