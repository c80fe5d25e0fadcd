// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// One rank of docs/how_to.md's task for MPI: mpirun -np 2 how_to_mpi.
#include "../parts/arguments.hpp"
#include "../parts/claim.hpp"

// snippet: mpi
#include <descent/comm/mpi.hpp>
#include <descent/descent.hpp>

#include <vector>

namespace ds = descent;

void train(ds::parameters<float> const& params, std::vector<float>& dw) {
  ds::comm::mpi comm{MPI_COMM_WORLD};
  ds::optimizer opt{params, ds::sgd{.lr = 1}, ds::replicated{comm}};
  for (float& g : dw) g = float(comm.rank() + 1);  // the gradient of this rank's part of the batch
  opt.step();                                      // all ranks update with the mean
}
// end

int main(int argc, char** argv) {
  ds::comm::mpi_session session{argc, argv};
  return example::exit_code([] {
    std::vector<float> w(8), dw(8);
    ds::parameters<float> params;
    params.add("w", w, dw);
    train(params, dw);
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    example::claim(ranks > 1 && w[0] == -float(ranks + 1) / 2, "every rank has the mean of the gradients");
  });
}
