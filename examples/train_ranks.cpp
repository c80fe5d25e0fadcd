// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Trains one network on several processes. `mpirun -np 4 train_ranks --help` lists the options.
//
// The training loop is in train.hpp; train_ranks.hpp adds the policy replicated or sharded. This program runs on the
// host, over MPI.
#include "train_ranks.hpp"

#include "parts/cpu.hpp"

#include <descent/comm/mpi.hpp>

#include <chrono>

int main(int argc, char** argv) {
  descent::comm::mpi_session session{argc, argv};
  return example::exit_code([&] {
    descent::comm::mpi comm{MPI_COMM_WORLD, std::chrono::minutes(1)};
    example::run_rank<example::cpu>(comm, {argv + 1, argv + argc});
  });
}
