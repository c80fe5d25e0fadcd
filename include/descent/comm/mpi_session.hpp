// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/communicator.hpp>
#include <descent/core/detail/seconds.hpp>

// MPI's withdrawn C++ bindings would need another library.
#if !defined(OMPI_SKIP_MPICXX)
#define OMPI_SKIP_MPICXX 1
#endif
#if !defined(MPICH_SKIP_MPICXX)
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace descent {

namespace detail {
inline std::string mpi_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return "error " + std::to_string(code);
  return text;
}
/// Whether this is between MPI_Init and MPI_Finalize.
inline bool mpi_runs() {
  int begun = 0, ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  return begun && !ended;
}

/// MPI_Comm_dup with a deadline.
inline MPI_Comm duplicate(MPI_Comm parent, std::chrono::nanoseconds deadline) {
  int between = 0, rank = 0, size = 0, done = 0;
  if (parent == MPI_COMM_NULL || MPI_Comm_test_inter(parent, &between) != MPI_SUCCESS || between)
    throw std::invalid_argument(std::string("comm::mpi: needs an intracommunicator, got ") +
                                (between ? "an intercommunicator" : "MPI_COMM_NULL"));
  MPI_Comm_rank(parent, &rank);
  MPI_Comm_size(parent, &size);
  auto made = std::make_unique<MPI_Comm>(MPI_COMM_NULL);  // MPI writes here until the request is done
  MPI_Errhandler before;
  MPI_Comm_get_errhandler(parent, &before);
  MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
  MPI_Request request = MPI_REQUEST_NULL;
  auto const start = deadline_clock::now();
  std::chrono::nanoseconds waited{0};
  int code = MPI_Comm_idup(parent, made.get(), &request);
  while (code == MPI_SUCCESS && (code = MPI_Test(&request, &done, MPI_STATUS_IGNORE)) == MPI_SUCCESS && !done &&
         (waited = deadline_clock::now() - start) <= deadline)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  MPI_Comm_set_errhandler(parent, before);
  MPI_Errhandler_free(&before);
  if (code == MPI_SUCCESS && done) return *made;
  static_cast<void>(made.release());
  throw comm_error("rank " + std::to_string(rank) + " waited " + seconds_of(waited) + " s in MPI_Comm_idup of " +
                   std::to_string(size) + " ranks for the others to construct their comm::mpi" +
                   (code == MPI_SUCCESS ? "" : ": " + mpi_text(code)));
}
}  // namespace detail

namespace comm {

/// Initializes MPI and finalizes it in the destructor. Make it the first object of main, with the try block inside its
/// scope, so that the message of an exception is printed before the destructor waits for the other ranks. If they do
/// not come within the grace period, it ends the process with exit code 75 after flushing stdio; nothing else is run.
/// Throws std::runtime_error if MPI has no MPI_THREAD_SERIALIZED, std::logic_error if MPI is already initialized.
///
///     int main(int argc, char** argv) {
///       descent::comm::mpi_session session{argc, argv};
///       try { ... } catch (std::exception const& e) { std::fprintf(stderr, "%s\n", e.what()); return 1; }
///     }
class mpi_session {
 public:
  /// The exit code if other ranks do not come.
  static constexpr int lost_ranks = 75;

  mpi_session(int& argc, char**& argv, std::chrono::nanoseconds grace = std::chrono::seconds(5))
      : grace_(detail::checked_wait("comm::mpi_session", "grace period", grace)) {
    int begun = 0, provided = MPI_THREAD_SINGLE;
    MPI_Initialized(&begun);
    if (begun) throw std::logic_error("comm::mpi_session: MPI is already initialized; a process can do this only once");
    if (int const code = MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided); code != MPI_SUCCESS)
      throw std::runtime_error("comm::mpi_session: MPI_Init_thread: " + detail::mpi_text(code));
    if (provided < MPI_THREAD_SERIALIZED) {
      MPI_Finalize();
      throw std::runtime_error(std::string("comm::mpi_session: MPI must provide MPI_THREAD_SERIALIZED, has ") +
                               (provided == MPI_THREAD_SINGLE ? "MPI_THREAD_SINGLE" : "MPI_THREAD_FUNNELED"));
    }
  }
  mpi_session(mpi_session const&) = delete;
  mpi_session& operator=(mpi_session const&) = delete;
  ~mpi_session() {
    std::fflush(nullptr);
    if (!detail::mpi_runs()) return;
    bool const thrown = std::uncaught_exceptions() > exceptions_;
    std::mutex mutex;
    std::condition_variable done;
    bool finished = false;
    std::thread watch([&] {
      std::unique_lock lock(mutex);
      if (done.wait_for(lock, grace_, [&] { return finished; })) return;
      std::fprintf(stderr, "descent: MPI_Finalize does not return, a rank is gone%s\n",
                   thrown ? "; an exception left the scope of mpi_session, catch it inside to see its message" : "");
      std::_Exit(lost_ranks);
    });
    MPI_Finalize();
    {
      std::lock_guard const lock(mutex);
      finished = true;
    }
    done.notify_all();
    watch.join();
  }

 private:
  std::chrono::nanoseconds grace_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace comm
}  // namespace descent
