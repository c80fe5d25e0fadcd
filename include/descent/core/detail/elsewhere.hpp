// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

/// Classes that descent.hpp leaves out, declared only: the compiler's message about one of them shows its line, which
/// names the header to include.
namespace descent {

struct adafactor;   // #include <descent/rules/adafactor.hpp>
struct kl_shampoo;  // #include <descent/rules/kl_shampoo.hpp>
struct muon;        // #include <descent/rules/muon.hpp>
struct shampoo;     // #include <descent/rules/shampoo.hpp>
struct sm3;         // #include <descent/rules/sm3.hpp>
struct soap;        // #include <descent/rules/soap.hpp>
template <class Rule> struct matrices;  // #include <descent/matrices/host.hpp>, or <descent/matrices/cuda.cuh>

struct cuda;        // #include <descent/descent.cuh>
struct thrust_cpp;  // #include <descent/backends/thrust.hpp>
struct thrust_omp;  // #include <descent/backends/thrust.hpp>, and compile with -fopenmp

namespace comm {
class threads;      // #include <descent/comm/threads.hpp>
class mpi;          // #include <descent/comm/mpi.hpp>
class mpi_session;  // #include <descent/comm/mpi_session.hpp>
class nccl;         // #include <descent/comm/nccl.cuh>
struct launch;      // #include <descent/comm/launch.hpp>
struct by_file;     // #include <descent/comm/by_file.hpp>
struct by_tcp;      // #include <descent/comm/by_tcp.hpp>
}  // namespace comm
template <class Comm, class... Options> struct replicated;  // #include <descent/ranks/parallel.hpp>, on a device .cuh
template <class Comm, class... Options> struct sharded;  // #include <descent/ranks/parallel.hpp>, on a device .cuh
template <class Comm> struct model_parallel;  // #include <descent/ranks/model_parallel.hpp>, on a device .cuh
template <class V, class G, class P, class Backend> class diloco;  // #include <descent/training/diloco.hpp>, or .cuh
struct comm_error;  // #include <descent/core/communicator.hpp>

struct lbfgs;  // #include <descent/minimizers/lbfgs.hpp>
struct esgd;  // #include <descent/minimizers/esgd.hpp>
struct lr_sweep;  // #include <descent/training/lr_finder.hpp>
class any_optimizer;  // #include <descent/any_optimizer.hpp>
struct nvtx_ranges;  // #include <descent/policies/nvtx.hpp>

}  // namespace descent
