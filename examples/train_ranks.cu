// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// train_ranks.cpp on GPUs, one for each process: `mpirun -np 2 train_ranks_cuda`, torchrun or srun. Only the
// communicator and the device differ. Ranks find each other through a file in the folder RENDEZVOUS (default: the
// current one), which all must see.
#include "train_ranks.hpp"

#include "parts/gpu.cuh"

#include <descent/comm/devices.hpp>
#include <descent/comm/launch.hpp>
#include <descent/comm/nccl.cuh>

#include <chrono>
#include <cstdlib>

int main(int argc, char** argv) {
  return example::exit_code([&] {
    // snippet: nccl
    auto const at = descent::comm::launch::from_environment();
    int devices = 0;
    cudaGetDeviceCount(&devices);
    cudaSetDevice(descent::comm::local_device(at.local_rank, devices));
    auto const meet = [&](int rank, int size, auto& value) {
      char const* const folder = std::getenv("RENDEZVOUS");
      if (size > 1) descent::comm::by_file{.folder = folder ? folder : ".", .job = at.job}(rank, size, value);
    };
    descent::comm::nccl comm{at.rank, at.size, meet, std::chrono::minutes(1)};
    // end
    example::run_rank<example::gpu>(comm, {argv + 1, argv + argc});
  });
}
