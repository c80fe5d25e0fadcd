// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/device_memory.hpp>
#include <descent/engine/cuda/launch.cuh>
#include <descent/ranks/detail/cuda_rank_kernels.cuh>
#include <descent/ranks/detail/agreement.hpp>
#include <descent/ranks/detail/described_calls.hpp>
#include <descent/ranks/detail/differences.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace descent::detail {

/// Collectives on a few bytes of host memory, over a communicator for device memory. They wait for the stream.
template <class Comm> struct through_device {
  Comm& comm;
  cudaStream_t stream;
  int rank() const { return comm.rank(); }
  int size() const { return comm.size(); }
  void all_gather(std::byte const* from, std::byte* to, std::int64_t n) const {
    if (n == 0) return;
    std::size_t const all = std::size_t(n) * std::size_t(size());
    device_array<std::byte> const in(std::vector<std::byte>(from, from + n), stream), out(all);
    comm.all_gather(static_cast<std::byte const*>(in.get()), out.get(), n, stream);
    comm.wait(stream);
    out.read(to, stream, all);
  }
};
template <class Comm> through_device(Comm&, cudaStream_t) -> through_device<Comm>;

/// Runs f as a meeting of ranks, where no kernel of a step begins one.
template <class Comm, class F> void meet_on_stream(Comm& comm, cudaStream_t stream, char const* what, F const& f) {
  launch(enter_bucket<comm_progress>, 1, 1, stream, comm.marks(), comm.name_meeting(what));
  auto const end = [&] { launch(leave_bucket<comm_progress>, 1, 1, stream, comm.marks()); };
  try {
    f();
  } catch (...) {
    try {
      end();
    } catch (std::exception const&) {}  // the first exception is rethrown
    throw;
  }
  end();
}

/// On the backend's stream, or the default one.
template <> struct host_meeting<true> {
  template <class Comm, class Backend, class F>
  static void meet(Comm& comm, Backend const& backend, char const* what, F const& f) {
    cudaStream_t stream = nullptr;
    if constexpr (requires { backend.stream; }) stream = backend.stream;
    meet_on_stream(comm, stream, what, [&] { f(through_device{comm, stream}); });
    comm.wait(stream);
  }
};

/// What all exchanges of an optimizer with the ranks of a communicator need.
template <class Comm> class device_rank_calls {
 public:
  /// Makes the optimizer, with join(). If that fails, aborts the other ranks: they wait for it.
  template <class F> void start(F const& make) try { make(); } catch (std::exception const& e) {
    if (joined_) comm_->abort("rank " + std::to_string(comm_->rank()) + " could not make its optimizer: " + e.what());
    throw;
  }
  void check() const { comm_->check(); }
  void wait() const { comm_->wait(*stream_); }

  /// Runs f as a meeting of ranks, where no kernel of a step begins one.
  template <class F> void meet(char const* what, F const& f) { meet_on_stream(*comm_, *stream_, what, f); }
  /// Sums x over ranks. Each element comes from one rank; the others have 0.
  void add(double* x, std::int64_t n) { comm_->all_reduce(x, n, *stream_); }
  /// What ranks compare in each call, for the communicator to say if it differs.
  void describe(described_calls::all_facts facts) {
    described_->set_facts([number = number_, of = std::move(facts)](control_block const& c, loss_scale_state const& s) {
      auto all = of(c, s);
      all.push_back("optimizer " + std::to_string(number) + " of the program");
      return all;
    });
    if constexpr (requires { comm_->describe(described_); }) comm_->describe(described_);
  }

 protected:
  /// Waits for all ranks. Throws std::invalid_argument if their facts differ, or for what go_on() finds on all of them.
  template <class Facts, class GoOn>
  void join_with(Comm& comm, cudaStream_t const& stream, char const* what, Facts const& facts, GoOn const& go_on) {
    comm_ = &comm;
    stream_ = &stream;
    joined_ = true;  // from here on the other ranks wait, so a failure must abort them
    std::vector<std::string> const mine = facts();
    std::string difference;
    meet(what, [&] {
      through_device over{comm, stream};
      difference = difference_in(over, mine, number_);
      if (difference.empty()) difference = go_on(over);
    });
    joined_ = difference.empty();
    if (!joined_) throw std::invalid_argument(difference);
    wait();  // for all ranks, with a deadline; cudaMalloc would wait without one
  }
  template <class T> T read(T const* from) const {
    wait();
    T x;
    require_cuda(cudaMemcpyAsync(&x, from, sizeof x, cudaMemcpyDeviceToHost, *stream_), "cudaMemcpyAsync");
    require_cuda(cudaStreamSynchronize(*stream_), "cudaStreamSynchronize");
    return x;
  }
  std::uint64_t call_of(char const* name) const {
    std::uint64_t const call = detail::call_of(name, number_);
    described_->add_call(call, name);
    return call;
  }

  Comm* comm_ = nullptr;
  cudaStream_t const* stream_ = nullptr;  // the optimizer's current one
  std::uint64_t number_ = next_number();  // of the optimizer; join_with() makes it the same on all ranks

 private:
  std::shared_ptr<described_calls> const described_ = std::make_shared<described_calls>();
  bool joined_ = false;
};

/// Gives the communicators of an engine what ranks compare of its groups and rules for matrices.
template <class Engine, class Groups> void describe_to_ranks(Engine& engine, Groups const& groups) {
  auto const describe = [&](auto const& of_matrices) {
    auto const facts = [groups, of_matrices](control_block const& c, loss_scale_state const& scale) {
      auto all = facts_of_control(c, scale, groups);
      for (auto& fact : of_matrices()) all.push_back(std::move(fact));
      return all;
    };
    engine.ranks.describe(facts);
    engine.model.describe(facts);
  };
  if constexpr (requires { engine.matrices.common.rules; })
    describe([rules = engine.matrices.common.rules] { return facts_of_matrix_rules(rules); });
  else describe([] { return std::vector<std::string>(); });
}

}  // namespace descent::detail
